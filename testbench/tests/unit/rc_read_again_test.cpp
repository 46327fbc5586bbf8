// SPDX-License-Identifier: Apache-2.0
// Go-back-N, a READ that is asked for again while answers still wait at the responder: these go on
// from what is asked for, in the order of their PSNs, and nothing is answered twice that has not
// been answered once. READs are of four packets: PSNs 100-103, 104-107, 108-111.
#include <gtest/gtest.h>

#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using protocol::BthOpcode;
using transport::TxPlan;
using Psns = std::vector<std::uint32_t>;
using Opcodes = std::vector<BthOpcode>;

constexpr std::uint32_t kPacket = 256;
constexpr std::uint32_t kRead = 4 * kPacket;
constexpr std::uint64_t kSource = 0x8000;

class RcReadAgain : public ::testing::Test {
 protected:
  RcReadAgain() {
    fill(pair_.b, kSource, 3 * kRead, 7);
    for (std::uint32_t i = 0; i < 3; ++i) pair_.a.post_read(i * kRead, kSource + i * kRead, kRead);
    pair_.b.receive_all(pair_.a.send_all());
  }
  /// The responder's next packets.
  Packets answers(std::size_t count) {
    Packets packets(count);
    for (RcPacket& packet : packets) EXPECT_TRUE(pair_.b.respond(kTimeZero, packet));
    return packets;
  }
  /// The requester asks again for READ number `read` from its `skip`-th packet on.
  void again(std::uint32_t read, std::uint32_t skip) {
    TxPlan plan = crafted(BthOpcode::kReadRequest, 100 + 4 * read + skip, 0);
    plan.address = kSource + read * kRead + skip * kPacket;
    plan.message_length = kRead - skip * kPacket;
    pair_.b.receive(pair_.a.make_packet(plan));
  }
  RcPair pair_;
};

// 102 was lost; 103 to 105 were on their way. What is asked for comes at once, and the READ that
// had begun behind it begins anew.
TEST_F(RcReadAgain, AnswersGoOnFromTheMissingPacket) {
  answers(6);
  again(0, 2);
  const Packets rest = pair_.b.send_all();
  EXPECT_EQ(psns(rest), (Psns{102, 103, 104, 105, 106, 107, 108, 109, 110, 111}));
  EXPECT_EQ(
      opcodes({rest.begin(), rest.begin() + 6}),
      (Opcodes{BthOpcode::kReadRespFirst, BthOpcode::kReadRespLast, BthOpcode::kReadRespFirst,
               BthOpcode::kReadRespMiddle, BthOpcode::kReadRespMiddle, BthOpcode::kReadRespLast}));
}

// Of the READ that is being answered: it goes back.
TEST_F(RcReadAgain, TheAnswerUnderWayGoesBack) {
  answers(3);
  again(0, 1);
  const Packets rest = pair_.b.send_all();
  EXPECT_EQ(psns(rest), (Psns{101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111}));
  EXPECT_EQ(rest[0].bth.opcode, BthOpcode::kReadRespFirst);
  EXPECT_EQ(rest[2].bth.opcode, BthOpcode::kReadRespLast);
}

// A requester that goes back repeats all requests. Those that were not answered yet are answered
// once; those that were are put where they belong.
TEST_F(RcReadAgain, RepeatedRequestsAreAnsweredInTheirOrder) {
  answers(9);  // 100 to 108
  again(0, 3);
  again(1, 0);
  again(2, 0);
  EXPECT_EQ(psns(pair_.b.send_all()), (Psns{103, 104, 105, 106, 107, 108, 109, 110, 111}));
}

TEST_F(RcReadAgain, WhatIsStillToComeSaysItAll) {
  answers(2);
  again(0, 2);
  again(1, 0);
  again(1, 2);
  again(2, 0);
  EXPECT_EQ(psns(pair_.b.send_all()), (Psns{102, 103, 104, 105, 106, 107, 108, 109, 110, 111}));
  EXPECT_EQ(pair_.b.counters().duplicate_request, 4U);
}

// As many READs as there are resources can be accepted afterwards, whatever was asked for again.
TEST_F(RcReadAgain, ResourcesAreGivenBackOnce) {
  answers(6);
  again(0, 2);
  again(1, 0);
  pair_.a.receive_all(pair_.b.send_all());
  EXPECT_EQ(pair_.b.qp.reads_in_service, 0U);
  answers(0);
  for (std::uint32_t psn = 112; psn < 116; ++psn) {
    pair_.b.receive(pair_.a.make_packet(crafted(BthOpcode::kReadRequest, psn, 0)));
  }
  EXPECT_EQ(psns(pair_.b.send_all()), (Psns{112, 113, 114, 115}));
}

}  // namespace
}  // namespace rnic::testbench

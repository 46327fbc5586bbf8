// SPDX-License-Identifier: Apache-2.0
// End-to-end flow control of the reliable connection (IBTA vol 1, 9.7.7.2): LSN = MSN + credits. A
// SEND waits while its SSN is beyond LSN + 1; the one at LSN + 1 probes. MTU is 256.
#include <gtest/gtest.h>

#include "protocol/aeth.h"
#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using protocol::BthOpcode;
using protocol::WcStatus;
using protocol::WqeOpcode;

transport::RcConfig credits() {
  transport::RcConfig config;
  config.end_to_end_credits = true;
  return config;
}

/// Sends at `a` that were begun.
std::size_t begun(const Packets& packets) {
  std::size_t count = 0;
  for (const RcPacket& packet : packets) count += packet.bth.opcode == BthOpcode::kSendOnly ? 1 : 0;
  return count;
}

void post_sends(RcSide& side, int count) {
  for (int i = 0; i < count; ++i) side.post_send(0, 64);
}
void post_recvs(RcSide& side, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) side.post_recv(0x8000, 256);
}
/// What `b`'s NIC knows of its receive queue once `taken` more RECVs are gone.
void know_recvs(RcSide& b, std::size_t taken) {
  b.qp.receives_posted = static_cast<std::uint32_t>(b.recvs.size() - taken);
}

// Before the first ACK nothing is known: the first SEND is the probe. Its ACK (MSN 1, 4 RECVs
// left) makes LSN 5: SSN 2 to 6 may go, the sixth of them without a RECV known for it.
TEST(RcCredits, SendsWaitForRecvs) {
  RcPair pair(credits());
  post_recvs(pair.b, 5);
  post_sends(pair.a, 10);
  Packets sent = pair.a.send_all();
  ASSERT_EQ(begun(sent), 1U);
  EXPECT_EQ(pair.a.last_status, transport::PlanStatus::kBlocked);
  know_recvs(pair.b, 1);
  pair.b.receive_all(sent);
  Packets acks = pair.b.send_all();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0].aeth.syndrome, 4);  // code 4: four RECVs
  EXPECT_EQ(acks[0].aeth.msn, 1U);
  pair.a.receive_all(acks);
  sent = pair.a.send_all();
  EXPECT_EQ(begun(sent), 5U);
  EXPECT_EQ(pair.a.counters().credit_waits, 2U);  // the second SEND once, the seventh once
}

// The probe finds no RECV: RNR NAK, a wait, and the same packet again. Nothing else is sent.
TEST(RcCredits, TheProbeMeetsReceiverNotReady) {
  RcPair pair(credits());
  post_recvs(pair.b, 1);
  post_sends(pair.a, 3);
  know_recvs(pair.b, 1);
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(pair.b.send_all());  // MSN 1, no credit: LSN 1, SSN 2 may probe
  Packets probe = pair.a.send_all();
  ASSERT_EQ(begun(probe), 1U);
  pair.b.receive_all(probe);
  const Packets nak = pair.b.send_all();
  ASSERT_EQ(nak.size(), 1U);
  EXPECT_EQ(protocol::syndrome_kind(nak[0].aeth.syndrome), protocol::AethKind::kRnrNak);
  pair.a.receive_all(nak);
  EXPECT_TRUE(pair.a.send_all().empty());
  post_recvs(pair.b, 2);
  const Time later = microseconds(20);  // RNR timer 1 is 10 us
  probe = pair.a.send_all(later);
  ASSERT_EQ(begun(probe), 1U);
  know_recvs(pair.b, 1);
  pair.b.receive_all(probe, later);
  pair.a.receive_all(pair.b.send_all(later), later);
  EXPECT_EQ(begun(pair.a.send_all(later)), 1U);
  EXPECT_EQ(pair.a.completions.size(), 2U);
}

// WRITEs and READs take no RECV and push the limit along.
TEST(RcCredits, OthersDoNotWait) {
  RcPair pair(credits());
  pair.a.post_write(0, 0x8000, 64);
  pair.a.post_write(0, 0x8000, 64);
  pair.a.post_read(0, 0x8000, 64);
  pair.a.post_send(0, 64);
  pair.a.post_send(0, 64);
  pair.a.post_write(0, 0x8000, 64);  // behind a SEND that waits
  const Packets sent = pair.a.send_all();
  EXPECT_EQ(opcodes(sent), (std::vector{BthOpcode::kWriteOnly, BthOpcode::kWriteOnly,
                                        BthOpcode::kReadRequest, BthOpcode::kSendOnly}));
}

// Code 31 ends it: RECVs of a shared queue, or a device that does not count.
TEST(RcCredits, NoLimit) {
  RcPair pair(credits());
  post_recvs(pair.b, 8);
  post_sends(pair.a, 8);
  pair.b.receive_all(pair.a.send_all());  // b does not know a number: receives_posted as connected
  const Packets acks = pair.b.send_all();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0].aeth.syndrome, protocol::kAckUnlimitedCredit);
  pair.a.receive_all(acks);
  EXPECT_EQ(begun(pair.a.send_all()), 7U);
}

// An older ACK that comes late takes nothing back, and READ responses tell as well.
TEST(RcCredits, TheLimitNeverFalls) {
  RcPair pair(credits());
  post_recvs(pair.b, 8);
  post_sends(pair.a, 1);
  know_recvs(pair.b, 1);
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(pair.b.send_all());
  EXPECT_EQ(pair.a.qp.credit_limit, 1U + protocol::credits_of_code(protocol::credit_code(7)));
  const std::uint32_t before = pair.a.qp.credit_limit;
  pair.a.post_read(0, 0x8000, 64);
  pair.b.qp.receives_posted = 0;
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(pair.b.send_all());
  EXPECT_EQ(pair.a.qp.credit_limit, before + 1);  // the READ's own step
}

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
// Responder half of the reliable connection: MSN, acknowledgements, refusals, duplicates, READ
// responses. MTU is 256, the first expected PSN 100.
#include <gtest/gtest.h>

#include "protocol/aeth.h"
#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using protocol::BthOpcode;
using protocol::QpState;
using protocol::WqeOpcode;
using transport::TxPlan;
using Opcodes = std::vector<BthOpcode>;
using Psns = std::vector<std::uint32_t>;

constexpr std::uint8_t kAck = 0x1F;

/// A responder that is given made-up requests.
class RcResponder : public ::testing::Test {
 protected:
  void give(const TxPlan& plan) { pair_.b.receive(pair_.a.make_packet(plan)); }

  /// The only answer; a packet with PSN 0xFFFFFFFF when there is another number of them.
  RcPacket answer() {
    const Packets packets = pair_.b.send_all();
    EXPECT_EQ(packets.size(), 1U);
    RcPacket none;
    none.bth.psn = 0xFFFF'FFFF;
    return packets.size() == 1 ? packets[0] : none;
  }

  /// The last request given was refused with this syndrome and PSN, and the queue pair is down.
  void expect_refused(std::uint8_t syndrome, std::uint32_t psn) {
    const RcPacket nak = answer();
    EXPECT_EQ(nak.bth.opcode, BthOpcode::kAcknowledge);
    EXPECT_EQ(nak.aeth.syndrome, syndrome);
    EXPECT_EQ(nak.bth.psn, psn);
    EXPECT_EQ(pair_.b.qp.state, QpState::kError);
  }

  RcPair pair_;
};

TEST_F(RcResponder, MsnCountsExecutedMessages) {
  for (int i = 0; i < 2; ++i) pair_.b.post_recv(0x100, 1024);
  RcSide& a = pair_.a;
  const auto msn_after = [this, &a]() {
    pair_.b.receive_all(a.send_all());
    const Packets answers = pair_.b.send_all();
    a.receive_all(answers);
    return answers.back().aeth.msn;
  };
  a.post_send(0, 600);
  EXPECT_EQ(msn_after(), 1U);  // three packets, one message
  a.post_write(0, 0x8000, 600);
  a.post_write(0, 0x8000, 0);
  EXPECT_EQ(msn_after(), 3U);
  a.post_read(0, 0x8000, 600);
  EXPECT_EQ(msn_after(), 4U);
  a.post(WqeOpcode::kAtomicFadd, 0, 0x8000, 8);
  EXPECT_EQ(msn_after(), 5U);
  a.post(WqeOpcode::kWriteImm, 0, 0x8000, 300, 1);
  EXPECT_EQ(msn_after(), 6U);
  // 1 SEND of 3, WRITEs of 3 and 1, READ of 3, atomic, WRITE_IMM of 2: 13 PSNs.
  EXPECT_EQ(pair_.b.qp.expected_psn, 113U);
}

TEST_F(RcResponder, ReadResponsesCarryTheMsnOfTheirAcceptance) {
  pair_.a.post_read(0, 0x8000, 300);
  pair_.a.post_read(0, 0x8000, 10);
  pair_.b.receive_all(pair_.a.send_all());
  const Packets answers = pair_.b.send_all();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].aeth.msn, 1U);
  EXPECT_EQ(answers[1].aeth.msn, 1U);
  EXPECT_EQ(answers[2].aeth.msn, 2U);
}

TEST_F(RcResponder, MsnWrapsAt24Bits) {
  pair_.b.qp.msn = 0xFF'FFFF;
  give(crafted(BthOpcode::kWriteOnly, 100, 4));
  EXPECT_EQ(answer().aeth.msn, 0U);
}

TEST_F(RcResponder, AnswersOnlyWhenAsked) {
  give(crafted(BthOpcode::kWriteOnly, 100, 4, false));
  EXPECT_TRUE(pair_.b.send_all().empty());
  give(crafted(BthOpcode::kWriteOnly, 101, 4, true));
  const RcPacket ack = answer();
  EXPECT_EQ(ack.bth.psn, 101U);
  EXPECT_EQ(ack.aeth.syndrome, kAck);
  EXPECT_EQ(ack.aeth.msn, 2U);
  EXPECT_FALSE(ack.bth.solicited);
  EXPECT_EQ(ack.bth.pad_count, 0);
}

TEST(RcAckGap, CoalescesWithinTheGap) {
  RcPair pair{{64, microseconds(10)}};
  const auto give = [&pair](std::uint32_t psn, Time now) {
    pair.b.receive(pair.a.make_packet(crafted(BthOpcode::kWriteOnly, psn, 4)), now);
  };
  RcPacket packet;
  give(100, microseconds(1));
  ASSERT_TRUE(pair.b.respond(microseconds(1), packet));
  EXPECT_EQ(packet.not_before, microseconds(1));
  give(101, microseconds(2));
  give(102, microseconds(5));
  ASSERT_TRUE(pair.b.respond(microseconds(5), packet));
  EXPECT_EQ(packet.bth.psn, 102U);
  EXPECT_EQ(packet.aeth.msn, 3U);
  EXPECT_EQ(packet.not_before, microseconds(11));  // 1 us + gap
  EXPECT_FALSE(pair.b.respond(microseconds(5), packet));
  // The next may leave 10 us behind that one's time.
  give(103, microseconds(12));
  ASSERT_TRUE(pair.b.respond(microseconds(12), packet));
  EXPECT_EQ(packet.not_before, microseconds(21));
}

TEST(RcAckGap, WaitingAckHoldsUpNeitherNakNorReadResponse) {
  RcPair pair{{64, microseconds(10)}};
  const auto give = [&pair](const TxPlan& plan) { pair.b.receive(pair.a.make_packet(plan)); };
  give(crafted(BthOpcode::kWriteOnly, 100, 4));
  pair.b.send_all();
  give(crafted(BthOpcode::kWriteOnly, 101, 4));  // its ACK waits
  give(crafted(BthOpcode::kReadRequest, 102, 0));
  Packets answers = pair.b.send_all();
  ASSERT_EQ(opcodes(answers), (Opcodes{BthOpcode::kAcknowledge, BthOpcode::kReadRespOnly}));
  EXPECT_EQ(answers[0].not_before, kTimeZero);
  give(crafted(BthOpcode::kWriteOnly, 103, 4));  // its ACK waits
  give(crafted(BthOpcode::kWriteOnly, 105, 4));  // 104 is missing
  answers = pair.b.send_all();
  ASSERT_EQ(answers.size(), 1U);  // the NAK says what the ACK would have said
  EXPECT_EQ(answers[0].aeth.syndrome, 0x60);
  EXPECT_EQ(answers[0].bth.psn, 104U);
  EXPECT_EQ(answers[0].aeth.msn, 4U);
  EXPECT_EQ(answers[0].not_before, kTimeZero);
}

TEST_F(RcResponder, ReadResponseStream) {
  fill(pair_.b, 0x8000, 700, 3);
  pair_.a.post_read(0, 0x8000, 256);
  pair_.a.post_read(0, 0x8000, 700);
  pair_.a.post_read(0, 0x8000, 0);
  pair_.b.receive_all(pair_.a.send_all());
  const Packets answers = pair_.b.send_all();
  EXPECT_EQ(opcodes(answers), (Opcodes{BthOpcode::kReadRespOnly, BthOpcode::kReadRespFirst,
                                       BthOpcode::kReadRespMiddle, BthOpcode::kReadRespLast,
                                       BthOpcode::kReadRespOnly}));
  EXPECT_EQ(psns(answers), (Psns{100, 101, 102, 103, 104}));
  const std::uint32_t lengths[] = {256, 256, 256, 188, 0};
  const std::uint32_t outer = pair_.wire->outer_bytes();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].frame->payload_bytes, lengths[i]);
    EXPECT_FALSE(answers[i].bth.ack_request);
    const bool middle = i == 2;  // no AETH
    EXPECT_EQ(answers[i].frame->header_bytes, outer + (middle ? 12U : 16U));
    EXPECT_EQ(answers[i].aeth.syndrome, middle ? 0 : kAck);
  }
  pair_.a.receive_all(answers);
  EXPECT_EQ(pair_.a.completions.size(), 3U);
  EXPECT_TRUE(same_bytes(pair_.a, 0, pair_.b, 0x8000, 700));
}

TEST_F(RcResponder, ErrorInTheMiddleOfAReadResponse) {
  pair_.a.post_read(0, 0x8000, 700);
  pair_.b.receive_all(pair_.a.send_all());
  RcPacket first;
  ASSERT_TRUE(pair_.b.respond(kTimeZero, first));
  pair_.a.receive(first);
  TxPlan second;
  ASSERT_TRUE(pair_.b.engine().plan_response(pair_.b.qp, kTimeZero, second));
  pair_.b.engine().refuse_response(pair_.b.qp, second, transport::Refusal::kRemoteAccess,
                                   kTimeZero);  // the region is gone
  const RcPacket nak = answer();
  EXPECT_EQ(nak.bth.opcode, BthOpcode::kAcknowledge);
  EXPECT_EQ(nak.bth.psn, 101U);
  EXPECT_EQ(nak.aeth.syndrome, 0x62);
  pair_.a.receive(nak);
  ASSERT_EQ(pair_.a.completions.size(), 1U);
  EXPECT_EQ(pair_.a.completions[0].status, protocol::WcStatus::kRemoteAccessError);
}

TEST_F(RcResponder, InvalidOpcodeSequences) {
  struct Case {
    std::vector<BthOpcode> before;
    BthOpcode offending;
  };
  const Case cases[] = {
      {{}, BthOpcode::kSendMiddle},
      {{}, BthOpcode::kSendLast},
      {{}, BthOpcode::kWriteMiddle},
      {{}, BthOpcode::kWriteLast},
      {{}, BthOpcode::kWriteLastImm},
      {{BthOpcode::kSendFirst}, BthOpcode::kSendFirst},
      {{BthOpcode::kSendFirst}, BthOpcode::kSendOnly},
      {{BthOpcode::kSendFirst}, BthOpcode::kWriteMiddle},
      {{BthOpcode::kSendFirst}, BthOpcode::kReadRequest},
      {{BthOpcode::kSendFirst}, BthOpcode::kFetchAdd},
      {{BthOpcode::kWriteFirst}, BthOpcode::kSendLast},
      {{BthOpcode::kWriteFirst, BthOpcode::kWriteMiddle}, BthOpcode::kWriteOnly},
  };
  for (const Case& c : cases) {
    pair_.b.post_recv(0x100, 4096);
    std::uint32_t psn = 100;
    for (const BthOpcode opcode : c.before) {
      TxPlan plan = crafted(opcode, psn++, 256, false);
      plan.message_length = 1024;
      give(plan);
    }
    EXPECT_TRUE(pair_.b.send_all().empty());
    const bool payload = protocol::opcode_info(c.offending).may_carry_payload();
    give(crafted(c.offending, psn, payload ? 256 : 0));
    SCOPED_TRACE(protocol::opcode_name(c.offending));
    expect_refused(0x61, psn);
    pair_.restart(100);
    pair_.b.recvs.clear();
  }
}

TEST_F(RcResponder, WrongLengths) {
  struct Case {
    BthOpcode first;  ///< kAcknowledge: none
    BthOpcode offending;
    std::uint32_t bytes;
    std::uint32_t announced;
  };
  constexpr BthOpcode kNothing = BthOpcode::kAcknowledge;
  const Case cases[] = {
      {kNothing, BthOpcode::kSendFirst, 255, 0},
      {kNothing, BthOpcode::kSendOnly, 257, 0},
      {kNothing, BthOpcode::kWriteFirst, 252, 1024},
      {kNothing, BthOpcode::kWriteFirst, 256, 256},  // would have to be ONLY
      {kNothing, BthOpcode::kWriteOnly, 10, 11},
      {kNothing, BthOpcode::kWriteOnly, 10, 9},
      {kNothing, BthOpcode::kReadRequest, 0, 0x8000'0001},  // beyond 2^31
      {BthOpcode::kSendFirst, BthOpcode::kSendMiddle, 128, 0},
      {BthOpcode::kSendFirst, BthOpcode::kSendLast, 0, 0},
      {BthOpcode::kSendFirst, BthOpcode::kSendLast, 300, 0},
      {BthOpcode::kWriteFirst, BthOpcode::kWriteMiddle, 256, 512},  // nothing left for LAST
      {BthOpcode::kWriteFirst, BthOpcode::kWriteLast, 100, 357},
      {BthOpcode::kWriteFirst, BthOpcode::kWriteLast, 100, 355},
  };
  for (const Case& c : cases) {
    pair_.b.post_recv(0x100, 4096);
    std::uint32_t psn = 100;
    if (c.first != kNothing) {
      TxPlan plan = crafted(c.first, psn++, 256, false);
      plan.message_length = c.announced;
      give(plan);
    }
    TxPlan plan = crafted(c.offending, psn, c.bytes);
    plan.message_length = c.announced;
    give(plan);
    SCOPED_TRACE(protocol::opcode_name(c.offending) + " " + std::to_string(c.bytes));
    expect_refused(0x61, psn);
    pair_.restart(100);
    pair_.b.recvs.clear();
  }
}

// PadCnt must be what brings the payload to a word: of FIRST and MIDDLE 0.
TEST_F(RcResponder, WrongPads) {
  struct Case {
    BthOpcode opcode;
    std::uint32_t bytes;
    std::uint8_t pad;
  };
  for (const Case& c : {Case{BthOpcode::kSendFirst, 256, 1}, Case{BthOpcode::kWriteFirst, 256, 2},
                        Case{BthOpcode::kSendOnly, 8, 3}, Case{BthOpcode::kWriteOnly, 5, 2},
                        Case{BthOpcode::kWriteOnly, 5, 0}}) {
    SCOPED_TRACE(protocol::opcode_name(c.opcode) + " " + std::to_string(c.pad));
    pair_.b.post_recv(0x100, 4096);
    TxPlan plan = crafted(c.opcode, 100, c.bytes);
    plan.message_length = c.opcode == BthOpcode::kWriteFirst ? 1024 : c.bytes;
    const RcPacket packet = pair_.a.make_packet(plan);
    protocol::Bth bth = packet.bth;
    bth.pad_count = c.pad;
    bth.encode(packet.frame->header + pair_.wire->outer_bytes());
    pair_.b.receive(packet);
    expect_refused(0x61, 100);
    pair_.restart(100);
    pair_.b.recvs.clear();
  }
}

TEST_F(RcResponder, SendLongerThanTheReceiveBuffer) {
  pair_.b.post_recv(0x100, 299);
  pair_.a.post_send(0, 300);
  pair_.b.receive_all(pair_.a.send_all());
  expect_refused(0x61, 101);
}

TEST_F(RcResponder, MisalignedAtomic) {
  TxPlan plan = crafted(BthOpcode::kFetchAdd, 100, 0);
  plan.address = 0x1004;
  give(plan);
  expect_refused(0x61, 100);
}

TEST_F(RcResponder, RefusedAccess) {
  for (const BthOpcode opcode : {BthOpcode::kWriteOnly, BthOpcode::kReadRequest}) {
    TxPlan plan = crafted(opcode, 100, opcode == BthOpcode::kWriteOnly ? 8 : 0);
    plan.message_length = 8;
    plan.rkey = RcSide::kKey + 1;
    give(plan);
    expect_refused(0x62, 100);
    pair_.restart(100);
  }
  // No bytes, no check.
  TxPlan plan = crafted(BthOpcode::kWriteOnly, 100, 0);
  plan.rkey = RcSide::kKey + 1;
  give(plan);
  EXPECT_EQ(answer().aeth.syndrome, kAck);
}

TEST_F(RcResponder, BadReceiveBuffer) {
  pair_.b.post_recv(0x100, 64);
  pair_.b.bad_recv_sge = true;
  give(crafted(BthOpcode::kSendOnly, 100, 8));
  expect_refused(0x63, 100);
}

TEST_F(RcResponder, OneFatalNakAndThenSilence) {
  give(crafted(BthOpcode::kWriteOnly, 100, 8));
  TxPlan bad = crafted(BthOpcode::kWriteOnly, 101, 8);
  bad.rkey = RcSide::kKey + 1;
  give(bad);
  // Before the NAK has left, its followers arrive: no sequence NAK, no execution.
  give(crafted(BthOpcode::kWriteOnly, 102, 8));
  give(crafted(BthOpcode::kWriteOnly, 100, 8));
  expect_refused(0x62, 101);
  EXPECT_EQ(pair_.b.executed.size(), 1U);
  EXPECT_EQ(pair_.b.counters().resp_remote_access_errors, 1U);
}

TEST_F(RcResponder, TooManyReadsOutstanding) {
  pair_.b.qp.max_dest_rd_atomic = 2;
  for (const std::uint32_t psn : {100U, 101U, 102U}) give(crafted(BthOpcode::kReadRequest, psn, 0));
  const Packets answers = pair_.b.send_all();
  ASSERT_EQ(opcodes(answers),
            (Opcodes{BthOpcode::kReadRespOnly, BthOpcode::kReadRespOnly, BthOpcode::kAcknowledge}));
  EXPECT_EQ(answers[2].aeth.syndrome, 0x61);
  EXPECT_EQ(answers[2].bth.psn, 102U);
  EXPECT_EQ(pair_.b.qp.state, QpState::kError);
}

TEST_F(RcResponder, AnsweredReadsFreeTheirResource) {
  pair_.b.qp.max_dest_rd_atomic = 1;
  for (std::uint32_t psn = 100; psn < 105; ++psn) {
    give(crafted(psn % 2 == 0 ? BthOpcode::kReadRequest : BthOpcode::kFetchAdd, psn, 0));
    EXPECT_EQ(answer().bth.psn, psn);
  }
  // A duplicate holds none, whether its answer is still due or not.
  give(crafted(BthOpcode::kReadRequest, 104, 0));
  give(crafted(BthOpcode::kReadRequest, 105, 0));
  EXPECT_EQ(psns(pair_.b.send_all()), (Psns{104, 105}));
}

TEST_F(RcResponder, NoReadsWithoutResources) {
  pair_.b.qp.max_dest_rd_atomic = 0;
  give(crafted(BthOpcode::kReadRequest, 100, 0));
  expect_refused(0x61, 100);
}

TEST_F(RcResponder, DuplicatesAreAcknowledgedButNotExecuted) {
  pair_.b.post_recv(0x100, 64);
  pair_.b.post_recv(0x200, 64);
  give(crafted(BthOpcode::kSendOnly, 100, 8));
  give(crafted(BthOpcode::kWriteOnly, 101, 8));
  EXPECT_EQ(answer().bth.psn, 101U);
  give(crafted(BthOpcode::kSendOnly, 100, 8));
  RcPacket ack = answer();
  EXPECT_EQ(ack.bth.psn, 101U);  // newest state, not the duplicate's PSN
  EXPECT_EQ(ack.aeth.msn, 2U);
  give(crafted(BthOpcode::kWriteOnly, 101, 8, false));  // A = 0
  EXPECT_TRUE(pair_.b.send_all().empty());
  TxPlan wrong = crafted(BthOpcode::kWriteMiddle, 100, 8);  // errors in duplicates are ignored
  give(wrong);
  EXPECT_EQ(answer().aeth.syndrome, kAck);
  EXPECT_EQ(pair_.b.executed.size(), 2U);
  EXPECT_EQ(pair_.b.received.size(), 1U);
  EXPECT_EQ(pair_.b.counters().duplicate_request, 3U);
}

TEST_F(RcResponder, DuplicateReadIsAnsweredAgain) {
  fill(pair_.b, 0x1000, 700, 5);
  TxPlan read = crafted(BthOpcode::kReadRequest, 100, 0);  // PSNs 100-102 from 0x1000
  read.message_length = 700;
  give(read);
  EXPECT_EQ(psns(pair_.b.send_all()), (Psns{100, 101, 102}));
  give(crafted(BthOpcode::kWriteOnly, 103, 4, false));
  // The part from the second packet on.
  TxPlan rest = read;
  rest.psn = 101;
  rest.address = 0x1100;
  rest.message_length = 444;
  give(rest);
  const Packets again = pair_.b.send_all();
  EXPECT_EQ(opcodes(again), (Opcodes{BthOpcode::kReadRespFirst, BthOpcode::kReadRespLast}));
  EXPECT_EQ(psns(again), (Psns{101, 102}));
  EXPECT_EQ(again[0].aeth.msn, 2U);  // READ and WRITE, each counted once
  EXPECT_EQ(std::memcmp(again[0].frame->payload.data(), pair_.b.memory.data() + 0x1100, 256), 0);
  EXPECT_EQ(pair_.b.qp.expected_psn, 104U);
  EXPECT_EQ(pair_.b.counters().rx_read_requests, 1U);
}

TEST_F(RcResponder, DuplicateReadThatDoesNotMatchIsDropped) {
  TxPlan read = crafted(BthOpcode::kReadRequest, 100, 0);
  read.message_length = 700;
  give(read);
  pair_.b.send_all();
  TxPlan other = read;
  other.rkey ^= 1;
  give(other);
  other = read;
  other.address += 1;
  give(other);
  other = read;
  other.psn = 101;  // VA does not fit the PSN
  give(other);
  other = read;
  other.message_length = 701;
  give(other);
  other = read;
  other.psn = 99;  // never seen
  give(other);
  give(crafted(BthOpcode::kFetchAdd, 100, 0));  // was a READ
  EXPECT_TRUE(pair_.b.send_all().empty());
  // Four READs push the first out of the four resources.
  for (std::uint32_t psn = 103; psn < 107; ++psn) {
    give(crafted(BthOpcode::kReadRequest, psn, 0));
    pair_.b.send_all();
  }
  give(read);
  EXPECT_TRUE(pair_.b.send_all().empty());
}

TEST_F(RcResponder, DuplicateAtomicReturnsTheSavedValue) {
  const std::uint64_t initial = 40;
  std::memcpy(pair_.b.memory.data() + 0x1000, &initial, sizeof initial);
  TxPlan add = crafted(BthOpcode::kFetchAdd, 100, 0);
  add.swap_or_add = 2;
  give(add);
  const auto original = [this](const RcPacket& packet) {
    const std::uint8_t* aeth = packet.frame->header + pair_.wire->outer_bytes() + 12;
    return protocol::AtomicAckEth::decode(aeth + 4).original;
  };
  RcPacket first = answer();
  EXPECT_EQ(first.bth.opcode, BthOpcode::kAtomicAcknowledge);
  EXPECT_EQ(original(first), 40U);
  give(add);
  RcPacket again = answer();
  EXPECT_EQ(again.bth.psn, 100U);
  EXPECT_EQ(original(again), 40U);
  EXPECT_EQ(again.aeth.msn, 1U);
  std::uint64_t value = 0;
  std::memcpy(&value, pair_.b.memory.data() + 0x1000, sizeof value);
  EXPECT_EQ(value, 42U);  // added once
}

// The responder keeps as many answers as it has resources, here four. A duplicate of an atomic
// whose answer is gone must neither be executed again nor be answered with anything.
TEST_F(RcResponder, DuplicateAtomicThatIsForgottenIsDropped) {
  const auto memory = [this] {
    std::uint64_t value = 0;
    std::memcpy(&value, pair_.b.memory.data() + 0x1000, sizeof value);
    return value;
  };
  const auto add = [](std::uint32_t psn) {
    TxPlan plan = crafted(BthOpcode::kFetchAdd, psn, 0);
    plan.swap_or_add = 1;
    return plan;
  };
  const auto original = [this](const RcPacket& packet) {
    return protocol::AtomicAckEth::decode(packet.frame->header + pair_.wire->outer_bytes() + 16)
        .original;
  };
  for (std::uint32_t psn = 100; psn < 105; ++psn) {
    give(add(psn));
    EXPECT_EQ(original(answer()), psn - 100);
  }
  give(add(100));
  EXPECT_TRUE(pair_.b.send_all().empty());
  EXPECT_EQ(memory(), 5U);
  for (std::uint32_t psn = 101; psn < 105; ++psn) {  // the newest four are known
    give(add(psn));
    const RcPacket again = answer();
    EXPECT_EQ(again.bth.opcode, BthOpcode::kAtomicAcknowledge);
    EXPECT_EQ(again.bth.psn, psn);
    EXPECT_EQ(again.aeth.msn, 5U);
    EXPECT_EQ(original(again), psn - 100);
  }
  // READs take the same resources. What is known by then is PSN 102 to 104 and the READ.
  give(crafted(BthOpcode::kReadRequest, 105, 0));
  EXPECT_EQ(answer().bth.opcode, BthOpcode::kReadRespOnly);
  give(add(101));
  EXPECT_TRUE(pair_.b.send_all().empty());
  give(add(102));
  EXPECT_EQ(original(answer()), 2U);
  EXPECT_EQ(memory(), 5U);
  EXPECT_EQ(pair_.b.qp.expected_psn, 106U);
  EXPECT_EQ(pair_.b.qp.state, QpState::kRts);
  EXPECT_EQ(pair_.b.counters().rx_atomic_requests, 5U);
}

TEST_F(RcResponder, DropsSilentlyWhatIsNotForIt) {
  pair_.a.qp.av.pkey = 0xFFFE;  // another partition
  give(crafted(BthOpcode::kWriteOnly, 100, 4));
  pair_.a.qp.av.pkey = 0x7FFF;  // limited member of the same: matches a full one
  give(crafted(BthOpcode::kWriteOnly, 100, 4));
  EXPECT_EQ(pair_.b.executed.size(), 1U);
  pair_.b.qp.av.pkey = 0x7FFF;  // two limited members do not
  give(crafted(BthOpcode::kWriteOnly, 101, 4));
  EXPECT_EQ(pair_.b.executed.size(), 1U);
  pair_.a.qp.dest_qpn = 0x23;
  EXPECT_FALSE(pair_.b.receive(pair_.a.make_packet(crafted(BthOpcode::kWriteOnly, 101, 4))));
  pair_.a.qp.dest_qpn = 0x22;
  pair_.a.qp.av.destination_ipv4 = 0x77;
  EXPECT_FALSE(pair_.b.receive(pair_.a.make_packet(crafted(BthOpcode::kWriteOnly, 101, 4))));
}

// UC, UD, reserved and RD opcodes mean nothing to a reliable connection.
TEST_F(RcResponder, DropsOpcodesOfOtherServicesSilently) {
  for (const unsigned opcode : {0x24U, 0x2AU, 0x64U, 0x44U, 0x15U, 0x1FU, 0xC4U}) {
    SCOPED_TRACE(opcode);
    const RcPacket packet = pair_.a.make_packet(crafted(BthOpcode::kSendOnly, 100, 4));
    packet.frame->header[pair_.wire->outer_bytes()] = static_cast<std::uint8_t>(opcode);
    pair_.b.receive(packet);
    EXPECT_TRUE(pair_.b.send_all().empty());
    EXPECT_EQ(pair_.b.qp.expected_psn, 100U);
  }
}

// A duplicate needs no RECV, and no RNR NAK may come of it.
TEST_F(RcResponder, DuplicateSendNeedsNoReceive) {
  pair_.b.post_recv(0x100, 64);
  give(crafted(BthOpcode::kSendOnly, 100, 8));
  EXPECT_EQ(answer().aeth.syndrome, kAck);
  give(crafted(BthOpcode::kSendOnly, 100, 8));
  const RcPacket ack = answer();
  EXPECT_EQ(ack.aeth.syndrome, kAck);
  EXPECT_EQ(ack.bth.psn, 100U);
  EXPECT_EQ(pair_.b.received.size(), 1U);
}

TEST_F(RcResponder, DropsDamagedFramesSilently) {
  fill(pair_.a, 0, 64, 1);
  pair_.a.post_write(0, 0x8000, 64);
  const Packets sent = pair_.a.send_all();
  protocol::Frame& frame = *sent[0].frame;
  pair_.wire->materialize(frame);
  frame.payload.writable()[17] ^= 0x10;
  EXPECT_FALSE(pair_.b.receive(sent[0]));
  EXPECT_TRUE(pair_.b.send_all().empty());
  frame.payload.writable()[17] ^= 0x10;
  EXPECT_TRUE(pair_.b.receive(sent[0]));
}

}  // namespace
}  // namespace rnic::testbench

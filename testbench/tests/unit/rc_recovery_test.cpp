// SPDX-License-Identifier: Apache-2.0
// Loss and recovery on a reliable connection: sequence and implied NAKs, timeouts, RNR, retry
// limits. MTU 256, first PSN 100, acknowledgement timer 4.096 us * 2^4 = 65.536 us.
#include <gtest/gtest.h>

#include "protocol/aeth.h"
#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using protocol::BthOpcode;
using protocol::WcStatus;
using protocol::WqeOpcode;
using transport::PlanStatus;
using Opcodes = std::vector<BthOpcode>;
using Psns = std::vector<std::uint32_t>;

constexpr Time kTimer = nanoseconds(65'536);
constexpr Time kTick = picoseconds(1);

Packets without(Packets packets, std::size_t index) {
  packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(index));
  return packets;
}

TEST(RcRecovery, GoesBackToTheNakedPsn) {
  RcPair pair;
  fill(pair.a, 0, 1000, 1);
  pair.a.post_write(0, 0x8000, 1000);  // PSNs 100-103
  pair.a.post_write(0, 0xA000, 10);    // PSN 104
  pair.b.receive_all(without(pair.a.send_all(), 1));
  const Packets nak = pair.b.send_all();
  ASSERT_EQ(nak.size(), 1U);  // one, although 102, 103 and 104 were out of sequence
  EXPECT_EQ(nak[0].bth.opcode, BthOpcode::kAcknowledge);
  EXPECT_EQ(nak[0].aeth.syndrome, 0x60);
  EXPECT_EQ(nak[0].bth.psn, 101U);
  EXPECT_EQ(nak[0].aeth.msn, 0U);
  EXPECT_EQ(pair.b.counters().out_of_sequence, 3U);
  pair.a.receive_all(nak);
  const Packets again = pair.a.send_all();
  EXPECT_EQ(opcodes(again), (Opcodes{BthOpcode::kWriteMiddle, BthOpcode::kWriteMiddle,
                                     BthOpcode::kWriteLast, BthOpcode::kWriteOnly}));
  EXPECT_EQ(psns(again), (Psns{101, 102, 103, 104}));
  for (const RcPacket& packet : again) EXPECT_TRUE(packet.retransmission);
  pair.b.receive_all(again);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 2U);
  EXPECT_TRUE(same_bytes(pair.a, 0, pair.b, 0x8000, 1000));
  EXPECT_EQ(pair.b.executed.size(), 5U);
  EXPECT_EQ(pair.a.counters().packet_seq_err, 1U);
  EXPECT_EQ(pair.a.counters().retransmitted_packets, 4U);
}

TEST(RcRecovery, OneSequenceNakAGap) {
  RcPair pair;
  for (int i = 0; i < 6; ++i) pair.a.post_write(0, 0x8000, 10);  // PSNs 100-105
  const Packets sent = pair.a.send_all();
  const auto nak_psns = [&pair]() {
    Psns list;
    for (const RcPacket& packet : pair.b.send_all()) {
      if (packet.aeth.syndrome == 0x60) list.push_back(packet.bth.psn);
    }
    return list;
  };
  pair.b.receive(sent[1]);
  EXPECT_EQ(nak_psns(), (Psns{100}));
  pair.b.receive(sent[2]);
  pair.b.receive(sent[3]);
  EXPECT_EQ(nak_psns(), Psns{});
  pair.b.receive(sent[0]);  // the expected one ends the silence
  pair.b.receive(sent[4]);
  EXPECT_EQ(nak_psns(), (Psns{101}));
}

TEST(RcRecovery, SequenceNakAcknowledgesWhatIsBefore) {
  RcPair pair;
  for (int i = 0; i < 4; ++i) pair.a.post_write(0, 0x8000, 10);
  pair.b.receive_all(without(pair.a.send_all(), 2));
  const Packets nak = pair.b.send_all();
  ASSERT_EQ(nak.size(), 1U);  // the ACK of 101 had not been sent yet: the NAK replaces it
  EXPECT_EQ(nak[0].bth.psn, 102U);
  pair.a.receive_all(nak);
  EXPECT_EQ(pair.a.completions.size(), 2U);
}

TEST(RcRecovery, SequenceNaksSpendRetries) {
  RcPair pair;
  pair.a.qp.retry_count = 2;
  pair.restart(100);
  pair.a.post_write(0, 0x8000, 10);
  pair.a.post_write(0, 0x8000, 10);
  pair.a.send_all();
  const RcPacket nak = pair.b.make_packet(crafted_response(BthOpcode::kAcknowledge, 100, 0x60));
  for (int i = 0; i < 2; ++i) {
    pair.a.receive(nak);
    EXPECT_EQ(psns(pair.a.send_all()), (Psns{100, 101}));
  }
  pair.a.receive(nak);
  ASSERT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.a.completions[0].status, WcStatus::kRetryExceededError);
  EXPECT_EQ(pair.a.completions[1].status, WcStatus::kWrFlushError);
}

TEST(RcRecovery, LateAnswersEndAResend) {
  RcPair pair;
  pair.a.post_write(0, 0x8000, 300);  // PSNs 100-101
  pair.a.post_read(0, 0x8000, 300);   // PSNs 102-103
  pair.a.post_write(0, 0x8000, 10);   // PSN 104
  pair.b.receive_all(pair.a.send_all());
  const Packets answers = pair.b.send_all();
  pair.a.hold_placement = true;
  ASSERT_TRUE(pair.a.expire(kTimer));  // the answers are merely slow
  RcPacket packet;
  ASSERT_TRUE(pair.a.request(kTimer, packet));
  EXPECT_EQ(packet.bth.psn, 100U);
  pair.a.receive_all(answers, kTimer);
  // Nothing is left to be sent again, not even the READ that is still being placed.
  EXPECT_TRUE(pair.a.send_all(kTimer).empty());
  pair.a.release_placement();
  EXPECT_EQ(pair.a.completions.size(), 3U);
}

TEST(RcTimeout, RunsWhileSomethingIsUnacknowledged) {
  RcPair pair;
  EXPECT_EQ(pair.a.qp.retry_deadline, kTimeNever);
  for (int i = 0; i < 2; ++i) pair.a.post_write(0, 0x8000, 10);
  const Time start = microseconds(7);
  const Packets sent = pair.a.send_all(start);
  EXPECT_EQ(pair.a.qp.retry_deadline, start + kTimer);
  pair.b.receive(sent[0]);
  pair.a.receive_all(pair.b.send_all(), microseconds(20));
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(20) + kTimer);  // progress
  pair.b.receive(sent[1]);
  pair.a.receive_all(pair.b.send_all(), microseconds(30));
  EXPECT_EQ(pair.a.qp.retry_deadline, kTimeNever);
}

TEST(RcTimeout, ZeroMeansNoTimer) {
  RcPair pair;
  pair.a.qp.timeout_exponent = 0;
  pair.a.post_write(0, 0x8000, 10);
  pair.a.send_all();
  EXPECT_EQ(pair.a.qp.retry_deadline, kTimeNever);
}

TEST(RcTimeout, ResendsFromTheOldestUnacknowledged) {
  RcPair pair;
  pair.a.post_write(0, 0x8000, 10);   // PSN 100
  pair.a.post_write(0, 0x8000, 600);  // PSNs 101-103
  const Packets sent = pair.a.send_all();
  pair.b.receive(sent[0]);
  pair.a.receive_all(pair.b.send_all());
  EXPECT_FALSE(pair.a.expire(kTimer - kTick));
  ASSERT_TRUE(pair.a.expire(kTimer));
  EXPECT_EQ(psns(pair.a.send_all(kTimer)), (Psns{101, 102, 103}));
  EXPECT_EQ(pair.a.qp.retry_deadline, 2 * kTimer);
  EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 1U);
}

TEST(RcTimeout, FailsTheOldestAfterRetryCountResends) {
  for (std::uint8_t retry_count = 0; retry_count <= 7; ++retry_count) {
    RcPair pair;
    pair.a.qp.retry_count = retry_count;
    pair.restart(100);
    for (int i = 0; i < 3; ++i) pair.a.post_write(0, 0x8000, 10);
    pair.b.receive(pair.a.send_all()[0]);
    pair.a.receive_all(pair.b.send_all());
    std::uint32_t resends = 0;
    Time now = kTimeZero;
    while (pair.a.qp.retry_deadline != kTimeNever) {
      now = pair.a.qp.retry_deadline;
      pair.a.expire(now);
      if (!pair.a.send_all(now).empty()) ++resends;
    }
    EXPECT_EQ(resends, retry_count);
    EXPECT_EQ(now, kTimer * (retry_count + 1));
    ASSERT_EQ(pair.a.completions.size(), 3U);
    EXPECT_EQ(pair.a.completions[0].status, WcStatus::kSuccess);
    EXPECT_EQ(pair.a.completions[1].status, WcStatus::kRetryExceededError);
    EXPECT_EQ(pair.a.completions[2].status, WcStatus::kWrFlushError);
  }
}

TEST(RcTimeout, ProgressReloadsTheRetries) {
  RcPair pair{{1, kTimeZero}};  // every packet asks for an ACK
  pair.a.qp.retry_count = 1;
  pair.restart(100);
  pair.a.post_write(0, 0x8000, 5 * 256);
  Time now = kTimeZero;
  Packets sent = pair.a.send_all(now);
  for (std::uint32_t i = 0; i < 5; ++i) {
    now = pair.a.qp.retry_deadline;  // everything is lost once
    pair.a.expire(now);
    sent = pair.a.send_all(now);
    ASSERT_FALSE(sent.empty()) << i;
    EXPECT_EQ(sent[0].bth.psn, 100U + i);
    pair.b.receive(sent[0], now);
    pair.a.receive_all(pair.b.send_all(now), now);
  }
  ASSERT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.completions[0].status, WcStatus::kSuccess);
}

TEST(RcRead, LostResponseIsNoticedByALaterAck) {
  RcPair pair;
  pair.a.qp.retry_count = 1;
  pair.restart(100);
  fill(pair.b, 0x9000, 10, 1);
  pair.a.post_read(0x4000, 0x9000, 10);                          // PSN 100
  for (int i = 0; i < 4; ++i) pair.a.post_write(0, 0x8000, 10);  // PSNs 101-104
  const Packets sent = pair.a.send_all();
  pair.b.receive(sent[0]);
  pair.b.send_all();  // the response is lost
  for (std::size_t i = 1; i < sent.size(); ++i) {
    pair.b.receive(sent[i]);
    pair.a.receive_all(pair.b.send_all());  // four ACKs tell of the same loss
  }
  EXPECT_EQ(pair.a.counters().implied_nak_seq_err, 1U);
  EXPECT_TRUE(pair.a.completions.empty());
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{100, 101, 102, 103, 104}));
  EXPECT_EQ(again[0].bth.opcode, BthOpcode::kReadRequest);
  pair.b.receive_all(again);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 5U);
  EXPECT_TRUE(same_bytes(pair.a, 0x4000, pair.b, 0x9000, 10));
  EXPECT_EQ(pair.b.executed.size(), 6U);  // the READ twice, each WRITE once
}

TEST(RcRead, AsksAgainForTheMissingPart) {
  RcPair pair;
  fill(pair.b, 0x9000, 1000, 2);
  pair.a.post_read(0x4000, 0x9000, 1000);  // PSNs 100-103
  pair.b.receive_all(pair.a.send_all());
  const Packets answers = pair.b.send_all();
  ASSERT_EQ(answers.size(), 4U);
  pair.a.receive(answers[0]);
  pair.a.receive(answers[2]);  // 101 is lost
  pair.a.receive(answers[3]);
  EXPECT_EQ(pair.a.counters().implied_nak_seq_err, 1U);
  const Packets again = pair.a.send_all();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].bth.opcode, BthOpcode::kReadRequest);
  EXPECT_EQ(again[0].bth.psn, 101U);
  EXPECT_EQ(again[0].reth.va, 0x9000U + 256U);
  EXPECT_EQ(again[0].reth.dma_length, 1000U - 256U);
  EXPECT_TRUE(again[0].retransmission);
  pair.b.receive_all(again);
  const Packets rest = pair.b.send_all();
  EXPECT_EQ(opcodes(rest), (Opcodes{BthOpcode::kReadRespFirst, BthOpcode::kReadRespMiddle,
                                    BthOpcode::kReadRespLast}));
  pair.a.receive_all(rest);
  ASSERT_EQ(pair.a.completions.size(), 1U);
  EXPECT_TRUE(same_bytes(pair.a, 0x4000, pair.b, 0x9000, 1000));
  EXPECT_EQ(pair.a.qp.outstanding_reads, 0U);
  pair.a.receive_all(answers);  // duplicates of what was placed
  EXPECT_EQ(pair.a.completions.size(), 1U);
}

TEST(RcRead, TimeoutInTheMiddleOfAResponse) {
  RcPair pair;
  fill(pair.b, 0x9000, 600, 3);
  pair.a.post_read(0x4000, 0x9000, 600);  // PSNs 100-102
  pair.b.receive_all(pair.a.send_all());
  const Packets answers = pair.b.send_all();
  pair.a.receive_all({answers[0], answers[1]});
  ASSERT_TRUE(pair.a.expire(kTimer));
  const Packets again = pair.a.send_all(kTimer);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].bth.psn, 102U);
  EXPECT_EQ(again[0].reth.va, 0x9000U + 512U);
  EXPECT_EQ(again[0].reth.dma_length, 88U);
  pair.b.receive_all(again, kTimer);
  pair.run(kTimer);
  EXPECT_EQ(pair.a.completions.size(), 1U);
  EXPECT_TRUE(same_bytes(pair.a, 0x4000, pair.b, 0x9000, 600));
}

TEST(RcRead, LostResponsesOfSeveralReads) {
  RcPair pair;
  fill(pair.b, 0x9000, 900, 4);
  for (std::uint64_t i = 0; i < 3; ++i) pair.a.post_read(0x4000 + 300 * i, 0x9000 + 300 * i, 300);
  pair.b.receive_all(pair.a.send_all());
  const Packets answers = pair.b.send_all();  // PSNs 100-105
  pair.a.receive_all({answers[0], answers[1], answers[3], answers[4], answers[5]});
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{102, 104}));  // the second READ and what follows
  pair.b.receive_all(again);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 3U);
  EXPECT_TRUE(same_bytes(pair.a, 0x4000, pair.b, 0x9000, 900));
  EXPECT_EQ(pair.a.counters().implied_nak_seq_err, 1U);
}

TEST(RcRead, EveryLossIsNoticedAgainAfterProgressOrTimeout) {
  RcPair pair;
  pair.a.post_read(0, 0x9000, 10);   // PSN 100
  pair.a.post_read(0, 0x9000, 10);   // PSN 101
  pair.a.post_write(0, 0x9000, 10);  // PSN 102
  const auto ack = pair.b.make_packet(crafted_response(BthOpcode::kAcknowledge, 102, 0x1F));
  const auto resent = [&pair, &ack](Time now) {
    pair.a.receive(ack, now);  // both answers seem lost
    return psns(pair.a.send_all(now));
  };
  pair.a.send_all();
  EXPECT_EQ(resent(kTimeZero), (Psns{100, 101, 102}));
  EXPECT_EQ(resent(kTimeZero), Psns{});  // the same loss
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kReadRespOnly, 100, 0x1F, 10)));
  EXPECT_EQ(resent(kTimeZero), (Psns{101, 102}));
  ASSERT_TRUE(pair.a.expire(kTimer));
  EXPECT_EQ(psns(pair.a.send_all(kTimer)), (Psns{101, 102}));
  EXPECT_EQ(resent(kTimer), (Psns{101, 102}));  // the resent READ's answer was lost, too
  EXPECT_EQ(pair.a.counters().implied_nak_seq_err, 3U);
}

TEST(RcRead, ANakBeyondAnUnansweredReadRepeatsTheReadFirst) {
  for (const std::uint8_t syndrome : {std::uint8_t{0x60}, std::uint8_t{0x21}, std::uint8_t{0x61}}) {
    RcPair pair;
    pair.a.post_read(0, 0x9000, 10);   // PSN 100
    pair.a.post_write(0, 0x9000, 10);  // PSN 101
    pair.a.post_send(0, 10);           // PSN 102
    pair.a.send_all();
    pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kAcknowledge, 102, syndrome)));
    EXPECT_TRUE(pair.a.completions.empty());
    EXPECT_EQ(psns(pair.a.send_all()), (Psns{100, 101, 102}));
  }
}

TEST(RcAtomic, LostAnswerIsRepeatedNotRecomputed) {
  RcPair pair;
  const std::uint64_t initial = 5;
  std::memcpy(pair.b.memory.data() + 0x9000, &initial, sizeof initial);
  pair.a.post(WqeOpcode::kAtomicFadd, 0x4000, 0x9000, 8);
  pair.a.qp.sq.back().wqe.swap_or_add = 10;
  pair.b.receive_all(pair.a.send_all());
  pair.b.send_all();  // lost
  ASSERT_TRUE(pair.a.expire(kTimer));
  pair.run(kTimer);
  ASSERT_EQ(pair.a.completions.size(), 1U);
  std::uint64_t value = 0;
  std::memcpy(&value, pair.a.memory.data() + 0x4000, sizeof value);
  EXPECT_EQ(value, 5U);
  std::memcpy(&value, pair.b.memory.data() + 0x9000, sizeof value);
  EXPECT_EQ(value, 15U);
}

// An ACK beyond an atomic that has no answer is an implied NAK as well; the second answer is the
// saved one.
TEST(RcAtomic, LostAnswerIsNoticedByALaterAck) {
  RcPair pair;
  const std::uint64_t initial = 5;
  std::memcpy(pair.b.memory.data() + 0x9000, &initial, sizeof initial);
  pair.a.post(WqeOpcode::kAtomicFadd, 0x4000, 0x9000, 8);  // PSN 100
  pair.a.qp.sq.back().wqe.swap_or_add = 10;
  pair.a.post_write(0, 0x8000, 10);  // PSN 101
  pair.b.receive_all(pair.a.send_all());
  Packets answers = pair.b.send_all();
  ASSERT_EQ(opcodes(answers), (Opcodes{BthOpcode::kAtomicAcknowledge, BthOpcode::kAcknowledge}));
  pair.a.receive(answers[1]);
  EXPECT_TRUE(pair.a.completions.empty());
  EXPECT_EQ(pair.a.counters().implied_nak_seq_err, 1U);
  const Packets again = pair.a.send_all();
  EXPECT_EQ(opcodes(again), (Opcodes{BthOpcode::kFetchAdd, BthOpcode::kWriteOnly}));
  EXPECT_EQ(psns(again), (Psns{100, 101}));
  pair.b.receive_all(again);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 2U);
  std::uint64_t value = 0;
  std::memcpy(&value, pair.a.memory.data() + 0x4000, sizeof value);
  EXPECT_EQ(value, 5U);
  std::memcpy(&value, pair.b.memory.data() + 0x9000, sizeof value);
  EXPECT_EQ(value, 15U);
}

// The NAK acknowledges SENDs and WRITEs before its PSN, but no atomic.
TEST(RcAtomic, ANakBeyondAnUnansweredAtomicRepeatsTheAtomicFirst) {
  RcPair pair;
  pair.a.post_write(0, 0x9000, 10);                        // PSN 100
  pair.a.post(WqeOpcode::kAtomicFadd, 0x4000, 0x9000, 8);  // PSN 101
  pair.a.post_write(0, 0x9000, 10);                        // PSN 102
  pair.a.send_all();
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kAcknowledge, 102, 0x60)));
  EXPECT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{101, 102}));
}

TEST(RcRnr, WaitsForTheTimerAndResends) {
  RcPair pair;
  pair.b.qp.min_rnr_timer = 2;       // 20 us
  pair.a.post_write(0, 0x8000, 10);  // PSN 100
  pair.a.post_send(0, 10);           // PSN 101
  pair.a.post_write(0, 0x8000, 10);  // PSN 102
  pair.b.receive_all(pair.a.send_all());
  const Packets nak = pair.b.send_all();
  ASSERT_EQ(nak.size(), 1U);  // 102 behind the refused packet is dropped silently
  EXPECT_EQ(nak[0].aeth.syndrome, 0x22);
  EXPECT_EQ(nak[0].bth.psn, 101U);
  EXPECT_EQ(nak[0].aeth.msn, 1U);
  const Time start = microseconds(3);
  pair.a.receive_all(nak, start);
  EXPECT_EQ(pair.a.completions.size(), 1U);         // the WRITE before it is acknowledged
  EXPECT_EQ(pair.a.qp.retry_deadline, kTimeNever);  // the timer rests
  EXPECT_TRUE(pair.a.send_all(start + microseconds(20) - kTick).empty());
  EXPECT_EQ(pair.a.last_status, PlanStatus::kDelayed);
  pair.b.post_recv(0x100, 64);
  const Packets again = pair.a.send_all(start + microseconds(20));
  EXPECT_EQ(psns(again), (Psns{101, 102}));
  EXPECT_EQ(pair.a.qp.retry_deadline, start + microseconds(20) + kTimer);
  pair.b.receive_all(again);
  pair.run(start + microseconds(20));
  EXPECT_EQ(pair.a.completions.size(), 3U);
  EXPECT_EQ(pair.b.counters().rnr_naks_sent, 1U);
}

// Each of the 32 codes of IBTA vol 1, table 45, as printed there, in hundredths of a millisecond.
TEST(RcRnr, EveryCodeHasItsWait) {
  constexpr int kHundredths[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                   16,    24,   32,   48,    64,    96,    128,   192,
                                   256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                   4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  for (std::uint8_t code = 0; code < 32; ++code) {
    SCOPED_TRACE(code);
    RcPair pair;
    pair.b.qp.min_rnr_timer = code;
    pair.restart(100);
    pair.a.post_send(0, 10);
    pair.b.receive_all(pair.a.send_all());
    const Packets nak = pair.b.send_all();
    ASSERT_EQ(nak.size(), 1U);
    EXPECT_EQ(nak[0].aeth.syndrome, 0x20 | code);
    pair.a.receive_all(nak);
    const Time wait = microseconds(10) * kHundredths[code];
    EXPECT_TRUE(pair.a.send_all(wait - kTick).empty());
    EXPECT_EQ(psns(pair.a.send_all(wait)), (Psns{100}));
  }
}

TEST(RcRnr, WriteWithImmediateIsRefusedAtItsLastPacket) {
  RcPair pair;
  fill(pair.a, 0, 600, 1);
  pair.a.post(WqeOpcode::kWriteImm, 0, 0x8000, 600, 77);  // PSNs 100-102
  pair.b.receive_all(pair.a.send_all());
  const Packets nak = pair.b.send_all();
  ASSERT_EQ(nak.size(), 1U);
  EXPECT_EQ(nak[0].aeth.syndrome, 0x21);
  EXPECT_EQ(nak[0].bth.psn, 102U);
  pair.a.receive_all(nak);
  pair.b.post_recv(0, 0);
  const Packets again = pair.a.send_all(microseconds(10));
  EXPECT_EQ(opcodes(again), (Opcodes{BthOpcode::kWriteLastImm}));
  pair.b.receive_all(again);
  pair.run(microseconds(10));
  EXPECT_EQ(pair.a.completions.size(), 1U);
  ASSERT_EQ(pair.b.received.size(), 1U);
  EXPECT_EQ(pair.b.received[0].imm, 77U);
  EXPECT_EQ(pair.b.received[0].bytes, 600U);
  EXPECT_TRUE(same_bytes(pair.a, 0, pair.b, 0x8000, 600));
}

// A SEND of several packets is refused at its first, a WRITE with immediate of one at that one; the
// packets behind are dropped silently, and duplicates of what is executed are still acknowledged.
TEST(RcRnr, RefusedAtTheFirstPacketOfASendAndTheOnlyOneOfAWrite) {
  for (const bool send : {true, false}) {
    SCOPED_TRACE(send);
    RcPair pair;
    pair.a.post_write(0, 0x8000, 10);  // PSN 100
    if (send) {
      pair.a.post_send(0, 600);  // PSNs 101-103
    } else {
      pair.a.post(WqeOpcode::kWriteImm, 0, 0x8000, 100, 7);  // PSN 101
    }
    const Packets sent = pair.a.send_all();
    pair.b.receive_all(sent);
    const Packets nak = pair.b.send_all();
    ASSERT_EQ(nak.size(), 1U);
    EXPECT_EQ(nak[0].aeth.syndrome, 0x21);
    EXPECT_EQ(nak[0].bth.psn, 101U);
    EXPECT_EQ(nak[0].aeth.msn, 1U);
    pair.b.receive(sent[0]);  // the WRITE again
    const Packets ack = pair.b.send_all();
    ASSERT_EQ(ack.size(), 1U);
    EXPECT_EQ(ack[0].aeth.syndrome, 0x1F);
    EXPECT_EQ(ack[0].bth.psn, 100U);
    EXPECT_EQ(pair.b.executed.size(), 1U);
    pair.a.receive_all(nak);
    pair.b.post_recv(0x100, 1024);
    const Packets again = pair.a.send_all(microseconds(10));
    EXPECT_EQ(again.at(0).bth.opcode, send ? BthOpcode::kSendFirst : BthOpcode::kWriteOnlyImm);
    pair.b.receive_all(again, microseconds(10));
    pair.run(microseconds(10));
    EXPECT_EQ(pair.a.completions.size(), 2U);
    EXPECT_EQ(pair.b.received.size(), 1U);
  }
}

/// RNR NAKs until the requester gives up or `most` were answered; returns the resends.
std::uint32_t resends_after_rnr(std::uint8_t rnr_retry, std::uint32_t most, RcPair& pair) {
  pair.a.qp.rnr_retry = rnr_retry;
  pair.restart(100);
  pair.a.post_send(0, 10);
  Time now = kTimeZero;
  std::uint32_t resends = 0;
  Packets sent = pair.a.send_all(now);
  while (!sent.empty() && resends < most) {
    pair.b.receive_all(sent, now);
    pair.a.receive_all(pair.b.send_all(now), now);
    now += microseconds(10);
    sent = pair.a.send_all(now);
    if (!sent.empty()) ++resends;
  }
  return resends;
}

TEST(RcRnr, RetryLimits) {
  for (std::uint8_t limit = 0; limit < 7; ++limit) {
    RcPair pair;
    EXPECT_EQ(resends_after_rnr(limit, 1000, pair), limit);
    ASSERT_EQ(pair.a.completions.size(), 1U);
    EXPECT_EQ(pair.a.completions[0].status, WcStatus::kRnrRetryExceededError);
    EXPECT_EQ(pair.a.qp.state, protocol::QpState::kError);
  }
  RcPair pair;
  EXPECT_EQ(resends_after_rnr(7, 1000, pair), 1000U);  // 7 is without end
  EXPECT_TRUE(pair.a.completions.empty());
}

TEST(RcRnr, ProgressReloadsTheRetries) {
  RcPair pair;
  pair.a.qp.rnr_retry = 1;
  pair.restart(100);
  for (int i = 0; i < 3; ++i) pair.a.post_send(0, 10);
  Time now = kTimeZero;
  for (int i = 0; i < 3; ++i) {
    pair.b.receive_all(pair.a.send_all(now), now);
    pair.a.receive_all(pair.b.send_all(now), now);
    pair.b.post_recv(0x100, 64);
    now += microseconds(10);
  }
  pair.run(now);
  EXPECT_EQ(pair.a.completions.size(), 3U);
  EXPECT_EQ(pair.a.qp.state, protocol::QpState::kRts);
}

TEST(RcRnr, AnswersDuringTheWaitDoNotStartTheTimer) {
  RcPair pair;
  pair.a.post_write(0, 0x8000, 10);  // PSN 100
  pair.a.post_read(0, 0x8000, 300);  // PSNs 101-102
  pair.a.send_all();
  const auto answer = [&pair](BthOpcode opcode, std::uint32_t psn, std::uint8_t syndrome,
                              std::uint32_t length) {
    pair.a.receive(pair.b.make_packet(crafted_response(opcode, psn, syndrome, length)));
  };
  answer(BthOpcode::kAcknowledge, 100, 0x21, 0);
  EXPECT_EQ(pair.a.qp.retry_deadline, kTimeNever);
  answer(BthOpcode::kReadRespFirst, 101, 0x1F, 256);  // it acknowledges the WRITE, too
  EXPECT_EQ(pair.a.qp.retry_deadline, kTimeNever);
  pair.a.send_all(microseconds(10));
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(10) + kTimer);
}

}  // namespace
}  // namespace rnic::testbench

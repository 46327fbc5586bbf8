// SPDX-License-Identifier: Apache-2.0
#include "transport/iwarp_transport.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "protocol/opcode.h"
#include "protocol/tcp_header.h"
#include "support/iwarp_rig.h"

namespace rnic::testbench {
namespace {

using protocol::WcStatus;
using protocol::WqeOpcode;
using transport::PlanStatus;

constexpr std::uint32_t kTcpAt = 34;  // Ethernet 14, IPv4 20
constexpr std::uint32_t kMpaAt = 54;  // TCP 20
constexpr std::uint64_t kLocal = 0x1'0000;
constexpr std::uint64_t kRemote = 0x2'0000;

std::string hex(const std::uint8_t* p, std::size_t bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text += kDigits[p[i] >> 4];
    text += kDigits[p[i] & 15];
  }
  return text;
}

void fill(IwarpEnd& end, std::uint64_t address, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    end.memory[address + i] = static_cast<std::uint8_t>(i * 7 + i / 251 + 1);
  }
}

bool same(const IwarpEnd& x, std::uint64_t at_x, const IwarpEnd& y, std::uint64_t at_y,
          std::uint32_t bytes) {
  return std::memcmp(&x.memory[at_x], &y.memory[at_y], bytes) == 0;
}

std::vector<Frame*> drain(IwarpEnd& end, Time now = kTimeZero) {
  std::vector<Frame*> frames;
  while (Frame* frame = end.next_frame(now)) frames.push_back(frame);
  return frames;
}

protocol::TcpHeader tcp_of(const Frame& frame) {
  return protocol::TcpHeader::decode(frame.header + kTcpAt);
}

// MULPDU = EMSS - (6 + EMSS mod 4) (RFC 5044, 5): MTU 1500: EMSS 1460, 1454; with 12 B timestamps
// 1448, 1442; MTU 9000: 8960, 8954.
TEST(IwarpTransport, MulpduComesFromMtuAndOptions) {
  config::TcpConfig tcp = IwarpRig::tcp_config();
  EXPECT_EQ(IwarpRig(tcp).a.transport.mulpdu(), 1454U);
  EXPECT_EQ(IwarpRig(tcp, IwarpRig::transport_config(9000)).a.transport.mulpdu(), 8954U);
  tcp.timestamps = true;
  EXPECT_EQ(IwarpRig(tcp).a.transport.mulpdu(), 1442U);
}

// With room for ceil(1460 / 512) markers of 4 B: 1442. The first segment has them before its bytes
// 0, 512 and 1024 of the stream; the second is over before 1536.
TEST(IwarpTransport, MarkersTakeTheirPlace) {
  config::TcpConfig tcp = IwarpRig::tcp_config();
  tcp.mpa_markers = true;
  IwarpRig rig(tcp);
  EXPECT_EQ(rig.a.transport.mulpdu(), 1442U);
  rig.a.post(protocol::WqeOpcode::kWrite, 1428 + 10, 0, 0x8000);
  const Frame* first = rig.a.next_frame(kTimeZero);
  EXPECT_EQ(first->payload_bytes, 1428U);
  EXPECT_EQ(first->marker_offset, 0);
  EXPECT_EQ(first->marker_count, 3);
  EXPECT_EQ(first->frame_bytes(), 14U + 20 + 20 + 1448 + 12 + 4);
  const Frame* second = rig.a.next_frame(kTimeZero);
  EXPECT_EQ(second->marker_offset, 1460 % 512);
  EXPECT_EQ(second->marker_count, 0);  // 2 + 24 + 2 + 4 bytes from 1460 on
  EXPECT_EQ(protocol::TcpHeader::decode(second->header + 34).sequence -
                protocol::TcpHeader::decode(first->header + 34).sequence,
            1460U);
}

// A tagged segment carries MULPDU - 14 bytes, so n bytes take max(1, ceil(n / 1440)) segments.
// FPDU = 2 + 14 + n, padded to 4, + 4. Line time: 8 + max(64, 54 + FPDU + 4) + 12.
TEST(IwarpTransport, WriteIsCutIntoAlignedFpdus) {
  for (const std::uint32_t size : {0U, 1U, 2U, 3U, 4U, 1439U, 1440U, 1441U, 2880U, 2881U, 10000U}) {
    IwarpRig rig;
    rig.a.post(WqeOpcode::kWrite, size, kLocal, kRemote);
    const std::vector<Frame*> frames = drain(rig.a);
    ASSERT_EQ(frames.size(), size == 0 ? 1 : (size + 1439) / 1440);
    std::uint32_t sequence = transport::IwarpTransport::first_sequence(0x1000);
    std::uint32_t left = size;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const Frame& f = *frames[i];
      const std::uint32_t length = std::min(left, 1440U);
      const std::uint32_t fpdu = (2 + 14 + length + 3) / 4 * 4 + 4;
      EXPECT_EQ(tcp_of(f).sequence, sequence);
      EXPECT_EQ(tcp_of(f).psh, i + 1 == frames.size());
      EXPECT_EQ(f.header_bytes, kMpaAt + 16);
      EXPECT_EQ(f.payload_bytes, length);
      EXPECT_EQ(f.pad_bytes, fpdu - 4 - 16 - length);
      EXPECT_EQ(f.trailer_bytes, 8);
      EXPECT_EQ(f.wire_bytes, 8 + std::max(64U, 54 + fpdu + 4) + 12);
      EXPECT_EQ(protocol::load_be64(f.header + kMpaAt + 8), kRemote + 1440 * i);  // TO
      sequence += fpdu;
      left -= length;
    }
  }
}

// The whole-frame vector of the fact sheet: 30 zeros to STag 0xAABBCC01, TO 0x1000, last segment.
TEST(IwarpTransport, WriteHasTheBytesOfThePublishedVector) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 30, kLocal, 0x1000);
  const std::vector<Frame*> frames = drain(rig.a);
  ASSERT_EQ(frames.size(), 1U);
  std::vector<std::uint8_t> bytes;
  rig.a.encapsulation->linearize(*frames[0], bytes);
  // Behind Ethernet 14 and IPv4 20: QPs 0x12, 0x13 give ports 0x8012, 0x8013; sequence 0x1000 + 1
  // (SYN) + 20 (MPA request) = 0x1015, acknowledgement 0x2015; data offset 5, PSH + ACK; window
  // 2^20 = 32768 << 5.
  EXPECT_EQ(hex(bytes.data() + kTcpAt, 16), "80128013000010150000201550188000");
  EXPECT_EQ(hex(bytes.data() + kMpaAt, 16), "002cc140aabbcc010000000000001000");
  EXPECT_EQ(hex(bytes.data() + kMpaAt + 16, 36), std::string(64, '0') + "9588b1cd");
  // IPv4 total length: 20 + 20 + 52.
  EXPECT_EQ(protocol::load_be16(bytes.data() + 16), 92);
  rig.a.encapsulation->materialize(*frames[0]);
  EXPECT_TRUE(rig.a.encapsulation->trailer_ok(*frames[0]));
}

// Untagged segments carry 1454 - 18 = 1436 bytes; MO is the offset, MSN counts messages from 1.
TEST(IwarpTransport, SendCountsMessagesAndOffsets) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kSend, 3000, kLocal);
  rig.a.post(WqeOpcode::kSend, 1, kLocal).wqe.solicited = true;
  const std::vector<Frame*> frames = drain(rig.a);
  ASSERT_EQ(frames.size(), 4U);  // 1436, 1436, 128; 1
  // Length, control (T 0, L, DV 1; RV 1, opcode), Invalidate STag, QN, MSN, MO.
  EXPECT_EQ(hex(frames[0]->header + kMpaAt, 20),
            "05ae0143000000000000000000000001"
            "00000000");
  EXPECT_EQ(hex(frames[1]->header + kMpaAt, 20),
            "05ae0143000000000000000000000001"
            "0000059c");
  EXPECT_EQ(hex(frames[2]->header + kMpaAt, 20),
            "00924143000000000000000000000001"
            "00000b38");
  EXPECT_EQ(hex(frames[3]->header + kMpaAt, 20),
            "00134145000000000000000000000002"
            "00000000");
}

TEST(IwarpTransport, ReadRequestNamesSinkAndSource) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kRead, 5000, kLocal, kRemote);
  const std::vector<Frame*> frames = drain(rig.a);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0]->payload_bytes, 0U);
  // 18 + 28 = 46 = 0x2e; untagged, last, opcode 1, QN 1, MSN 1, MO 0.
  EXPECT_EQ(hex(frames[0]->header + kMpaAt, 20),
            "002e4141000000000000000100000001"
            "00000000");
  EXPECT_EQ(hex(frames[0]->header + kMpaAt + 20, 28),
            "aabbcc01"
            "0000000000010000"
            "00001388"
            "aabbcc01"
            "0000000000020000");
  EXPECT_EQ(frames[0]->frame_bytes(), kMpaAt + 52 + 4);
}

TEST(IwarpTransport, ReadIsAnsweredIntoTheSink) {
  IwarpRig rig;
  fill(rig.b, kRemote, 5000);
  rig.a.post(WqeOpcode::kRead, 5000, kLocal, kRemote);
  rig.run();
  EXPECT_TRUE(same(rig.a, kLocal, rig.b, kRemote, 5000));
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess});
  EXPECT_EQ(rig.a.qp.outstanding_reads, 0U);
  EXPECT_EQ(rig.b.qp.reads_in_service, 0U);
  // Responses of 1440, 1440, 1440, 680 bytes; A acknowledges the second and the fourth. The
  // request is acknowledged by the first response.
  EXPECT_EQ(rig.b.plans.size(), 4U);
  EXPECT_EQ(rig.b.transport.counters().acks_sent, 0U);
  EXPECT_EQ(rig.a.transport.counters().acks_sent, 2U);
  EXPECT_EQ(rig.b.transport.counters().rx_read_requests, 1U);
}

TEST(IwarpTransport, EverySecondSegmentIsAcknowledged) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 10 * 1440, kLocal, kRemote);
  rig.run();
  EXPECT_EQ(rig.b.transport.counters().acks_sent, 5U);
  EXPECT_EQ(rig.a.transport.counters().acks_received, 5U);
  EXPECT_EQ(rig.b.transport.counters().rx_write_requests, 1U);
}

TEST(IwarpTransport, LoneSegmentIsAcknowledgedAfterTheDelay) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  rig.run();
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess});
  EXPECT_EQ(rig.now, microseconds(1 + 100 + 1));
  EXPECT_EQ(rig.a.transport.counters().local_ack_timeout_err, 0U);
}

TEST(IwarpTransport, PureAckIsAMinimumFrameWithoutFpdu) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 2 * 1440, kLocal, kRemote);
  for (Frame* frame : drain(rig.a)) rig.b.deliver(*frame, kTimeZero);
  const std::vector<Frame*> acks = drain(rig.b);
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0]->frame_class, protocol::FrameClass::kAck);
  EXPECT_EQ(acks[0]->header_bytes, kMpaAt);
  EXPECT_EQ(acks[0]->trailer_bytes, 4);
  EXPECT_EQ(acks[0]->wire_bytes, 84U);
  // Two FPDUs of 1460 behind the first byte.
  EXPECT_EQ(tcp_of(*acks[0]).acknowledgement,
            transport::IwarpTransport::first_sequence(0x1000) + 2920);
}

TEST(IwarpTransport, CompletesWhenTheLastByteIsAcknowledged) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 4 * 1440, kLocal, kRemote);
  const std::vector<Frame*> data = drain(rig.a);
  for (std::size_t i = 0; i < 2; ++i) rig.b.deliver(*data[i], kTimeZero);
  for (Frame* ack : drain(rig.b)) rig.a.deliver(*ack, kTimeZero);
  EXPECT_EQ(rig.a.transport.counters().acks_received, 1U);
  EXPECT_TRUE(rig.a.completions.empty());
  for (std::size_t i = 2; i < 4; ++i) rig.b.deliver(*data[i], kTimeZero);
  for (Frame* ack : drain(rig.b)) rig.a.deliver(*ack, kTimeZero);
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess});
}

TEST(IwarpTransport, DataCarriesTheAcknowledgement) {
  IwarpRig rig;
  rig.b.recvs_posted = 1;
  rig.a.post(WqeOpcode::kSend, 64, kLocal);
  for (Frame* frame : drain(rig.a)) rig.b.deliver(*frame, kTimeZero);
  rig.b.post(WqeOpcode::kWrite, 64, kLocal, kRemote);
  for (Frame* frame : drain(rig.b)) rig.a.deliver(*frame, kTimeZero);
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess});
  EXPECT_EQ(rig.b.transport.counters().acks_sent, 0U);
  ASSERT_EQ(rig.b.received.size(), 1U);
  EXPECT_EQ(rig.b.received[0].bytes, 64U);
}

// Window 4096: two FPDUs of 1460 fit, a third does not (4380).
TEST(IwarpTransport, ReceiveWindowLimitsTheFlight) {
  config::TcpConfig tcp = IwarpRig::tcp_config();
  tcp.window = 4096;
  IwarpRig rig(tcp);
  rig.a.post(WqeOpcode::kWrite, 100'000, kLocal, kRemote);
  EXPECT_EQ(drain(rig.a).size(), 2U);
  TxPlan plan;
  EXPECT_EQ(rig.a.transport.plan_request(rig.a.qp, kTimeZero, plan), PlanStatus::kBlocked);
}

TEST(IwarpTransport, CongestionWindowLimitsTheFlight) {
  config::TcpConfig tcp = IwarpRig::tcp_config();
  tcp.initial_cwnd = 3;
  IwarpRig rig(tcp);
  rig.a.post(WqeOpcode::kWrite, 100'000, kLocal, kRemote);
  EXPECT_EQ(drain(rig.a).size(), 3U);
}

TEST(IwarpTransport, TimestampsAreEchoed) {
  config::TcpConfig tcp = IwarpRig::tcp_config();
  tcp.timestamps = true;
  IwarpRig rig(tcp);
  rig.a.post(WqeOpcode::kWrite, 2 * 1428, kLocal, kRemote);
  for (Frame* frame : drain(rig.a, microseconds(7))) rig.b.deliver(*frame, microseconds(8));
  const std::vector<Frame*> acks = drain(rig.b, microseconds(9));
  ASSERT_EQ(acks.size(), 1U);
  // NOP NOP, kind 8 length 10, value 9, echo 7.
  EXPECT_EQ(hex(acks[0]->header + kTcpAt + 20, 12),
            "0101080a"
            "00000009"
            "00000007");
  EXPECT_EQ(acks[0]->header_bytes, kMpaAt + 12);
}

TEST(IwarpTransport, FramesOfOthersFindNoConnection) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  Frame& frame = *drain(rig.a)[0];
  EXPECT_EQ(rig.b.transport.destination(frame), 0x13U);
  protocol::store_be16(frame.header + kTcpAt + 2, 0x8014);
  EXPECT_EQ(rig.b.transport.destination(frame), 0U);
  protocol::store_be16(frame.header + kTcpAt + 2, 0x8013);
  EXPECT_EQ(rig.a.transport.destination(frame), 0U);  // not its address
}

// Both ends number their queue pairs alike, beyond the 2^15 that a port can tell apart.
TEST(IwarpTransport, ManyQueuePairsOfTwoHostsHaveDifferentPorts) {
  IwarpRig rig;
  std::vector<transport::QueuePair> qps(100'000);
  for (std::uint32_t i = 0; i < qps.size(); ++i) {
    qps[i].qpn = qps[i].dest_qpn = 0x100 + i;
    qps[i].av = rig.a.qp.av;
    EXPECT_NO_THROW(rig.a.transport.connect(qps[i]));
  }
}

TEST(IwarpTransport, OutstandingReadsAreLimited) {
  IwarpRig rig;
  for (int i = 0; i < 6; ++i) rig.a.post(WqeOpcode::kRead, 100, kLocal, kRemote);
  EXPECT_EQ(drain(rig.a).size(), 4U);  // max_rd_atomic
  EXPECT_EQ(rig.a.qp.outstanding_reads, 4U);
}

TEST(IwarpTransport, FenceWaitsForReads) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kRead, 100, kLocal, kRemote);
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote).wqe.fence = true;
  for (Frame* frame : drain(rig.a)) rig.b.deliver(*frame, kTimeZero);
  EXPECT_EQ(rig.a.plans.size(), 1U);
  for (Frame* frame : drain(rig.b)) rig.a.deliver(*frame, kTimeZero);
  EXPECT_EQ(drain(rig.a).size(), 1U);
}

TEST(IwarpTransport, ResponsesDoNotCutIntoAMessage) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kRead, 3000, kLocal, kRemote);
  rig.b.post(WqeOpcode::kWrite, 3000, kLocal, kRemote);
  TxPlan plan;
  ASSERT_EQ(rig.b.transport.plan_request(rig.b.qp, kTimeZero, plan), PlanStatus::kPlanned);
  for (Frame* frame : drain(rig.a)) rig.b.deliver(*frame, kTimeZero);
  // The WRITE's other two segments, then the three of the response, whoever asks.
  std::vector<int> opcodes;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(rig.b.transport.response_due(rig.b.qp));
    ASSERT_TRUE(i % 2 == 0 ? rig.b.transport.plan_response(rig.b.qp, kTimeZero, plan)
                           : rig.b.transport.plan_request(rig.b.qp, kTimeZero, plan) ==
                                     PlanStatus::kPlanned ||
                                 rig.b.transport.plan_response(rig.b.qp, kTimeZero, plan));
    opcodes.push_back(plan.opcode);
  }
  EXPECT_EQ(opcodes, (std::vector<int>{0, 0, 2, 2, 2}));
}

TEST(IwarpTransport, WriteWithImmediateIsTwoMessages) {
  IwarpRig rig;
  rig.b.recvs_posted = 1;
  rig.a.post(WqeOpcode::kWriteImm, 100, kLocal, kRemote).wqe.imm_or_rkey = 0x1234'5678;
  rig.run();
  ASSERT_EQ(rig.b.received.size(), 1U);
  EXPECT_TRUE(rig.b.received[0].has_imm);
  EXPECT_EQ(rig.b.received[0].imm, 0x1234'5678U);
  EXPECT_EQ(rig.a.plans.size(), 2U);
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess});
  EXPECT_EQ(rig.b.transport.counters().rx_write_requests, 1U);
}

TEST(IwarpTransport, AtomicsAreAnsweredInOrderWithReads) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kRead, 8, kLocal, kRemote);
  rig.a.post(WqeOpcode::kAtomicFadd, 8, kLocal + 8, kRemote).wqe.swap_or_add = 3;
  const std::vector<Frame*> frames = drain(rig.a);
  ASSERT_EQ(frames.size(), 2U);
  // 18 + 52 = 70 = 0x46; opcode 10, QN 1, MSN 2; fetch-and-add is operation 0.
  EXPECT_EQ(hex(frames[1]->header + kMpaAt, 20),
            "0046414a000000000000000100000002"
            "00000000");
  for (Frame* frame : frames) rig.b.deliver(*frame, kTimeZero);
  for (Frame* frame : drain(rig.b)) rig.a.deliver(*frame, kTimeZero);
  EXPECT_EQ(rig.a.completions, (std::vector{WcStatus::kSuccess, WcStatus::kSuccess}));
  EXPECT_EQ(rig.b.transport.counters().rx_atomic_requests, 1U);
}

TEST(IwarpTransport, WhatIwarpHasNotFailsLocally) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kSendImm, 10, kLocal);
  rig.a.post(WqeOpcode::kWrite, 10, kLocal, kRemote);
  rig.run();
  EXPECT_EQ(rig.a.completions,
            (std::vector{WcStatus::kLocalQpOperationError, WcStatus::kWrFlushError}));
  IwarpRig two_sinks;
  two_sinks.a.post(WqeOpcode::kRead, 10, kLocal, kRemote).wqe.sge_count = 2;
  two_sinks.run();
  EXPECT_EQ(two_sinks.a.completions, std::vector{WcStatus::kLocalQpOperationError});
}

/// WRITE, SEND, READ and a long WRITE, checked byte for byte.
void run_mixed_traffic(IwarpRig& rig, const std::function<bool(std::uint64_t)>& drop) {
  fill(rig.a, kLocal, 40'000);
  fill(rig.b, 0x6'0000, 20'000);
  rig.b.recvs_posted = 1;
  rig.a.post(WqeOpcode::kWrite, 7000, kLocal, kRemote);
  rig.a.post(WqeOpcode::kSend, 5000, kLocal + 7000);
  rig.a.post(WqeOpcode::kRead, 9000, 0x5'0000, 0x6'0000);
  rig.a.post(WqeOpcode::kRead, 0, 0, 0);
  rig.a.post(WqeOpcode::kWrite, 20'000, kLocal + 12'000, 0x3'0000);
  rig.b.post(WqeOpcode::kWrite, 6000, 0x6'0000, 0x7'0000);
  rig.run(drop);
}

void expect_mixed_traffic_arrived(const IwarpRig& rig) {
  EXPECT_EQ(rig.a.completions, std::vector<WcStatus>(5, WcStatus::kSuccess));
  EXPECT_EQ(rig.b.completions, std::vector<WcStatus>(1, WcStatus::kSuccess));
  EXPECT_TRUE(same(rig.a, kLocal, rig.b, kRemote, 7000));
  EXPECT_TRUE(same(rig.a, kLocal + 7000, rig.b, IwarpEnd::kRecvAddress, 5000));
  EXPECT_TRUE(same(rig.a, 0x5'0000, rig.b, 0x6'0000, 9000));
  EXPECT_TRUE(same(rig.a, kLocal + 12'000, rig.b, 0x3'0000, 20'000));
  EXPECT_TRUE(same(rig.a, 0x7'0000, rig.b, 0x6'0000, 6000));
  EXPECT_EQ(rig.a.qp.outstanding_reads, 0U);
  EXPECT_EQ(rig.b.qp.reads_in_service, 0U);
  EXPECT_EQ(rig.b.received.size(), 1U);
  for (const IwarpEnd* end : {&rig.a, &rig.b}) {
    EXPECT_EQ(transport::IwarpTransport::connection_of(end->qp)->messages.size(), 0U);
  }
}

TEST(IwarpTransport, MixedTrafficArrivesWithoutRetransmission) {
  IwarpRig rig;
  run_mixed_traffic(rig, nullptr);
  expect_mixed_traffic_arrived(rig);
  EXPECT_EQ(rig.a.transport.counters().tcp_retransmitted_segments, 0U);
  EXPECT_EQ(rig.b.transport.counters().out_of_sequence, 0U);
}

TEST(IwarpTransport, AnySingleLossIsRepaired) {
  IwarpRig lossless;
  run_mixed_traffic(lossless, nullptr);
  ASSERT_GT(lossless.sent, 40U);
  for (std::uint64_t lost = 0; lost < lossless.sent; ++lost) {
    SCOPED_TRACE(lost);
    IwarpRig rig;
    run_mixed_traffic(rig, [lost](std::uint64_t n) { return n == lost; });
    expect_mixed_traffic_arrived(rig);
  }
}

TEST(IwarpTransport, AnyTwoLossesAreRepaired) {
  for (std::uint64_t first = 0; first < 40; ++first) {
    for (std::uint64_t second = first + 1; second < first + 30; ++second) {
      SCOPED_TRACE(std::to_string(first) + "," + std::to_string(second));
      IwarpRig rig;
      run_mixed_traffic(rig, [=](std::uint64_t n) { return n == first || n == second; });
      expect_mixed_traffic_arrived(rig);
    }
  }
}

TEST(IwarpTransport, HeavyLossIsRepaired) {
  for (std::uint64_t phase = 0; phase < 7; ++phase) {
    SCOPED_TRACE(phase);
    IwarpRig rig;
    run_mixed_traffic(rig, [phase](std::uint64_t n) { return n % 7 == phase; });
    expect_mixed_traffic_arrived(rig);
  }
}

TEST(IwarpTransport, RandomLossIsRepairedWhateverTheConfiguration) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    config::TcpConfig tcp = IwarpRig::tcp_config();
    tcp.timestamps = i % 2 == 0;
    tcp.initial_cwnd = 1 + static_cast<std::uint32_t>(random() % 20);
    tcp.delayed_ack = 1 + static_cast<std::uint32_t>(random() % 4);
    tcp.window = i % 5 == 0 ? 4096 : 1U << 18;
    IwarpRig rig(tcp, IwarpRig::transport_config(i % 3 == 0 ? 576 : 1500));
    run_mixed_traffic(rig, [&random](std::uint64_t) { return random() % 20 == 0; });
    expect_mixed_traffic_arrived(rig);
  }
}

// 20 segments, the third lost: 17 behind it each owe a duplicate ACK, of which the third makes
// A go back to segment 3 and send 18 again; no timer runs out.
TEST(IwarpTransport, FastRetransmitGoesBackToTheHole) {
  IwarpRig rig;
  fill(rig.a, kLocal, 20 * 1440);
  rig.a.post(WqeOpcode::kWrite, 20 * 1440, kLocal, kRemote);
  rig.run([](std::uint64_t n) { return n == 2; });
  EXPECT_TRUE(same(rig.a, kLocal, rig.b, kRemote, 20 * 1440));
  EXPECT_EQ(rig.b.transport.counters().out_of_sequence, 17U);
  EXPECT_EQ(rig.a.transport.counters().tcp_retransmitted_segments, 18U);
  EXPECT_EQ(rig.a.transport.counters().local_ack_timeout_err, 0U);
}

// A lone lost segment waits for the timer: sent at 0, again at min_rto 1000 us, which arrives at
// 1001, is acknowledged after the delay of 100 us, and that arrives 1 us later.
TEST(IwarpTransport, LostTailWaitsForTheTimer) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  rig.run([](std::uint64_t n) { return n == 0; });
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess});
  EXPECT_EQ(rig.now, microseconds(1102));
  EXPECT_EQ(rig.a.transport.counters().local_ack_timeout_err, 1U);
  EXPECT_EQ(rig.a.transport.counters().tcp_retransmitted_segments, 1U);
}

// retry_count 7: resent 7 times, given up at the 8th timeout: 1 + 2 + ... + 128 ms = 255 ms.
TEST(IwarpTransport, DeadPathEndsInRetryExceeded) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  rig.run([](std::uint64_t) { return true; });
  EXPECT_EQ(rig.a.completions,
            (std::vector{WcStatus::kRetryExceededError, WcStatus::kWrFlushError}));
  EXPECT_EQ(rig.now, microseconds(255'000));
}

TEST(IwarpTransport, BadKeyOfAWriteTerminates) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  rig.a.post(WqeOpcode::kWrite, 3000, kLocal, kRemote).wqe.rkey = 0x0BAD;
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  rig.run();
  EXPECT_EQ(rig.a.completions, (std::vector{WcStatus::kSuccess, WcStatus::kRemoteAccessError,
                                            WcStatus::kWrFlushError}));
  EXPECT_EQ(rig.a.qp.state, protocol::QpState::kError);
  EXPECT_EQ(rig.b.qp.state, protocol::QpState::kError);
  EXPECT_EQ(rig.a.transport.counters().req_remote_access_errors, 1U);
  EXPECT_EQ(rig.b.transport.counters().resp_remote_access_errors, 1U);
}

// Untagged on QN 2, MSN 1: RDMAP layer, remote protection, unspecified, M and D set; segment
// length 14 + 100 = 0x72 and the tagged header of the WRITE.
TEST(IwarpTransport, TerminateReturnsTheOffendingHeader) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote).wqe.rkey = 0x0BAD;
  for (Frame* frame : drain(rig.a)) rig.b.deliver(*frame, kTimeZero);
  const std::vector<Frame*> frames = drain(rig.b);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(hex(frames[0]->header + kMpaAt, 40),
            "00264147"
            "00000000"
            "00000002"
            "00000001"
            "00000000"
            "01ffc000"
            "0072"
            "c140"
            "00000bad"
            "0000000000020000");
}

TEST(IwarpTransport, BadKeyOfAReadTerminates) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kRead, 100, kLocal, kRemote);
  rig.a.post(WqeOpcode::kRead, 100, kLocal, kRemote).wqe.rkey = 0x0BAD;
  rig.run();
  EXPECT_EQ(rig.a.completions[1], WcStatus::kRemoteAccessError);
  EXPECT_EQ(rig.b.qp.state, protocol::QpState::kError);
}

TEST(IwarpTransport, UnreadableSourceTerminates) {
  IwarpRig rig;
  rig.b.reads_fail = true;
  rig.a.post(WqeOpcode::kRead, 5000, kLocal, kRemote);
  rig.run();
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kRemoteAccessError});
  EXPECT_EQ(rig.b.qp.state, protocol::QpState::kError);
}

TEST(IwarpTransport, SendWithoutReceiveTerminates) {
  IwarpRig rig;
  rig.a.post(WqeOpcode::kSend, 100, kLocal);
  rig.run();
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kRemoteOperationError});
  EXPECT_EQ(rig.b.qp.state, protocol::QpState::kError);
}

TEST(IwarpTransport, SendBeyondTheReceiveTerminates) {
  IwarpRig rig;
  rig.b.recvs_posted = 1;
  rig.a.post(WqeOpcode::kSend, IwarpEnd::kRecvBytes + 1, 0);
  rig.run();
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kRemoteInvalidRequestError});
}

}  // namespace
}  // namespace rnic::testbench

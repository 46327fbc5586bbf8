// SPDX-License-Identifier: Apache-2.0
// Requester half of the reliable connection: packets, PSNs, acknowledgement, completion. MTU is
// 256, the first PSN 100 unless a test says otherwise, so that PSNs can be counted by hand.
#include <gtest/gtest.h>

#include "protocol/aeth.h"
#include "tests/support/hex.h"
#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using protocol::BthOpcode;
using protocol::WcStatus;
using protocol::WqeOpcode;
using transport::PlanStatus;
using Opcodes = std::vector<BthOpcode>;
using Psns = std::vector<std::uint32_t>;

constexpr std::uint8_t kAck = 0x1F;  // ACK, no credit information

TEST(RcRequester, SegmentsWrites) {
  RcPair pair;
  pair.a.post_write(0, 0x8000, 0);
  pair.a.post_write(0, 0x8000, 256);
  pair.a.post_write(0x40, 0x9000, 601);
  const Packets sent = pair.a.send_all();
  EXPECT_EQ(opcodes(sent),
            (Opcodes{BthOpcode::kWriteOnly, BthOpcode::kWriteOnly, BthOpcode::kWriteFirst,
                     BthOpcode::kWriteMiddle, BthOpcode::kWriteLast}));
  EXPECT_EQ(psns(sent), (Psns{100, 101, 102, 103, 104}));
  EXPECT_EQ(sent[0].reth.dma_length, 0U);
  EXPECT_EQ(sent[2].reth.dma_length, 601U);  // of the whole message
  EXPECT_EQ(sent[2].reth.va, 0x9000U);
  EXPECT_EQ(sent[2].reth.rkey, RcSide::kKey);
  EXPECT_EQ(sent[2].frame->payload_bytes, 256U);
  EXPECT_EQ(sent[4].frame->payload_bytes, 601U - 512U);
  EXPECT_EQ(sent[4].bth.pad_count, 3);  // 89 bytes are 3 short of 92
  EXPECT_EQ(sent[3].bth.pad_count, 0);
}

TEST(RcRequester, SegmentsSends) {
  RcPair pair;
  pair.a.post_send(0, 0);
  pair.a.post_send(0, 512);
  pair.a.post(WqeOpcode::kSendImm, 0, 0, 10, 0xABCD);
  pair.a.post(WqeOpcode::kSendImm, 0, 0, 257, 0xEF01);
  pair.a.post(WqeOpcode::kSendInval, 0, 0, 10, 7);
  pair.a.post(WqeOpcode::kWriteImm, 0, 0, 257, 3);
  pair.a.post(WqeOpcode::kWriteImm, 0, 0, 0, 4);
  const Packets sent = pair.a.send_all();
  EXPECT_EQ(opcodes(sent),
            (Opcodes{BthOpcode::kSendOnly, BthOpcode::kSendFirst, BthOpcode::kSendLast,
                     BthOpcode::kSendOnlyImm, BthOpcode::kSendFirst, BthOpcode::kSendLastImm,
                     BthOpcode::kSendOnlyInv, BthOpcode::kWriteFirst, BthOpcode::kWriteLastImm,
                     BthOpcode::kWriteOnlyImm}));
  EXPECT_EQ(sent[3].imm, 0xABCDU);
  EXPECT_EQ(sent[5].imm, 0xEF01U);
  EXPECT_EQ(sent[8].imm, 3U);
}

TEST(RcRequester, ReadTakesThePsnsOfItsResponse) {
  RcPair pair;
  pair.a.post_read(0, 0x8000, 600);                   // 3 response packets
  pair.a.post_read(0, 0x8000, 0);                     // 1
  pair.a.post(WqeOpcode::kAtomicFadd, 0, 0x8000, 8);  // 1
  pair.a.post_write(0, 0x8000, 1);
  const Packets sent = pair.a.send_all();
  EXPECT_EQ(opcodes(sent), (Opcodes{BthOpcode::kReadRequest, BthOpcode::kReadRequest,
                                    BthOpcode::kFetchAdd, BthOpcode::kWriteOnly}));
  EXPECT_EQ(psns(sent), (Psns{100, 103, 104, 105}));
  EXPECT_EQ(sent[0].reth.dma_length, 600U);
  EXPECT_EQ(sent[0].frame->payload_bytes, 0U);
}

TEST(RcRequester, AsksForAcknowledgementEveryNPacketsAndOnTheLast) {
  RcPair pair{{4, kTimeZero}};
  pair.a.post_write(0, 0x8000, 10 * 256);
  const Packets sent = pair.a.send_all();
  ASSERT_EQ(sent.size(), 10U);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].bth.ack_request, i == 3 || i == 7 || i == 9) << i;
  }
}

TEST(RcRequester, PsnsWrapInARunningConnection) {
  RcPair pair;
  pair.restart(0xFF'FFFE);
  fill(pair.a, 0, 5 * 256, 1);
  fill(pair.b, 0x9000, 700, 2);
  pair.a.post_write(0, 0x8000, 5 * 256);
  pair.a.post_read(0x4000, 0x9000, 700);
  Packets sent = pair.a.send_all();
  EXPECT_EQ(psns(sent), (Psns{0xFF'FFFE, 0xFF'FFFF, 0, 1, 2, 3}));
  sent.erase(sent.begin() + 2);  // PSN 0 is lost
  pair.b.receive_all(sent);
  const Packets answer = pair.b.send_all();
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0].bth.psn, 0U);
  EXPECT_EQ(answer[0].aeth.syndrome, 0x60);
  pair.a.receive_all(answer);
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{0, 1, 2, 3}));
  pair.b.receive_all(again);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 2U);
  EXPECT_TRUE(same_bytes(pair.a, 0, pair.b, 0x8000, 5 * 256));
  EXPECT_TRUE(same_bytes(pair.a, 0x4000, pair.b, 0x9000, 700));
}

TEST(RcRequester, OneAckCompletesAllEarlierSendsAndWrites) {
  RcPair pair;
  pair.b.post_recv(0x100, 64);
  for (int i = 0; i < 2; ++i) pair.a.post_write(0, 0x8000, 300);  // PSNs 100-101, 102-103
  pair.a.post_send(0, 64);                                        // PSN 104
  pair.a.post_write(0, 0x8000, 300);                              // PSNs 105-106
  const Packets sent = pair.a.send_all();
  pair.b.receive_all({sent.begin(), sent.begin() + 6});  // to PSN 105
  const Packets answer = pair.b.send_all();
  ASSERT_EQ(answer.size(), 1U);  // coalesced
  EXPECT_EQ(answer[0].bth.opcode, BthOpcode::kAcknowledge);
  EXPECT_EQ(answer[0].bth.psn, 104U);  // newest that asked
  EXPECT_EQ(answer[0].aeth.syndrome, kAck);
  EXPECT_EQ(answer[0].aeth.msn, 3U);
  EXPECT_FALSE(answer[0].bth.ack_request);
  EXPECT_EQ(answer[0].frame->payload_bytes, 0U);
  pair.a.receive_all(answer);
  ASSERT_EQ(pair.a.completions.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(pair.a.completions[i].tag, i);
    EXPECT_EQ(pair.a.completions[i].status, WcStatus::kSuccess);
  }
}

TEST(RcRequester, AckInsideAMessageCompletesNothing) {
  RcPair pair{{2, kTimeZero}};
  pair.a.post_write(0, 0x8000, 4 * 256);
  const Packets sent = pair.a.send_all();
  pair.b.receive_all({sent.begin(), sent.begin() + 2});
  const Packets answer = pair.b.send_all();
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0].bth.psn, 101U);
  EXPECT_EQ(answer[0].aeth.msn, 0U);  // no message is complete
  pair.a.receive_all(answer);
  EXPECT_TRUE(pair.a.completions.empty());
  // A timeout now goes back to PSN 102, inside the message.
  ASSERT_TRUE(pair.a.expire(nanoseconds(65'536)));
  const Packets again = pair.a.send_all(nanoseconds(65'536));
  EXPECT_EQ(opcodes(again), (Opcodes{BthOpcode::kWriteMiddle, BthOpcode::kWriteLast}));
  EXPECT_EQ(psns(again), (Psns{102, 103}));
}

TEST(RcRequester, ReadResponseAcknowledgesEarlierWrites) {
  RcPair pair;
  fill(pair.b, 0x9000, 300, 1);
  pair.a.post_write(0, 0x8000, 300);
  pair.a.post_read(0x4000, 0x9000, 300);
  pair.b.receive_all(pair.a.send_all());
  Packets answer = pair.b.send_all();
  ASSERT_EQ(opcodes(answer), (Opcodes{BthOpcode::kAcknowledge, BthOpcode::kReadRespFirst,
                                      BthOpcode::kReadRespLast}));
  answer.erase(answer.begin());  // the ACK is lost
  pair.a.receive(answer[0]);
  ASSERT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.completions[0].tag, 0U);
  pair.a.receive(answer[1]);
  EXPECT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.a.counters().retransmitted_packets, 0U);
  EXPECT_TRUE(same_bytes(pair.a, 0x4000, pair.b, 0x9000, 300));
}

TEST(RcRequester, AtomicAnswerAcknowledgesEarlierWrites) {
  RcPair pair;
  pair.a.post_write(0, 0x8000, 300);                       // PSNs 100-101
  pair.a.post(WqeOpcode::kAtomicFadd, 0x4000, 0x9000, 8);  // PSN 102
  pair.b.receive_all(pair.a.send_all());
  const Packets answer = pair.b.send_all();
  ASSERT_EQ(opcodes(answer), (Opcodes{BthOpcode::kAcknowledge, BthOpcode::kAtomicAcknowledge}));
  pair.a.receive(answer[1]);  // the ACK is lost
  ASSERT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.a.completions[0].tag, 0U);
  EXPECT_EQ(pair.a.completions[1].tag, 1U);
  EXPECT_EQ(pair.a.counters().retransmitted_packets, 0U);
}

TEST(RcRequester, CompletionsWaitForAnEarlierReadToBePlaced) {
  RcPair pair;
  pair.a.hold_placement = true;
  pair.a.post_read(0, 0x8000, 10);
  pair.a.post_write(0, 0x8000, 10);
  pair.run();
  EXPECT_TRUE(pair.a.completions.empty());
  pair.a.release_placement();
  ASSERT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.a.completions[0].tag, 0U);
  EXPECT_EQ(pair.a.completions[1].tag, 1U);
}

TEST(RcRequester, GhostAndForeignAcksChangeNothing) {
  RcPair pair;
  pair.a.post_write(0, 0x8000, 10);  // PSN 100
  pair.a.post_write(0, 0x8000, 10);  // PSN 101
  const Packets sent = pair.a.send_all();
  pair.b.receive(sent[0]);
  const Packets first = pair.b.send_all();
  pair.a.receive_all(first, microseconds(1));
  const Time deadline = pair.a.qp.retry_deadline;
  pair.a.receive_all(first, microseconds(2));  // for PSN 100 again
  const auto ack = [&pair](std::uint32_t psn, std::uint8_t syndrome) {
    pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kAcknowledge, psn, syndrome)),
                   microseconds(3));
  };
  ack(99, kAck);
  ack(102, kAck);  // never sent
  ack(102, 0x60);
  ack(101, 0x40);  // reserved kind
  ack(101, 0x80);
  ack(101, 0x65);  // reserved NAK code
  ack(101, 0x64);  // for reliable datagrams only
  EXPECT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.qp.retry_deadline, deadline);
  EXPECT_TRUE(pair.a.send_all(microseconds(3)).empty());
  ack(101, 0x00);  // ACK with zero credits is an ACK
  EXPECT_EQ(pair.a.completions.size(), 2U);
}

TEST(RcRequester, NeverExceedsMaxRdAtomic) {
  RcPair pair;
  pair.a.qp.max_rd_atomic = 2;
  for (int i = 0; i < 3; ++i) pair.a.post_read(0, 0x8000, 300);
  pair.a.post(WqeOpcode::kAtomicFadd, 0, 0x8000, 8);
  pair.a.post_write(0, 0x8000, 1);
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{100, 102}));
  EXPECT_EQ(pair.a.last_status, PlanStatus::kBlocked);  // and what is behind waits too
  RcPacket response =
      pair.b.make_packet(crafted_response(BthOpcode::kReadRespFirst, 100, kAck, 256));
  pair.a.receive(response);
  EXPECT_TRUE(pair.a.send_all().empty());  // half an answer frees nothing
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kReadRespLast, 101, kAck, 44)));
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{104}));  // the atomic would need one more
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kReadRespFirst, 102, kAck, 256)));
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kReadRespLast, 103, kAck, 44)));
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{106, 107}));
  EXPECT_EQ(pair.a.last_status, PlanStatus::kNoWqe);
}

TEST(RcRequester, FenceWaitsUntilEarlierReadsArePlaced) {
  RcPair pair;
  pair.a.hold_placement = true;
  pair.a.post_read(0, 0x8000, 10);
  pair.a.post_write(0, 0x8000, 10);                        // not fenced
  pair.a.post(WqeOpcode::kWrite, 0, 0x8000, 10, 0, true);  // fenced
  const Packets sent = pair.a.send_all();
  EXPECT_EQ(psns(sent), (Psns{100, 101}));
  EXPECT_EQ(pair.a.last_status, PlanStatus::kBlocked);
  pair.b.receive_all(sent);
  pair.run();
  EXPECT_EQ(pair.a.qp.outstanding_reads, 0U);
  EXPECT_TRUE(pair.a.send_all().empty());  // answered, but the data is not in memory
  pair.a.release_placement();
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{102}));
}

TEST(RcRequester, KeepsThePsnWindowBelowHalfTheSpace) {
  RcPair pair;
  pair.a.post_read(0, 0, 1U << 30);  // 2^22 PSNs of 256 bytes
  pair.a.post_read(0, 0, 1U << 30);  // 2^23 with the first: one too many
  EXPECT_EQ(pair.a.send_all().size(), 1U);
  EXPECT_EQ(pair.a.last_status, PlanStatus::kBlocked);
}

TEST(RcRequester, RefusesResponsesThatDoNotFitTheRequest) {
  struct Case {
    WqeOpcode opcode;
    BthOpcode response;
    std::uint32_t bytes;
    WcStatus status;
  };
  // A READ of 600 bytes is answered by FIRST (256), MIDDLE (256), LAST (88). Another length is a
  // local length error, another kind of packet a bad response.
  const Case cases[] = {
      {WqeOpcode::kRead, BthOpcode::kReadRespFirst, 255, WcStatus::kLocalLengthError},
      {WqeOpcode::kRead, BthOpcode::kReadRespOnly, 256, WcStatus::kLocalLengthError},
      {WqeOpcode::kRead, BthOpcode::kReadRespMiddle, 256, WcStatus::kBadResponseError},
      {WqeOpcode::kRead, BthOpcode::kAtomicAcknowledge, 0, WcStatus::kBadResponseError},
      {WqeOpcode::kAtomicFadd, BthOpcode::kReadRespOnly, 8, WcStatus::kBadResponseError},
  };
  for (const Case& c : cases) {
    RcPair pair;
    pair.a.post_write(0, 0x8000, 10);  // acknowledged by the response's PSN
    pair.a.post(c.opcode, 0, 0x8000, 600);
    pair.a.post_write(0, 0x8000, 10);
    pair.a.send_all();
    pair.a.receive(pair.b.make_packet(crafted_response(c.response, 101, kAck, c.bytes)));
    ASSERT_EQ(pair.a.completions.size(), 3U) << opcode_name(c.response);
    EXPECT_EQ(pair.a.completions[0].status, WcStatus::kSuccess);
    EXPECT_EQ(pair.a.completions[1].status, c.status);
    EXPECT_EQ(pair.a.completions[2].status, WcStatus::kWrFlushError);
  }
}

TEST(RcRequester, RefusesALastResponseOfTheWrongLength) {
  RcPair pair;
  pair.a.post_read(0, 0x8000, 600);
  pair.a.send_all();
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kReadRespFirst, 100, kAck, 256)));
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kReadRespMiddle, 101, kAck, 256)));
  EXPECT_TRUE(pair.a.completions.empty());
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kReadRespLast, 102, kAck, 87)));
  ASSERT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.completions[0].status, WcStatus::kLocalLengthError);
}

TEST(RcRequester, FatalNaksFailTheRequestAndFlushTheRest) {
  const std::pair<std::uint8_t, WcStatus> cases[] = {
      {0x61, WcStatus::kRemoteInvalidRequestError},
      {0x62, WcStatus::kRemoteAccessError},
      {0x63, WcStatus::kRemoteOperationError},
  };
  for (const auto& [syndrome, status] : cases) {
    RcPair pair;
    for (int i = 0; i < 3; ++i) pair.a.post_write(0, 0x8000, 10);
    pair.a.send_all();
    pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kAcknowledge, 101, syndrome)));
    ASSERT_EQ(pair.a.completions.size(), 3U);
    EXPECT_EQ(pair.a.completions[0].status, WcStatus::kSuccess);  // before the NAK's PSN
    EXPECT_EQ(pair.a.completions[1].status, status);
    EXPECT_EQ(pair.a.completions[2].status, WcStatus::kWrFlushError);
    EXPECT_EQ(pair.a.qp.state, protocol::QpState::kError);
    EXPECT_EQ(pair.a.qp.retry_deadline, kTimeNever);  // timers stop
    EXPECT_TRUE(pair.a.send_all().empty());
  }
}

TEST(RcRequester, AFailureWaitsForAnEarlierReadToBePlaced) {
  RcPair pair;
  pair.a.hold_placement = true;
  pair.a.post_read(0, 0x8000, 10);
  pair.a.post_write(0, 0x8000, 10);
  pair.a.send_all();
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kReadRespOnly, 100, kAck, 10)));
  pair.a.receive(pair.b.make_packet(crafted_response(BthOpcode::kAcknowledge, 101, 0x62)));
  EXPECT_TRUE(pair.a.completions.empty());
  pair.a.release_placement();
  ASSERT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.a.completions[0].status, WcStatus::kSuccess);
  EXPECT_EQ(pair.a.completions[1].status, WcStatus::kRemoteAccessError);
}

/// Frames of appendix-style reference vectors: RoCEv2 between 10.0.0.1 and 10.0.0.2, dissected and
/// checksummed by independent programs. Ethernet frames without FCS.
class RcReferenceFrames : public ::testing::Test {
 protected:
  RcReferenceFrames() {
    protocol::AddressVector& av = pair_.a.qp.av;
    av.source_mac = {2, 0, 0, 0, 0, 0xA1};
    av.destination_mac = {2, 0, 0, 0, 0, 0xB2};
    av.source_ipv4 = 0x0A000001;
    av.destination_ipv4 = 0x0A000002;
    pair_.a.qp.dest_qpn = 0x12;
    for (std::uint8_t i = 0; i < 16; ++i) pair_.a.memory[i] = i;
  }

  std::string hex_of(const RcPacket& packet) {
    constexpr std::size_t kFcsBytes = 4;
    std::vector<std::uint8_t> bytes;
    pair_.wire->linearize(*packet.frame, bytes);
    return to_hex(bytes.data(), bytes.size() - kFcsBytes);
  }
  std::string frame_of(const transport::TxPlan& plan) { return hex_of(pair_.a.make_packet(plan)); }

  RcPair pair_;
};

TEST_F(RcReferenceFrames, Send) {
  pair_.restart(0x10);
  pair_.a.post_send(0, 16);
  EXPECT_EQ(hex_of(pair_.a.send_all().at(0)),
            "0200000000b20200000000a108004500003c00004000401126af0a0000010a000002c00012b70028000004"
            "00ffff0000001280000010000102030405060708090a0b0c0d0e0f1f9890de");
}

TEST_F(RcReferenceFrames, PaddedSend) {
  pair_.restart(0x20);
  pair_.a.memory[0x30] = 0x55;
  pair_.a.post_send(0x30, 1);
  EXPECT_EQ(hex_of(pair_.a.send_all().at(0)),
            "0200000000b20200000000a108004500003000004000401126bb0a0000010a000002c00012b7001c000004"
            "30ffff0000001280000020550000001a505e48");
}

TEST_F(RcReferenceFrames, ReadRequest) {
  transport::TxPlan plan = crafted(BthOpcode::kReadRequest, 0x15, 0);
  plan.address = 0x3000;
  plan.rkey = 0xAABBCC01;
  plan.message_length = 16;
  EXPECT_EQ(frame_of(plan),
            "0200000000b20200000000a108004500003c00004000401126af0a0000010a000002c00012b7002800000c"
            "00ffff00000012800000150000000000003000aabbcc01000000109bb01532");
}

TEST_F(RcReferenceFrames, CompareSwap) {
  transport::TxPlan plan = crafted(BthOpcode::kCompareSwap, 0x16, 0);
  plan.address = 0x4000;
  plan.rkey = 0xAABBCC01;
  plan.swap_or_add = 7;
  plan.compare = 3;
  EXPECT_EQ(frame_of(plan),
            "0200000000b20200000000a108004500004800004000401126a30a0000010a000002c00012b70034000013"
            "00ffff00000012800000160000000000004000aabbcc01000000000000000700000000000000038913132"
            "c");
}

TEST_F(RcReferenceFrames, Acknowledge) {
  pair_.a.qp.dest_qpn = 0x13;
  transport::TxPlan plan = crafted_response(BthOpcode::kAcknowledge, 0x14, 0x0A);
  plan.msn = 4;
  const std::string frame = frame_of(plan);
  EXPECT_EQ(frame,
            "0200000000b20200000000a108004500003000004000401126bb0a0000010a000002c00012b7001c000011"
            "00ffff00000013000000140a0000047146659c");
}

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
// Enhanced MPA set-up (RFC 6581) between two transports.
#include <gtest/gtest.h>

#include "support/iwarp_rig.h"

namespace rnic::testbench {
namespace {

using config::ReadyMessage;
using protocol::WcStatus;
using protocol::WqeOpcode;

config::TcpConfig enhanced(ReadyMessage offered, ReadyMessage accepted = ReadyMessage::kAny,
                           ReadyMessage sent = ReadyMessage::kAgreed) {
  config::TcpConfig tcp = IwarpRig::tcp_config();
  tcp.handshake = true;
  tcp.syn_timeout = microseconds(100);
  tcp.sack = true;
  tcp.tear_down = true;
  tcp.mpa_revision = 2;
  tcp.mpa_rtr = offered;
  tcp.mpa_rtr_accept = accepted;
  tcp.mpa_rtr_sent = sent;
  return tcp;
}

// Request with IRD 1 and ORD 2, reply with IRD 2 and ORD 1.
TEST(IwarpNegotiation, EachEndKeepsToWhatTheOtherTakes) {
  for (const std::uint16_t initiator_ord : {std::uint16_t{2}, std::uint16_t{9}}) {
    IwarpRig rig(enhanced(ReadyMessage::kNone));
    rig.a.qp.max_dest_rd_atomic = 1;
    rig.a.qp.max_rd_atomic = initiator_ord;
    rig.b.qp.max_dest_rd_atomic = 2;
    rig.b.qp.max_rd_atomic = 5;
    rig.run();
    EXPECT_EQ(rig.a.qp.max_rd_atomic, 2U);  // min(ORD, the peer's IRD)
    EXPECT_EQ(rig.b.qp.max_rd_atomic, 1U);
    // Six READs of each end all the same.
    for (int i = 0; i < 6; ++i) {
      rig.a.post(WqeOpcode::kRead, 3000, 0, 0x1000);
      rig.b.post(WqeOpcode::kRead, 3000, 0x4000, 0x8000);
    }
    rig.run();
    EXPECT_EQ(rig.a.completions, std::vector<WcStatus>(6, WcStatus::kSuccess));
    EXPECT_EQ(rig.b.completions, std::vector<WcStatus>(6, WcStatus::kSuccess));
  }
}

/// RDMAP opcodes of the FPDUs that an end sent, in order.
std::vector<int> opcodes_of(const IwarpEnd& end) {
  std::vector<int> opcodes;
  for (const TxPlan& plan : end.plans) {
    const bool fpdu = plan.setup == transport::SetupSegment::kNone &&
                      plan.frame_class != protocol::FrameClass::kAck;
    if (fpdu) opcodes.push_back(plan.opcode);
  }
  return opcodes;
}

TEST(IwarpNegotiation, TheResponderWaitsForTheAgreedMessage) {
  struct Kind {
    ReadyMessage accepted;
    int opcode;
  };
  // RDMA Write, Send and Read Request.
  for (const Kind kind : {Kind{ReadyMessage::kWrite, 0}, Kind{ReadyMessage::kSend, 3},
                          Kind{ReadyMessage::kRead, 1}, Kind{ReadyMessage::kAny, 3}}) {
    IwarpRig rig(enhanced(ReadyMessage::kAny, kind.accepted));
    // The responder has work from the beginning, the initiator none.
    rig.b.post(WqeOpcode::kWrite, 2000, 0, 0x1000);
    rig.run();
    EXPECT_EQ(rig.b.completions, std::vector{WcStatus::kSuccess});
    const std::vector<int> first = opcodes_of(rig.a);
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(first[0], kind.opcode);
    EXPECT_TRUE(rig.b.received.empty());  // it takes no RECV
    // The untagged queues go on with message number 2 where the first was used.
    rig.b.recvs_posted = 1;
    rig.a.post(WqeOpcode::kSend, 100);
    rig.a.post(WqeOpcode::kRead, 100, 0, 0x1000);
    rig.run();
    EXPECT_EQ(rig.a.completions, std::vector<WcStatus>(2, WcStatus::kSuccess));
    EXPECT_EQ(rig.b.received.size(), 1U);
  }
}

TEST(IwarpNegotiation, AnotherMessageThanAgreedEndsTheConnection) {
  IwarpRig rig(enhanced(ReadyMessage::kAny, ReadyMessage::kRead, ReadyMessage::kWrite));
  rig.a.post(WqeOpcode::kWrite, 2000, 0, 0x1000);
  rig.b.post(WqeOpcode::kWrite, 2000, 0, 0x1000);
  rig.run();
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kRemoteOperationError});
  EXPECT_EQ(rig.b.completions, std::vector{WcStatus::kWrFlushError});
  EXPECT_EQ(opcodes_of(rig.b), std::vector{7});  // TERMINATE and nothing else
  // Layer 2 (LLP), type 0 (MPA), code 7: no matching ready-to-receive message; no headers.
  const auto& c = *transport::IwarpTransport::connection_of(rig.b.qp);
  EXPECT_EQ(c.terminate_bytes, 4U);
  EXPECT_EQ(c.terminate[0], 0x20);
  EXPECT_EQ(c.terminate[1], 7);
  EXPECT_EQ(c.terminate[2], 0);
}

TEST(IwarpNegotiation, NothingInCommonEndsTheConnection) {
  IwarpRig rig(enhanced(ReadyMessage::kRead, ReadyMessage::kSend));
  rig.a.post(WqeOpcode::kWrite, 2000, 0, 0x1000);
  rig.b.post(WqeOpcode::kWrite, 2000, 0, 0x1000);
  rig.run();
  EXPECT_EQ(opcodes_of(rig.a), std::vector{7});
  EXPECT_TRUE(opcodes_of(rig.b).empty());
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kWrFlushError});
}

// Whichever of the first frames is lost, set-up and ready-to-receive message are repeated.
TEST(IwarpNegotiation, AnyLostFrameIsRepaired) {
  for (const ReadyMessage accepted :
       {ReadyMessage::kSend, ReadyMessage::kWrite, ReadyMessage::kRead}) {
    for (std::uint64_t lost = 0; lost < 14; ++lost) {
      IwarpRig rig(enhanced(ReadyMessage::kAny, accepted));
      rig.a.post(WqeOpcode::kWrite, 5000, 0, 0x4000);
      rig.b.post(WqeOpcode::kRead, 3000, 0, 0x1000);
      rig.run([lost](std::uint64_t n) { return n == lost; });
      EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess}) << lost;
      EXPECT_EQ(rig.b.completions, std::vector{WcStatus::kSuccess}) << lost;
    }
  }
}

}  // namespace
}  // namespace rnic::testbench

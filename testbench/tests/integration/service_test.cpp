// SPDX-License-Identifier: Apache-2.0
// Unreliable connection and unreliable datagram from end to end, on every wire that has them.
#include <gtest/gtest.h>

#include <tuple>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::QpType;
using protocol::WcStatus;

constexpr std::uint32_t kHeaderArea = 40;  // IBTA vol 1, 11.4.1.2

std::vector<std::string> operations_of_service(const std::string& type) {
  if (type == "ud") return {"send", "send_imm"};
  return {"write", "write_imm", "send", "send_imm"};
}

class ServiceTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  std::string protocol() const { return std::get<0>(GetParam()); }
  std::string type() const { return std::get<1>(GetParam()); }
  Settings settings() const {
    return {{"transport.protocol", protocol()}, {"transport.type", type()}};
  }
};

TEST_P(ServiceTest, DataArriveAndStagesSumToTheLatency) {
  // The program compares what arrives with what was sent.
  for (const std::string& op : operations_of_service(type())) {
    for (const std::string pattern : {"latency", "bandwidth"}) {
      const Settings all =
          with(settings(), {{"workload.op", op},
                            {"workload.pattern", pattern},
                            {"workload.msg_size", type() == "ud" ? "2000" : "9000"},
                            {"workload.depth", "8"},
                            {"workload.iterations", "200"},
                            {"sim.warmup", "20"}});
      SCOPED_TRACE(text_of(all));
      const ProgramRun run = run_well(all);
      ASSERT_EQ(run.status, 0);
      double sum = 0;
      for (const auto& row : run.result["breakdown_ns"]) sum += row["mean"].get<double>();
      EXPECT_NEAR(sum, run.number("/latency_ns/mean"), run.number("/latency_ns/mean") / 1000);
      EXPECT_GT(run.number("/throughput_gbps"), 0);
      EXPECT_EQ(run.counter("acks_sent"), 0U);
      EXPECT_EQ(run.counter("dropped_messages"), 0U);
      if (pattern == "bandwidth") {
        EXPECT_EQ(run.stage("propagate"), 0) << "it is over when sent";
      }
    }
  }
}

TEST_P(ServiceTest, WhatIsLostIsNotSentAgain) {
  const ProgramRun run = run_well(with(settings(), {{"workload.op", "send"},
                                                    {"workload.pattern", "bandwidth"},
                                                    {"workload.msg_size", "4000"},
                                                    {"transport.mtu", "4096"},
                                                    {"workload.depth", "8"},
                                                    {"workload.iterations", "1000"},
                                                    {"link.loss_rate", "0.02"}}));
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.counter("retransmitted_packets"), 0U);
  const std::uint64_t sent = 1000 + 128;
  EXPECT_LT(run.counter("rx_send_requests"), sent);
  EXPECT_GT(run.counter("rx_send_requests"), sent * 9 / 10);
}

// What comes twice or late is not taken for damage.
TEST_P(ServiceTest, DuplicatesAndReordering) {
  for (const std::string& op : operations_of_service(type())) {
    for (const char* fault : {"duplicate", "reorder"}) {
      const std::string key = std::string("link.") + fault + "_rate";
      const ProgramRun run = run_well(with(settings(), {{"workload.op", op},
                                                        {"workload.pattern", "bandwidth"},
                                                        {"workload.msg_size", "1000"},
                                                        {"workload.depth", "4"},
                                                        {"workload.iterations", "300"},
                                                        {key, "0.05"},
                                                        {"link.loss_rate", "0.005"}}));
      EXPECT_EQ(run.status, 0) << op << fault;
    }
  }
}

// Five queue pairs, whose datagrams have the lanes of their address handles: more packets than the
// transmit path has places for.
TEST_P(ServiceTest, EachServiceLevelHasItsPlaces) {
  for (const char* levels : {"1", "0,3,5"}) {
    const ProgramRun run = run_well(with(settings(), {{"workload.op", "send"},
                                                      {"workload.pattern", "bandwidth"},
                                                      {"workload.qps", "5"},
                                                      {"workload.msg_size", "64"},
                                                      {"workload.depth", "16"},
                                                      {"workload.iterations", "400"},
                                                      {"link.data_vls", "8"},
                                                      {"transport.vlan", "true"},
                                                      {"transport.service_level", levels}}));
    EXPECT_EQ(run.status, 0) << levels;
    EXPECT_EQ(run.counter("rx_send_requests"), 400U + 128) << levels;
  }
}

// 32 senders to one at 1 Gb/s: what waits in the switch's queues arrives long after the senders
// have ended, 4,178 B x 32 flows = 1.07 ms between two messages of one.
TEST_P(ServiceTest, WhatIsStillInAQueueIsNotLost) {
  const ProgramRun run = run_well(with(settings(), {{"workload.op", "send"},
                                                    {"workload.pattern", "bandwidth"},
                                                    {"workload.traffic", "incast"},
                                                    {"fabric.topology", "single_switch"},
                                                    {"fabric.hosts", "33"},
                                                    {"switch.buffer", "64MiB"},
                                                    {"link.rate", "1Gbps"},
                                                    {"workload.msg_size", "4096"},
                                                    {"workload.iterations", "30"},
                                                    {"sim.warmup", "2"},
                                                    {"sim.payload", "none"}}));
  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.counter("rx_send_requests"), 32U * (30 + 2));
}

INSTANTIATE_TEST_SUITE_P(Wires, ServiceTest,
                         ::testing::Combine(::testing::Values("ib", "rocev1", "rocev2"),
                                            ::testing::Values("uc", "ud")),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

TEST(Service, WhatAWireOrServiceDoesNotHaveIsRefused) {
  const std::vector<std::pair<Settings, std::string>> wrong = {
      {{{"transport.protocol", "iwarp"}, {"transport.type", "uc"}}, "transport.type=uc"},
      {{{"transport.protocol", "iwarp"}, {"transport.type", "ud"}}, "transport.type=ud"},
      {{{"transport.type", "uc"}, {"workload.op", "read"}}, "no READ"},
      {{{"transport.type", "uc"}, {"workload.op", "atomic_cas"}}, "no atomics"},
      {{{"transport.type", "ud"}, {"workload.op", "write"}}, "no WRITE"},
      {{{"transport.type", "ud"}, {"workload.op", "send"}, {"workload.msg_size", "4097"}},
       "workload.msg_size=4097"}};
  for (const auto& [settings, words] : wrong) {
    const ProgramRun run = run_program(settings);
    EXPECT_EQ(run.status, 2) << text_of(settings);
    EXPECT_NE(run.error.find(words), std::string::npos) << run.error;
  }
}

struct DatagramRig : VerbsRig {
  explicit DatagramRig(const std::string& protocol)
      : VerbsRig({{"transport.protocol", protocol}}) {}

  host::Status send(const RigBuffer& from, std::uint32_t bytes, std::uint32_t qkey = kRigQkey) {
    const protocol::Sge sge{from.address, bytes, from.region.lkey};
    SendWr wr;
    wr.opcode = WrOpcode::kSend;
    wr.flags = SendFlags::kSignaled;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.ah = a_to_b;
    wr.remote_qpn = b.qp->qpn;
    wr.remote_qkey = qkey;
    return a.verbs().post_send(a.core, *a.qp, &wr, 1);
  }
};

class DatagramTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DatagramTest, TheBufferStartsWithTheNetworkHeader) {
  DatagramRig rig(GetParam());
  rig.run([&] {
    rig.connect(QpType::kUd);
    RigBuffer from = rig.a.buffer(4096);
    RigBuffer to = rig.b.buffer(4096);
    const std::vector<std::uint8_t> data = {1, 2, 3, 4, 5};
    rig.a.fill(from.address, data);
    rig.b.fill(to.address, std::vector<std::uint8_t>(4096, 0xA5));
    ASSERT_EQ(rig.b.post_recv(to.address, to.region.lkey, 200), host::Status::kOk);
    ASSERT_EQ(rig.send(from, 5), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    const host::verbs::Wc wc = rig.b.await_recv();
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.byte_len, kHeaderArea + 5);
    EXPECT_EQ(wc.src_qp, rig.a.qp->qpn);
    EXPECT_EQ(rig.b.bytes_at(to.address + kHeaderArea, 5), data);
    EXPECT_EQ(rig.b.bytes_at(to.address + kHeaderArea + 5, 1)[0], 0xA5);
    const auto area = rig.b.bytes_at(to.address, kHeaderArea);
    const bool has_grh = (wc.wc_flags & host::verbs::Wc::kGrh) != 0;
    if (GetParam() == "ib") {  // one subnet: no GRH, the place is left alone
      EXPECT_FALSE(has_grh);
      EXPECT_EQ(area, std::vector<std::uint8_t>(kHeaderArea, 0xA5));
    } else if (GetParam() == "rocev1") {
      EXPECT_TRUE(has_grh);
      EXPECT_EQ(area[0] >> 4, 6);  // IP version of a GRH
      EXPECT_EQ(area[6], 0x1B);    // next header: BTH
      EXPECT_EQ(area[39], 2);      // destination GID of host 1
    } else {
      EXPECT_TRUE(has_grh);
      EXPECT_EQ(area[19], 0xA5);
      EXPECT_EQ(area[20], 0x45);  // an IPv4 header fills the second half
      EXPECT_EQ(area[39], 2);     // destination 10.0.0.2
    }
  });
}

TEST_P(DatagramTest, NoRecvOrAnotherKeyDropsItSilently) {
  DatagramRig rig(GetParam());
  rig.run([&] {
    rig.connect(QpType::kUd);
    RigBuffer from = rig.a.buffer(4096);
    RigBuffer to = rig.b.buffer(4096);
    ASSERT_EQ(rig.send(from, 5), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    rig.settle();
    ASSERT_EQ(rig.b.post_recv(to.address, to.region.lkey, 200), host::Status::kOk);
    ASSERT_EQ(rig.send(from, 6, kRigQkey + 1), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    ASSERT_EQ(rig.send(from, 7), host::Status::kOk);
    EXPECT_EQ(rig.b.await_recv().byte_len, kHeaderArea + 7);
    EXPECT_EQ(rig.b.device_qp().state, QpState::kRts);
    const auto& counters = rig.b.node.nic.transport().counters();
    EXPECT_EQ(counters.out_of_buffer, 1U);
    EXPECT_EQ(counters.qkey_violations, 1U);
  });
}

TEST_P(DatagramTest, WhatNoDatagramMayAskIsRefusedAtPostTime) {
  DatagramRig rig(GetParam());
  rig.run([&] {
    rig.connect(QpType::kUd);
    RigBuffer from = rig.a.buffer(8192);
    EXPECT_EQ(rig.a.post(WrOpcode::kSend, from.address, from.region.lkey, 8), host::Status::kEinval)
        << "no address handle";
    EXPECT_EQ(rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 8, 0, 0),
              host::Status::kEinval);
    EXPECT_STRNE(rig.a.verbs().refusal(), "");
  });
}

TEST_P(DatagramTest, OneOfMoreThanAPacketStopsTheSendQueue) {
  DatagramRig rig(GetParam());
  rig.run([&] {
    rig.connect(QpType::kUd);
    RigBuffer from = rig.a.buffer(8192);
    EXPECT_EQ(rig.send(from, 4096), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.send(from, 4097), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kLocalLengthError);
    EXPECT_EQ(rig.a.device_qp().state, QpState::kSqe);
  });
}

INSTANTIATE_TEST_SUITE_P(Wires, DatagramTest, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });

class ConnectionTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ConnectionTest, AnUnreliableWriteToAWrongKeyIsDroppedAndNobodyFails) {
  VerbsRig rig({{"transport.protocol", GetParam()}});
  rig.run([&] {
    rig.connect(QpType::kUc);
    RigBuffer from = rig.a.buffer(65536);
    RigBuffer to = rig.b.buffer(65536);
    rig.a.fill(from.address, std::vector<std::uint8_t>(65536, 7));
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 65536, to.address,
                         to.region.rkey + 1),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    rig.settle();
    EXPECT_EQ(rig.b.bytes_at(to.address, 65536), std::vector<std::uint8_t>(65536, 0));
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 65536, to.address,
                         to.region.rkey),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    rig.settle();
    EXPECT_EQ(rig.b.bytes_at(to.address, 65536), std::vector<std::uint8_t>(65536, 7));
    EXPECT_EQ(rig.a.device_qp().state, QpState::kRts);
    EXPECT_EQ(rig.b.device_qp().state, QpState::kRts);
  });
}

TEST_P(ConnectionTest, ALocalErrorStopsTheSendQueueOnly) {
  // IBTA vol 1, 10.3.1.7: SQE; receiving goes on.
  VerbsRig rig({{"transport.protocol", GetParam()}});
  rig.run([&] {
    rig.connect(QpType::kUc);
    RigBuffer from = rig.a.buffer(4096);
    RigBuffer to = rig.b.buffer(4096);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey + 1, 64, to.address,
                         to.region.rkey),
              host::Status::kOk);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, from.address, from.region.lkey, 64, to.address,
                         to.region.rkey),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kLocalProtectionError);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kWrFlushError);
    EXPECT_EQ(rig.a.device_qp().state, QpState::kSqe);
    ASSERT_EQ(rig.a.post_recv(from.address, from.region.lkey, 64), host::Status::kOk);
    ASSERT_EQ(rig.b.post(WrOpcode::kSend, to.address, to.region.lkey, 64), host::Status::kOk);
    EXPECT_EQ(rig.a.await_recv().status, WcStatus::kSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Wires, ConnectionTest, ::testing::Values("ib", "rocev1", "rocev2"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench

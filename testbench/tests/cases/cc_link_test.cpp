// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "protocol/pfc_frame.h"
#include "support/link_rig.h"
#include "support/program.h"
#include "support/temporary_file.h"
#include "support/tshark.h"

// Congestion cases that one link or two hosts can show.
namespace rnic::testbench {
namespace {

Settings streams(const std::string& op) {
  return {{"transport.protocol", "rocev2"},
          {"workload.op", op},
          {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "64KiB"},
          {"workload.iterations", "200"},
          {"workload.depth", "16"},
          {"workload.qps", "4"},
          {"sim.payload", "none"}};
}

// Frames are lost if and only if the buffer above the pause threshold is less than what the
// formula asks for: rate x (2 x propagation + response) + 2 x MTU + what is about to be sent.
TEST(CaseCC, CC05_HeadroomDecidesAboutLoss) {
  Settings settings = with(streams("write"), {{"fabric.topology", "single_switch"},
                                              {"fabric.hosts", "4"},
                                              {"workload.traffic", "incast"},
                                              {"workload.iterations", "300"},
                                              {"link.delay", "2us"}});
  const ProgramRun enough = run_well(settings);
  EXPECT_EQ(enough.link_sum("dropped"), 0);
  EXPECT_EQ(enough.link_sum("switch_dropped_full"), 0);
  EXPECT_EQ(enough.counter("out_of_sequence"), 0U);
  EXPECT_GT(enough.link_sum("paused_ns"), 0);
  // 2 x 2 us at 100 Gb/s are 50,000 B alone.
  const ProgramRun little = run_well(with(settings, {{"link.pfc_headroom", "16KiB"}}));
  EXPECT_GT(little.link_sum("dropped"), 0);
  EXPECT_GT(little.counter("out_of_sequence"), 0U);
}

// In the worst phase a pause waits for a frame of the other direction: both send. By the formula of
// the case, in bytes at 100 Gb/s: 2 x 2 us of cable 50,000, four PHYs of 50 ns 2,500, two frames of
// 4,096 B of payload with 98 B of headers, preamble and gap 8,388, and the pause itself, 84.
TEST(CaseCC, CC05_AFrameLessThanTheFormulaLoses) {
  constexpr int kFrame = 4'096 + 98;
  constexpr int kFormula = 50'000 + 2'500 + 2 * kFrame + 84;
  const Settings settings = with(streams("write"), {{"fabric.topology", "single_switch"},
                                                    {"fabric.hosts", "4"},
                                                    {"workload.traffic", "incast"},
                                                    {"workload.bidirectional", "true"},
                                                    {"workload.iterations", "600"},
                                                    {"link.delay", "2us"}});
  const auto dropped = [&settings](int headroom) {
    return run_well(with(settings, {{"link.pfc_headroom", std::to_string(headroom)}}))
        .link_sum("dropped");
  };
  for (const int more : {0, 1, kFrame, 20'000}) EXPECT_EQ(dropped(kFormula + more), 0) << more;
  for (const int less : {kFrame, 2 * kFrame, 20'000, 50'000}) {
    EXPECT_GT(dropped(kFormula - less), 0) << less;
  }
}

// The switch's buffer is one for all ports: when it is less than what the ports' thresholds and
// headroom add up to, pauses come too late for it, and the report says that it was full.
TEST(CaseCC, CC05_ASmallSharedBufferLoses) {
  const Settings settings = with(streams("write"), {{"fabric.topology", "single_switch"},
                                                    {"fabric.hosts", "8"},
                                                    {"workload.traffic", "incast"},
                                                    {"sim.warmup", "0"},
                                                    {"workload.iterations", "100"}});
  EXPECT_EQ(run_well(settings).link_sum("dropped"), 0);
  const ProgramRun little = run_well(with(settings, {{"switch.buffer", "256KiB"}}));
  EXPECT_GT(little.link_sum("dropped"), 0);
  EXPECT_EQ(little.link_sum("dropped"), little.link_sum("switch_dropped_full"));
  for (const auto& link : little.result.at("link")) {
    if (link.at("dropped").get<int>() == 0) continue;
    EXPECT_NE(link.at("dropped_because").get<std::string>().find("switch.buffer"),
              std::string::npos);
  }
}

TEST(CaseCC, CC10_ResponsesUseTheRespondersClass) {
  // Two hosts WRITE to a third in protected priority 3; what comes back is in priority 0. Then the
  // third, which is a client, too (bidirectional), READs from both, and the queue pairs that answer
  // it send in unprotected priority 0. Either way two streams meet at the third host.
  const Settings classes{
      {"transport.service_level", "3"},     {"transport.response_service_level", "0"},
      {"link.pfc_priorities", "3"},         {"transport.ack_timeout", "8"},
      {"fabric.topology", "single_switch"}, {"fabric.hosts", "3"},
      {"workload.traffic", "incast"}};
  const ProgramRun write = run_well(with(streams("write"), classes));
  EXPECT_EQ(write.link_sum("dropped"), 0);
  EXPECT_EQ(write.counter("out_of_sequence"), 0U);
  EXPECT_GT(write.link_sum("paused_ns"), 0);
  const ProgramRun read =
      run_well(with(with(streams("read"), classes), {{"workload.bidirectional", "true"},
                                                     {"transport.service_level", "0"},
                                                     {"transport.response_service_level", "3"}}));
  EXPECT_GT(read.link_sum("dropped"), 0);
  EXPECT_GT(read.counter("implied_nak_seq_err") + read.counter("local_ack_timeout_err"), 0U);
  for (const auto& link : read.result.at("link")) {
    if (link.at("dropped").get<int>() == 0) continue;
    EXPECT_NE(link.at("dropped_because").get<std::string>().find("link.pfc_priorities"),
              std::string::npos);
  }
}

// Weights of 10 and 30 for two queue pairs that both could fill the line: while both send, three of
// four packets are of the heavier one.
TEST(CaseCC, EtsSharesANicsPort) {
  const TemporaryFile place("ets");
  std::filesystem::remove(place.path());
  run_well(with(streams("write"), {{"transport.service_level", "1,2"},
                                   {"link.ets", "1:10,2:30"},
                                   {"workload.qps", "2"},
                                   {"workload.threads", "2"},
                                   {"sim.warmup", "0"},
                                   {"output.traces", "pcap"},
                                   {"output.dir", place.path()}}));
  std::vector<std::uint64_t> priorities;  // of what host 0 sends, in order
  std::size_t end = 0;                    // behind the last of the heavier
  for (const Dissection& p : dissect(place.path() + "/host0.nic.port.pcapng",
                                     "frame.packet_flags_direction == 2", {"ip.dsfield.dscp"})) {
    priorities.push_back(p.number("ip.dsfield.dscp") / 8);
    if (priorities.back() == 2) end = priorities.size();
  }
  priorities.resize(end);
  // The second thread starts a little later.
  constexpr std::ptrdiff_t kStart = 600;
  ASSERT_GT(end, 2000U);
  priorities.erase(priorities.begin(), priorities.begin() + kStart);
  const auto heavy = std::count(priorities.begin(), priorities.end(), 2U);
  const auto light = std::count(priorities.begin(), priorities.end(), 1U);
  ASSERT_GT(light, 100);
  EXPECT_NEAR(static_cast<double>(heavy) / static_cast<double>(light), 3.0, 0.05);
}

/// A pause of priority 0: when it is sent, and for how many quanta.
struct Pause {
  Time at;
  std::uint16_t quanta;
};

/// A port at 100 Gb/s whose peer pauses it as `pauses` say, while frames wait; returns when the
/// first frame after the pause that begins at 1 us starts.
Time resumed_at(const std::vector<Pause>& pauses) {
  protocol::FramePool pool;
  link::LinkPort port("port", port_config(config::FlowControl::kPfc), pool);
  FakePeer peer("peer", pool);
  port.tx.bind(peer.rx);
  peer.tx.bind(port.rx);
  Sink sink(port, pool);
  Source source(port, pool);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  const auto pause = [&](std::uint16_t quanta, Time delay) {
    protocol::Frame* frame = make_frame(pool, 84, 0, 0, protocol::FrameClass::kLinkControl);
    protocol::PfcFrame pfc;
    pfc.enable = 1;
    pfc.time[0] = quanta;
    pfc.encode(frame->header);
    frame->header_bytes = protocol::PfcFrame::kBytes;
    peer.send(frame, delay);
  };
  for (const Pause& one : pauses) pause(one.quanta, one.at);
  source.start(2000, 4200, 4200);
  sc_core::sc_start(to_sc_time(microseconds(900)));
  for (const Time start : source.starts) {
    if (start > microseconds(2)) return start;
  }
  return kTimeNever;
}

TEST(CaseCC, CC19_PauseEndsAtXon) {
  // The far end's PHY is 50 ns behind the cable; a frame takes 336 ns.
  const Time resumed = resumed_at({{microseconds(1), 0xFFFF}, {microseconds(11), 0}});
  EXPECT_GE(resumed, microseconds(11) + nanoseconds(50));
  EXPECT_LE(resumed, microseconds(11) + nanoseconds(50 + 336));
}

TEST(CaseCC, CC19_PauseEndsByItselfAfter65535Quanta) {
  // 65,535 x 512 bit times at 100 Gb/s are 335.5 us.
  const Time resumed = resumed_at({{microseconds(1), 0xFFFF}});
  EXPECT_EQ(resumed, nanoseconds(1050) + picoseconds(65535LL * 5120));
}

// A new pause counts from its own arrival, whether it is longer or shorter than what was left.
TEST(CaseCC, CC19_ANewPauseRefreshesTheTimer) {
  EXPECT_EQ(resumed_at({{microseconds(1), 0xFFFF}, {microseconds(301), 0xFFFF}}),
            nanoseconds(301'050) + picoseconds(65535LL * 5120));
}
TEST(CaseCC, CC19_ANewPauseMayBeShorter) {
  EXPECT_EQ(resumed_at({{microseconds(1), 0xFFFF}, {microseconds(101), 100}}),
            nanoseconds(101'050) + picoseconds(100LL * 5120));
}

// Two senders to one host. Priority 0 is not paused, so that the switch drops; nothing marks.
TEST(CaseCC, CC02_TheUnprotectedPriorityLoses) {
  const Settings incast{{"transport.protocol", "rocev2"},
                        {"fabric.topology", "single_switch"},
                        {"fabric.hosts", "3"},
                        {"workload.traffic", "incast"},
                        {"workload.pattern", "bandwidth"},
                        {"workload.msg_size", "64KiB"},
                        {"workload.iterations", "500"},
                        {"transport.ack_timeout", "8"},
                        {"link.pfc_priorities", "3"},
                        {"switch.buffer", "512KiB"},
                        {"sim.payload", "none"}};
  const ProgramRun lossy = run_well(with(incast, {{"transport.service_level", "0"}}));
  EXPECT_GT(lossy.counter("local_ack_timeout_err"), 0U);
  EXPECT_GT(lossy.counter("out_of_sequence"), 0U);
  EXPECT_GT(lossy.link_sum("dropped") + lossy.link_sum("switch_dropped_full"), 0);
  EXPECT_EQ(lossy.link_sum("ecn_marked"), 0);
  EXPECT_EQ(lossy.counter("np_ecn_marked_roce_packets"), 0U);
  EXPECT_EQ(lossy.result.at("bottleneck").at("unit"), "transport.recovery");
  const ProgramRun selective = run_well(
      with(incast, {{"transport.service_level", "0"}, {"transport.recovery", "selective_repeat"}}));
  EXPECT_LT(lossy.number("/throughput_gbps"), 0.5 * selective.number("/throughput_gbps"));
  const ProgramRun tcp =
      run_well(with(incast, {{"transport.protocol", "iwarp"}, {"link.flow_control", "none"}}));
  EXPECT_LT(lossy.number("/throughput_gbps"), tcp.number("/throughput_gbps"));
  const ProgramRun lossless = run_well(with(incast, {{"transport.service_level", "3"}}));
  EXPECT_EQ(lossless.counter("local_ack_timeout_err"), 0U);
  EXPECT_EQ(lossless.counter("out_of_sequence"), 0U);
  EXPECT_EQ(lossless.link_sum("dropped"), 0);
  EXPECT_NEAR(lossless.number("/throughput_gbps"), 98, 1);
}

// Two senders of 50 Gb/s are no load for links of 200 Gb/s, but the receiver's PCIe Gen3 x8
// takes 57.6 Gb/s (8 GT/s x 8 x 128/130 x 256/280): its NIC pauses the network. At 25 Gb/s each it
// does not.
// The automatic receive buffer is enough for the line rate over any cable: pauses of a receiver
// that keeps up are few, and after one the next frames come before the buffer has run dry. 4,096 B
// of payload take 4,096 + 82 B of the wire.
TEST(CaseCC, LongCablesKeepTheirRate) {
  for (const char* rate : {"100Gbps", "400Gbps"}) {
    for (const char* delay : {"1us", "3us", "20us"}) {
      const ProgramRun run = run_well(with(streams("write"), {{"link.rate", rate},
                                                              {"link.delay", delay},
                                                              {"pcie.gen", "6"},
                                                              {"workload.depth", "64"},
                                                              {"workload.iterations", "4000"}}));
      const double line = (std::string(rate) == "100Gbps" ? 100 : 400) * 4096.0 / 4178;
      EXPECT_NEAR(run.number("/throughput_gbps"), line, 0.01 * line) << rate << ' ' << delay;
      EXPECT_EQ(run.counter("out_of_sequence"), 0U) << rate << ' ' << delay;
    }
  }
}

// A receiver behind a slow PCIe link takes what that carries, however far the sender is.
TEST(CaseCC, PausesOverALongCableCostNothing) {
  const auto at = [](const char* delay) {
    return run_well(with(streams("write"), {{"link.delay", delay},
                                            {"pcie.gen", "3"},
                                            {"pcie.lanes", "4"},
                                            {"workload.depth", "64"},
                                            {"workload.iterations", "4000"}}))
        .number("/throughput_gbps");
  };
  const double near = at("100ns");
  // Gen3 x4 carries 31.5 Gb/s, of which DLLPs and ordered sets leave 57.88 of 62.96 (the default
  // share, as PC-01 has it for x8); 256 B of payload are 280 B there.
  EXPECT_NEAR(near, 8 * 4 * 128 / 130.0 * 57.88 / 62.96 * 256 / 280, 0.3);
  EXPECT_NEAR(at("50us"), near, 0.03 * near);
}

TEST(CaseCC, CC08_ASlowReceiverPausesTheNetwork) {
  const auto senders_at = [](const char* rate) {
    return run_well({{"transport.protocol", "rocev2"},
                     {"fabric.topology", "single_switch"},
                     {"fabric.hosts", "3"},
                     {"workload.traffic", "incast"},
                     {"workload.pattern", "bandwidth"},
                     {"workload.msg_size", "64KiB"},
                     {"workload.iterations", "300"},
                     {"link.rate", "200Gbps"},
                     {"pcie.gen", "3"},
                     {"pcie.lanes", "8"},
                     {"nic.qp_rate", rate},
                     {"sim.payload", "none"}});
  };
  const auto paused_by_host = [](const ProgramRun& run) {
    for (const auto& link : run.result.at("link")) {
      if (link.at("name") == "switch.port0") return link.value("paused_ns", 0.0);
    }
    return -1.0;
  };
  const ProgramRun slow = senders_at("50Gbps");
  EXPECT_GT(paused_by_host(slow), 0);
  EXPECT_EQ(slow.link_sum("dropped"), 0);
  EXPECT_LE(slow.number("/throughput_gbps"), 57.6);
  EXPECT_GE(slow.number("/throughput_gbps"), 52);
  EXPECT_EQ(slow.result.at("bottleneck").at("unit"), "host0.pcie.to_host");
  const ProgramRun capped = senders_at("25Gbps");
  EXPECT_EQ(paused_by_host(capped), 0);
  EXPECT_NEAR(capped.number("/throughput_gbps"), 50, 1);
}

}  // namespace
}  // namespace rnic::testbench

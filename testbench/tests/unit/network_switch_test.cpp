// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "network/cable.h"
#include "network/switch.h"
#include "protocol/ib_headers.h"
#include "protocol/pfc_headroom.h"
#include "stats/stage.h"
#include "tests/support/link_rig.h"

namespace rnic {
namespace {

using config::FlowControl;
using protocol::Frame;
using stats::Stage;
using testbench::make_frame;
using testbench::port_config;
using testbench::Sink;
using testbench::Source;

protocol::MacAddress mac_of(std::uint32_t host) {
  return {0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(host)};
}

void to_host(Frame& frame, std::uint32_t host) {
  protocol::EthernetHeader header;
  header.destination = mac_of(host);
  header.encode(frame.header);
}

config::SwitchConfig switch_config() {
  config::SwitchConfig config{};
  config.latency = nanoseconds(150);
  config.buffer = 16 << 20;
  config.pfc_xoff = 65'536;
  config.pfc_xon = 49'152;
  return config;
}

/// Hosts 0, 1, 2 ... on the ports of one switch by cables of 10 ns.
struct Rig {
  explicit Rig(FlowControl flow_control, std::uint32_t hosts = 3,
               config::SwitchConfig config = switch_config(),
               network::Addressing addressing = network::Addressing::kMac)
      : sw("switch", config, port_config(flow_control), hosts, addressing, pool) {
    for (std::uint32_t i = 0; i < hosts; ++i) {
      const std::string index = std::to_string(i);
      ports.push_back(std::make_unique<link::LinkPort>(("host" + index).c_str(),
                                                       port_config(flow_control), pool));
      cables.push_back(std::make_unique<network::Cable>(("cable" + index).c_str(), nanoseconds(10),
                                                        network::FaultConfig{}, 1, pool));
      sinks.push_back(std::make_unique<Sink>(*ports.back(), pool));
      cables.back()->connect(*ports.back(), sw.port(i));
      sw.set_route(addressing == network::Addressing::kMac ? network::route_key(mac_of(i)) : i + 1,
                   i);
    }
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    ModelEvents::reset();
  }
  Frame* frame_to(std::uint32_t host, std::uint32_t wire_bytes, std::uint64_t number = 0) {
    Frame* frame = make_frame(pool, wire_bytes, 0, number);
    to_host(*frame, host);
    return frame;
  }
  void run() { sc_core::sc_start(); }

  protocol::FramePool pool;
  network::Switch sw;
  std::vector<std::unique_ptr<link::LinkPort>> ports;
  std::vector<std::unique_ptr<network::Cable>> cables;
  std::vector<std::unique_ptr<Sink>> sinks;
};

TEST(Switch, ForwardsByMacAfterItsLatency) {
  Rig rig(FlowControl::kNone);
  stats::MessageTrace trace;
  trace.start(kTimeZero);
  Frame* frame = rig.frame_to(2, 1000, 7);
  frame->trace = &trace;
  rig.ports[0]->send(frame, kTimeZero);
  rig.run();
  ASSERT_EQ(rig.sinks[2]->arrivals.size(), 1U);
  // Twice 80 ns serialisation, 50 + 10 + 50 ns PHYs and cable; 150 ns in the switch.
  EXPECT_EQ(rig.sinks[2]->arrivals[0].at, nanoseconds(2 * 190 + 150));
  EXPECT_TRUE(rig.sinks[1]->arrivals.empty());
  EXPECT_EQ(trace.of(Stage::kSwitch), nanoseconds(150));
  EXPECT_EQ(trace.of(Stage::kSerialize), nanoseconds(160));
  EXPECT_EQ(trace.of(Stage::kPropagate), nanoseconds(220));
  EXPECT_EQ(trace.total(), nanoseconds(530));
  EXPECT_EQ(ModelEvents::count(), 2U);  // two arrivals: nothing contended
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

TEST(Switch, ForwardsByLid) {
  Rig rig(FlowControl::kCredit, 3, switch_config(), network::Addressing::kLid);
  Frame* frame = make_frame(rig.pool, 1000, 0, 5);
  protocol::Lrh lrh;
  lrh.destination_lid = 2;  // host 1
  lrh.encode(frame->header);
  rig.ports[0]->send(frame, kTimeZero);
  rig.run();
  ASSERT_EQ(rig.sinks[1]->arrivals.size(), 1U);
  EXPECT_EQ(rig.sinks[1]->arrivals[0].number, 5U);
}

TEST(Switch, DropsUnknownDestinations) {
  Rig rig(FlowControl::kPfc);
  rig.ports[0]->send(rig.frame_to(9, 1000), kTimeZero);
  rig.run();
  EXPECT_EQ(rig.sw.dropped_unknown(), 1U);
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

TEST(Switch, QueuesAtABusyEgressPort) {
  Rig rig(FlowControl::kNone);
  rig.ports[0]->send(rig.frame_to(2, 1000, 1), kTimeZero);
  rig.ports[1]->send(rig.frame_to(2, 1000, 2), kTimeZero);
  rig.run();
  ASSERT_EQ(rig.sinks[2]->arrivals.size(), 2U);
  EXPECT_EQ(rig.sinks[2]->arrivals[0].at, nanoseconds(530));
  EXPECT_EQ(rig.sinks[2]->arrivals[1].at, nanoseconds(610));  // one frame time later
  // Each 976 B frame holds its place until its last bit is out.
  EXPECT_EQ(rig.sw.highest_fill(), 2U * 976);
}

/// An IPv4 frame with an ECN codepoint.
Frame* ip_frame(Rig& rig, std::uint32_t host, std::uint8_t ecn) {
  Frame* frame = rig.frame_to(host, 1000);
  protocol::EthernetHeader ethernet;
  ethernet.destination = mac_of(host);
  ethernet.ether_type = protocol::kEtherTypeIpv4;
  ethernet.encode(frame->header);
  protocol::Ipv4Header ip;
  ip.tos = ecn;
  ip.encode(frame->header + protocol::EthernetHeader::kBytes);
  const std::uint16_t before = frame->header_bytes;
  frame->header_bytes = protocol::EthernetHeader::kBytes + protocol::Ipv4Header::kBytes;
  frame->payload_bytes -= frame->header_bytes - before;
  return frame;
}

// Two hosts send 40 frames of 976 B each to a third at once: at the port's rate one frame leaves
// while two arrive, so that the queue grows by one frame each 80 ns, to 40. Those that join
// more than Kmax = 10 frames are marked, up to Kmin none.
TEST(Switch, MarksEcnCapableFramesByTheQueueTheyJoin) {
  config::SwitchConfig config = switch_config();
  config.ecn_kmin = config.ecn_kmax = 9760;
  Rig rig(FlowControl::kNone, 3, config);
  for (int i = 0; i < 40; ++i) {
    rig.ports[0]->send(ip_frame(rig, 2, protocol::kEcnCapable), kTimeZero);
    rig.ports[1]->send(ip_frame(rig, 2, protocol::kEcnCapable), kTimeZero);
  }
  rig.run();
  EXPECT_EQ(rig.sinks[2]->arrivals.size(), 80U);
  EXPECT_NEAR(static_cast<double>(rig.sw.longest_queue(2)), 40 * 976, 2 * 976);
  // The first 20 frames meet at most 10.
  EXPECT_NEAR(static_cast<double>(rig.sw.ecn_marked(2)), 80 - 20, 3);
}

TEST(Switch, MarksNothingThatIsNotEcnCapable) {
  config::SwitchConfig config = switch_config();
  config.ecn_kmin = config.ecn_kmax = 0;
  Rig rig(FlowControl::kNone, 3, config);
  for (int i = 0; i < 20; ++i) {
    rig.ports[0]->send(ip_frame(rig, 2, 0), kTimeZero);
    rig.ports[1]->send(ip_frame(rig, 2, 0), kTimeZero);
  }
  rig.run();
  EXPECT_GT(rig.sw.longest_queue(2), 10U * 976);
  EXPECT_EQ(rig.sw.ecn_marked(2), 0U);
}

TEST(Switch, LosesFramesWhenLossyAndFull) {
  config::SwitchConfig config = switch_config();
  config.buffer = 65'536;
  Rig rig(FlowControl::kNone, 3, config);
  Source one(*rig.ports[0], rig.pool);
  Source two(*rig.ports[1], rig.pool);
  one.prepare = two.prepare = [](Frame& frame) { to_host(frame, 2); };
  one.start(500, 4200, 4200);
  two.start(500, 4200, 4200);
  rig.run();
  EXPECT_GT(rig.sw.dropped_full(), 0U);
  EXPECT_EQ(rig.sinks[2]->arrivals.size() + rig.sw.dropped_full(), 1000U);
  EXPECT_LE(rig.sw.highest_fill(), config.buffer);
  // Twice what the egress port can carry: about half is lost once the buffer is full.
  EXPECT_NEAR(static_cast<double>(rig.sw.dropped_full()), 500, 20);
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

/// Two senders into one port that stalls: nothing is lost, and the egress link stays the limit.
void expect_lossless_incast(FlowControl flow_control) {
  Rig rig(flow_control);
  Source one(*rig.ports[0], rig.pool);
  Source two(*rig.ports[1], rig.pool);
  one.prepare = two.prepare = [](Frame& frame) { to_host(frame, 2); };
  rig.sinks[2]->hold(kTimeZero, microseconds(4), 3);
  one.start(2000, 88, 4200, 1, 21);
  two.start(2000, 88, 4200, 1, 22);
  rig.run();
  EXPECT_EQ(rig.sinks[2]->arrivals.size(), 4000U);
  EXPECT_EQ(rig.sw.dropped_full(), 0U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.sw.port(i).dropped() + rig.ports[i]->dropped(), 0U);
  }
  const auto cause =
      flow_control == FlowControl::kPfc ? stats::StallCause::kPaused : stats::StallCause::kNoCredit;
  EXPECT_GT(rig.ports[0]->unit().stalled(cause), kTimeZero);
  EXPECT_GT(rig.ports[1]->unit().stalled(cause), kTimeZero);
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

TEST(Switch, PfcKeepsIncastLossless) { expect_lossless_incast(FlowControl::kPfc); }
TEST(Switch, CreditsKeepIncastLossless) { expect_lossless_incast(FlowControl::kCredit); }

// A shared buffer with less than the thresholds and headroom of all ports is taken as it is: it
// loses frames when they all fill (CaseCC.CC05_ASmallSharedBufferLoses).
TEST(Switch, BufferNeedNotHoldTheHeadroomOfEveryPort) {
  protocol::FramePool pool;
  config::SwitchConfig config = switch_config();
  const link::LinkPortConfig port = port_config(FlowControl::kPfc);
  config.buffer =
      3 * (config.pfc_xoff + protocol::above_xoff(link::pfc_headroom(port), port.max_frame_bytes));
  EXPECT_NO_THROW(network::Switch("enough", config, port, 3, network::Addressing::kMac, pool));
  --config.buffer;
  EXPECT_NO_THROW(network::Switch("little", config, port, 3, network::Addressing::kMac, pool));
}

}  // namespace
}  // namespace rnic

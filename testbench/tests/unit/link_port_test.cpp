// SPDX-License-Identifier: Apache-2.0
#include "link/link_port.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "stats/stage.h"
#include "tests/support/link_rig.h"

namespace rnic {
namespace {

using protocol::FrameClass;
using stats::Stage;
using testbench::FakePeer;
using testbench::make_frame;
using testbench::port_config;
using testbench::Sink;
using testbench::Source;

/// A port with a fake peer right at its sockets (no cable, so no propagation delay).
struct Rig {
  explicit Rig(const link::LinkPortConfig& config = port_config())
      : port("port", config, pool), peer("peer", pool), sink(port, pool) {
    port.tx.bind(peer.rx);
    peer.tx.bind(port.rx);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    peer.arrivals.clear();  // link training
    ModelEvents::reset();
  }
  void run() { sc_core::sc_start(); }

  protocol::FramePool pool;
  link::LinkPort port;
  FakePeer peer;
  Sink sink;
};

TEST(LinkPort, IdlePortSendsWithoutEvents) {
  Rig rig;
  rig.port.send(make_frame(rig.pool, 1000), nanoseconds(10));
  // 10 ns until ready, 1000 B x 80 ps = 80 ns, 50 ns PHY.
  ASSERT_EQ(rig.peer.arrivals.size(), 1U);
  EXPECT_EQ(rig.peer.arrivals[0].at, nanoseconds(140));
  rig.run();
  EXPECT_EQ(ModelEvents::count(), 0U);
  EXPECT_EQ(rig.port.unit().busy(), nanoseconds(80));
  EXPECT_EQ(rig.port.sent().frames, 1U);
  EXPECT_EQ(rig.port.sent().data_packets, 1U);
  EXPECT_EQ(rig.port.sent().payload_bytes, 1000U - 24 - 14 - 4);
  EXPECT_EQ(rig.port.sent().wire_bytes, 1000U);
}

TEST(LinkPort, BackToBackFramesCostOneEventEach) {
  Rig rig;
  Source source(rig.port, rig.pool);
  source.start(10, 1000, 1000);
  rig.run();
  ASSERT_EQ(rig.peer.arrivals.size(), 10U);
  for (std::int64_t i = 0; i < 10; ++i) {
    const auto k = static_cast<std::size_t>(i);
    EXPECT_EQ(source.starts[k], nanoseconds(80 * i));
    EXPECT_EQ(rig.peer.arrivals[k].at, nanoseconds(80 * (i + 1) + 50));
  }
  // The first went out at once; each of the others waited for the one before.
  EXPECT_EQ(ModelEvents::count(), 9U);
  // Queue length 9 during the first frame, 8 during the second, ... 0 during the last: 45 x 80 ns
  // in 800 ns.
  EXPECT_DOUBLE_EQ(rig.port.unit().occupancy_mean(kTimeZero, nanoseconds(800)), 4.5);
  EXPECT_EQ(rig.port.unit().occupancy_max(), 9U);
}

TEST(LinkPort, FrameReadyFarAheadDoesNotBlockOthers) {
  Rig rig;
  rig.port.send(make_frame(rig.pool, 1000, 0, 1), microseconds(1));  // beyond commit_ahead
  rig.port.send(make_frame(rig.pool, 1000, 1, 2), kTimeZero);
  rig.run();
  ASSERT_EQ(rig.peer.arrivals.size(), 2U);
  EXPECT_EQ(rig.peer.arrivals[0].number, 2U);
  EXPECT_EQ(rig.peer.arrivals[0].at, nanoseconds(130));
  EXPECT_EQ(rig.peer.arrivals[1].number, 1U);
  EXPECT_EQ(rig.peer.arrivals[1].at, nanoseconds(1130));
}

TEST(LinkPort, LanesTakeTurns) {
  Rig rig;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    rig.port.send(make_frame(rig.pool, 1000, 0, i), kTimeZero);
  }
  for (std::uint64_t i = 1; i <= 3; ++i) {
    rig.port.send(make_frame(rig.pool, 1000, 1, i), kTimeZero);
  }
  rig.run();
  std::vector<std::uint8_t> lanes;
  for (const auto& arrival : rig.peer.arrivals) lanes.push_back(arrival.lane);
  // Lane 0's first found an idle port; the arbiter then starts its round at lane 0.
  EXPECT_EQ(lanes, (std::vector<std::uint8_t>{0, 0, 1, 0, 1, 1}));
  testbench::expect_in_order(rig.peer.arrivals, 2, 6);
}

TEST(LinkPort, FullQueuePushesBack) {
  link::LinkPortConfig config = port_config();
  config.egress_frames = 2;
  Rig rig(config);
  rig.port.send(make_frame(rig.pool, 1000), kTimeZero);
  EXPECT_TRUE(rig.port.can_send(0));
  rig.port.send(make_frame(rig.pool, 1000), kTimeZero);
  rig.port.send(make_frame(rig.pool, 1000), kTimeZero);
  EXPECT_FALSE(rig.port.can_send(0));
  EXPECT_TRUE(rig.port.can_send(1));
  EXPECT_THROW(rig.port.send(make_frame(rig.pool, 1000), kTimeZero), SimulationError);
  EXPECT_NO_THROW(rig.port.send(make_frame(rig.pool, 100, 0, 0, FrameClass::kAck), kTimeZero));
  EXPECT_THROW(rig.port.send(make_frame(rig.pool, 1000, 2), kTimeZero), SimulationError);
}

TEST(LinkPort, ArrivalCostsOneEventAndThePhy) {
  Rig rig;
  stats::MessageTrace trace;
  trace.start(kTimeZero);
  protocol::Frame* frame = make_frame(rig.pool, 1000, 1, 7);
  frame->trace = &trace;
  rig.peer.send(frame, nanoseconds(100));
  rig.run();
  ASSERT_EQ(rig.sink.arrivals.size(), 1U);
  EXPECT_EQ(rig.sink.arrivals[0].at, nanoseconds(150));
  EXPECT_EQ(rig.sink.arrivals[0].number, 7U);
  EXPECT_EQ(trace.of(Stage::kPropagate), nanoseconds(150));
  EXPECT_EQ(ModelEvents::count(), 1U);
  EXPECT_EQ(rig.port.received().data_packets, 1U);
  EXPECT_EQ(rig.port.received().wire_bytes, 1000U);
}

TEST(LinkPort, MarksWaitingAndSerialisation) {
  Rig rig;
  stats::MessageTrace trace;
  trace.start(kTimeZero);
  rig.port.send(make_frame(rig.pool, 1000), kTimeZero);  // occupies the port until 80 ns
  protocol::Frame* frame = make_frame(rig.pool, 500);
  frame->trace = &trace;
  rig.port.send(frame, kTimeZero);
  rig.run();
  EXPECT_EQ(trace.of(Stage::kPortWait), nanoseconds(80));
  EXPECT_EQ(trace.of(Stage::kSerialize), nanoseconds(40));
  EXPECT_EQ(trace.total(), nanoseconds(120));
}

TEST(LinkPort, LossyReceiverDropsWhatDoesNotFit) {
  link::LinkPortConfig config = port_config();
  config.rx_buffer = 10'000;
  config.max_frame_bytes = 2000;
  Rig rig(config);
  rig.sink.keep();
  // 3024 line bytes are 3000 buffered: three fit, the fourth would make 12,000.
  for (std::uint64_t i = 1; i <= 4; ++i) {
    rig.peer.send(make_frame(rig.pool, 3024, 0, i), nanoseconds(static_cast<int>(100 * i)));
  }
  rig.peer.send(make_frame(rig.pool, 3024, 1, 9), nanoseconds(500));  // a lane of its own
  rig.run();
  EXPECT_EQ(rig.sink.arrivals.size(), 4U);
  EXPECT_EQ(rig.port.dropped(), 1U);
  EXPECT_EQ(rig.port.highest_fill(), 9000U);
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

TEST(LinkPort, ResetStartsStatisticsAgain) {
  Rig rig;
  rig.port.send(make_frame(rig.pool, 1000), kTimeZero);
  rig.peer.send(make_frame(rig.pool, 1000), kTimeZero);
  rig.run();
  rig.port.reset_statistics(sim_now());
  EXPECT_EQ(rig.port.sent().frames, 0U);
  EXPECT_EQ(rig.port.received().frames, 0U);
  EXPECT_EQ(rig.port.unit().busy(), kTimeZero);
}

TEST(LinkPort, RefusesImpossibleBuffers) {
  protocol::FramePool pool;
  link::LinkPortConfig config = port_config();
  config.rx_buffer = 1000;
  EXPECT_THROW(link::resolve(config), ConfigError);
  config = port_config(config::FlowControl::kPfc);
  // 2 x 10 + 4 x 50 + 2 x 200 = 620 ns are 7750 B (+ 1 for rounding); pause frames of 84 B for all
  // eight priorities; 2 x (4200 + 20) B: one of ours before the pause, one of the peer's behind it.
  constexpr std::uint64_t kHeadroom = 7751 + 8 * 84 + 2 * 4220;
  EXPECT_EQ(link::pfc_headroom(config), kHeadroom);
  // On top come the frame that crosses the threshold, and two frames below XOFF.
  config.rx_buffer = kHeadroom + 4220 + 8400;
  EXPECT_EQ(link::resolve(config).pfc_xoff, 8400U);
  --config.rx_buffer;
  EXPECT_THROW(link::resolve(config), ConfigError);
}

}  // namespace
}  // namespace rnic

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "network/cable.h"
#include "tests/support/link_rig.h"

namespace rnic {
namespace {

using config::FlowControl;
using protocol::Frame;
using protocol::FrameClass;
using testbench::make_frame;
using testbench::port_config;
using testbench::Sink;
using testbench::Source;

/// Two ports and a cable of 10 ns.
std::vector<config::FaultTarget> data_packets(const std::vector<std::uint64_t>& numbers) {
  std::vector<config::FaultTarget> targets;
  for (const std::uint64_t number : numbers) {
    targets.push_back({config::FrameKind::kData, number});
  }
  return targets;
}

struct Rig {
  explicit Rig(const link::LinkPortConfig& config, const network::FaultConfig& faults = {},
               const network::FrameChecksums* checksums = nullptr)
      : a("a", config, pool),
        b("b", config, pool),
        cable("cable", nanoseconds(10), faults, 1, pool, checksums),
        sink_a(a, pool),
        sink_b(b, pool) {
    cable.connect(a, b);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    ModelEvents::reset();
  }
  void run() { sc_core::sc_start(); }

  protocol::FramePool pool;
  link::LinkPort a;
  link::LinkPort b;
  network::Cable cable;
  Sink sink_a;
  Sink sink_b;
};

TEST(Cable, DelaysBothWays) {
  Rig rig(port_config());
  rig.a.send(make_frame(rig.pool, 1000), kTimeZero);
  rig.b.send(make_frame(rig.pool, 500), kTimeZero);
  rig.run();
  // Serialisation, PHY, cable, PHY.
  EXPECT_EQ(rig.sink_b.arrivals.at(0).at, nanoseconds(80 + 50 + 10 + 50));
  EXPECT_EQ(rig.sink_a.arrivals.at(0).at, nanoseconds(40 + 50 + 10 + 50));
  EXPECT_EQ(ModelEvents::count(), 2U);  // the arrivals
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

/// Frames with credits or pauses that never bite: one event a frame at each end.
/// `link_packets` of 8 B go out in between.
void expect_two_events_a_frame(FlowControl flow_control, std::uint32_t link_packets = 0) {
  Rig rig(port_config(flow_control));
  Source source(rig.a, rig.pool);
  source.start(1000, 4200, 4200);
  rig.run();
  testbench::expect_in_order(rig.sink_b.arrivals, 1, 1000);
  // 1000 x 4200 B x 80 ps = 336 us, then PHY, cable, PHY: line rate.
  EXPECT_EQ(rig.a.sent().control_frames, link_packets);
  EXPECT_EQ(rig.sink_b.arrivals.back().at,
            nanoseconds(336'000 + 110) + link_packets * picoseconds(640));
  EXPECT_LE(ModelEvents::count(), 2000U + link_packets);
  EXPECT_EQ(rig.a.unit().stalled(stats::StallCause::kNoCredit), kTimeZero);
}

TEST(Cable, BacklogCostsTwoEventsAFrameWithoutFlowControl) {
  expect_two_events_a_frame(FlowControl::kNone);
}
TEST(Cable, BacklogCostsTwoEventsAFrameWithCredits) {
  // The sender tells its count after 262,144 B x 80 ps = 20.97 us, in frames of 336 ns every 63rd:
  // 15 times in 1000.
  expect_two_events_a_frame(FlowControl::kCredit, 15);
}
TEST(Cable, BacklogCostsTwoEventsAFrameWithPfc) { expect_two_events_a_frame(FlowControl::kPfc); }

TEST(Cable, CreditsBoundThroughput) {
  link::LinkPortConfig config = port_config(FlowControl::kCredit);
  config.max_frame_bytes = 4096;
  config.rx_buffer = 4096;  // one frame of 64 blocks
  config.credit_update = 64;
  Rig rig(config);
  Source source(rig.a, rig.pool);
  source.start(10, 4096 + 24, 4096 + 24);
  rig.sink_b.hold(nanoseconds(100), nanoseconds(100));
  rig.run();
  ASSERT_EQ(rig.sink_b.arrivals.size(), 10U);
  // Each frame waits for the credit of the one before: 4120 B x 80 ps, PHY + cable + PHY, 100 ns
  // in the buffer, a link packet of 8 B x 80 ps, PHY + cable + PHY.
  const Time turn = picoseconds(329'600 + 110'000 + 100'000 + 640 + 110'000);
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(source.starts[static_cast<std::size_t>(i)], turn * i);
  }
  EXPECT_EQ(rig.a.unit().stalled(stats::StallCause::kNoCredit), 9 * (turn - picoseconds(329'600)));
  EXPECT_EQ(rig.b.sent().control_frames, 10U);
}

TEST(Cable, PauseStopsAndResumesTheSender) {
  link::LinkPortConfig config = port_config(FlowControl::kPfc);
  config.rx_buffer = 40'000;
  config.pfc_xoff = 8000;
  config.pfc_xon = 3000;
  Rig rig(config);
  Source source(rig.a, rig.pool);
  source.start(20, 2024, 2024);
  rig.sink_b.hold(microseconds(5), microseconds(5));
  rig.run();
  // A frame takes 161.92 ns. The fourth arrives at 4 x 161.92 + 110 = 757.68 ns and fills 8000 B;
  // the pause (6.72 ns) is in at 757.68 + 6.72 + 110 = 874.4 ns, while the sixth frame is going
  // out (809.6 .. 971.52 ns). The fill falls to 2000 B when five are released: the fifth came at
  // 919.6 ns, so the resume leaves at 5919.6 ns and is in at 6036.32 ns.
  ASSERT_EQ(rig.sink_b.arrivals.size(), 20U);
  EXPECT_EQ(source.starts[5], picoseconds(809'600));
  EXPECT_EQ(source.starts[6], picoseconds(6'036'320));
  EXPECT_EQ(rig.b.dropped(), 0U);
  EXPECT_EQ(rig.b.highest_fill(), 12'000U);
  // Stalled from the end of the sixth frame on.
  EXPECT_GE(rig.a.unit().stalled(stats::StallCause::kPaused), picoseconds(6'036'320 - 971'520));
  EXPECT_GE(rig.a.paused(sim_now()), picoseconds(6'036'320 - 874'400));
}

/// Lossless whatever the receiver does, with frames in order; the flow control must really bite.
void expect_lossless(FlowControl flow_control, std::uint64_t seed) {
  constexpr std::uint32_t kFrames = 5000;
  link::LinkPortConfig config = port_config(flow_control);
  config.rx_buffer = 32'768;
  Rig rig(config);
  Source forth(rig.a, rig.pool);
  Source back(rig.b, rig.pool);
  rig.sink_a.hold(kTimeZero, microseconds(8), seed + 2);
  rig.sink_b.hold(kTimeZero, microseconds(8), seed + 3);
  forth.start(kFrames, 88, 4200, 2, seed);
  back.start(kFrames, 88, 4200, 2, seed + 1);
  rig.run();
  testbench::expect_in_order(rig.sink_a.arrivals, 2, kFrames);
  testbench::expect_in_order(rig.sink_b.arrivals, 2, kFrames);
  EXPECT_EQ(rig.a.dropped() + rig.b.dropped(), 0U);
  EXPECT_LE(rig.b.highest_fill(), config.rx_buffer);
  EXPECT_GT(rig.b.sent().control_frames, 100U);
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

TEST(Cable, CreditsLoseNothingUnderAStallingReceiver) { expect_lossless(FlowControl::kCredit, 11); }
TEST(Cable, CreditsLoseNothingUnderAnotherStallingReceiver) {
  expect_lossless(FlowControl::kCredit, 77);
}
TEST(Cable, PfcLosesNothingUnderAStallingReceiver) { expect_lossless(FlowControl::kPfc, 11); }
TEST(Cable, PfcLosesNothingUnderAnotherStallingReceiver) { expect_lossless(FlowControl::kPfc, 77); }

TEST(Cable, WithoutFlowControlAStallingReceiverLosesFrames) {
  link::LinkPortConfig config = port_config();
  config.rx_buffer = 32'768;
  Rig rig(config);
  Source source(rig.a, rig.pool);
  rig.sink_b.hold(kTimeZero, microseconds(20), 5);
  source.start(2000, 4200, 4200);
  rig.run();
  EXPECT_GT(rig.b.dropped(), 0U);
  EXPECT_EQ(rig.sink_b.arrivals.size() + rig.b.dropped(), 2000U);
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

TEST(Cable, CreditsComeBackAfterLosses) {
  // Every credit of the small buffer is lost with its frame many times over.
  link::LinkPortConfig config = port_config(FlowControl::kCredit);
  config.rx_buffer = 16'384;
  network::FaultConfig faults;
  faults.loss_rate = 0.3;
  Rig rig(config, faults);
  Source source(rig.a, rig.pool);
  source.start(2000, 4200, 4200);
  rig.run();
  EXPECT_EQ(rig.sink_b.arrivals.size() + rig.cable.faults().lost, 2000U);
  EXPECT_EQ(rig.a.queued(), 0U);
  // 0.3 +- 4 standard deviations of sqrt(0.3 x 0.7 / 2000) = 0.0102.
  EXPECT_NEAR(static_cast<double>(rig.cable.faults().lost) / 2000, 0.3, 0.041);
}

TEST(Cable, DropListCountsDataPacketsOfBothDirections) {
  network::FaultConfig faults;
  faults.drop_list = data_packets({5, 2});
  Rig rig(port_config(), faults);
  rig.a.send(make_frame(rig.pool, 100, 0, 1), kTimeZero);                     // data packet 1
  rig.a.send(make_frame(rig.pool, 100, 0, 90, FrameClass::kAck), kTimeZero);  // not counted
  rig.run();
  rig.b.send(make_frame(rig.pool, 100, 0, 2), sim_now());  // lost
  rig.run();
  for (std::uint64_t i = 3; i <= 6; ++i) {
    rig.a.send(make_frame(rig.pool, 100, 0, i), sim_now());
    rig.run();
  }
  std::vector<std::uint64_t> arrived;
  for (const auto& arrival : rig.sink_b.arrivals) arrived.push_back(arrival.number);
  EXPECT_EQ(arrived, (std::vector<std::uint64_t>{1, 90, 3, 4, 6}));
  EXPECT_TRUE(rig.sink_a.arrivals.empty());
  EXPECT_EQ(rig.cable.faults().lost, 2U);
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

config::FrameKinds kinds_by_class(const Frame& frame) {
  using config::FrameKind;
  switch (frame.frame_class) {
    case FrameClass::kData:
      return FrameKind::kAny | FrameKind::kData;
    case FrameClass::kAck:
      return FrameKind::kAny | FrameKind::kAck;
    default:
      return config::kinds(FrameKind::kAny);
  }
}

/// One checksum byte for all: the sum of the header bytes, in every trailer byte.
struct SumChecksums : public network::FrameChecksums {
  static std::uint8_t sum(const Frame& frame) {
    std::uint8_t total = 0;
    for (std::uint32_t i = 0; i < frame.header_bytes; ++i) {
      total = static_cast<std::uint8_t>(total + frame.header[i]);
    }
    return total;
  }
  void materialize(Frame& frame) const override {
    if (!frame.checksums_deferred) return;
    for (std::uint32_t i = 0; i < frame.trailer_bytes; ++i) frame.trailer[i] = sum(frame);
    frame.checksums_deferred = false;
  }
  bool intact(const Frame& frame) const override {
    for (std::uint32_t i = 0; i < frame.trailer_bytes; ++i) {
      if (frame.trailer[i] != sum(frame)) return false;
    }
    return true;
  }
  void reseal(Frame& frame) const override {
    for (std::uint32_t i = 0; i < frame.trailer_bytes; ++i) frame.trailer[i] = sum(frame);
  }
  config::FrameKinds kinds_of(const Frame& frame) const override { return kinds_by_class(frame); }
};

TEST(FaultInjector, FlipsOneBitOfAMaterialisedFrame) {
  const SumChecksums checksums;
  network::FaultConfig faults;
  faults.corrupt_rate = 1;
  network::FaultInjector injector(faults, 1, "cable", &checksums);
  protocol::FramePool pool;
  for (int i = 0; i < 1000; ++i) {
    Frame* frame = make_frame(pool, 200);
    ASSERT_FALSE(injector.judge(*frame, 0).lost);
    ASSERT_FALSE(frame->checksums_deferred);
    ASSERT_FALSE(checksums.intact(*frame));
    pool.give(frame);
  }
  EXPECT_EQ(injector.counters().corrupted, 1000U);
}

TEST(FaultInjector, SparesLinkControl) {
  network::FaultConfig faults;
  faults.loss_rate = 1;
  network::FaultInjector injector(faults, 1, "cable", nullptr);
  protocol::FramePool pool;
  Frame* control = make_frame(pool, 84, 0, 0, FrameClass::kLinkControl);
  EXPECT_FALSE(injector.judge(*control, 0).lost);
  EXPECT_TRUE(injector.judge(*make_frame(pool, 84, 0, 0, FrameClass::kAck), 0).lost);
}

TEST(FaultInjector, IsReproducibleAndDiffersByCable) {
  network::FaultConfig faults;
  faults.loss_rate = 0.5;
  network::FaultInjector one(faults, 1, "cable0", nullptr);
  network::FaultInjector same(faults, 1, "cable0", nullptr);
  network::FaultInjector other(faults, 1, "cable1", nullptr);
  protocol::FramePool pool;
  Frame* frame = make_frame(pool, 100);
  int differences = 0;
  for (int i = 0; i < 200; ++i) {
    const bool lost = one.judge(*frame, 0).lost;
    ASSERT_EQ(lost, same.judge(*frame, 0).lost);
    if (lost != other.judge(*frame, 0).lost) ++differences;
  }
  EXPECT_GT(differences, 50);
}

TEST(FaultInjector, BurstsAreAsLongAsAskedFor) {
  network::FaultConfig faults;
  faults.burst_rate = 0.01;
  faults.burst_length = 5;
  network::FaultInjector injector(faults, 1, "cable", nullptr);
  protocol::FramePool pool;
  Frame* frame = make_frame(pool, 100);
  constexpr int kFrames = 200'000;
  int lost = 0;
  int runs = 0;
  bool before = false;
  for (int i = 0; i < kFrames; ++i) {
    const bool now = injector.judge(*frame, 0).lost;
    lost += now ? 1 : 0;
    runs += now && !before ? 1 : 0;
    before = now;
  }
  // A burst has a geometric number of frames, mean 5; good times a geometric number, mean 1/0.01
  // - 1 = 99 (the frame that begins a burst belongs to it). So 200,000 / 104 = 1,923 bursts; two
  // that touch count as one, 1 % of them. Four standard deviations are below 10 %.
  EXPECT_NEAR(runs, 1904, 190);
  EXPECT_NEAR(static_cast<double>(lost) / runs, 5 / 0.99, 0.5);
  EXPECT_EQ(injector.counters().lost, static_cast<std::uint64_t>(lost));
}

TEST(FaultInjector, BurstsOfOneDirectionLeaveTheOtherAlone) {
  network::FaultConfig faults;
  faults.burst_rate = 0.5;
  faults.burst_length = 1e9;  // for ever
  network::FaultInjector injector(faults, 1, "cable", nullptr);
  protocol::FramePool pool;
  Frame* frame = make_frame(pool, 100);
  for (int i = 0; i < 100; ++i) injector.judge(*frame, 0);
  ASSERT_TRUE(injector.judge(*frame, 0).lost);
  // The other direction is still in its good state, which it leaves with probability one half.
  int passed = 0;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    network::FaultInjector fresh(faults, seed, "cable", nullptr);
    for (int i = 0; i < 100; ++i) fresh.judge(*frame, 0);
    if (!fresh.judge(*frame, 1).lost) ++passed;
  }
  EXPECT_GT(passed, 16);
  EXPECT_LT(passed, 48);
}

TEST(FaultInjector, ListsNameDataPackets) {
  const SumChecksums checksums;
  network::FaultConfig faults;
  faults.drop_list = data_packets({2});
  faults.corrupt_list = data_packets({3});
  faults.duplicate_list = data_packets({4, 5});
  faults.reorder_list = data_packets({5});
  network::FaultInjector injector(faults, 1, "cable", &checksums);
  protocol::FramePool pool;
  for (int number = 1; number <= 6; ++number) {
    Frame* ack = make_frame(pool, 84, 0, 0, FrameClass::kAck);
    EXPECT_FALSE(injector.judge(*ack, 1).lost);  // not counted
    Frame* frame = make_frame(pool, 200);
    const network::Fate fate = injector.judge(*frame, 0);
    EXPECT_EQ(fate.lost, number == 2);
    EXPECT_EQ(!frame->checksums_deferred, number == 3);
    EXPECT_EQ(fate.duplicated, number == 4 || number == 5);
    EXPECT_EQ(fate.held_back, number == 5);
  }
}

TEST(FaultInjector, OneKindOfFaultDoesNotShiftAnother) {
  network::FaultConfig faults;
  faults.loss_rate = 0.3;
  network::FaultInjector alone(faults, 7, "cable", nullptr);
  faults.duplicate_rate = 0.5;
  faults.reorder_rate = 0.5;
  faults.burst_rate = 0.1;
  faults.burst_loss = 0;
  network::FaultInjector together(faults, 7, "cable", nullptr);
  protocol::FramePool pool;
  Frame* frame = make_frame(pool, 100);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(alone.judge(*frame, 0).lost, together.judge(*frame, 0).lost);
  }
}

/// `faults` over a link with `flow_control` and little buffer, until everything has arrived.
void expect_arrivals(FlowControl flow_control, const network::FaultConfig& faults,
                     std::uint32_t frames, std::uint64_t arrivals) {
  link::LinkPortConfig config = port_config(flow_control);
  config.rx_buffer = flow_control == FlowControl::kCredit ? 16'384 : 65'536;
  Rig rig(config, faults);
  Source source(rig.a, rig.pool);
  source.start(frames, 4200, 4200);
  rig.run();
  EXPECT_EQ(rig.sink_b.arrivals.size(), arrivals);
  EXPECT_EQ(rig.b.dropped(), 0U);
  EXPECT_EQ(rig.a.queued(), 0U);
  EXPECT_EQ(rig.pool.in_use(), 0U);
}

TEST(Cable, CopiesAndLateFramesDoNotUpsetCredits) {
  network::FaultConfig faults;
  faults.duplicate_rate = 1;
  faults.reorder_rate = 0.3;
  faults.reorder_delay = microseconds(3);
  expect_arrivals(FlowControl::kCredit, faults, 3000, 6000);
}

TEST(Cable, CopiesAndLateFramesDoNotUpsetPauses) {
  network::FaultConfig faults;
  faults.duplicate_rate = 1;
  faults.reorder_rate = 0.3;
  faults.reorder_delay = microseconds(3);
  expect_arrivals(FlowControl::kPfc, faults, 3000, 6000);
}

TEST(Cable, AHeldBackFrameArrivesBehindItsSuccessors) {
  network::FaultConfig faults;
  faults.reorder_list = data_packets({1});
  faults.reorder_delay = nanoseconds(100);
  Rig rig(port_config(), faults);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    rig.a.send(make_frame(rig.pool, 1000, 0, i), kTimeZero);
  }
  rig.run();
  // 80 ns each on the line; the first arrives 100 ns late, between the second and the third.
  ASSERT_EQ(rig.sink_b.arrivals.size(), 3U);
  EXPECT_EQ(rig.sink_b.arrivals[0].number, 2U);
  EXPECT_EQ(rig.sink_b.arrivals[1].number, 1U);
  EXPECT_EQ(rig.sink_b.arrivals[1].at, nanoseconds(80 + 110 + 100));
  EXPECT_EQ(rig.sink_b.arrivals[2].number, 3U);
}

/// A cable that is down from 10 to 30 us, in the middle of a stream of 4,200 B frames (336 ns
/// each).
void expect_recovery(FlowControl flow_control) {
  link::LinkPortConfig config = port_config(flow_control);
  config.rx_buffer = flow_control == FlowControl::kCredit ? 16'384 : 65'536;
  protocol::FramePool pool;
  link::LinkPort a("a", config, pool);
  link::LinkPort b("b", config, pool);
  network::Cable cable("cable", nanoseconds(10), {}, 1, pool, nullptr,
                       {microseconds(10), microseconds(20)});
  Sink sink_a(a, pool);
  Sink sink_b(b, pool);
  cable.connect(a, b);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  Source source(a, pool);
  source.start(1000, 4200, 4200);
  sc_core::sc_start();
  EXPECT_GT(cable.lost_while_down(), 0U);
  EXPECT_EQ(a.queued(), 0U);  // it did not get stuck
  EXPECT_EQ(b.dropped(), 0U);
  std::uint64_t meanwhile = 0;
  for (const auto& arrival : sink_b.arrivals) {
    // PHY, cable, PHY behind the outage.
    if (arrival.at > microseconds(10) + nanoseconds(110) && arrival.at < microseconds(30)) {
      ++meanwhile;
    }
  }
  EXPECT_EQ(meanwhile, 0U);
  EXPECT_EQ(pool.in_use(), 0U);
}
TEST(Cable, ComesBackAfterAnOutageWithoutFlowControl) { expect_recovery(FlowControl::kNone); }
TEST(Cable, ComesBackAfterAnOutageWithCredits) { expect_recovery(FlowControl::kCredit); }
TEST(Cable, ComesBackAfterAnOutageWithPfc) { expect_recovery(FlowControl::kPfc); }

TEST(FaultInjector, CorruptionNeedsChecksums) {
  network::FaultConfig faults;
  faults.corrupt_rate = 0.1;
  EXPECT_THROW(network::FaultInjector(faults, 1, "cable", nullptr), ConfigError);
}

}  // namespace
}  // namespace rnic

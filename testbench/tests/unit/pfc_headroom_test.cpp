// SPDX-License-Identifier: Apache-2.0
#include "protocol/pfc_headroom.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "network/cable.h"
#include "tests/support/link_rig.h"

// Lossless means lossless: a receiver that takes nothing out of its buffer stops a peer that sends
// all the time, on any cable, at any rate, with any frames, and without the loss of one.
namespace rnic {
namespace {

using testbench::Sink;
using testbench::Source;

struct Point {
  std::int64_t rate_gbps;
  Time cable;
  Time response;
  std::uint32_t frame;  ///< largest, bytes
};

std::vector<Point> points() {
  std::vector<Point> all;
  for (const std::int64_t rate : {10, 25, 100, 400}) {
    for (const Time cable : {nanoseconds(10), nanoseconds(500), microseconds(50)}) {
      for (const std::uint32_t frame : {360U, 1130U, 4200U, 9022U}) {
        all.push_back({rate, cable, nanoseconds(rate == 100 ? 2000 : 0), frame});
      }
    }
  }
  return all;
}

/// A sender and a stubborn receiver, whose own frames the pauses have to wait for.
struct Rig {
  Rig(std::uint32_t number, const Point& point, config::FlowControl flow, std::uint64_t headroom)
      : config(config_of(point, flow, headroom)),
        a(("a" + std::to_string(number)).c_str(), config, pool),
        b(("b" + std::to_string(number)).c_str(), config, pool),
        cable(("cable" + std::to_string(number)).c_str(), point.cable, {}, 1, pool),
        sink_a(a, pool),
        sink_b(b, pool),
        source_a(a, pool),
        source_b(b, pool),
        seed(number) {
    cable.connect(a, b);
    sink_b.keep();
  }

  static link::LinkPortConfig config_of(const Point& point, config::FlowControl flow,
                                        std::uint64_t headroom) {
    link::LinkPortConfig c = testbench::port_config(flow);
    c.rate = BitRate::gbps(static_cast<double>(point.rate_gbps));
    c.cable_delay = point.cable;
    c.pause_response = point.response;
    c.max_frame_bytes = point.frame;
    c.pfc_xoff = 3 * std::uint64_t{point.frame};
    const std::uint64_t needed = link::pfc_headroom(c);
    c.pfc_headroom = headroom == 0 ? 0 : needed / headroom;
    c.rx_buffer = c.pfc_xoff +
                  protocol::above_xoff(headroom == 0 ? needed : c.pfc_headroom, c.max_frame_bytes);
    return c;
  }

  void start(std::uint32_t priorities) {
    // b keeps its line busy with the longest frames.
    source_a.start(100'000, 84, config.max_frame_bytes + 20, priorities, seed);
    source_b.start(100'000, config.max_frame_bytes + 20, config.max_frame_bytes + 20, 1, seed);
  }

  protocol::FramePool pool;
  link::LinkPortConfig config;
  link::LinkPort a;
  link::LinkPort b;
  network::Cable cable;
  Sink sink_a;
  Sink sink_b;
  Source source_a;
  Source source_b;
  std::uint64_t seed;
};

/// Runs all points side by side until every buffer has long been full.
std::vector<std::unique_ptr<Rig>> run_all(config::FlowControl flow, std::uint64_t divisor,
                                          std::uint32_t priorities) {
  std::vector<std::unique_ptr<Rig>> rigs;
  for (const Point& point : points()) {
    rigs.push_back(
        std::make_unique<Rig>(static_cast<std::uint32_t>(rigs.size()), point, flow, divisor));
  }
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  for (auto& rig : rigs) rig->start(priorities);
  sc_core::sc_start(to_sc_time(microseconds(600)));
  return rigs;
}

void expect_lossless(config::FlowControl flow, std::uint32_t priorities) {
  const auto rigs = run_all(flow, 0, priorities);
  for (std::size_t i = 0; i < rigs.size(); ++i) {
    Rig& rig = *rigs[i];
    SCOPED_TRACE("point " + std::to_string(i));
    EXPECT_EQ(rig.b.dropped(), 0U);
    EXPECT_GT(rig.a.paused(sim_now()), kTimeZero);
    EXPECT_GE(rig.b.highest_fill(), rig.b.config().pfc_xoff);
    EXPECT_LE(rig.b.highest_fill(), rig.config.rx_buffer);
  }
}

// One priority that has the whole line, and eight whose pauses queue behind each other.
TEST(PfcHeadroom, NoFrameOfOnePriorityIsLostWithTheComputedHeadroom) {
  expect_lossless(config::FlowControl::kPfc, 1);
}

TEST(PfcHeadroom, NoFrameOfEightPrioritiesIsLostWithTheComputedHeadroom) {
  expect_lossless(config::FlowControl::kPfc, 8);
}

TEST(PfcHeadroom, NoFrameIsLostUnderGlobalPause) {
  expect_lossless(config::FlowControl::kPause, 8);
}

// 50 us of cable are 100 us of frames that nobody can stop: with a quarter of the headroom they
// are lost whatever the phase.
TEST(PfcHeadroom, FramesAreLostWithAQuarterOfIt) {
  const auto rigs = run_all(config::FlowControl::kPfc, 4, 1);
  const std::vector<Point> all = points();
  for (std::size_t i = 0; i < rigs.size(); ++i) {
    if (all[i].cable < microseconds(50) || all[i].rate_gbps < 25) continue;
    EXPECT_GT(rigs[i]->b.dropped(), 0U) << "point " << i;
  }
}

}  // namespace
}  // namespace rnic

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "link/pause_flow_control.h"
#include "tests/support/link_rig.h"

namespace rnic {
namespace {

using link::PauseFlowControl;
using protocol::PfcFrame;

struct FakeChannel : public link::ControlChannel {
  struct Sent {
    PfcFrame frame;
    Time ready;
    std::vector<std::uint8_t> bytes;
    std::uint32_t wire_bytes;
  };
  protocol::Frame* take_control_frame() override { return pool.take(); }
  void send_control(protocol::Frame* frame, Time ready) override {
    sent.push_back({PfcFrame::decode(frame->header), ready,
                    std::vector<std::uint8_t>(frame->header, frame->header + frame->header_bytes),
                    frame->wire_bytes});
    pool.give(frame);
  }
  void send_training(protocol::Frame* frame) override { pool.give(frame); }
  void wake_at(Time at) override { wake = std::min(wake, at); }

  protocol::FramePool pool;
  std::vector<Sent> sent;
  Time wake = kTimeNever;
};

/// XOFF at 10,000 B, XON at 4000 B, quanta of 64 B x 80 ps = 5.12 ns.
struct Rig {
  Rig() : flow(config(), channel) {}
  static link::LinkPortConfig config() {
    link::LinkPortConfig c = testbench::port_config(config::FlowControl::kPfc);
    c.pfc_xoff = 10'000;
    c.pfc_xon = 4000;
    c.rx_buffer = 40'000;
    c.mac = {0x02, 0, 0, 0, 0, 0xa1};
    return link::resolve(c);
  }
  bool admit(std::uint32_t bytes, std::uint8_t priority, Time now) {
    protocol::Frame* frame = testbench::make_frame(channel.pool, bytes + 24, priority);
    const bool fits = flow.admit(*frame, now);
    channel.pool.give(frame);
    return fits;
  }
  void hear(std::uint8_t priority, std::uint16_t quanta, Time arrival) {
    PfcFrame pause;
    pause.enable = static_cast<std::uint8_t>(1U << priority);
    pause.time[priority] = quanta;
    protocol::Frame* frame = channel.pool.take();
    pause.encode(frame->header);
    flow.control_received(*frame, arrival);
    channel.pool.give(frame);
  }
  /// Lets the alarm ring as often as asked for until `end`.
  void run_to(Time end) {
    while (channel.wake <= end) {
      const Time now = channel.wake;
      channel.wake = kTimeNever;
      flow.wake(now);
    }
  }

  FakeChannel channel;
  PauseFlowControl flow;
};

TEST(LinkPause, PausesAtXoffWithATrueFrame) {
  Rig rig;
  EXPECT_TRUE(rig.admit(4000, 3, nanoseconds(1)));
  EXPECT_TRUE(rig.admit(4000, 3, nanoseconds(2)));
  EXPECT_TRUE(rig.channel.sent.empty());
  EXPECT_TRUE(rig.admit(2000, 3, nanoseconds(3)));
  ASSERT_EQ(rig.channel.sent.size(), 1U);
  EXPECT_EQ(rig.channel.sent[0].ready, nanoseconds(3));
  std::vector<std::uint8_t> expected = {0x01, 0x80, 0xc2, 0, 0,    1, 0x02, 0, 0, 0, 0, 0xa1, 0x88,
                                        0x08, 1,    0x01, 0, 0x08, 0, 0,    0, 0, 0, 0, 0xff, 0xff};
  expected.resize(60, 0);
  EXPECT_EQ(rig.channel.sent[0].bytes, expected);
  EXPECT_EQ(rig.channel.sent[0].wire_bytes, 84U);
  // One pause is enough; other priorities have their own buffers.
  EXPECT_TRUE(rig.admit(2000, 3, nanoseconds(4)));
  EXPECT_TRUE(rig.admit(2000, 4, nanoseconds(4)));
  EXPECT_EQ(rig.channel.sent.size(), 1U);
}

TEST(LinkPause, ResumesWhenFillFallsToXon) {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.admit(2000, 0, nanoseconds(10));
  for (std::int64_t i = 1; i <= 5; ++i)
    rig.flow.release(0, 2000, nanoseconds(100 * i), nanoseconds(20));
  rig.run_to(nanoseconds(299));
  EXPECT_EQ(rig.channel.sent.size(), 1U);
  rig.run_to(nanoseconds(600));
  // 8000 at 100 ns, 6000 at 200 ns, 4000 at 300 ns.
  ASSERT_EQ(rig.channel.sent.size(), 2U);
  EXPECT_EQ(rig.channel.sent[1].ready, nanoseconds(300));
  EXPECT_EQ(rig.channel.sent[1].frame.time[0], 0);
  EXPECT_EQ(rig.channel.sent[1].frame.enable, 1);
  EXPECT_EQ(rig.channel.wake, kTimeNever);  // nothing more to wake for
}

TEST(LinkPause, RenewsAtHalfTime) {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.admit(2000, 0, nanoseconds(10));
  // A pause lasts 65,535 x 5.12 ns = 335,539,200 ps.
  const Time half = picoseconds(335'539'200 / 2);
  rig.run_to(nanoseconds(10) + half * 2);
  ASSERT_EQ(rig.channel.sent.size(), 3U);
  EXPECT_EQ(rig.channel.sent[1].ready, nanoseconds(10) + half);
  EXPECT_EQ(rig.channel.sent[1].frame.time[0], 0xFFFF);
  EXPECT_EQ(rig.channel.sent[2].ready, nanoseconds(10) + half * 2);
}

TEST(LinkPause, GateObeysArrivalExpiryAndResume) {
  Rig rig;
  rig.hear(2, 100, nanoseconds(1000));  // until 1512 ns
  EXPECT_TRUE(rig.flow.may_send(2, 1000, nanoseconds(999)));
  EXPECT_FALSE(rig.flow.may_send(2, 1000, nanoseconds(1000)));
  EXPECT_TRUE(rig.flow.may_send(1, 1000, nanoseconds(1000)));
  EXPECT_EQ(rig.flow.next_change(nanoseconds(1000)), nanoseconds(1512));
  EXPECT_FALSE(rig.flow.may_send(2, 1000, picoseconds(1'511'999)));
  EXPECT_TRUE(rig.flow.may_send(2, 1000, nanoseconds(1512)));
  EXPECT_EQ(rig.flow.paused(2, nanoseconds(1600)), nanoseconds(512));

  rig.hear(2, 0xFFFF, nanoseconds(2000));
  rig.hear(2, 0, nanoseconds(2300));
  EXPECT_FALSE(rig.flow.may_send(2, 1000, nanoseconds(2299)));
  EXPECT_TRUE(rig.flow.may_send(2, 1000, nanoseconds(2300)));
  EXPECT_EQ(rig.flow.paused(2, nanoseconds(3000)), nanoseconds(512 + 300));
}

TEST(LinkPause, RenewedPauseCountsOnce) {
  Rig rig;
  rig.hear(0, 100, nanoseconds(0));
  rig.hear(0, 100, nanoseconds(256));  // until 768 ns
  EXPECT_EQ(rig.flow.paused(0, nanoseconds(5000)), nanoseconds(768));
  rig.flow.reset_statistics(nanoseconds(5000));
  EXPECT_EQ(rig.flow.paused(0, nanoseconds(6000)), kTimeZero);
}

TEST(LinkPause, HeadroomTakesWhatComesAfterXoff) {
  Rig rig;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(rig.admit(2000, 0, nanoseconds(i)));
  EXPECT_FALSE(rig.admit(1, 0, nanoseconds(30)));
}

}  // namespace
}  // namespace rnic

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/error.h"
#include "link/credit_flow_control.h"
#include "protocol/crc.h"
#include "protocol/link_packet.h"
#include "tests/support/link_rig.h"

namespace rnic {
namespace {

using link::CreditFlowControl;
using protocol::LinkPacket;

/// Notes what a flow control sends.
struct FakeChannel : public link::ControlChannel {
  struct Sent {
    LinkPacket packet;
    Time ready;
    std::vector<std::uint8_t> bytes;
  };
  protocol::Frame* take_control_frame() override { return pool.take(); }
  void send_control(protocol::Frame* frame, Time ready) override {
    flow->stamp(*frame);
    note(frame, ready);
  }
  void send_training(protocol::Frame* frame) override { note(frame, kTimeZero); }
  void wake_at(Time at) override { wake = at; }
  void note(protocol::Frame* frame, Time ready) {
    std::vector<std::uint8_t> bytes(frame->header, frame->header + 4);
    bytes.insert(bytes.end(), frame->trailer, frame->trailer + 2);
    sent.push_back({LinkPacket::decode(frame->header), ready, bytes});
    pool.give(frame);
  }

  protocol::FramePool pool;
  link::FlowControl* flow = nullptr;
  std::vector<Sent> sent;
  Time wake = kTimeNever;
};

struct Rig {
  explicit Rig(std::uint64_t rx_buffer = 4096, std::uint64_t update = 2048)
      : flow(config(rx_buffer, update), channel) {
    channel.flow = &flow;
  }
  static link::LinkPortConfig config(std::uint64_t rx_buffer, std::uint64_t update) {
    link::LinkPortConfig c = testbench::port_config(config::FlowControl::kCredit);
    c.rx_buffer = rx_buffer;
    c.credit_update = update;
    c.max_frame_bytes = 1024;
    return c;
  }
  void hear(const LinkPacket& packet, Time arrival) {
    protocol::Frame* frame = channel.pool.take();
    packet.encode(frame->header);
    protocol::store_le16(frame->trailer, protocol::lpcrc(frame->header));
    flow.control_received(*frame, arrival);
    channel.pool.give(frame);
  }
  /// A frame of `bytes` buffer bytes comes in.
  void expect(std::uint32_t bytes) {
    protocol::Frame* frame = testbench::make_frame(channel.pool, bytes + 24);
    flow.expect(*frame);
    channel.pool.give(frame);
  }

  FakeChannel channel;
  CreditFlowControl flow;
};

LinkPacket packet(std::uint8_t op, std::uint16_t fctbs, std::uint8_t vl, std::uint16_t fccl) {
  LinkPacket p;
  p.op = op;
  p.fctbs = fctbs;
  p.vl = vl;
  p.fccl = fccl;
  return p;
}

TEST(LinkCredit, CountsBlocksOf64Bytes) {
  EXPECT_EQ(CreditFlowControl::blocks_of(1), 1U);
  EXPECT_EQ(CreditFlowControl::blocks_of(64), 1U);
  EXPECT_EQ(CreditFlowControl::blocks_of(65), 2U);
  EXPECT_EQ(CreditFlowControl::blocks_of(4096 + 26), 65U);
}

TEST(LinkCredit, LinkUpGrantsTheWholeBuffer) {
  Rig rig;
  rig.flow.link_up();
  ASSERT_EQ(rig.channel.sent.size(), 2U);  // two lanes
  // 4096 B are 64 blocks, 0x040. Bytes with LPCRC from the polynomial of IBTA 7.8.
  EXPECT_EQ(rig.channel.sent[0].bytes,
            (std::vector<std::uint8_t>{0x10, 0x00, 0x00, 0x40, 0x5c, 0x6d}));
  EXPECT_EQ(rig.channel.sent[1].packet.vl, 1);
}

TEST(LinkCredit, GrantIsCappedAtHalfTheRange) {
  Rig rig(1 << 20);
  rig.flow.link_up();
  EXPECT_EQ(rig.channel.sent[0].packet.fccl, 2048);
}

TEST(LinkCredit, RunsOutAndComesBack) {
  Rig rig;
  rig.hear(packet(LinkPacket::kOpInit, 0, 0, 64), kTimeZero);
  for (int i = 0; i < 4; ++i) {  // 1000 B are 16 blocks; 64 credits are four frames
    ASSERT_TRUE(rig.flow.may_send(0, 1000, nanoseconds(i)));
    rig.flow.sent(0, 1000, nanoseconds(i));
  }
  EXPECT_FALSE(rig.flow.may_send(0, 1, nanoseconds(5)));
  EXPECT_FALSE(rig.flow.may_send(1, 1, nanoseconds(5)));  // lane 1 was never granted anything
  rig.hear(packet(LinkPacket::kOpNormal, 0, 0, 80), nanoseconds(100));
  EXPECT_FALSE(rig.flow.may_send(0, 1000, nanoseconds(99)));
  EXPECT_EQ(rig.flow.next_change(nanoseconds(99)), nanoseconds(100));
  EXPECT_FALSE(rig.flow.may_send(0, 1025, nanoseconds(100)));  // 17 blocks
  EXPECT_TRUE(rig.flow.may_send(0, 1024, nanoseconds(100)));   // 16 blocks
}

TEST(LinkCredit, DamagedLinkPacketIsIgnored) {
  Rig rig;
  protocol::Frame* frame = rig.channel.pool.take();
  packet(LinkPacket::kOpInit, 0, 0, 64).encode(frame->header);
  protocol::store_le16(frame->trailer, protocol::lpcrc(frame->header));
  frame->header[3] ^= 1;
  rig.flow.control_received(*frame, kTimeZero);
  EXPECT_FALSE(rig.flow.may_send(0, 64, kTimeZero));
}

TEST(LinkCredit, UpdateWaitsForEnoughFreedBytes) {
  Rig rig;  // update every 2048 B: 32 blocks
  rig.expect(1000);
  rig.expect(1000);
  rig.flow.release(0, 1000, nanoseconds(300), nanoseconds(10));
  EXPECT_TRUE(rig.channel.sent.empty());
  rig.flow.release(0, 1000, nanoseconds(200), nanoseconds(10));
  ASSERT_EQ(rig.channel.sent.size(), 1U);
  EXPECT_EQ(rig.channel.sent[0].ready, nanoseconds(300));  // when both are free
  EXPECT_EQ(rig.channel.sent[0].packet.op, LinkPacket::kOpNormal);
  EXPECT_EQ(rig.channel.sent[0].packet.fccl, 32 + 64);  // received 32, 64 free again
}

TEST(LinkCredit, UpdateNeverWaitsForMoreThanTheNextFrameNeeds) {
  // 1024 B frames are 16 blocks and the buffer has 20: an update is due as soon as 5 blocks are
  // free, for 4 unannounced ones still leave 16.
  Rig rig(1280, 1 << 20);
  for (int i = 0; i < 5; ++i) rig.expect(64);
  for (int i = 0; i < 4; ++i) rig.flow.release(0, 64, kTimeZero, kTimeZero);
  EXPECT_TRUE(rig.channel.sent.empty());
  rig.flow.release(0, 64, kTimeZero, kTimeZero);
  EXPECT_EQ(rig.channel.sent.size(), 1U);
}

TEST(LinkCredit, CountersWrapAt4096) {
  // A sender and a receiver: 1000 frames of 16 blocks are 16,000, almost four times around.
  Rig sender;
  Rig receiver;
  sender.hear(packet(LinkPacket::kOpInit, 0, 0, 64), kTimeZero);
  std::uint32_t in_flight = 0;
  std::uint32_t total = 0;
  for (int i = 0; i < 1000; ++i) {
    const Time now = nanoseconds(i);
    while (in_flight < 64 && sender.flow.may_send(0, 1000, now)) {
      sender.flow.sent(0, 1000, now);
      receiver.expect(1000);
      in_flight += 16;
      total += 16;
    }
    ASSERT_EQ(in_flight, 64U);
    // Two frames freed: one update with the whole count.
    receiver.flow.release(0, 1000, now, now);
    receiver.flow.release(0, 1000, now, now);
    in_flight -= 32;
    ASSERT_EQ(receiver.channel.sent.size(), static_cast<std::size_t>(i) + 1);
    const LinkPacket& update = receiver.channel.sent.back().packet;
    ASSERT_EQ(update.fccl, (total + 64 - in_flight) % 4096);
    sender.hear(packet(LinkPacket::kOpNormal, 0, 0, update.fccl), now);
  }
  EXPECT_GT(total, 3U * 4096);
}

TEST(LinkCredit, LostPacketsAreRepairedByTheSendersCount) {
  Rig rig;
  rig.expect(1000);  // 16 blocks arrive
  // The sender counted 48: two frames of 16 blocks are gone, and their credits with them.
  rig.hear(packet(LinkPacket::kOpNormal, 48, 0, 64), nanoseconds(70));
  ASSERT_EQ(rig.channel.sent.size(), 1U);
  EXPECT_EQ(rig.channel.sent[0].ready, nanoseconds(70));
  EXPECT_EQ(rig.channel.sent[0].packet.fccl, 48 + 48);  // 48 blocks are free
  // The same count again changes nothing and is not answered.
  rig.hear(packet(LinkPacket::kOpNormal, 48, 0, 64), nanoseconds(80));
  EXPECT_EQ(rig.channel.sent.size(), 1U);
}

TEST(LinkCredit, SenderWithoutCreditsTellsItsCountOnce) {
  Rig rig;
  rig.hear(packet(LinkPacket::kOpInit, 0, 0, 16), kTimeZero);
  rig.flow.sent(0, 1000, nanoseconds(10));
  ASSERT_FALSE(rig.flow.may_send(0, 1000, nanoseconds(90)));
  // 65,536 symbol times of a four-lane link: 262,144 B x 80 ps.
  const Time period = picoseconds(20'971'520);
  EXPECT_EQ(rig.channel.wake, period);
  rig.flow.wake(period);
  ASSERT_EQ(rig.channel.sent.size(), 1U);
  EXPECT_EQ(rig.channel.sent[0].packet.fctbs, 16);
  rig.channel.wake = kTimeNever;
  rig.flow.wake(period * 2);
  EXPECT_EQ(rig.channel.sent.size(), 1U);
  EXPECT_EQ(rig.channel.wake, kTimeNever);
}

TEST(LinkCredit, OverrunIsABrokenInvariant) {
  Rig rig;
  for (int i = 0; i < 4; ++i) rig.expect(1024);
  EXPECT_THROW(rig.expect(1), SimulationError);
}

TEST(LinkCredit, BufferMustHoldOneFrame) {
  FakeChannel channel;
  EXPECT_THROW(CreditFlowControl(Rig::config(1000, 64), channel), ConfigError);
}

}  // namespace
}  // namespace rnic

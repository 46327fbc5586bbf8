// SPDX-License-Identifier: Apache-2.0
// iWARP over a wire that loses, duplicates and reorders: with and without SACK everything arrives
// intact, once and in order; when the retry limit is exceeded the right error completes.
#include <gtest/gtest.h>

#include <queue>
#include <string>

#include "base/rng.h"
#include "support/iwarp_rig.h"

namespace rnic::testbench {
namespace {

using protocol::WcStatus;
using protocol::WqeOpcode;

constexpr std::uint64_t kLocal = 0;
constexpr std::uint64_t kRemote = 0x2'0000;
constexpr std::uint64_t kReadable = 0x4'0000;
constexpr std::uint32_t kStride = 0x2000;
constexpr std::uint32_t kMostOperations = 12;

void fill(IwarpEnd& end, std::uint64_t address, std::uint32_t bytes, std::uint32_t salt) {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    end.memory[address + i] =
        static_cast<std::uint8_t>((i * 2654435761U + salt * 40503U + 12345) >> 11);
  }
}

bool same(const IwarpEnd& x, std::uint64_t at_x, const IwarpEnd& y, std::uint64_t at_y,
          std::uint32_t bytes) {
  return std::memcmp(&x.memory[at_x], &y.memory[at_y], bytes) == 0;
}

config::TcpConfig sack_config(bool sack = true) {
  config::TcpConfig tcp = IwarpRig::tcp_config();
  tcp.sack = sack;
  return tcp;
}

// 20 segments, the third lost: the 17 behind it are placed, one is resent, no timer runs out.
TEST(IwarpSack, ResendsOnlyTheLostSegment) {
  IwarpRig rig(sack_config());
  fill(rig.a, kLocal, 20 * 1440, 1);
  rig.a.post(WqeOpcode::kWrite, 20 * 1440, kLocal, kRemote);
  rig.run([](std::uint64_t n) { return n == 2; });
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess});
  EXPECT_TRUE(same(rig.a, kLocal, rig.b, kRemote, 20 * 1440));
  EXPECT_EQ(rig.b.placed_early, 17U);
  EXPECT_EQ(rig.a.transport.counters().tcp_retransmitted_segments, 1U);
  EXPECT_EQ(rig.a.transport.counters().local_ack_timeout_err, 0U);
}

TEST(IwarpSack, UntaggedSegmentsAreHeldUntilTheirTurn) {
  IwarpRig rig(sack_config());
  rig.b.recvs_posted = 5;
  for (std::uint32_t i = 0; i < 5; ++i) {
    fill(rig.a, kLocal, 10'000, 7);
    rig.a.post(WqeOpcode::kSend, 10'000, kLocal);
  }
  rig.run([](std::uint64_t n) { return n == 2; });
  EXPECT_EQ(rig.a.completions, std::vector<WcStatus>(5, WcStatus::kSuccess));
  EXPECT_EQ(rig.b.received.size(), 5U);
  EXPECT_GT(rig.b.held_frames, 10U);
  EXPECT_EQ(rig.a.transport.counters().tcp_retransmitted_segments, 1U);
}

// Options: 20 B of TCP header, then NOP NOP and a SACK option of 2 + 8 B for one block.
TEST(IwarpSack, DuplicateAckCarriesTheBlock) {
  IwarpRig rig(sack_config());
  rig.a.post(WqeOpcode::kWrite, 3 * 1440, kLocal, kRemote);
  Frame* first = rig.a.next_frame(kTimeZero);
  Frame* second = rig.a.next_frame(kTimeZero);
  rig.b.take(second, rig.a.frames, kTimeZero);
  const Frame* ack = rig.b.next_frame(kTimeZero);
  ASSERT_NE(ack, nullptr);
  constexpr std::uint32_t kTcpAt = 34;
  EXPECT_EQ(ack->header_bytes, kTcpAt + 20 + 12);
  const auto tcp = protocol::TcpHeader::decode(ack->header + kTcpAt);
  const auto data = protocol::TcpHeader::decode(first->header + kTcpAt);
  EXPECT_EQ(tcp.acknowledgement, data.sequence);
  EXPECT_EQ(ack->header[kTcpAt + 22], 5);   // kind: SACK
  EXPECT_EQ(ack->header[kTcpAt + 23], 10);  // length
  EXPECT_EQ(protocol::load_be32(ack->header + kTcpAt + 24), data.sequence + 1460);
  EXPECT_EQ(protocol::load_be32(ack->header + kTcpAt + 28), data.sequence + 2 * 1460);
}

TEST(IwarpSack, EarlyWriteThatMayNotBeDoneIsRefusedAtItsTurn) {
  IwarpRig rig(sack_config());
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote).wqe.rkey = 1;
  rig.run([](std::uint64_t n) { return n == 0; });
  EXPECT_EQ(rig.a.completions, (std::vector{WcStatus::kSuccess, WcStatus::kRemoteAccessError}));
}

config::TcpConfig keep_alive_config() {
  config::TcpConfig tcp = IwarpRig::tcp_config();
  tcp.keepalive_time = microseconds(5000);
  tcp.keepalive_interval = microseconds(1000);
  tcp.keepalive_probes = 3;
  return tcp;
}

/// `a` asks for 77 bytes; `b` acknowledges the request at once and has no answer yet.
void ask(IwarpRig& rig) {
  rig.a.post(WqeOpcode::kRead, 77, kLocal, kRemote);
  rig.b.take(rig.a.next_frame(kTimeZero), rig.a.frames, kTimeZero);
  ASSERT_EQ(rig.b.qp.responses.size(), 1U);
  rig.b.qp.responses.front().pending = true;
  rig.b.expire(microseconds(100));  // the delayed ACK
  Frame* ack = rig.b.next_frame(microseconds(100));
  ASSERT_NE(ack, nullptr);
  rig.a.take(ack, rig.b.frames, microseconds(101));
}

// The peer's end is gone, and what it said of that is lost: nothing is there to be sent again. A
// probe has no data and the sequence number before the next one: 40 + 46 B of FPDU are
// acknowledged.
TEST(IwarpKeepAlive, AReadThatNobodyAnswersFails) {
  IwarpRig rig(keep_alive_config());
  ask(rig);
  const std::uint64_t next = transport::IwarpTransport::connection_of(rig.a.qp)->tcp.send_next();
  for (int probe = 0; probe < 3; ++probe) {
    const Time due = microseconds(101) + microseconds(5000) + microseconds(1000) * probe;
    EXPECT_EQ(rig.a.qp.retry_deadline, due);
    rig.a.expire(due);
    Frame* frame = rig.a.next_frame(due);
    ASSERT_NE(frame, nullptr);
    const auto tcp = protocol::TcpHeader::decode(frame->header + 34);
    EXPECT_EQ(tcp.sequence, static_cast<std::uint32_t>(next - 1));
    EXPECT_TRUE(tcp.ack);
    EXPECT_EQ(frame->payload_bytes, 0U);
    EXPECT_EQ(rig.a.next_frame(due), nullptr);
    rig.a.frames.give(frame);
  }
  EXPECT_TRUE(rig.a.completions.empty());
  EXPECT_EQ(rig.a.qp.retry_deadline, microseconds(101 + 8000));
  rig.a.expire(microseconds(101 + 8000));
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kRetryExceededError});
  EXPECT_EQ(rig.a.qp.state, protocol::QpState::kError);
}

// A peer that is merely slow answers every probe, and its answer is taken at last.
TEST(IwarpKeepAlive, ASlowPeerIsWaitedFor) {
  IwarpRig rig(keep_alive_config());
  fill(rig.b, kRemote, 77, 3);
  ask(rig);
  Time now{0};
  for (int i = 0; i < 20; ++i) {
    now = rig.a.qp.retry_deadline;
    rig.a.expire(now);
    Frame* probe = rig.a.next_frame(now);
    ASSERT_NE(probe, nullptr);
    rig.b.take(probe, rig.a.frames, now);
    Frame* answer = rig.b.next_frame(now);
    ASSERT_NE(answer, nullptr) << i;
    rig.a.take(answer, rig.b.frames, now);
    EXPECT_EQ(rig.a.next_frame(now), nullptr);  // an ACK is not acknowledged
    EXPECT_EQ(rig.a.qp.retry_deadline, now + microseconds(5000));
  }
  EXPECT_TRUE(rig.a.completions.empty());
  rig.b.qp.responses.front().pending = false;
  rig.now = now;
  rig.run();
  EXPECT_EQ(rig.a.completions, std::vector{WcStatus::kSuccess});
  EXPECT_TRUE(same(rig.a, kLocal, rig.b, kRemote, 77));
}

// Nobody is waited for: no probes, so that a simulation comes to rest.
TEST(IwarpKeepAlive, AnIdleConnectionIsNotProbed) {
  IwarpRig rig(keep_alive_config());
  rig.a.post(WqeOpcode::kWrite, 100, kLocal, kRemote);
  rig.a.post(WqeOpcode::kRead, 100, kLocal, kRemote);
  rig.run();
  EXPECT_EQ(rig.a.completions.size(), 2U);
  EXPECT_EQ(rig.a.qp.retry_deadline, kTimeNever);
  EXPECT_EQ(rig.b.qp.retry_deadline, kTimeNever);
}

/// What a wire does; probabilities.
struct Faults {
  double loss = 0;
  double duplicate = 0;
  double delay = 0;  ///< of up to 20 us
};

/// Random work in both directions, with an account of what must come of it.
class IwarpTraffic {
 public:
  struct Operation {
    WqeOpcode opcode;
    std::uint32_t bytes;
  };

  IwarpTraffic(std::uint64_t seed, const Faults& faults)
      : rng_(seed, "iwarp traffic"), faults_(faults), tcp_(random_tcp()), rig(tcp_, mtu()) {
    int salt = 0;
    for (IwarpEnd* end : {&rig.a, &rig.b}) {
      for (std::uint32_t i = 0; i < kMostOperations; ++i) {
        fill(*end, kLocal + std::uint64_t{i} * kStride, kStride,
             static_cast<std::uint32_t>(++salt));
        fill(*end, kReadable + std::uint64_t{i} * kStride, kStride,
             static_cast<std::uint32_t>(++salt));
      }
    }
  }

  void post(IwarpEnd& end, IwarpEnd& peer, std::vector<Operation>& list) {
    constexpr WqeOpcode kOpcodes[] = {WqeOpcode::kWrite, WqeOpcode::kSend, WqeOpcode::kRead,
                                      WqeOpcode::kWriteImm};
    const std::uint64_t count = 1 + rng_.below(kMostOperations);
    for (std::uint32_t i = 0; i < count; ++i) {
      const WqeOpcode opcode = kOpcodes[rng_.below(4)];
      const auto bytes = static_cast<std::uint32_t>(rng_.below(8) == 0 ? 0 : rng_.below(kStride));
      const std::uint64_t at = std::uint64_t{i} * kStride;
      end.post(opcode, bytes, kLocal + at, (opcode == WqeOpcode::kRead ? kReadable : kRemote) + at);
      if (opcode == WqeOpcode::kSend || opcode == WqeOpcode::kWriteImm) ++peer.recvs_posted;
      list.push_back({opcode, bytes});
    }
  }

  bool run(Time limit) {
    while (rig.a.completions.size() < from_a.size() || rig.b.completions.size() < from_b.size()) {
      if (now_ > limit) return false;
      step();
    }
    return true;
  }

  static std::string check(const IwarpEnd& end, const IwarpEnd& peer,
                           const std::vector<Operation>& list) {
    std::size_t received = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (end.completions[i] != WcStatus::kSuccess) return "failed at " + std::to_string(i);
      const std::uint64_t at = i * kStride;
      const std::uint32_t bytes = list[i].bytes;
      const bool imm = list[i].opcode == WqeOpcode::kWriteImm;
      if (list[i].opcode == WqeOpcode::kSend || imm) {
        if (received == peer.received.size()) return "receive completion missing";
        const IwarpEnd::Received& got = peer.received[received++];
        if (got.has_imm != imm || (!imm && got.bytes != bytes)) return "wrong receive completion";
      }
      if (list[i].opcode == WqeOpcode::kSend) continue;  // all land in one buffer
      const std::uint64_t remote = list[i].opcode == WqeOpcode::kRead ? kReadable : kRemote;
      if (!same(end, kLocal + at, peer, remote + at, bytes)) return "data at " + std::to_string(i);
    }
    return received == peer.received.size() ? "" : "too many receive completions";
  }

  std::vector<Operation> from_a;
  std::vector<Operation> from_b;

 private:
  struct Arrival {
    Time at;
    std::uint64_t number;
    IwarpEnd* from;
    Frame* frame;
    bool operator<(const Arrival& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  config::TcpConfig random_tcp() {
    config::TcpConfig tcp = sack_config(rng_.below(3) != 0);
    tcp.timestamps = rng_.below(2) == 0;
    tcp.initial_cwnd = static_cast<std::uint32_t>(1 + rng_.below(20));
    tcp.delayed_ack = static_cast<std::uint32_t>(1 + rng_.below(4));
    tcp.delayed_ack_time = microseconds(5);
    tcp.window = rng_.below(5) == 0 ? 4096 : 1U << 18;
    tcp.min_rto = microseconds(100);
    tcp.congestion_control = static_cast<config::CongestionControl>(rng_.below(3));
    tcp.mpa_markers = rng_.below(3) == 0;
    return tcp;
  }
  config::TransportConfig mtu() {
    return IwarpRig::transport_config(rng_.below(3) == 0 ? 576 : 1500);
  }

  void send(IwarpEnd& from) {
    Frame* frame = from.next_frame(now_);
    from.retire();
    if (frame == nullptr) return;
    const bool lost = rng_.uniform() < faults_.loss;
    if (rng_.uniform() < faults_.duplicate) launch(from, copy(from, *frame));
    if (lost) {
      from.frames.give(frame);
    } else {
      launch(from, frame);
    }
  }

  static Frame* copy(IwarpEnd& from, const Frame& original) {
    Frame* made = from.frames.take();
    std::memcpy(made->header, original.header, sizeof original.header);
    made->trailer_bytes = original.trailer_bytes;
    made->header_bytes = original.header_bytes;
    made->pad_bytes = original.pad_bytes;
    made->marker_offset = original.marker_offset;
    made->marker_count = original.marker_count;
    made->payload_bytes = original.payload_bytes;
    made->frame_class = original.frame_class;
    made->has_payload_data = true;
    made->checksums_deferred = true;
    made->trace = nullptr;
    made->payload.reserve(original.payload_bytes + 1);
    std::memcpy(made->payload.writable(), original.payload.data(), original.payload_bytes);
    return made;
  }

  void launch(IwarpEnd& from, Frame* frame) {
    Time at = now_ + microseconds(1);
    if (rng_.uniform() < faults_.delay) {
      at += nanoseconds(static_cast<std::int64_t>(rng_.below(20'000)));
    }
    wire_.push({at, numbers_++, &from, frame});
  }

  void step() {
    now_ += nanoseconds(100);
    while (!wire_.empty() && wire_.top().at <= now_) {
      const Arrival arrival = wire_.top();
      wire_.pop();
      IwarpEnd& to = arrival.from == &rig.a ? rig.b : rig.a;
      to.take(arrival.frame, arrival.from->frames, now_);
    }
    rig.a.expire(now_);
    rig.b.expire(now_);
    send(rig.a);
    send(rig.b);
  }

  Rng rng_;
  Faults faults_;
  config::TcpConfig tcp_;
  Time now_{0};
  std::uint64_t numbers_ = 0;
  std::priority_queue<Arrival> wire_;

 public:
  IwarpRig rig;
};

TEST(IwarpProperty, EverythingArrivesOnceAndInOrder) {
  std::uint64_t resent = 0;
  std::uint64_t early = 0;
  std::uint64_t held = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed, "faults");
    Faults faults;
    faults.loss = rng.below(4) == 0 ? 0 : 0.04 * rng.uniform();
    faults.duplicate = rng.below(2) == 0 ? 0 : 0.05 * rng.uniform();
    faults.delay = rng.below(2) == 0 ? 0 : 0.05 * rng.uniform();
    IwarpTraffic traffic(seed, faults);
    traffic.post(traffic.rig.a, traffic.rig.b, traffic.from_a);
    if (rng.below(2) == 0) traffic.post(traffic.rig.b, traffic.rig.a, traffic.from_b);
    ASSERT_TRUE(traffic.run(microseconds(200'000))) << "seed " << seed << " does not finish";
    ASSERT_EQ(IwarpTraffic::check(traffic.rig.a, traffic.rig.b, traffic.from_a), "") << seed;
    ASSERT_EQ(IwarpTraffic::check(traffic.rig.b, traffic.rig.a, traffic.from_b), "") << seed;
    ASSERT_EQ(traffic.rig.a.qp.state, protocol::QpState::kRts);
    ASSERT_EQ(traffic.rig.b.qp.state, protocol::QpState::kRts);
    resent += traffic.rig.a.transport.counters().tcp_retransmitted_segments;
    early += traffic.rig.a.placed_early + traffic.rig.b.placed_early;
    held += traffic.rig.a.held_frames + traffic.rig.b.held_frames;
  }
  EXPECT_GT(resent, 1000U);
  EXPECT_GT(early, 500U);
  EXPECT_GT(held, 500U);
}

TEST(IwarpProperty, APathThatFallsSilentExhaustsTheRetries) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Faults faults;
    faults.loss = 1;
    IwarpTraffic traffic(seed, faults);
    traffic.post(traffic.rig.a, traffic.rig.b, traffic.from_a);
    ASSERT_TRUE(traffic.run(microseconds(200'000))) << seed;
    ASSERT_EQ(traffic.rig.a.completions.front(), WcStatus::kRetryExceededError);
    for (std::size_t i = 1; i < traffic.from_a.size(); ++i) {
      ASSERT_EQ(traffic.rig.a.completions[i], WcStatus::kWrFlushError);
    }
    ASSERT_EQ(traffic.rig.a.qp.state, protocol::QpState::kError);
    // 7 resends and the eighth expiry: retry_count + 1.
    ASSERT_EQ(traffic.rig.a.transport.counters().local_ack_timeout_err, 8U);
  }
}

}  // namespace
}  // namespace rnic::testbench

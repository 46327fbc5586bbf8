// SPDX-License-Identifier: Apache-2.0
// Random messages of UC and UD over a path that loses, repeats and reorders: what arrives is what
// the rule of 14.2 and 14.4 says, packet by packet, with PSNs that wrap.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "support/unreliable_rig.h"

namespace rnic::testbench {
namespace {

using protocol::QpType;
using protocol::WqeOpcode;
using Action = transport::RxPlan::Action;

/// A packet of a message, as its sender knows it.
struct Packet {
  std::uint64_t message = 0;
  std::uint32_t place = 0;
  std::uint32_t of = 0;
  const protocol::Frame* frame = nullptr;
};

struct Path {
  double loss = 0;
  double twice = 0;
  double late = 0;
};

/// What comes out at the other end of a path: some packets not at all, some twice, some behind up
/// to five others.
std::vector<Packet> carry(const std::vector<Packet>& packets, const Path& path, Rng& rng) {
  std::vector<std::pair<std::uint64_t, Packet>> arrivals;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    for (int copy = rng.uniform() < path.twice ? 2 : 1; copy > 0; --copy) {
      if (rng.uniform() < path.loss) continue;
      const std::uint64_t late = rng.uniform() < path.late ? 10 + 10 * rng.below(5) + 5 : 0;
      arrivals.emplace_back(10 * i + late, packets[i]);
    }
  }
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Packet> out;
  for (const auto& arrival : arrivals) out.push_back(arrival.second);
  return out;
}

/// The receiver by the rule alone: a first packet begins a message, whatever came before; the next
/// one continues it; everything else ends it.
class Rule {
 public:
  /// Whether the packet is executed; `done` when its message is complete with it.
  bool takes(const Packet& packet, bool& done) {
    const bool continues = open_ && packet.message == message_ && packet.place == next_;
    if (packet.place != 0 && !continues) {
      open_ = false;
      return false;
    }
    message_ = packet.message;
    next_ = packet.place + 1;
    open_ = next_ < packet.of;
    done = !open_;
    return true;
  }

 private:
  bool open_ = false;
  std::uint64_t message_ = 0;
  std::uint32_t next_ = 0;
};

/// Posts `count` messages and returns their packets; the frames live in `frames`.
std::vector<Packet> send(UnreliablePair& pair, std::uint32_t count, Rng& rng,
                         std::vector<std::unique_ptr<protocol::Frame>>& frames) {
  constexpr std::uint32_t kMostPackets = 6;
  std::vector<Packet> packets;
  for (std::uint32_t m = 0; m < count; ++m) {
    const auto length = static_cast<std::uint32_t>(rng.below(kMostPackets * kUnreliableMtu));
    pair.a.post(rng.below(2) == 0 ? WqeOpcode::kSend : WqeOpcode::kWrite, length);
    auto sent = pair.a.send();
    for (std::uint32_t i = 0; i < sent.size(); ++i) {
      packets.push_back({m, i, static_cast<std::uint32_t>(sent.size()), sent[i].get()});
    }
    std::move(sent.begin(), sent.end(), std::back_inserter(frames));
  }
  return packets;
}

void expect_the_rule(std::uint64_t seed, const Path& path, std::uint64_t& lost) {
  Rng rng(seed, "unreliable");
  UnreliablePair pair(QpType::kUc, static_cast<std::uint32_t>(0xFF'FFC0 + rng.below(64)));
  std::vector<std::unique_ptr<protocol::Frame>> frames;
  constexpr std::uint32_t kMessages = 40;
  const std::vector<Packet> packets = send(pair, kMessages, rng, frames);
  Rule rule;
  std::uint64_t delivered = 0;
  std::set<std::uint64_t> whole;
  for (const Packet& packet : carry(packets, path, rng)) {
    bool done = false;
    const bool taken = rule.takes(packet, done);
    const transport::RxPlan plan = pair.b.receive(*packet.frame);
    ASSERT_EQ(plan.action != Action::kNone, taken)
        << "seed " << seed << " message " << packet.message << " packet " << packet.place;
    if (!taken) continue;
    ASSERT_EQ(plan.message_offset, packet.place * kUnreliableMtu) << "seed " << seed;
    ASSERT_EQ(plan.last, done) << "seed " << seed;
    delivered += done ? 1 : 0;
    if (done) whole.insert(packet.message);
  }
  const transport::TransportCounters& counters = pair.b.transport.counters();
  ASSERT_EQ(counters.rx_send_requests + counters.rx_write_requests, delivered) << "seed " << seed;
  ASSERT_FALSE(pair.b.transport.response_due(pair.b.qp)) << "seed " << seed;
  lost += kMessages - whole.size();
}

TEST(UnreliableProperty, ConnectedMessagesFollowTheRule) {
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed, "path");
    const Path path{rng.below(3) == 0 ? 0 : 0.1 * rng.uniform(),
                    rng.below(2) == 0 ? 0 : 0.1 * rng.uniform(),
                    rng.below(2) == 0 ? 0 : 0.1 * rng.uniform()};
    expect_the_rule(seed, path, lost);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(lost, 3000U);  // the faults did happen
}

// Without reordering a message arrives if and only if all of its packets do.
TEST(UnreliableProperty, OnlyMessagesThatLostAPacketAreLost) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed, "loss");
    UnreliablePair pair(QpType::kUc, 0xFF'FFF0);
    std::vector<std::unique_ptr<protocol::Frame>> frames;
    const std::vector<Packet> packets = send(pair, 30, rng, frames);
    std::set<std::uint64_t> broken;
    std::set<std::uint64_t> delivered;
    for (const Packet& packet : packets) {
      if (rng.uniform() < 0.05) {
        broken.insert(packet.message);
        continue;
      }
      const transport::RxPlan plan = pair.b.receive(*packet.frame);
      if (plan.action != Action::kNone && plan.last) delivered.insert(packet.message);
    }
    for (std::uint64_t m = 0; m < 30; ++m) {
      ASSERT_NE(broken.count(m), delivered.count(m)) << "seed " << seed << " message " << m;
    }
  }
}

// Every datagram that arrives is taken, as often as it comes and in whatever order.
TEST(UnreliableProperty, DatagramsAreTakenAsTheyCome) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed, "datagrams");
    UnreliablePair pair(QpType::kUd, 0xFF'FFF0);
    std::vector<std::unique_ptr<protocol::Frame>> frames;
    std::vector<Packet> packets;
    for (std::uint64_t m = 0; m < 40; ++m) {
      pair.a.post(WqeOpcode::kSend, static_cast<std::uint32_t>(rng.below(kUnreliableMtu + 1)))
          .datagram = to(pair.b);
      frames.push_back(std::move(pair.a.send().at(0)));
      packets.push_back({m, 0, 1, frames.back().get()});
    }
    const std::vector<Packet> arrived = carry(packets, {0.1, 0.1, 0.2}, rng);
    for (const Packet& packet : arrived) {
      const transport::RxPlan plan = pair.b.receive(*packet.frame);
      ASSERT_EQ(plan.action, Action::kSend) << "seed " << seed;
      ASSERT_TRUE(plan.first && plan.last);
    }
    ASSERT_EQ(pair.b.transport.counters().rx_send_requests, arrived.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/ring.h"
#include "link/flow_control.h"
#include "protocol/pfc_frame.h"

namespace rnic::link {

/// Ethernet's flow control by pauses: of each priority (IEEE 802.1Qbb) or of the link as a whole
/// (IEEE 802.3x, with one receive buffer for all priorities): the receiver pauses a priority when
/// its buffer fills to XOFF and lets it go on at XON. A pause lasts a number of quanta and is
/// renewed at half-time while the buffer stays above XON. A pause that has arrived takes effect
/// between frames.
class PauseFlowControl : public FlowControl {
 public:
  static constexpr std::uint32_t kPriorities = 8;
  static constexpr std::uint32_t kQuantumBytes = 64;  ///< 512 bit times

  /// `config` must be resolved: thresholds set and lossless.
  PauseFlowControl(const LinkPortConfig& config, ControlChannel& channel);

  bool may_send(std::uint32_t lane, std::uint32_t bytes, Time now) override;
  void sent(std::uint32_t, std::uint32_t, Time) override {}
  Time next_change(Time now) const override;
  stats::StallCause cause() const override { return stats::StallCause::kPaused; }
  void expect(const protocol::Frame&) override {}
  bool admit(const protocol::Frame& frame, Time now) override;
  void release(std::uint32_t lane, std::uint32_t bytes, Time when, Time now) override;
  void control_received(const protocol::Frame& frame, Time arrival) override;
  void wake(Time now) override;
  Time paused(std::uint32_t lane, Time now) override;
  void link_up() override;
  std::uint64_t highest_fill() const override;
  void reset_statistics(Time now) override;

 private:
  /// What the peer told us about a priority.
  struct Gate {
    Time until{0};
    Time since{0};  ///< paused time before this is in `total`
    Time total{0};
  };
  /// What we told the peer.
  struct Lane {
    explicit Lane(std::uint64_t bytes) : buffer(bytes) {}
    RxBuffer buffer;
    bool pausing = false;
    Time renew_at{0};
  };
  struct Order {
    Time at{0};
    std::uint8_t enable = 0;
    std::array<std::uint16_t, kPriorities> time{};
  };

  /// Buffer and gate of a lane.
  std::uint32_t index(std::uint32_t lane) const { return global_ ? 0 : lane; }
  void apply_orders(Time now);
  static void settle(Gate& gate, Time now);
  void tell(std::uint32_t lane, std::uint16_t quanta, Time now);
  void watch(const Lane& lane);

  ControlChannel& channel_;
  std::array<Gate, kPriorities> gates_{};
  Ring<Order> orders_;  ///< on the way to us
  std::vector<Lane> lanes_;
  BitRate rate_;
  std::uint64_t xoff_;
  std::uint64_t xon_;
  std::uint16_t quanta_;
  Time response_;
  std::uint32_t lossless_;  ///< bit i: lane i pauses the peer instead of losing frames
  bool global_;
  protocol::MacAddress mac_;
};

}  // namespace rnic::link

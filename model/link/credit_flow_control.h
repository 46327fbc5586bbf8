// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/ring.h"
#include "link/flow_control.h"

namespace rnic::link {

/// InfiniBand's absolute credits for each virtual lane (IBTA vol 1, 7.9): blocks of 64 bytes,
/// counted modulo 4096 from link-up. The receiver tells how far the sender may count (FCCL); the
/// sender tells how far it has counted (FCTBS), which repairs what lost packets left open.
///
/// A link packet is sent when `credit_update` bytes of a lane were freed, when the peer's FCTBS
/// shows that packets were lost, at most every 65,536 symbol times along with traffic, and once
/// after that time when a lane is out of credits. An idle link is silent.
class CreditFlowControl : public FlowControl {
 public:
  static constexpr std::uint32_t kBlockBytes = 64;
  static constexpr std::uint32_t kModulus = 4096;
  /// Largest credit that can be granted: half the counters' range, 128 KiB a lane.
  static constexpr std::uint32_t kMaxBlocks = 2048;
  /// Start and end symbol around a link packet's 6 bytes.
  static constexpr std::uint32_t kLinkPacketWireBytes = 8;

  CreditFlowControl(const LinkPortConfig& config, ControlChannel& channel);

  static std::uint32_t blocks_of(std::uint32_t bytes) {
    return (bytes + kBlockBytes - 1) / kBlockBytes;
  }

  void link_up() override;
  bool may_send(std::uint32_t lane, std::uint32_t bytes, Time now) override;
  void sent(std::uint32_t lane, std::uint32_t bytes, Time start) override;
  Time next_change(Time now) const override;
  stats::StallCause cause() const override { return stats::StallCause::kNoCredit; }
  void expect(const protocol::Frame& frame) override;
  bool admit(const protocol::Frame&, Time) override { return true; }
  void release(std::uint32_t lane, std::uint32_t bytes, Time when, Time now) override;
  void control_received(const protocol::Frame& frame, Time arrival) override;
  void stamp(protocol::Frame& frame) override;
  void wake(Time now) override;
  std::uint64_t highest_fill() const override;
  void reset_statistics(Time now) override;

 private:
  struct Lane {
    std::uint32_t sent = 0;       ///< FCTBS: blocks sent
    std::uint32_t limit = 0;      ///< CL: last FCCL from the peer
    std::uint32_t told_sent = 0;  ///< FCTBS in our last link packet
    Time told_at{0};
    bool waiting = false;           ///< a frame found too few credits
    std::uint32_t received = 0;     ///< ABR: blocks received, those on the way included
    std::uint32_t free = 0;         ///< receive blocks not taken or promised to frames on the way
    std::uint32_t freed = 0;        ///< of these, freed since the last link packet
    Time freed_at{0};               ///< when the last of them is free
    std::uint32_t lowest_free = 0;  ///< statistics
  };
  struct Grant {
    Time at{0};
    std::uint32_t lane = 0;
    std::uint32_t limit = 0;
  };

  void apply_grants(Time now);
  void tell(std::uint32_t lane, std::uint8_t op, Time ready);

  ControlChannel& channel_;
  std::vector<Lane> lanes_;
  Ring<Grant> grants_;  ///< on the way to us
  std::uint32_t total_blocks_;
  std::uint32_t update_blocks_;
  Time period_;
};

}  // namespace rnic::link

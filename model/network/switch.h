// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <systemc>
#include <unordered_map>
#include <vector>

#include "base/ring.h"
#include "base/rng.h"
#include "base/timeline.h"
#include "config/link_config.h"
#include "link/link_port.h"
#include "link/release_queue.h"
#include "network/frame_checksums.h"
#include "protocol/ethernet.h"
#include "protocol/frame.h"

namespace rnic::network {

/// What a switch looks at to find the way.
enum class Addressing : std::uint8_t { kMac, kLid };

/// Key of Switch::set_route(): a MAC address as a 48-bit number. A LID is its own key.
std::uint64_t route_key(const protocol::MacAddress& mac);

/// Store-and-forward switch with a buffer shared by all ports. A frame holds its place from arrival
/// to the end of its serialisation at the egress port; until then it also holds the ingress port's
/// receive buffer, so that credits or pauses act hop by hop. Without flow control a frame that
/// finds the shared buffer full is lost. ECN-capable frames are marked by the length of the queue
/// that they join: not up to switch.ecn_kmin, always beyond switch.ecn_kmax, in between with a
/// probability that rises to switch.ecn_pmax.
///
/// Frames to a multicast group leave by all other ports: the switch keeps no track of who listens.
/// Each copy takes a place of its own in the shared buffer; one that finds none is lost.
class Switch : public sc_core::sc_module {
 public:
  /// `port` describes the cables' other ends; buffers and thresholds come from `config`: with PFC
  /// each port needs pfc_xoff and the headroom of one priority (ConfigError when switch.buffer is
  /// too small for that); with credits the buffer is divided among ports and lanes. `checksums`
  /// may be null: then damaged frames are forwarded. Ports between which no frame passes may be on
  /// timelines of their own (`timeline_of`), if what they hold always fits into the buffer.
  Switch(const sc_core::sc_module_name& name, const config::SwitchConfig& config,
         const link::LinkPortConfig& port, std::uint32_t ports, Addressing addressing,
         protocol::FramePool& frames, const FrameChecksums* checksums = nullptr,
         std::uint64_t seed = 1,
         const std::function<Timeline&(std::uint32_t port)>& timeline_of = {});
  ~Switch() override;

  /// Frames for `key` leave by port `port_index`.
  void set_route(std::uint64_t key, std::uint32_t port_index);

  link::LinkPort& port(std::uint32_t index);
  const link::LinkPort& port(std::uint32_t index) const;
  std::uint32_t ports() const { return static_cast<std::uint32_t>(sides_.size()); }

  /// Frames lost because the shared buffer was full, their address unknown, or a checksum wrong.
  std::uint64_t dropped_full() const { return dropped_full_; }
  /// Those that came in by port `index`.
  std::uint64_t dropped_full(std::uint32_t index) const;
  std::uint64_t dropped_unknown() const { return dropped_unknown_; }
  std::uint64_t dropped_damaged() const { return dropped_damaged_; }
  /// Frames that a memory error changed (switch.corrupt_rate).
  std::uint64_t corrupted() const { return corrupted_; }
  /// Frames that got the ECN mark on their way to port `index`.
  std::uint64_t ecn_marked(std::uint32_t index) const;
  /// Longest egress queue of a lane of port `index`, bytes.
  std::uint64_t longest_queue(std::uint32_t index) const;
  /// Largest fill of the shared buffer, bytes; with several timelines, the sum of each one's.
  std::uint64_t highest_fill() const;
  void reset_statistics(Time now);

 private:
  struct Side;

  void forward(std::uint32_t ingress, protocol::Frame* frame, Time now);
  bool to_group(std::uint64_t destination) const;
  void flood(std::uint32_t ingress, protocol::Frame* frame, Time now);
  void queue(Side& egress, std::uint32_t ingress, protocol::Frame* frame, Time now);
  void corrupt(protocol::Frame& frame);
  void mark(Side& egress, protocol::Frame& frame, std::uint64_t queue);
  void discard(std::uint32_t ingress, protocol::Frame* frame, std::uint64_t& counter, Time now);
  void left(Side& egress, std::uint32_t ingress, std::uint32_t lane, std::uint32_t bytes, Time end);
  std::uint64_t destination(const protocol::Frame& frame) const;

  Time latency_;
  Addressing addressing_;
  protocol::FramePool& frames_;
  const FrameChecksums* checksums_;
  std::map<const Timeline*, link::RxBuffer> buffers_;  ///< the shared one; one for each timeline
  std::unordered_map<std::uint64_t, std::uint32_t> routes_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::uint64_t dropped_full_ = 0;
  std::uint64_t dropped_unknown_ = 0;
  std::uint64_t dropped_damaged_ = 0;
  std::uint64_t corrupted_ = 0;
  double corrupt_rate_;
  Rng rng_;
  std::uint64_t ecn_kmin_;
  std::uint64_t ecn_kmax_;
  double ecn_pmax_;
  Rng ecn_rng_;
};

}  // namespace rnic::network

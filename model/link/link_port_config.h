// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bit_rate.h"
#include "base/time.h"
#include "config/link_config.h"
#include "config/weights.h"
#include "protocol/ethernet.h"
#include "stats/stage.h"

namespace rnic::config {
struct Config;
}

namespace rnic::link {

/// A receiver that passes on a frame before its last bit is in: when `granule` bytes of payload are
/// there, or as much later as it takes for its own faster way on never to run dry.
struct CutThrough {
  std::uint64_t granule = 0;  ///< bytes; 0: frames are passed on as a whole
  BitRate rate;               ///< of the slower way: the faster of wire and way on

  /// How long before its last bit a frame of so much payload is passed on.
  Time lead(std::uint32_t payload) const {
    return granule == 0 || payload <= granule ? kTimeZero : rate.time_for(payload - granule);
  }
};

/// Parameters of one end of a cable.
struct LinkPortConfig {
  BitRate rate;         ///< data rate after line coding
  Time phy_latency{0};  ///< PCS/PMA and FEC of this end, each direction
  Time cable_delay{0};  ///< one way; only the headroom of PFC depends on it
  config::FlowControl flow_control = config::FlowControl::kNone;  ///< not kAuto
  std::uint32_t lanes = 1;              ///< IB data VLs (at most 15) or Ethernet priorities (8)
  std::uint64_t rx_buffer = 262'144;    ///< bytes of each lane
  std::uint64_t credit_update = 8'192;  ///< freed bytes of a VL that trigger a credit update
  std::uint64_t pfc_xoff = 0;      ///< fill that pauses the peer; 0: as high as the headroom allows
  std::uint64_t pfc_xon = 0;       ///< fill that lets it go on; 0: two frames below pfc_xoff
  std::uint64_t pfc_headroom = 0;  ///< bytes behind what crosses pfc_xoff; 0: as computed
  Time pause_response{0};          ///< from a pause's arrival until this end obeys it
  std::uint32_t lossless_lanes = 0xFF;               ///< bit i: PFC protects priority i
  std::uint32_t used_lanes = 1;                      ///< bit i: some connection uses lane i
  std::vector<config::LaneWeight> arbitration_high;  ///< IB VL arbitration; both empty: in turn
  std::vector<config::LaneWeight> arbitration_low;
  std::uint32_t arbitration_limit = 255;         ///< x 4096 B of high priority; 255: without limit
  std::vector<config::LaneWeight> ets;           ///< Ethernet; empty: in turn
  std::uint32_t largest_accepted = 0xFFFF'FFFF;  ///< longer frames are dropped on arrival
  std::uint16_t pause_quanta = 0xFFFF;           ///< length of one pause, x 512 bit times
  std::uint32_t max_frame_bytes = 4096 + 104;  ///< largest frame, first header to last trailer byte
  std::uint32_t egress_frames = 256;  ///< frames each lane's transmit queue holds; 0: unbounded
  /// An idle port commits itself to a frame that will be ready this soon instead of waiting for it
  /// with an event. A pause that arrives in between does not stop that frame any more, which the
  /// headroom accounts for.
  Time commit_ahead = nanoseconds(200);
  CutThrough cut_through;                             ///< of what arrives
  protocol::MacAddress mac{};                         ///< source address of PFC frames
  stats::Stage wait_stage = stats::Stage::kPortWait;  ///< where waiting for this port is booked
};

/// Bytes that may still arrive on a priority behind the frame that made this end send a pause: what
/// the peer sends while the pause frame waits for a frame of our own, travels, is acted upon
/// between frames, and the bytes already on the way (IEEE 802.1Q annex N).
std::uint64_t pfc_headroom(const LinkPortConfig& config);

/// Checks the configuration and fills in derived PFC thresholds. ConfigError when the receive
/// buffer cannot be lossless, with the size it would need.
LinkPortConfig resolve(LinkPortConfig config);

/// The port of a NIC as the user configured it. link.flow_control must be resolved already.
LinkPortConfig nic_port_config(const config::Config& config, const protocol::MacAddress& mac);

}  // namespace rnic::link

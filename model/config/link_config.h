// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bit_rate.h"
#include "base/time.h"
#include "config/fault_list.h"

namespace rnic::config {

enum class FlowControl { kAuto, kNone, kPfc, kCredit, kPause };
/// Which way of a cable faults strike, as the host at its first end sees it.
enum class FaultDirection { kBoth, kFromHost, kToHost };

/// Which of several paths a packet takes: its flow's, any if its sender does not mind, any.
enum class PathChoice { kPinned, kHashed, kAdaptive, kSpray };

/// link.fault_cable=all: rates strike every cable, lists the first.
inline constexpr std::uint32_t kAllCables = 0xFFFF'FFFF;

/// No host: what `none` stands for in keys that name one.
inline constexpr std::uint32_t kNoHost = 0xFFFF'FFFF;

struct FabricConfig {
  std::uint32_t hosts;
  std::string topology;       ///< back_to_back | single_switch
  std::uint32_t silent_host;  ///< its NIC ignores what arrives from silent_from on; or kNoHost
  Time silent_from;
  std::uint32_t fatal_host;  ///< its NIC fails for good at fatal_at; or kNoHost
  Time fatal_at;
};

struct LinkConfig {
  BitRate rate;
  Time delay;
  FlowControl flow_control;
  std::uint32_t data_vls;       ///< IB data virtual lanes (priorities on Ethernet are always 8)
  std::uint64_t credit_update;  ///< IB: freed bytes on a VL that trigger a flow-control packet
  Time commit_ahead;            ///< an idle port takes a frame that is ready this soon
  Time phy_latency;             ///< PCS/PMA + FEC latency of one end, each direction
  std::uint64_t mtu;            ///< Ethernet: longest frame less its 18 B of header and FCS; 0: any
  std::vector<std::uint64_t> sl2vl;  ///< IB: VL of each service level, repeated
  std::string vl_arb_high;           ///< IB: VL:WEIGHT,...
  std::string vl_arb_low;
  std::uint32_t vl_high_limit;                ///< x 4096 B; 255: without limit
  std::vector<std::uint64_t> pfc_priorities;  ///< Ethernet priorities that PFC protects
  std::uint64_t pfc_headroom;                 ///< bytes above XOFF; 0: as computed
  Time pfc_response;                          ///< from a pause's arrival to the last frame start
  std::string ets;                            ///< Ethernet: PRIORITY:WEIGHT|strict,...
  double loss_rate;
  double corrupt_rate;
  double duplicate_rate;
  double reorder_rate;
  Time reorder_delay;
  double burst_rate;    ///< probability that a frame begins a burst of losses
  double burst_length;  ///< mean frames of a burst
  double burst_loss;    ///< probability that a frame of a burst is lost
  Time down_at;
  Time down_time;  ///< 0: the cable is never down
  std::uint32_t down_cable;
  std::uint32_t fault_cable;  ///< kAllCables, or the only one that faults strike
  FaultDirection fault_direction;
  std::vector<std::string> fault_frames;  ///< names of the kinds that rates and bursts strike
  std::vector<FaultTarget> drop_list;
  std::vector<FaultTarget> corrupt_list;
  std::vector<FaultTarget> duplicate_list;
  std::vector<FaultTarget> reorder_list;
  std::uint32_t
      paths;       ///< of the network that a cable stands for, each of rate / paths; 1: a cable
  Time path_skew;  ///< by which each path is longer than the one before
  PathChoice path_choice;
};

struct SwitchConfig {
  Time latency;
  double corrupt_rate;
  std::uint64_t buffer;
  std::uint64_t pfc_xoff;
  std::uint64_t pfc_xon;
  std::uint64_t ecn_kmin;  ///< of an egress queue, bytes
  std::uint64_t ecn_kmax;
  double ecn_pmax;
};

}  // namespace rnic::config

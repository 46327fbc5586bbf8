// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bit_rate.h"
#include "base/time.h"

namespace rnic::config {

enum class FlowControl { kAuto, kNone, kPfc, kCredit };

struct FabricConfig {
  std::uint32_t hosts;
  std::string topology;  ///< back_to_back | single_switch
};

struct LinkConfig {
  BitRate rate;
  Time delay;
  FlowControl flow_control;
  std::uint32_t data_vls;       ///< IB data virtual lanes (priorities on Ethernet are always 8)
  std::uint64_t credit_update;  ///< IB: freed bytes on a VL that trigger a flow-control packet
  Time phy_latency;             ///< PCS/PMA + FEC latency of one end, each direction
  double loss_rate;
  double corrupt_rate;
  std::vector<std::uint64_t> drop_list;
};

struct SwitchConfig {
  Time latency;
  std::uint64_t buffer;
  std::uint64_t pfc_xoff;
  std::uint64_t pfc_xon;
};

}  // namespace rnic::config

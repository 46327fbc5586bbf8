// SPDX-License-Identifier: Apache-2.0
#include "config/service_level.h"

#include <string>

#include "base/error.h"
#include "config/weights.h"

namespace rnic::config {
namespace {

constexpr std::uint8_t kPriorities = 8;

/// Lane that a receiver reads from the headers of a packet of `level`.
std::uint32_t lane_on_the_wire(const Config& config, std::uint8_t level) {
  const TransportConfig& t = config.transport;
  const std::uint8_t lane = lane_of_service_level(config, level);
  if (t.protocol == Protocol::kIb || t.vlan) return lane;
  if (t.protocol == Protocol::kRoceV1) return 0;  // nothing else in the headers says so
  return t.dscp == kDscpOfPriority ? lane : t.dscp / kPriorities;
}

std::uint8_t level_in(const std::vector<std::uint64_t>& levels, std::uint32_t qp) {
  return levels.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(levels[qp % levels.size()]);
}

template <typename Visit>
void for_each_level(const Config& config, const Visit& visit) {
  for (const std::uint64_t level : config.transport.service_level) {
    visit(static_cast<std::uint8_t>(level), "transport.service_level=");
  }
  for (const std::uint64_t level : config.transport.response_service_level) {
    visit(static_cast<std::uint8_t>(level), "transport.response_service_level=");
  }
  if (config.workload.probe_size != kNoProbe &&
      config.workload.probe_service_level != kProbeAsStreams) {
    visit(probe_service_level(config), "workload.probe_service_level=");
  }
}

void check_ib(const Config& config, std::uint32_t lanes) {
  std::uint32_t served = 0;
  const auto high = parse_vl_weights("link.vl_arb_high", config.link.vl_arb_high);
  const auto low = parse_vl_weights("link.vl_arb_low", config.link.vl_arb_low);
  for (const auto* table : {&high, &low}) {
    for (const LaneWeight& entry : *table) {
      if (entry.lane >= config.link.data_vls) {
        throw ConfigError("link.vl_arb tables name VL " + std::to_string(entry.lane) +
                          ", but link.data_vls=" + std::to_string(config.link.data_vls));
      }
      if (entry.weight > 0) served |= 1U << entry.lane;
    }
  }
  for (std::uint32_t vl = 0; vl < 16; ++vl) {
    if (((lanes >> vl) & 1U) == 0) continue;
    if (vl >= config.link.data_vls) {
      throw ConfigError("link.sl2vl leads to VL " + std::to_string(vl) +
                        ", but link.data_vls=" + std::to_string(config.link.data_vls));
    }
    if (!(high.empty() && low.empty()) && ((served >> vl) & 1U) == 0) {
      throw ConfigError("VL " + std::to_string(vl) +
                        " is used and has no weight in link.vl_arb_high or link.vl_arb_low");
    }
  }
}

}  // namespace

std::uint8_t request_service_level(const Config& config, std::uint32_t qp) {
  return level_in(config.transport.service_level, qp);
}

std::uint8_t response_service_level(const Config& config, std::uint32_t qp) {
  const auto& levels = config.transport.response_service_level;
  return levels.empty() ? request_service_level(config, qp) : level_in(levels, qp);
}

std::uint8_t probe_service_level(const Config& config) {
  const std::uint32_t level = config.workload.probe_service_level;
  return level == kProbeAsStreams ? request_service_level(config, 0)
                                  : static_cast<std::uint8_t>(level);
}

std::uint8_t lane_of_service_level(const Config& config, std::uint8_t level) {
  if (config.transport.protocol != Protocol::kIb) return level;
  const auto& table = config.link.sl2vl;
  if (!table.empty()) return static_cast<std::uint8_t>(table[level % table.size()]);
  return static_cast<std::uint8_t>(level % config.link.data_vls);
}

std::uint32_t used_lanes(const Config& config) {
  std::uint32_t lanes = 0;
  for_each_level(config, [&](std::uint8_t level, const char* /*key*/) {
    lanes |= 1U << lane_on_the_wire(config, level);
  });
  const TransportConfig& t = config.transport;
  if (t.congestion_control == RoceCongestion::kDcqcn && t.cnp_service_level != kCnpAsData) {
    lanes |= 1U << t.cnp_service_level;
  }
  return lanes != 0 ? lanes : 1;
}

void check_service_levels(const Config& config) {
  const TransportConfig& t = config.transport;
  if (t.protocol == Protocol::kIb) {
    check_ib(config, used_lanes(config));
    return;
  }
  parse_ets("link.ets", config.link.ets);
  for_each_level(config, [&](std::uint8_t level, const char* key) {
    if (level >= kPriorities) {
      throw ConfigError(key + std::to_string(level) + " is no Ethernet priority (valid: 0..7)");
    }
    if (level != 0 && t.protocol == Protocol::kRoceV1 && !t.vlan) {
      throw ConfigError(key + std::to_string(level) +
                        " needs transport.vlan=true with transport.protocol=rocev1, whose other "
                        "headers carry no priority");
    }
  });
}

}  // namespace rnic::config

// SPDX-License-Identifier: Apache-2.0
#include "link/link_port_config.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/config.h"
#include "config/service_level.h"
#include "protocol/pfc_headroom.h"
#include "protocol/tlp.h"

namespace rnic::link {
namespace {

constexpr std::uint32_t kPriorities = 8;
constexpr std::uint32_t kMaxLanes = 15;
/// Largest sum of headers and trailers around an IB or RoCE payload: RoCEv1 with GRH, RETH and
/// immediate needs 14 + 4 + 40 + 12 + 16 + 4 + 8 = 98 bytes.
constexpr std::uint32_t kRdmaOverhead = 104;
/// RoCEv2 over IPv6 with a VLAN tag: 14 + 4 + 40 + 8 + 12 + 16 + 4 + 8 = 106.
constexpr std::uint32_t kRdmaIpv6Overhead = 108;
/// Ethernet header, VLAN tag and FCS around an IP packet.
constexpr std::uint32_t kEthernetOverhead = 22;
constexpr std::uint32_t kVlanTag = 4;

void resolve_pfc(LinkPortConfig& config) {
  const std::uint64_t headroom =
      protocol::above_xoff(config.pfc_headroom != 0 ? config.pfc_headroom : pfc_headroom(config),
                           config.max_frame_bytes);
  const std::uint64_t wanted_xoff =
      config.pfc_xoff != 0 ? config.pfc_xoff : 2 * std::uint64_t{config.max_frame_bytes};
  if (wanted_xoff + headroom > config.rx_buffer) {
    throw ConfigError(
        "nic.rx_buffer=" + std::to_string(config.rx_buffer) + " is not lossless: it needs " +
        std::to_string(wanted_xoff + headroom) + " bytes for each priority, " +
        std::to_string(headroom) +
        " of them headroom for the link's rate and delay (remedy: nic.rx_buffer=auto or " +
        std::to_string(wanted_xoff + headroom) + ", or link.flow_control=none)");
  }
  if (config.pfc_xoff == 0) config.pfc_xoff = config.rx_buffer - headroom;
  if (config.pfc_xon == 0) {
    const std::uint64_t gap = 2 * std::uint64_t{config.max_frame_bytes};
    config.pfc_xon = config.pfc_xoff > 2 * gap ? config.pfc_xoff - gap : config.pfc_xoff / 2;
  }
  if (config.pfc_xon >= config.pfc_xoff) {
    throw ConfigError("the PFC XON threshold (" + std::to_string(config.pfc_xon) +
                      " bytes) must be below XOFF (" + std::to_string(config.pfc_xoff) + ")");
  }
}

}  // namespace

std::uint64_t pfc_headroom(const LinkPortConfig& config) {
  return protocol::pfc_headroom({config.rate, config.cable_delay, config.phy_latency,
                                 config.commit_ahead, config.pause_response,
                                 config.max_frame_bytes});
}

LinkPortConfig resolve(LinkPortConfig config) {
  if (!config.rate.valid()) throw ConfigError("a link needs a positive rate");
  const bool pauses = config.flow_control == config::FlowControl::kPfc ||
                      config.flow_control == config::FlowControl::kPause;
  if (pauses) config.lanes = kPriorities;
  if (config.lanes == 0 || config.lanes > kMaxLanes) {
    throw ConfigError("a link has 1 to 15 lanes, not " + std::to_string(config.lanes));
  }
  if (config.rx_buffer < config.max_frame_bytes) {
    throw ConfigError("nic.rx_buffer: a receive buffer of " + std::to_string(config.rx_buffer) +
                      " bytes does not hold one frame of " +
                      std::to_string(config.max_frame_bytes));
  }
  if (pauses) resolve_pfc(config);
  return config;
}

namespace {

/// What service levels and priorities mean to a port.
void add_service_levels(const config::Config& config, LinkPortConfig& port) {
  const config::LinkConfig& link = config.link;
  const bool ib = config.transport.protocol == config::Protocol::kIb;
  port.pfc_headroom = link.pfc_headroom;
  port.pause_response = link.pfc_response;
  port.lossless_lanes = 0;
  for (const std::uint64_t priority : link.pfc_priorities) port.lossless_lanes |= 1U << priority;
  if (ib) {
    port.arbitration_high = config::parse_vl_weights("link.vl_arb_high", link.vl_arb_high);
    port.arbitration_low = config::parse_vl_weights("link.vl_arb_low", link.vl_arb_low);
    port.arbitration_limit = link.vl_high_limit;
  } else {
    port.ets = config::parse_ets("link.ets", link.ets);
    if (link.mtu != 0) {
      // Header and FCS are no part of the MTU, nor is a tag, where there is one.
      port.largest_accepted = static_cast<std::uint32_t>(link.mtu) + kEthernetOverhead -
                              (config.transport.vlan ? 0 : kVlanTag);
    }
  }
  port.used_lanes = config::used_lanes(config);
}

/// Payload goes on over PCIe: written in packets of the largest size.
BitRate placing_rate(const config::PcieConfig& pcie) {
  const protocol::TlpRules rules = protocol::tlp_rules(pcie.gen, pcie.mps, pcie.mrrs, pcie.rcb);
  const BitRate rate = protocol::tlp_rate(pcie.gen, pcie.lanes, pcie.mps, pcie.dllp_overhead);
  return BitRate(protocol::effective_bandwidth(rules, rate, pcie.mps).write);
}

}  // namespace

LinkPortConfig nic_port_config(const config::Config& config, const protocol::MacAddress& mac) {
  LinkPortConfig port;
  port.rate = config.link.rate;
  port.phy_latency = config.link.phy_latency;
  port.commit_ahead = config.link.commit_ahead;
  port.cable_delay = config.link.delay;
  port.flow_control = config.link.flow_control;
  port.lanes =
      config.transport.protocol == config::Protocol::kIb ? config.link.data_vls : kPriorities;
  port.rx_buffer = config.nic.rx_buffer;
  port.credit_update = config.link.credit_update;
  port.max_frame_bytes =
      config.transport.mtu +
      (config.transport.protocol == config::Protocol::kIwarp ? kEthernetOverhead : kRdmaOverhead);
  if (config.transport.ip_version == 6 && config.transport.protocol == config::Protocol::kRoceV2) {
    port.max_frame_bytes = config.transport.mtu + kRdmaIpv6Overhead;
  }
  port.egress_frames = std::max<std::uint32_t>(config.nic.tx_slots, 1);
  add_service_levels(config, port);
  if (config.nic.forward_granule > 0) {
    const BitRate placing = placing_rate(config.pcie);
    const bool wire_is_faster = port.rate.bits_per_second() > placing.bits_per_second();
    port.cut_through = {config.nic.forward_granule, wire_is_faster ? port.rate : placing};
  }
  port.mac = mac;
  return port;
}

}  // namespace rnic::link

// SPDX-License-Identifier: Apache-2.0
#include "config/validation.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "config/checks.h"
#include "config/quantity.h"
#include "config/service_level.h"

namespace rnic::config {
namespace {

constexpr std::uint32_t kMaxPathMtu = 4096;
constexpr std::uint32_t kMinEthernetMtu = 576;  // RFC 791: every IPv4 host takes this much

bool is_power_of_two(std::uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

const char* name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kIb:
      return "ib";
    case Protocol::kRoceV1:
      return "rocev1";
    case Protocol::kRoceV2:
      return "rocev2";
    case Protocol::kIwarp:
      break;
  }
  return "iwarp";
}

void check_transport(const Config& config) {
  const TransportConfig& transport = config.transport;
  const std::string protocol = std::string("transport.protocol=") + name_of(transport.protocol);
  const std::string mtu = equals("transport.mtu", transport.mtu);
  if (transport.protocol != Protocol::kIwarp &&
      (!is_power_of_two(transport.mtu) || transport.mtu > kMaxPathMtu)) {
    throw ConfigError(mtu + " is not a path MTU of " + protocol +
                      " (valid: 256|512|1024|2048|4096)");
  }
  if (transport.protocol == Protocol::kIwarp && transport.mtu < kMinEthernetMtu) {
    throw ConfigError(mtu + " is too small an Ethernet MTU for " + protocol +
                      " (valid: 576..9216)");
  }
  if (transport.protocol == Protocol::kIwarp && config.nic.key_policy == KeyPolicy::kDistinct) {
    throw ConfigError(
        "nic.key_policy=distinct does not exist with transport.protocol=iwarp (valid: shared): a "
        "region has one STag there, by which the peer answers READs, too (RFC 5040, 4.4)");
  }
  at_most("transport.max_rd_atomic", transport.max_rd_atomic, "nic.max_rd_atomic",
          config.nic.max_rd_atomic);
  at_most("transport.max_dest_rd_atomic", transport.max_dest_rd_atomic, "nic.max_rd_atomic",
          config.nic.max_rd_atomic);
  if (transport.recovery == Recovery::kSelectiveRepeat) {
    if (transport.protocol == Protocol::kIwarp) {
      throw ConfigError("transport.recovery=selective_repeat is of IB and RoCE, not of " +
                        protocol + " (tcp.sack does it there)");
    }
    if (transport.window == 0 || !transport.sequence_nak) {
      throw ConfigError(
          "transport.recovery=selective_repeat needs transport.window of 1 packet or more and "
          "transport.sequence_nak=true");
    }
  }
  if (transport.protocol == Protocol::kIwarp && config.tcp.window < 2ULL * transport.mtu) {
    throw ConfigError(equals("tcp.window", config.tcp.window) + " must hold two segments of " +
                      mtu);
  }
}

void check_dynamic_connections(const Config& config) {
  if (config.dc.targets == 1) return;
  if (config.transport.type == TransportType::kRc &&
      config.transport.protocol != Protocol::kIwarp) {
    return;
  }
  throw ConfigError(equals("dc.targets", config.dc.targets) +
                    " needs transport.type=rc and a protocol other than iwarp: other services do "
                    "not connect anew; leave it at 1");
}

/// The operations of the unacknowledged services (IBTA vol 1, table 75).
void check_service(const Config& config) {
  const TransportType type = config.transport.type;
  if (type == TransportType::kRc || is_dma(config.workload.op)) return;
  const std::string service =
      std::string("transport.type=") + (type == TransportType::kUc ? "uc" : "ud");
  if (config.transport.protocol == Protocol::kIwarp) {
    throw ConfigError(service + " does not exist with transport.protocol=iwarp (valid: rc)");
  }
  const WorkloadConfig& workload = config.workload;
  const bool plain = workload.program == Program::kNone;
  if (plain && returns_data(workload.op)) {
    throw ConfigError(service + " has no READ and no atomics (valid workload.op: " +
                      (type == TransportType::kUc ? "write|write_imm|" : "") + "send|send_imm)");
  }
  if (type == TransportType::kUc) return;
  if (plain && !is_send(workload.op)) {
    throw ConfigError(service + " has no WRITE (valid workload.op: send|send_imm)");
  }
  if (workload.msg_size > config.transport.mtu) {
    throw ConfigError(equals("workload.msg_size", workload.msg_size) +
                      " does not fit one datagram of " +
                      equals("transport.mtu", config.transport.mtu) + " (" + service + ")");
  }
}

void check_cables(const Config& config) {
  const std::uint32_t cables =
      config.fabric.topology == "back_to_back" ? config.fabric.hosts / 2 : config.fabric.hosts;
  const std::uint32_t faulty = config.link.fault_cable;
  for (const auto& [key, cable] :
       {std::pair{"link.down_cable", config.link.down_cable},
        std::pair{"link.fault_cable", faulty == kAllCables ? 0 : faulty}}) {
    if (cable < cables) continue;
    throw ConfigError(
        equals(key, cable) + " does not exist (" +
        (cables == 1 ? "there is one cable, 0" : "valid: 0.." + std::to_string(cables - 1)) + ")");
  }
  if (config.link.mtu == 0) return;
  if (config.transport.protocol == Protocol::kIb) {
    throw ConfigError("link.mtu is Ethernet's; InfiniBand has transport.mtu alone");
  }
}

/// What a switch does with the buffer it has.
void check_switch(const Config& config) {
  const SwitchConfig& fabric = config.network_switch;
  if (fabric.ecn_kmin > fabric.ecn_kmax) {
    throw ConfigError(equals("switch.ecn_kmin", fabric.ecn_kmin) + " must not be above " +
                      equals("switch.ecn_kmax", fabric.ecn_kmax));
  }
  const FlowControl flow_control = config.link.flow_control;
  if (flow_control != FlowControl::kPfc && flow_control != FlowControl::kPause) return;
  at_most("switch.pfc_xoff", fabric.pfc_xoff, "switch.buffer", fabric.buffer);
  if (fabric.pfc_xon >= fabric.pfc_xoff) {
    throw ConfigError(equals("switch.pfc_xon", fabric.pfc_xon) + " must be below " +
                      equals("switch.pfc_xoff", fabric.pfc_xoff));
  }
}

void check_network(const Config& config) {
  const Protocol protocol = config.transport.protocol;
  const FlowControl flow_control = config.link.flow_control;
  if (protocol == Protocol::kIb && !config.link.ets.empty() && config.link.ets != "none") {
    throw ConfigError(
        "link.ets is Ethernet's, and transport.protocol is ib (remedy: link.vl_arb_high "
        "and link.vl_arb_low)");
  }
  if (flow_control == FlowControl::kCredit && protocol != Protocol::kIb) {
    throw ConfigError(std::string("link.flow_control=credit needs transport.protocol=ib, not ") +
                      name_of(protocol) + " (valid: auto|none|pause" +
                      (is_roce(protocol) ? "|pfc" : "") + ")");
  }
  if (flow_control == FlowControl::kCredit && config.link.paths > 1) {
    throw ConfigError(
        equals("link.paths", config.link.paths) +
        " needs link.flow_control=none on InfiniBand: its credits are counted between two ends of "
        "one cable, where nothing overtakes");
  }
  if (flow_control == FlowControl::kPfc && !is_roce(protocol)) {
    throw ConfigError(
        std::string("link.flow_control=pfc needs transport.protocol=rocev1 or rocev2, not ") +
        name_of(protocol) + " (valid: auto|none" +
        (protocol == Protocol::kIb ? "|credit" : "|pause") + ")");
  }
  if (flow_control == FlowControl::kPause && protocol == Protocol::kIb) {
    throw ConfigError(
        "link.flow_control=pause needs an Ethernet protocol, not ib (valid: auto|none|credit)");
  }
  check_service_levels(config);
  for (const auto& [key, host] : {std::pair{"fabric.silent_host", config.fabric.silent_host},
                                  std::pair{"fabric.fatal_host", config.fabric.fatal_host}}) {
    if (host == kNoHost || host < config.fabric.hosts) continue;
    throw ConfigError(equals(key, host) + " does not exist (valid: below " +
                      equals("fabric.hosts", config.fabric.hosts) + ")");
  }
  check_cables(config);
  if (config.transport.congestion_control == RoceCongestion::kDcqcn) {
    if (config.transport.protocol != Protocol::kRoceV2) {
      throw ConfigError(
          "transport.congestion_control=dcqcn needs transport.protocol=rocev2, whose "
          "IP header carries the mark");
    }
    if (config.transport.ecn == 0) {
      throw ConfigError(
          "transport.congestion_control=dcqcn needs transport.ecn=2 (or 1): switches "
          "mark only what is ECN-capable");
    }
  }
  if (config.tcp.mpa_rtr != ReadyMessage::kNone &&
      (config.tcp.mpa_revision < 2 || !config.tcp.handshake)) {
    throw ConfigError("tcp.mpa_rtr needs tcp.mpa_revision=2 and tcp.handshake=true");
  }
  if (config.nic.mpa_crc_rate.valid() && !config.tcp.mpa_crc) {
    throw ConfigError("nic.mpa_crc_rate is of the CRC that tcp.mpa_crc=false leaves out");
  }
  if (config.fabric.topology == "back_to_back" && config.fabric.hosts != 2) {
    throw ConfigError(equals("fabric.hosts", config.fabric.hosts) +
                      " cannot be cabled with fabric.topology=back_to_back (valid: 2 hosts, or "
                      "single_switch)");
  }
  check_switch(config);
}

void check_cache(const std::string& key, const CacheConfig& cache) {
  if (cache.entries == 0) return;  // unlimited
  const std::string ways = equals(key + ".ways", cache.ways);
  if (cache.entries % cache.ways != 0) {
    throw ConfigError(ways + " does not divide " + equals(key + ".entries", cache.entries));
  }
  if (cache.split && (cache.entries < 2 || cache.entries / 2 % cache.ways != 0)) {
    throw ConfigError(ways + " does not divide half of " + equals(key + ".entries", cache.entries) +
                      ", which each half has with " + key + ".split=true");
  }
  if (cache.l0_entries > 0) {
    at_most(key + ".l0_entries", cache.l0_entries, key + ".entries", cache.entries);
  }
  if (cache.l0_entries > 0 && cache.l0_entries % std::min(cache.l0_ways, cache.l0_entries) != 0) {
    throw ConfigError(equals(key + ".l0_ways", cache.l0_ways) + " does not divide " +
                      equals(key + ".l0_entries", cache.l0_entries));
  }
  constexpr std::uint32_t kMaxTreeWays = 32;
  if (cache.replacement == Replacement::kTreePlru &&
      (!is_power_of_two(cache.ways) || cache.ways > kMaxTreeWays)) {
    throw ConfigError(ways + " does not suit " + key +
                      ".replacement=tree_plru (valid: 1|2|4|8|16|32)");
  }
}

void check_memory(const MemoryConfig& memory) {
  const auto power = [](const char* key, std::uint64_t value) {
    if (!is_power_of_two(value)) {
      throw ConfigError(equals(key, value) + " is not a power of two");
    }
  };
  power("memory.odp_granularity", memory.odp_granularity);
  power("memory.dram_interleave", memory.dram_interleave);
  constexpr std::uint64_t kLine = 64;
  if (memory.llc_size != 0 && memory.llc_size < kLine * memory.llc_ways) {
    throw ConfigError(equals("memory.llc_size", memory.llc_size) + " is less than one set of " +
                      equals("memory.llc_ways", memory.llc_ways) + " lines of 64 B");
  }
  at_most("memory.ddio_ways", memory.ddio_ways, "memory.llc_ways", memory.llc_ways);
}

void check_pcie(const PcieConfig& pcie) {
  if (pcie.completion_size != 0) {
    at_most("pcie.completion_size", pcie.completion_size, "pcie.mps", pcie.mps);
    if (pcie.completion_size % pcie.rcb != 0) {
      throw ConfigError(equals("pcie.completion_size", pcie.completion_size) +
                        " is no multiple of " + equals("pcie.rcb", pcie.rcb) +
                        ", where completions end");
    }
  }
  // PCI Express Base, 2.6.1: a receiver advertises a packet of the largest size at least.
  constexpr std::uint32_t kUnit = 16;
  const auto holds_packet = [&pcie](const char* key, std::uint32_t units) {
    if (units != 0 && units < pcie.mps / kUnit) {
      throw ConfigError(equals(key, units) + " is less than one packet of " +
                        equals("pcie.mps", pcie.mps) + " (units of 16 B)");
    }
  };
  holds_packet("pcie.root_credits.posted_data", pcie.root_credits.posted_data);
  holds_packet("pcie.device_credits.completion_data", pcie.device_credits.completion_data);
}

void check_ats(const Config& config) {
  const AtcConfig& atc = config.pcie.atc;
  if (!atc.enabled) return;
  if (!config.iommu.enabled || config.iommu.passthrough) {
    throw ConfigError(
        "pcie.ats=true has nobody to ask (remedy: iommu.enabled=true without "
        "iommu.passthrough)");
  }
  if (atc.entries % atc.ways != 0) {
    throw ConfigError(equals("pcie.atc.ways", atc.ways) + " does not divide " +
                      equals("pcie.atc.entries", atc.entries));
  }
}

void check_devices(const Config& config) {
  if (config.nic.ports > 1 && config.nic.functions > 1) {
    throw ConfigError("nic.ports=2 and nic.functions=2 do not go together (valid: one of them)");
  }
  if (config.nic.functions > 1 && config.fabric.topology != "back_to_back") {
    throw ConfigError("nic.functions=2 needs fabric.topology=back_to_back");
  }
  if (config.nic.ports * config.nic.functions > 1 && config.workload.program != Program::kNone) {
    throw ConfigError(
        "workload.program uses one device a host (remedy: nic.ports=1, "
        "nic.functions=1)");
  }
}

void check_nic(const Config& config) {
  check_cache("nic.qpc_cache", config.nic.qpc_cache);
  check_cache("nic.qpc_dual_cache", config.nic.qpc_dual_cache);
  check_cache("nic.mpt_cache", config.nic.mpt_cache);
  check_cache("nic.mtt_cache", config.nic.mtt_cache);
  check_cache("nic.cqc_cache", config.nic.cqc_cache);
  check_cache("nic.wqe_cache", config.nic.wqe_cache);
  check_cache("nic.rq_wqe_cache", config.nic.rq_wqe_cache);
  at_most("nic.wqe_prefetch", config.nic.wqe_prefetch, "nic.wqe_buffer", config.nic.wqe_buffer);
  if (config.nic.rx_buffer < 2ULL * (config.transport.mtu + kLongestHeaders)) {
    throw ConfigError(equals("nic.rx_buffer", config.nic.rx_buffer) + " must hold two packets of " +
                      equals("transport.mtu", config.transport.mtu));
  }
  if (config.transport.protocol == Protocol::kIb) {
    at_most("link.credit_update", config.link.credit_update, "nic.rx_buffer", config.nic.rx_buffer);
  }
}

void check_output(const Config& config) {
  if (!config.output.traces.empty() && config.output.dir.empty()) {
    throw ConfigError("output.traces needs output.dir, where the traces go");
  }
}

}  // namespace

void validate(const Config& config) {
  check_program(config);
  check_transport(config);
  check_service(config);
  check_dynamic_connections(config);
  check_network(config);
  check_memory(config.memory);
  check_pcie(config.pcie);
  check_ats(config);
  check_devices(config);
  check_nic(config);
  check_workload(config);
  check_silent(config);
  check_output(config);
}

}  // namespace rnic::config

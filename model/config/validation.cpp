// SPDX-License-Identifier: Apache-2.0
#include "config/validation.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "config/quantity.h"

namespace rnic::config {
namespace {

constexpr std::uint32_t kMaxPathMtu = 4096;
constexpr std::uint32_t kMinEthernetMtu = 576;  // RFC 791: every IPv4 host takes this much
constexpr std::uint32_t kMaxHeaders = 128;      // longest packet headers and trailers, any protocol

constexpr std::uint64_t kAtomicBytes = 8;

bool is_power_of_two(std::uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

bool is_roce(Protocol protocol) {
  return protocol == Protocol::kRoceV1 || protocol == Protocol::kRoceV2;
}

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

std::string equals(const std::string& key, std::uint64_t value) {
  return key + "=" + std::to_string(value);
}

/// `key` must not exceed `limit_key`.
void at_most(const std::string& key, std::uint64_t value, const std::string& limit_key,
             std::uint64_t limit) {
  if (value > limit) {
    throw ConfigError(equals(key, value) + " exceeds " + equals(limit_key, limit));
  }
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
  at_most("transport.max_rd_atomic", transport.max_rd_atomic, "nic.max_rd_atomic",
          config.nic.max_rd_atomic);
  at_most("transport.max_dest_rd_atomic", transport.max_dest_rd_atomic, "nic.max_rd_atomic",
          config.nic.max_rd_atomic);
  at_most("transport.max_rd_atomic", transport.max_rd_atomic, "transport.max_dest_rd_atomic",
          transport.max_dest_rd_atomic);
  if (transport.protocol == Protocol::kIwarp && config.tcp.window < 2ULL * transport.mtu) {
    throw ConfigError(equals("tcp.window", config.tcp.window) + " must hold two segments of " +
                      mtu);
  }
}

void check_network(const Config& config) {
  const Protocol protocol = config.transport.protocol;
  const FlowControl flow_control = config.link.flow_control;
  if (flow_control == FlowControl::kCredit && protocol != Protocol::kIb) {
    throw ConfigError(std::string("link.flow_control=credit needs transport.protocol=ib, not ") +
                      name_of(protocol) + " (valid: none" + (is_roce(protocol) ? "|pfc" : "") +
                      ")");
  }
  if (flow_control == FlowControl::kPfc && !is_roce(protocol)) {
    throw ConfigError(
        std::string("link.flow_control=pfc needs transport.protocol=rocev1 or rocev2, not ") +
        name_of(protocol) + " (valid: none" + (protocol == Protocol::kIb ? "|credit" : "") + ")");
  }
  if (config.fabric.topology == "back_to_back" && config.fabric.hosts != 2) {
    throw ConfigError(equals("fabric.hosts", config.fabric.hosts) +
                      " cannot be cabled with fabric.topology=back_to_back (valid: 2 hosts, or "
                      "single_switch)");
  }
  at_most("switch.pfc_xoff", config.network_switch.pfc_xoff, "switch.buffer",
          config.network_switch.buffer);
  if (config.network_switch.pfc_xon >= config.network_switch.pfc_xoff) {
    throw ConfigError(equals("switch.pfc_xon", config.network_switch.pfc_xon) + " must be below " +
                      equals("switch.pfc_xoff", config.network_switch.pfc_xoff));
  }
}

void check_cache(const std::string& key, const CacheConfig& cache) {
  const std::string ways = equals(key + ".ways", cache.ways);
  if (cache.entries % cache.ways != 0) {
    throw ConfigError(ways + " does not divide " + equals(key + ".entries", cache.entries));
  }
  constexpr std::uint32_t kMaxTreeWays = 32;
  if (cache.replacement == Replacement::kTreePlru &&
      (!is_power_of_two(cache.ways) || cache.ways > kMaxTreeWays)) {
    throw ConfigError(ways + " does not suit " + key +
                      ".replacement=tree_plru (valid: 1|2|4|8|16|32)");
  }
}

void check_memory(const MemoryConfig& memory) {
  at_most("memory.ddio_ways", memory.ddio_ways, "memory.llc_ways", memory.llc_ways);
}

void check_nic(const Config& config) {
  check_cache("nic.qpc_cache", config.nic.qpc_cache);
  check_cache("nic.mpt_cache", config.nic.mpt_cache);
  check_cache("nic.mtt_cache", config.nic.mtt_cache);
  at_most("nic.wqe_prefetch", config.nic.wqe_prefetch, "nic.wqe_cache", config.nic.wqe_cache);
  if (config.nic.rx_buffer < 2ULL * (config.transport.mtu + kMaxHeaders)) {
    throw ConfigError(equals("nic.rx_buffer", config.nic.rx_buffer) + " must hold two packets of " +
                      equals("transport.mtu", config.transport.mtu));
  }
  if (config.transport.protocol == Protocol::kIb) {
    at_most("link.credit_update", config.link.credit_update, "nic.rx_buffer", config.nic.rx_buffer);
  }
}

void check_dma_workload(const WorkloadConfig& workload) {
  if (workload.msg_size == 0) {
    throw ConfigError(
        "workload.msg_size=0 leaves a dma_* operation nothing to do (valid: 1 B or "
        "more)");
  }
  if (workload.msg_size + workload.offset > workload.window) {
    throw ConfigError(
        equals("workload.window", workload.window) + " is less than one access of " +
        equals("workload.msg_size", workload.msg_size) +
        (workload.offset == 0 ? "" : " at " + equals("workload.offset", workload.offset)));
  }
}

void check_workload(const Config& config) {
  const WorkloadConfig& workload = config.workload;
  if (is_dma(workload.op)) {
    check_dma_workload(workload);
    return;
  }
  at_most("workload.signal_every", workload.signal_every, "workload.depth", workload.depth);
  at_most("workload.post_batch", workload.post_batch, "workload.depth", workload.depth);
  at_most("workload.inline_max", workload.inline_max, "nic.max_inline", config.nic.max_inline);
  // With less, every queue pair could hold an unsignalled message, and none would ever complete.
  const std::uint64_t held = std::uint64_t{workload.signal_every} *
                             ((workload.qps + workload.threads - 1) / workload.threads);
  if (workload.outstanding != 0 && workload.signal_every > 1 && workload.outstanding < held) {
    throw ConfigError(equals("workload.outstanding", workload.outstanding) +
                      " is below signal_every times the QPs of a thread, " + std::to_string(held) +
                      ", so that messages would wait for ever (remedy: workload.signal_every=1)");
  }
  if (workload.outstanding != 0) {
    at_most("workload.post_batch", workload.post_batch, "workload.outstanding",
            workload.outstanding);
  }
  at_most("workload.threads", workload.threads, "workload.qps", workload.qps);
  if (workload.mr_size != 0) {
    at_most("workload.msg_size", workload.msg_size, "workload.mr_size", workload.mr_size);
  }
  if (is_atomic(workload.op) && workload.msg_size != kAtomicBytes) {
    throw ConfigError(equals("workload.msg_size", workload.msg_size) +
                      " does not suit an atomic workload.op: atomics work on 8 B");
  }
  if (workload.bidirectional && workload.pattern == Pattern::kLatency) {
    throw ConfigError("workload.bidirectional=true needs workload.pattern=bandwidth");
  }
  if (workload.op == Op::kWrite && workload.pattern == Pattern::kLatency &&
      workload.msg_size == 0) {
    throw ConfigError(
        "workload.msg_size=0 leaves workload.op=write with workload.pattern=latency no byte that "
        "the peer could poll (valid: 1 B or more)");
  }
  const bool immediate = workload.op == Op::kWriteImm || workload.op == Op::kSendImm;
  if (immediate && config.transport.protocol == Protocol::kIwarp) {
    throw ConfigError(std::string("workload.op=") +
                      (workload.op == Op::kWriteImm ? "write_imm" : "send_imm") +
                      " does not exist with transport.protocol=iwarp (RFC 5040 has no immediate "
                      "data; valid: write|read|send)");
  }
}

}  // namespace

std::string automatic_text(std::string_view key, const Config& config) {
  const WorkloadConfig& workload = config.workload;
  const bool latency = workload.pattern == Pattern::kLatency;
  const Protocol protocol = config.transport.protocol;
  if (key == "transport.mtu") return protocol == Protocol::kIwarp ? "9000" : "4096";
  if (key == "transport.max_dest_rd_atomic") return std::to_string(config.transport.max_rd_atomic);
  if (key == "link.flow_control") {
    return protocol == Protocol::kIb ? "credit" : is_roce(protocol) ? "pfc" : "none";
  }
  if (key == "workload.msg_size") return is_atomic(workload.op) ? "8B" : "64B";
  if (key == "nic.wqe_cache") return std::to_string(2 * config.nic.wqe_prefetch);
  if (key == "memory.llc_size") return is_dma(workload.op) ? "32MiB" : "0";
  if (key == "iommu.page_size") return std::to_string(config.memory.page_size);
  if (key == "workload.window") {
    constexpr std::uint64_t kPcieBenchWindow = 8192;
    return std::to_string(std::max(kPcieBenchWindow, workload.msg_size + workload.offset));
  }
  if (key == "workload.inline_max") return std::to_string(latency ? config.nic.max_inline : 0);
  if (key == "workload.signal_every") {
    return std::to_string(
        latency || workload.outstanding > 0 ? 1U : std::clamp(workload.depth / 4, 1U, 100U));
  }
  panic("config", "no rule for the automatic value of " + std::string(key));
}

void validate(const Config& config) {
  check_transport(config);
  check_network(config);
  check_memory(config.memory);
  check_nic(config);
  check_workload(config);
}

}  // namespace rnic::config

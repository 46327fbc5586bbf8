// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "config/checks.h"
#include "config/pcie_contention.h"
#include "config/service_level.h"
#include "config/validation.h"
#include "protocol/ib_headers.h"
#include "protocol/pfc_headroom.h"
#include "protocol/wqe.h"

/// What `auto` stands for, key by key.
namespace rnic::config {
namespace {

/// What fits the links: InfiniBand's and RoCE's largest path MTU, iWARP's jumbo frames, and less
/// where link.mtu is less.
std::uint32_t automatic_mtu(const Config& config) {
  constexpr std::uint32_t kJumbo = 9000;
  constexpr std::uint32_t kLargestPathMtu = 4096;
  const auto link = static_cast<std::uint32_t>(config.link.mtu);
  if (config.transport.protocol == Protocol::kIwarp) return link == 0 ? kJumbo : link;
  if (link == 0 || config.transport.protocol == Protocol::kIb) return kLargestPathMtu;
  return protocol::roce_path_mtu(link);
}

/// What goes to the device with the doorbell: payload in a WQE that is larger than a BlueFlame
/// register would have to be fetched, which takes as long as fetching the payload itself, or
/// longer.
std::uint32_t automatic_inline(const Config& config) {
  if (!config.nic.blueflame) return config.nic.max_inline;
  using protocol::kWqeSegmentBytes;
  constexpr std::uint32_t kInlineHeader = 4;
  std::uint32_t overhead = kWqeSegmentBytes + kInlineHeader;  // control segment
  const WorkloadConfig& workload = config.workload;
  if (workload.op != Op::kSend && workload.op != Op::kSendImm) {
    overhead += kWqeSegmentBytes;  // remote address
  }
  if (config.transport.type == TransportType::kUd) overhead += 3 * kWqeSegmentBytes;
  const std::uint32_t room = config.nic.blueflame_blocks * protocol::kWqeBlockBytes;
  return std::min(config.nic.max_inline, room > overhead ? room - overhead : 0);
}

/// Packets in flight: twice what the path holds, and what short paths need to absorb jitter.
std::uint64_t automatic_window(const Config& config) {
  if (config.transport.recovery == Recovery::kGoBackN) return 0;
  constexpr Time kDevices = microseconds(10);  // NICs, a switch and their queues
  constexpr std::uint64_t kLeast = 256;
  constexpr std::uint64_t kMost = 1U << 20;
  const Time round_trip = config.link.delay * 2 + kDevices;
  const double bytes = config.link.rate.bits_per_second() / 8 * to_seconds(round_trip);
  return std::clamp(static_cast<std::uint64_t>(2 * bytes / config.transport.mtu), kLeast, kMost);
}

/// Bytes that a priority needs above the threshold of its pause.
std::uint64_t headroom_of(const LinkConfig& link, std::uint32_t frame) {
  const std::uint64_t behind =
      link.pfc_headroom != 0
          ? link.pfc_headroom
          : protocol::pfc_headroom({link.rate, link.delay, link.phy_latency, link.commit_ahead,
                                    link.pfc_response, frame});
  return protocol::above_xoff(behind, frame);
}

bool has_pauses(const LinkConfig& link) {
  return link.flow_control == FlowControl::kPfc || link.flow_control == FlowControl::kPause;
}

/// 20 us of 100 Gb/s; more where pauses need it: as much as may still come after one begins, to
/// lose nothing, and as much again, not to run dry until frames come after its end.
std::uint64_t automatic_rx_buffer(const Config& config) {
  constexpr std::uint64_t kUsual = 256 * 1024;
  if (!has_pauses(config.link)) return kUsual;
  const std::uint32_t frame = config.transport.mtu + kLongestHeaders;
  return std::max(kUsual, 2 * (headroom_of(config.link, frame) + std::uint64_t{frame}));
}

/// A few large packets, so that pauses do not flutter.
constexpr std::uint64_t kPauseHysteresis = 32 << 10;

std::uint64_t switch_headroom(const Config& config) {
  // transport.mtu may still be automatic.
  const std::uint32_t mtu = std::max(config.transport.mtu, automatic_mtu(config));
  return headroom_of(config.link, mtu + kLongestHeaders);
}

/// Places for pauses in a switch: priorities in use of all ports.
std::uint64_t pausing_lanes(const Config& config) {
  const std::uint64_t lanes = std::bitset<32>(used_lanes(config)).count();
  return lanes * config.fabric.hosts * config.nic.ports * config.nic.functions;
}

/// What leaves a port from the end of a pause until frames come: as much as comes after the begin
/// of one. Less, and the port runs dry.
std::uint64_t wanted_xon(const Config& config) {
  constexpr std::uint64_t kUsual = 96 << 10;
  LinkConfig link = config.link;
  link.pfc_headroom = 0;  // what is asked for there is about losses
  const std::uint32_t mtu = std::max(config.transport.mtu, automatic_mtu(config));
  return std::max(kUsual, headroom_of(link, mtu + kLongestHeaders));
}

std::uint64_t wanted_xoff(const Config& config) { return wanted_xon(config) + kPauseHysteresis; }

/// As wanted, or what switch.buffer leaves to each; not less than the usual.
std::uint64_t automatic_xoff(const Config& config) {
  constexpr std::uint64_t kUsual = 128 << 10;
  if (!has_pauses(config.link)) return kUsual;
  const std::uint64_t share = config.network_switch.buffer / pausing_lanes(config);
  const std::uint64_t headroom = switch_headroom(config);
  const std::uint64_t room = share > headroom ? share - headroom : 0;
  return std::max(kUsual, std::min(wanted_xoff(config), room));
}

/// As wanted, and a few large packets or a quarter below switch.pfc_xoff.
std::uint64_t automatic_xon(const Config& config) {
  const std::uint64_t xoff = config.network_switch.pfc_xoff;
  return std::min(wanted_xon(config), xoff - std::min(kPauseHysteresis, xoff / 4));
}

/// That of a 32-port switch; more where pauses need it, to lose nothing: of each priority in use
/// of each port, the threshold of the pause and what may still come.
std::uint64_t automatic_switch_buffer(const Config& config) {
  constexpr std::uint64_t kUsual = 16 << 20;
  if (!has_pauses(config.link)) return kUsual;
  const std::uint64_t asked = config.network_switch.pfc_xoff;  // 0: automatic
  const std::uint64_t xoff = asked != 0 ? asked : wanted_xoff(config);
  return std::max(kUsual, pausing_lanes(config) * (xoff + switch_headroom(config)));
}

}  // namespace

std::uint64_t automatic_write_buffer(const Config& config) {
  constexpr std::uint64_t kLeast = 12288;
  constexpr std::uint64_t kMost = 131008;  // as many headers as may be advertised, 64 B each
  const PcieConfig& pcie = config.pcie;
  const MemoryConfig& memory = config.memory;
  const Time written = memory.write_latency + (memory.ddio ? kTimeZero : memory.dram_write_latency);
  const Time round_trip = 2 * pcie.one_way() + written + pcie.update_fc_latency;
  constexpr std::array<double, 6> kGigatransfers{2.5, 5, 8, 16, 32, 64};  // a lane, by generation
  const double bytes_per_ns = kGigatransfers.at(pcie.gen - 1) * pcie.lanes / 8;
  const auto twice = static_cast<std::uint64_t>(2 * bytes_per_ns * to_ns(round_trip));
  return std::clamp(twice, kLeast, kMost);
}

/// For which an unacknowledged message is waited for: a thousand times the round trip of a short
/// path, and twice what a long path, a slow one and programs that do not look all the time add to
/// the way there and back. Headers may take half of the wire.
Time automatic_answer_timeout(const Config& config) {
  constexpr double kSlowest = 0.5;  // Gb/s, of a slow host
  const double rate = std::min(kSlowest, config.link.rate.to_gbps() / 2);
  const double bits = 8.0 * static_cast<double>(config.workload.msg_size);
  const Time message = nanoseconds(static_cast<std::int64_t>(bits / rate));
  const Time away = config.cpu.preempt_probability > 0 ? config.cpu.preempt_time : kTimeZero;
  return microseconds(1000) +
         4 * (config.link.delay + config.link.reorder_delay + message +
              config.workload.poll_interval + config.workload.cq_period + away);
}

/// First interval of quick retransmissions: ConnectX's, or of selective repeat IRN's RTO_low,
/// beside which a round trip through a switch is short, and four round trips of long cables.
Time automatic_quick_retry(const Config& config) {
  constexpr Time kConnectX = microseconds(2000);
  constexpr Time kIrn = microseconds(100);
  if (config.transport.adaptive_retransmission) return kConnectX;
  constexpr int kCables = 16;  // two there and two back, four times
  constexpr Time kMost = microseconds(1'000'000);
  return std::min(kMost, kIrn + kCables * config.link.delay);
}

std::string automatic_text(std::string_view key, const Config& config) {
  const WorkloadConfig& workload = config.workload;
  const bool latency = workload.pattern == Pattern::kLatency;
  const Protocol protocol = config.transport.protocol;
  if (key == "transport.mtu") return std::to_string(automatic_mtu(config));
  if (key == "transport.ecn") {
    return config.transport.congestion_control == RoceCongestion::kDcqcn ? "2" : "0";
  }
  if (key == "dcqcn.additive_rate") return std::to_string(config.link.rate.to_gbps() / 1000);
  if (key == "dcqcn.hyper_rate") return std::to_string(config.link.rate.to_gbps() / 100);
  if (key == "transport.max_dest_rd_atomic") return std::to_string(config.transport.max_rd_atomic);
  if (key == "transport.adaptive_start") {
    return std::to_string(to_ns(automatic_quick_retry(config)));
  }
  if (key == "pcie.detail") return packets_interleave(config) ? "tlp" : "fast";
  if (key == "transport.window") return std::to_string(automatic_window(config));
  if (key == "link.flow_control") {
    return protocol == Protocol::kIb ? "credit" : is_roce(protocol) ? "pfc" : "none";
  }
  if (key == "workload.msg_size") return is_atomic(workload.op) ? "8B" : "64B";
  if (key == "switch.pfc_xoff") return std::to_string(automatic_xoff(config));
  if (key == "switch.pfc_xon") return std::to_string(automatic_xon(config));
  if (key == "switch.buffer") return std::to_string(automatic_switch_buffer(config));
  if (key == "nic.rx_buffer") return std::to_string(automatic_rx_buffer(config));
  if (key == "workload.answer_timeout") {
    return std::to_string(to_ns(automatic_answer_timeout(config)));
  }
  if (key == "pcie.root_credits.posted_data") {
    return std::to_string(automatic_write_buffer(config) / 16);
  }
  if (key == "pcie.root_credits.posted_headers") {
    return std::to_string((automatic_write_buffer(config) + 63) / 64);
  }
  if (key == "nic.wqe_buffer") return std::to_string(2 * config.nic.wqe_prefetch);
  if (key == "memory.llc_size") return is_dma(workload.op) ? "32MiB" : "0";
  if (key == "iommu.page_size") return std::to_string(config.memory.page_size);
  if (key == "workload.window") {
    constexpr std::uint64_t kPcieBenchWindow = 8192;
    return std::to_string(std::max(kPcieBenchWindow, workload.msg_size + workload.offset));
  }
  if (key == "workload.recv_depth") {
    // Nothing keeps a sender of unacknowledged messages from running ahead of the receiver.
    constexpr std::uint32_t kUnacknowledged = 512;  // perftest's --rx-depth
    const bool acknowledged = config.transport.type == TransportType::kRc;
    return std::to_string(acknowledged ? workload.depth
                                       : std::max(workload.depth, kUnacknowledged));
  }
  if (key == "workload.inline_max") return std::to_string(latency ? automatic_inline(config) : 0);
  if (key == "workload.signal_every") {
    return std::to_string(
        latency || workload.outstanding > 0 ? 1U : std::clamp(workload.depth / 4, 1U, 100U));
  }
  panic("config", "no rule for the automatic value of " + std::string(key));
}

}  // namespace rnic::config

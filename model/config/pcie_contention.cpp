// SPDX-License-Identifier: Apache-2.0
#include "config/pcie_contention.h"

#include <algorithm>

#include "config/validation.h"
#include "protocol/tlp.h"

namespace rnic::config {
namespace {

/// What is this much more than needed is no limit, and is not waited for.
constexpr double kEnough = 1.5;

/// What the slot leaves to packets, Gb/s.
double slot_rate(const Config& config) {
  const PcieConfig& pcie = config.pcie;
  return protocol::tlp_rate(pcie.gen, pcie.lanes, pcie.mps, pcie.dllp_overhead).to_gbps();
}

/// Payload that a device may move each way, Gb/s.
double payload_rate(const Config& config) {
  return std::min(slot_rate(config), config.link.rate.to_gbps());
}

bool sends_and_receives(const Config& config) {
  const WorkloadConfig& workload = config.workload;
  if (is_dma(workload.op)) return false;
  return workload.bidirectional ||
         (workload.traffic != Traffic::kPair && workload.traffic != Traffic::kIncast);
}

/// Reads and writes share the path to memory, each of them in full, and credits that slow writes
/// keep are missed by reads behind them: on the way to the other socket, and of DRAM where the
/// last-level cache does not take them.
bool memory_is_slow(const Config& config) {
  const MemoryConfig& memory = config.memory;
  double rate = memory.bandwidth.to_gbps();
  if (memory.numa_remote) rate = std::min(rate, memory.numa_bandwidth.to_gbps());
  if (!memory.ddio || memory.llc_size > 0) {
    const double channels = memory.dram_channel_bandwidth.to_gbps() * memory.dram_channels;
    rate = std::min(rate, channels * (1 - memory.cpu_traffic));
  }
  return rate < kEnough * payload_rate(config);
}

/// A packet in the way takes a good part of a round trip.
bool slot_is_slow(const Config& config) {
  constexpr double kSlow = 16;  // Gb/s: 256 B take 128 ns
  return slot_rate(config) < kSlow;
}

/// The slot carries no more than the wire brings: reads and writes wait for each other there.
bool slot_is_narrow(const Config& config) {
  const PcieConfig& pcie = config.pcie;
  const std::uint32_t completion = pcie.completion_size == 0 ? pcie.mps : pcie.completion_size;
  const double packet = std::min({pcie.mps, pcie.mrrs, completion});
  constexpr double kHeader = 24;     // of a write, and of a read request
  constexpr double kPayload = 0.95;  // of what a wire carries, at most
  const double overhead = kHeader * (1 + packet / pcie.mrrs);
  return slot_rate(config) * packet / (packet + overhead) < kPayload * config.link.rate.to_gbps();
}

bool few_tags(const Config& config) {
  const PcieConfig& pcie = config.pcie;
  const Time round_trip = 2 * pcie.one_way() + config.memory.read_latency;
  const double needed = payload_rate(config) * to_ns(round_trip) / 8;  // bytes
  return static_cast<double>(pcie.read_tags) * pcie.mrrs < kEnough * needed;
}

/// Less than a round trip of writes: half of what `auto` stands for.
bool few_credits(const Config& config) {
  const PcieCredits& root = config.pcie.root_credits;
  const std::uint64_t round_trip = automatic_write_buffer(config) / 2;
  constexpr std::uint64_t kDataUnit = 16;
  constexpr std::uint64_t kLine = 64;
  return (root.posted_data != 0 && root.posted_data * kDataUnit < round_trip) ||
         (root.posted_headers != 0 && root.posted_headers * kLine < round_trip);
}

/// Credits come back in steps, and packets go in bursts.
bool credits_come_in_steps(const PcieConfig& pcie) { return pcie.update_fc_interval > kTimeZero; }

/// The ordering point lets writes through more slowly than they may come.
bool slow_ordering(const PcieConfig& pcie, double rate) {
  const double packet = 8.0 * pcie.mps / rate;  // ns
  const double strict = to_ns(pcie.ordering_time) / pcie.ordering_overlap;
  return kEnough * std::max(strict, to_ns(pcie.relaxed_time)) > packet;
}

/// Messages of a few packets that take RECVs: fetches of RECVs and CQEs cross between them, as many
/// as there are packets of payload, and which comes first decides how many RECVs a fetch finds.
bool recvs_among_few_packets(const Config& config) {
  constexpr std::uint64_t kFew = 4;
  return takes_recv(config.workload.op) && config.workload.pattern == Pattern::kBandwidth &&
         config.workload.msg_size <= kFew * config.pcie.mps;
}

bool walks(const Config& config) { return config.iommu.enabled && !config.iommu.passthrough; }

}  // namespace

bool packets_interleave(const Config& config) {
  if (few_credits(config) || slot_is_slow(config) || credits_come_in_steps(config.pcie) ||
      recvs_among_few_packets(config)) {
    return true;
  }
  if (!sends_and_receives(config)) return false;
  const PcieConfig& pcie = config.pcie;
  return memory_is_slow(config) || slot_is_narrow(config) || few_tags(config) ||
         slow_ordering(pcie, payload_rate(config)) || walks(config) || pcie.bit_error_rate > 0;
}

bool requests_queue(const Config& config) {
  constexpr double kQuick = 70;  // Gb/s: a short write and a read request take 13 ns
  return slot_rate(config) < kQuick || slot_is_narrow(config);
}

}  // namespace rnic::config

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "config/config.h"
#include "stats/breakdown.h"
#include "stats/histogram.h"
#include "stats/unit_stats.h"
#include "tlm/pcie_extension.h"
#include "transport/hold.h"

namespace rnic::testbench {

/// Named numbers in the order in which they are reported.
using NamedCounts = std::vector<std::pair<std::string, std::uint64_t>>;

/// What was run, in the few words that a report needs; every key is in Result::config.
struct Scenario {
  std::string op;        ///< as workload.op
  std::string protocol;  ///< as transport.protocol; empty when nothing crosses a wire
  std::string type;      ///< as transport.type
  bool latency_pattern = false;
  std::string latency_meaning;  ///< "from ... to ..."
  std::uint64_t msg_size = 0;   ///< bytes
  std::uint32_t hosts = 0;
  std::uint32_t qps = 0;          ///< of each flow; 0: DMA alone
  std::uint32_t depth = 0;        ///< messages in flight on a QP
  std::uint32_t threads = 1;      ///< of each flow, at each end
  std::uint32_t outstanding = 0;  ///< messages in flight of a thread; 0: only depth counts
  /// READs and atomics in flight on a QP; 0: the operation has no such limit.
  std::uint32_t read_window = 0;
  std::uint64_t read_segment = 0;  ///< bytes that each of them asks for at most; 0: all of a READ
  bool atomics_in_turn = false;    ///< atomics, with nic.atomics_in_turn
  double link_gbps = 0;
  /// Fewer of its packets fill nic.tx_buffer than there are nic.tx_slots.
  bool buffer_before_slots = false;
};

/// The scenario of a configuration and its keys as resolved (names of enumerators are taken there).
Scenario scenario_of(const config::Config& config, const nlohmann::ordered_json& resolved);

/// One sender and receiver.
/// What one posting thread of a flow had.
struct ThreadResult {
  double throughput_gbps = 0;
  double message_rate_mops = 0;
  double latency_mean_ns = 0;
  double latency_p99_ns = 0;
};

struct FlowResult {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  double throughput_gbps = 0;
  double message_rate_mops = 0;
  stats::Histogram latency;
  std::vector<ThreadResult> threads;  ///< in their order
};

/// One unit over the measured window. Shares are of the window; work reserved ahead may make them a
/// little more than 1 until limit_shares().
struct UnitResult {
  std::string name;
  double utilization = 0;
  std::array<double, static_cast<std::size_t>(stats::StallCause::kCount)> stalled{};
  double occupancy_mean = 0;
  std::uint64_t occupancy_max = 0;

  double stalled_by(stats::StallCause cause) const {
    return stalled[static_cast<std::size_t>(cause)];
  }
};

/// What a unit did between `window_start` (its last reset) and `now`.
UnitResult unit_result(const stats::UnitStats& unit, Time window_start, Time now);

/// What limits the run.
struct Bottleneck {
  /// A unit, "hostN.cpu", a link port, "hostN.pcie.to_host|to_device"; the key of the window that
  /// limits (workload.depth, transport.max_rd_atomic); in the latency pattern the longest stage.
  std::string unit;
  /// Busy share of the unit, used share of the window, or the stage's share of the latency; 0..1.
  double utilization = 0;
  std::string why;        ///< one sentence with numbers, the next limit included
  std::string next_unit;  ///< empty: none known
  double next_utilization = 0;
};

/// Look-ups in a cache. The share that needed no read of memory, (hits + joined) / lookups(), is
/// its hit rate: what a simulation of the same trace without time finds. Only hits did not wait.
struct CacheResult {
  std::string name;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;  ///< each fetched its line
  std::uint64_t joined = 0;  ///< the line was under way for another look-up
  std::uint64_t lookups() const { return hits + joined + misses; }
  /// 0 to 1; 0 of an unused cache.
  double hit_rate() const {
    return lookups() == 0 ? 0 : static_cast<double>(hits + joined) / static_cast<double>(lookups());
  }
};

struct TlpResult {
  std::uint64_t tlps = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t wire_bytes = 0;  ///< headers, framing and CRC included
};

/// One direction of a PCIe link.
struct PcieDirectionResult {
  TlpResult total;
  std::array<TlpResult, tlm_ext::kPurposeCount> by_purpose{};
  std::uint64_t replays = 0;  ///< TLPs sent again after a bit error
};

struct PcieResult {
  std::string name;
  double rate_gbps = 0;  ///< left to TLPs, each direction; 0: unknown
  PcieDirectionResult to_host;
  PcieDirectionResult to_device;
};

/// What a port sent.
struct LinkResult {
  std::string name;
  double rate_gbps = 0;
  std::uint64_t packets = 0;
  std::uint64_t payload_bytes = 0;  ///< of messages
  std::uint64_t wire_bytes = 0;     ///< all byte times of the line: headers, preamble, gaps
  std::uint64_t dropped = 0;
  std::string dropped_because;  ///< empty when nothing was
  /// By its flow control nothing is ever dropped here: whatever is, is a fault of the settings.
  bool lossless = false;
  Time paused = kTimeZero;
  NamedCounts more;  ///< further figures, reported under their names
  /// Losses and pauses before the measured window, by the names of these figures; not zero.
  NamedCounts before;
  /// Wire bytes of each VL or priority in use, when there are several; of common_window, if any.
  NamedCounts lanes;
  /// While all streams ran, if that is not the whole window; kTimeZero: it is.
  Time common_window = kTimeZero;
  std::uint64_t common_wire_bytes = 0;
  std::uint64_t common_payload_bytes = 0;
};

struct HostResult {
  std::uint32_t cores = 0;  ///< that run the program's threads
  double cpu_busy = 0;      ///< of the core with the most useful work, 0..1, polling included
  double cpu_polling = 0;   ///< part of cpu_busy: polls that found nothing
  double cpu_locks = 0;     ///< part of cpu_busy: waiting for locks of doorbell registers
  std::uint64_t copies_bytes = 0;
  std::uint64_t syscalls = 0;
  std::uint64_t interrupts = 0;
  /// Share of the time for which its queue pairs, on average, could not send what they had.
  std::array<double, static_cast<std::size_t>(transport::Hold::kCount)> held{};
};

/// Messages of a service that acknowledges none, warm-up included.
struct MessageCounts {
  std::uint64_t sent = 0;
  std::uint64_t delivered = 0;
  std::uint64_t late = 0;        ///< of `delivered`: a ping-pong had given up waiting
  std::uint64_t duplicates = 0;  ///< further copies of what a ping-pong had seen

  std::uint64_t lost() const { return sent - delivered; }
};

/// What the program of workload.probe_size saw while all streams ran.
struct ProbeResult {
  std::uint64_t size = 0;     ///< bytes; the rest means nothing when `posted` is 0
  Time interval = kTimeZero;  ///< between two
  std::uint64_t posted = 0;   ///< probes in all
  std::uint64_t failed = 0;   ///< that completed with an error
  stats::Histogram latency;   ///< post to completion
};

struct RegistrationResult {
  std::uint64_t calls = 0;
  std::uint64_t pages = 0;
  Time time = kTimeZero;  ///< all calls together
};

struct SimulationResult {
  Time simulated = kTimeZero;
  std::uint64_t model_events = 0;   ///< fired on the model's timeline
  std::uint64_t kernel_events = 0;  ///< delta cycles of the SystemC kernel
  std::uint64_t data_packets = 0;
  std::uint64_t replayed_messages = 0;  ///< accounted for, not simulated (sim.detail=auto)
  double wall_s = 0;
  std::uint64_t peak_rss_bytes = 0;

  double packets_per_s() const {
    return wall_s > 0 ? static_cast<double>(data_packets) / wall_s : 0.0;
  }
};

/// Everything that a run has to say.
struct Result {
  std::string version;
  nlohmann::ordered_json config = nlohmann::ordered_json::object();  ///< every key as resolved
  Scenario scenario;
  /// Why ports of a switch run dry after a pause; `key` empty: they do not.
  struct PauseLimit {
    std::string key;  ///< what would have to be larger
    std::string why;
  } pause_limit;
  std::vector<std::string> without_effect;  ///< options that change nothing in this run

  Time window = kTimeZero;  ///< measured, after warm-up
  double throughput_gbps = 0;
  double message_rate_mops = 0;
  bool uneven = false;  ///< flows had the network to themselves for a part of the window
  stats::Histogram latency;
  stats::Breakdown breakdown;
  NamedCounts completions;  ///< by status name
  std::vector<FlowResult> flows;
  std::optional<MessageCounts> messages;  ///< of unreliable services
  std::optional<ProbeResult> probe;       ///< with workload.probe_size
  std::string ended_early;                ///< why workload.program did; empty: it did not

  std::vector<UnitResult> units;
  Bottleneck bottleneck;  ///< from find_bottleneck(), which needs all the rest
  std::vector<CacheResult> caches;
  std::vector<PcieResult> pcie;
  std::vector<LinkResult> links;
  std::vector<NamedCounts> counters;  ///< of each host
  std::vector<HostResult> hosts;
  RegistrationResult registration;
  SimulationResult sim;
};

/// The figure `name` among `counts`; 0: it is not there.
std::uint64_t count_of(const NamedCounts& counts, std::string_view name);

/// Of the counter `name`, over all hosts.
std::uint64_t sum_counter(const Result& result, std::string_view name);

/// Makes the shares of units and cores at most 1.
void limit_shares(Result& result);

/// Busy share of a line of `rate_gbps` that carried `wire_bytes` in `window`, 0..1; 0 when the
/// rate or the window is unknown.
double line_utilization(std::uint64_t wire_bytes, double rate_gbps, Time window);

/// Gb/s of `bytes` in `window`.
double gbps(std::uint64_t bytes, Time window);

}  // namespace rnic::testbench

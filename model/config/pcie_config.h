// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace rnic::config {

/// How closely the link is simulated.
enum class PcieDetail : std::uint8_t {
  kFast,  ///< bursts by arithmetic
  kTlp    ///< every TLP an event
};

/// Receive buffers that one end advertises, in flow-control units: packets and 16 B. 0: infinite.
struct PcieCredits {
  std::uint32_t posted_headers = 0;
  std::uint32_t posted_data = 0;
  std::uint32_t nonposted_headers = 0;
  std::uint32_t nonposted_data = 0;
  std::uint32_t completion_headers = 0;
  std::uint32_t completion_data = 0;
};

/// Completions of DMA reads that go wrong.
struct PcieFaultConfig {
  std::string purpose = "any";               ///< purpose of the reads meant; `any`: all
  std::vector<std::uint64_t> lost_list;      ///< read requests, counted from 1
  std::vector<std::uint64_t> poisoned_list;  ///< likewise
  double loss_rate = 0;                      ///< probability for a read request
  double poison_rate = 0;                    ///< likewise
};

/// The device's own cache of translations (ATS).
struct AtcConfig {
  bool enabled;
  std::uint32_t entries;
  std::uint32_t ways;
  Time latency;  ///< a look-up
};

struct PcieConfig {
  PcieDetail detail = PcieDetail::kFast;
  std::uint32_t gen;
  std::uint32_t lanes;
  std::uint32_t mps;
  std::uint32_t mrrs;
  std::uint32_t rcb;
  std::uint32_t completion_size = 0;  ///< largest completion of the host; 0: MPS
  bool short_headers = false;         ///< 3-DW headers for addresses below 4 GiB
  bool ecrc = false;                  ///< 4 B of end-to-end CRC on each TLP
  std::uint32_t read_tags;
  bool relaxed_ordering;
  bool id_based_ordering = false;
  Time ordering_time{0};               ///< root complex: a strictly ordered write TLP
  std::uint32_t ordering_overlap = 1;  ///< so many at once
  Time relaxed_time{0};                ///< root complex: a relaxed write TLP, one after another
  Time latency;          ///< one way through both ends' PHY, data-link and transaction layers
  double dllp_overhead;  ///< share of raw bandwidth taken by DLLPs and SKP sets
  std::uint32_t switches = 0;
  Time switch_latency{0};  ///< each switch, one way
  std::uint32_t retimers = 0;
  Time retimer_latency{0};     ///< each retimer, one way
  double bit_error_rate = 0;   ///< of a direction, after FEC in generation 6
  Time completion_timeout{0};  ///< after a read request leaves
  PcieFaultConfig fault;
  AtcConfig atc{};
  Time register_read_time{0};  ///< device: a read of one of its registers
  PcieCredits root_credits;    ///< advertised by the root complex, for what the device sends
  PcieCredits device_credits;  ///< advertised by the device
  Time update_fc_latency{0};   ///< from a freed buffer to its UpdateFC on the wire
  Time update_fc_interval{0};  ///< UpdateFCs are sent at multiples of it; 0: at once

  /// One way, with what lies between the ends.
  Time one_way() const {
    return latency + switch_latency * static_cast<std::int64_t>(switches) +
           retimer_latency * static_cast<std::int64_t>(retimers);
  }
};

}  // namespace rnic::config

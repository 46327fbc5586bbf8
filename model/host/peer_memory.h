// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/rate_server.h"
#include "base/time.h"
#include "config/host_config.h"
#include "stats/unit_stats.h"

namespace rnic::host {

/// Memory of another PCIe device (a GPU) as its BAR shows it: when a NIC's peer-to-peer access is
/// done. Next-free arithmetic; the bytes lie with those of the host, so that its CPU sees them too.
/// Accesses reach it through a switch, past the root complex, or are forwarded by the root complex,
/// which has less room for them and may not forward reads at all.
class PeerMemory {
 public:
  /// `base`, `bytes`: of the BAR, as bus addresses.
  PeerMemory(const std::string& name, const config::PeerConfig& config, std::uint64_t base,
             std::uint64_t bytes);

  bool contains(std::uint64_t address) const { return address - base_ < bytes_; }
  /// Reads get there; else they end in a completer abort.
  bool allows_reads() const { return reads_; }

  /// A read that arrives at `arrival`: when its first data is there.
  Time read(Time arrival, std::uint64_t bytes);
  /// A posted write that arrives at `arrival`: when it is in the peer's memory.
  Time write(Time arrival, std::uint64_t bytes);

  /// Room for a buffer, aligned to 64 KiB; nothing: the BAR is full.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);

  /// Busy time of the narrowest place on the way, reads and writes each.
  const stats::UnitStats& reads() const { return read_stats_; }
  const stats::UnitStats& writes() const { return write_stats_; }
  void reset_statistics(Time now);

 private:
  std::uint64_t base_;
  std::uint64_t bytes_;
  std::uint64_t used_ = 0;
  bool reads_;
  Time read_latency_;
  Time write_latency_;
  RateServer read_path_;
  RateServer write_path_;
  stats::UnitStats read_stats_;
  stats::UnitStats write_stats_;
};

}  // namespace rnic::host

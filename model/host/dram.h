// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/rate_server.h"
#include "base/time.h"
#include "config/host_config.h"

namespace rnic::host {

/// The memory controllers behind the last-level cache: channels that addresses interleave over,
/// each a next-free server at the rate that other CPU traffic leaves. Without channels (a
/// configuration of tests) memory takes no time.
class Dram {
 public:
  explicit Dram(const config::MemoryConfig& config);

  /// Moves `lines` cache lines of an access that starts at `address`; returns when the last one has
  /// crossed its channel.
  Time read(Time earliest, std::uint64_t address, std::uint32_t lines);
  Time write(Time earliest, std::uint64_t address, std::uint32_t lines);

  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes_written() const { return bytes_written_; }
  /// How long the busiest channel was occupied by DMA and its consequences.
  Time busiest() const;
  std::uint32_t channels() const { return static_cast<std::uint32_t>(channels_.size()); }
  void reset_statistics();

 private:
  Time move(Time earliest, std::uint64_t address, std::uint32_t lines);

  std::uint64_t interleave_;
  std::vector<RateServer> channels_;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_written_ = 0;
};

}  // namespace rnic::host

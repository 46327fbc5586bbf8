// SPDX-License-Identifier: Apache-2.0
#include "host/dram.h"

#include <algorithm>

#include "host/last_level_cache.h"

namespace rnic::host {

Dram::Dram(const config::MemoryConfig& config) : interleave_(config.dram_interleave) {
  if (config.dram_channels == 0) return;
  const BitRate left(config.dram_channel_bandwidth.bits_per_second() * (1 - config.cpu_traffic));
  channels_.assign(config.dram_channels, RateServer(left));
}

Time Dram::move(Time earliest, std::uint64_t address, std::uint32_t lines) {
  Time end = earliest;
  if (channels_.empty()) return end;
  std::uint64_t left = std::uint64_t{lines} * LastLevelCache::kLineBytes;
  for (std::uint64_t at = address; left > 0;) {
    const std::uint64_t chunk = std::min(left, interleave_ - at % interleave_);
    RateServer& channel = channels_[at / interleave_ % channels_.size()];
    end = std::max(end, channel.reserve(earliest, chunk).end);
    at += chunk;
    left -= chunk;
  }
  return end;
}

Time Dram::read(Time earliest, std::uint64_t address, std::uint32_t lines) {
  bytes_read_ += std::uint64_t{lines} * LastLevelCache::kLineBytes;
  return move(earliest, address, lines);
}

Time Dram::write(Time earliest, std::uint64_t address, std::uint32_t lines) {
  bytes_written_ += std::uint64_t{lines} * LastLevelCache::kLineBytes;
  return move(earliest, address, lines);
}

Time Dram::busiest() const {
  Time busy = kTimeZero;
  for (const RateServer& channel : channels_) busy = std::max(busy, channel.server().busy());
  return busy;
}

void Dram::reset_statistics() {
  bytes_read_ = bytes_written_ = 0;
  for (RateServer& channel : channels_) channel.server().reset_statistics();
}

}  // namespace rnic::host

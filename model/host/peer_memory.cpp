// SPDX-License-Identifier: Apache-2.0
#include "host/peer_memory.h"

#include <algorithm>

namespace rnic::host {
namespace {

using Path = config::PeerConfig::Path;

BitRate narrower(BitRate a, BitRate b) { return a.bits_per_second() < b.bits_per_second() ? a : b; }

}  // namespace

PeerMemory::PeerMemory(const std::string& name, const config::PeerConfig& config,
                       std::uint64_t base, std::uint64_t bytes)
    : base_(base),
      bytes_(bytes),
      reads_(config.reads),
      read_latency_(config.read_latency),
      write_latency_(config.write_latency),
      read_path_(config.read_bandwidth),
      write_path_(config.write_bandwidth),
      read_stats_(name + ".peer.read"),
      write_stats_(name + ".peer.write") {
  if (config.path == Path::kSwitch) return;
  read_path_ = RateServer(narrower(config.read_bandwidth, config.root_read_bandwidth));
  write_path_ = RateServer(narrower(config.write_bandwidth, config.root_write_bandwidth));
  read_latency_ += 2 * config.root_latency;
  write_latency_ += config.root_latency;
}

Time PeerMemory::read(Time arrival, std::uint64_t bytes) {
  const Reservation slot = read_path_.reserve(arrival, bytes);
  read_stats_.add_busy(slot.start, slot.end);
  return slot.start + read_latency_;
}

Time PeerMemory::write(Time arrival, std::uint64_t bytes) {
  const Reservation slot = write_path_.reserve(arrival, bytes);
  write_stats_.add_busy(slot.start, slot.end);
  return slot.end + write_latency_;
}

std::optional<std::uint64_t> PeerMemory::allocate(std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = 1U << 16;
  const std::uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded > bytes_ - used_) return std::nullopt;
  const std::uint64_t address = base_ + used_;
  used_ += rounded;
  return address;
}

void PeerMemory::reset_statistics(Time now) {
  read_stats_.reset(now);
  write_stats_.reset(now);
}

}  // namespace rnic::host

// SPDX-License-Identifier: Apache-2.0
#include "host/memory_system.h"

#include <algorithm>

namespace rnic::host {
namespace {

/// Lines that a write covers in part: its first, its last, or the only one.
std::uint32_t partial_lines(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  const std::uint64_t end = address + bytes;
  const bool head = address % LastLevelCache::kLineBytes != 0;
  const bool tail = end % LastLevelCache::kLineBytes != 0;
  const bool one_line =
      address / LastLevelCache::kLineBytes == (end - 1) / LastLevelCache::kLineBytes;
  return one_line ? (head || tail ? 1U : 0U) : (head ? 1U : 0U) + (tail ? 1U : 0U);
}

std::uint32_t lines_of(std::uint64_t address, std::uint64_t bytes) {
  return static_cast<std::uint32_t>((address + bytes - 1) / LastLevelCache::kLineBytes -
                                    address / LastLevelCache::kLineBytes + 1);
}

}  // namespace

MemorySystem::MemorySystem(const std::string& name, const config::MemoryConfig& config)
    : read_latency_(config.read_latency),
      write_latency_(config.write_latency),
      dram_latency_(config.dram_latency),
      dram_write_latency_(config.dram_write_latency),
      partial_line_time_(config.partial_line_time),
      numa_latency_(config.numa_latency),
      ddio_(config.ddio),
      remote_(config.numa_remote),
      plain_(config.llc_size == 0 && config.ddio && !config.numa_remote &&
             config.partial_line_time == kTimeZero),
      llc_bytes_(config.llc_size),
      llc_ways_(config.llc_ways),
      ddio_ways_(config.ddio_ways),
      path_rate_(config.bandwidth),
      socket_in_(config.numa_bandwidth),
      socket_out_(config.numa_bandwidth),
      dram_(config),
      path_stats_(name + ".memory"),
      dram_stats_(name + ".dram"),
      socket_stats_(name + ".socket_link") {
  if (llc_bytes_ > 0) llc_.emplace(llc_bytes_, llc_ways_, ddio_ways_);
}

void MemorySystem::count(const LastLevelCache::Outcome& outcome) {
  llc_hits_ += outcome.hits;
  llc_misses_ += outcome.misses;
}

void MemorySystem::set_link(BitRate rate) {
  // A path that is half as fast again has a burst's data away before the next one's come.
  constexpr double kFaster = 1.5;
  slow_path_ = path_rate_.to_gbps() < kFaster * rate.to_gbps();
}

bool MemorySystem::minds_order() const {
  constexpr std::uint64_t kBatch = 512;
  constexpr Time kLong = nanoseconds(10);
  return stands_by_requests() || path_rate_.time_for(kBatch) > kLong;
}

Reservation MemorySystem::enter(Time earliest, Time transfer) {
  const Reservation slot = path_.reserve(earliest, transfer);
  path_stats_.add_busy(slot.start, slot.end);
  return slot;
}

Time MemorySystem::cross(Time start, std::uint64_t bytes, RateServer& direction) {
  const Reservation slot = direction.reserve(start, bytes);
  socket_stats_.add_busy(slot.start, slot.end);
  return slot.end - start;
}

Time MemorySystem::read(Time arrival, std::uint64_t address, std::uint64_t bytes, Time stream) {
  const Reservation slot = enter(arrival, path_rate_.time_for(bytes));
  // The path spaces requests by their transfer times; within one, data streams as it comes.
  const Time ready = slot.start + read_latency_;
  return plain_ || bytes == 0 ? ready : slow_read(slot.start, ready, address, bytes, stream);
}

Time MemorySystem::slow_read(Time start, Time ready, std::uint64_t address, std::uint64_t bytes,
                             Time stream) {
  // What takes longer than the link holds up the rest of a request only as far as it is slower.
  const auto beyond = [stream](Time transfer) { return std::max(kTimeZero, transfer - stream); };
  if (remote_) ready += numa_latency_ + beyond(cross(start, bytes, socket_in_));
  if (!llc_) return ready;
  const LastLevelCache::Outcome outcome = llc_->device_read(address, bytes);
  count(outcome);
  if (outcome.misses == 0) return ready;
  return ready + dram_latency_ + beyond(dram_.read(start, address, outcome.misses) - start);
}

Time MemorySystem::write(Time arrival, std::uint64_t address, std::uint64_t bytes) {
  const std::uint32_t partial = partial_lines(address, bytes);
  partial_lines_ += partial;
  const Time transfer =
      path_rate_.time_for(bytes) + partial_line_time_ * static_cast<std::int64_t>(partial);
  const Time start = enter(arrival, transfer).start;
  return plain_ || bytes == 0 ? start + write_latency_ : slow_write(start, address, bytes, partial);
}

Time MemorySystem::deliver_interrupt(Time arrival, std::uint64_t bytes) {
  return enter(arrival, path_rate_.time_for(bytes)).start + write_latency_;
}

LastLevelCache::Outcome MemorySystem::place(std::uint64_t address, std::uint64_t bytes,
                                            std::uint32_t partial) {
  if (llc_) {
    return ddio_ ? llc_->device_write(address, bytes) : llc_->device_write_around(address, bytes);
  }
  LastLevelCache::Outcome outcome;
  if (ddio_) {
    outcome.hits = lines_of(address, bytes);
  } else {
    outcome.misses = outcome.written_back = lines_of(address, bytes);
    outcome.missed_partial = partial;
  }
  return outcome;
}

Time MemorySystem::slow_write(Time start, std::uint64_t address, std::uint64_t bytes,
                              std::uint32_t partial) {
  Time visible = start + write_latency_;
  if (remote_) visible += cross(start, bytes, socket_out_);
  const LastLevelCache::Outcome outcome = place(address, bytes, partial);
  if (llc_) count(outcome);
  if (outcome.missed_partial > 0) {
    // Read-modify-write: the rest of the line has to be there first.
    visible += dram_latency_ + (dram_.read(start, address, outcome.missed_partial) - start);
  }
  if (outcome.written_back > 0) {
    // Room is made, or the line itself written, before the next one can be taken.
    visible = std::max(visible, dram_.write(start, address, outcome.written_back) + write_latency_);
  }
  return ddio_ ? visible : visible + dram_write_latency_;
}

void MemorySystem::memory_written(std::uint64_t address, std::uint32_t bytes) {
  if (device_access_ || !llc_) return;
  llc_->cpu_access(address, bytes, true);
}

void MemorySystem::warm(std::uint64_t address, std::uint64_t bytes) {
  if (llc_) llc_->cpu_access(address, bytes, true);
}

void MemorySystem::cool() {
  if (llc_) llc_.emplace(llc_bytes_, llc_ways_, ddio_ways_);
}

const stats::UnitStats& MemorySystem::dram_unit() {
  // Channels keep their own time; the unit reports the busiest one's.
  const Time known = dram_stats_.busy();
  const Time busy = dram_.busiest();
  if (busy > known) dram_stats_.add_busy(busy - known);
  return dram_stats_;
}

void MemorySystem::reset_statistics(Time now) {
  dram_.reset_statistics();
  llc_hits_ = llc_misses_ = partial_lines_ = 0;
  path_stats_.reset(now);
  dram_stats_.reset(now);
  socket_stats_.reset(now);
}

}  // namespace rnic::host

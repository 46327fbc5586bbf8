// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/rate_server.h"
#include "base/time.h"
#include "config/host_config.h"
#include "host/dram.h"
#include "host/last_level_cache.h"
#include "host/physical_memory.h"
#include "stats/unit_stats.h"

namespace rnic::host {

/// When a device's access to host memory is done: the path into the memory system, the last-level
/// cache, the memory controllers, and the other socket's if the memory is remote. Next-free
/// arithmetic only; bytes are elsewhere. With the defaults (everything resident, DDIO, local) an
/// access costs one reservation.
class MemorySystem : public MemoryWatcher {
 public:
  MemorySystem(const std::string& name, const config::MemoryConfig& config);

  /// A read of `bytes` (0: a flush) that reaches memory at `arrival`: when its first data is there,
  /// or so much later that the last is there in time, `stream` after the first on the link. One
  /// request, unless stands_by_requests() is false.
  Time read(Time arrival, std::uint64_t address, std::uint64_t bytes, Time stream = kTimeZero);
  /// A posted write whose last byte reaches memory at `arrival`: when the CPU sees it. One packet,
  /// likewise.
  Time write(Time arrival, std::uint64_t address, std::uint64_t bytes);
  /// By how much later a core's access to the device gets there, if it is on the other socket, too.
  Time socket_crossing() const { return remote_ ? numa_latency_ : kTimeZero; }
  /// A message-signalled interrupt takes the path of a write, but goes to no memory.
  Time deliver_interrupt(Time arrival, std::uint64_t bytes);

  /// What brings the accesses: TLPs at `rate`.
  void set_link(BitRate rate);
  /// Whether each request has to be asked for by itself: it takes time of its own, so that those of
  /// a burst wait for each other. Else a burst is as good as one of them.
  bool stands_by_requests() const { return !plain_ || slow_path_; }
  /// Whether it matters which of two accesses at nearly the same time is the first: a batch of WQEs
  /// occupies the path, or what is behind it, for long.
  bool minds_order() const;
  /// Whether it matters what the CPU touches.
  bool tracks_cache() const { return llc_.has_value(); }
  /// A store of the CPU: PhysicalMemory tells, if tracks_cache().
  void memory_written(std::uint64_t address, std::uint32_t bytes) override;
  /// The CPU has just touched the range, in ascending order / has driven it out of its caches.
  void warm(std::uint64_t address, std::uint64_t bytes);
  void cool();
  /// Between these two, memory_written() is the device's own access and not the CPU's.
  void begin_device_access() { device_access_ = true; }
  void end_device_access() { device_access_ = false; }

  std::uint64_t llc_hits() const { return llc_hits_; }  ///< lines of device accesses
  std::uint64_t llc_misses() const { return llc_misses_; }
  std::uint64_t partial_line_writes() const { return partial_lines_; }
  const Dram& dram() const { return dram_; }
  /// Busy time of the path, of the busiest memory channel and of the way to the other socket.
  const stats::UnitStats& path() const { return path_stats_; }
  const stats::UnitStats& dram_unit();
  const stats::UnitStats& socket_link() const { return socket_stats_; }
  bool is_remote() const { return remote_; }
  void reset_statistics(Time now);

 private:
  Time slow_read(Time start, Time ready, std::uint64_t address, std::uint64_t bytes, Time stream);
  /// When the last byte is where it goes to, for one that is served from `start` on.
  Time slow_write(Time start, std::uint64_t address, std::uint64_t bytes, std::uint32_t partial);
  LastLevelCache::Outcome place(std::uint64_t address, std::uint64_t bytes, std::uint32_t partial);
  void count(const LastLevelCache::Outcome& outcome);
  /// Takes the path; its stretch of time.
  Reservation enter(Time earliest, Time transfer);
  /// Extra time for crossing to the other socket's memory.
  Time cross(Time start, std::uint64_t bytes, RateServer& direction);

  Time read_latency_;
  Time write_latency_;
  Time dram_latency_;
  Time dram_write_latency_;
  Time partial_line_time_;
  Time numa_latency_;
  bool ddio_;
  bool remote_;
  bool plain_;  ///< nothing but the path takes time
  bool device_access_ = false;
  std::uint64_t llc_bytes_;
  std::uint32_t llc_ways_;
  std::uint32_t ddio_ways_;
  BitRate path_rate_;
  /// Reads and writes come to it over pipelines of different lengths.
  PipelineServer path_;
  bool slow_path_ = false;  ///< not much faster than the link
  RateServer socket_in_;
  RateServer socket_out_;
  std::optional<LastLevelCache> llc_;
  Dram dram_;
  std::uint64_t llc_hits_ = 0;
  std::uint64_t llc_misses_ = 0;
  std::uint64_t partial_lines_ = 0;
  stats::UnitStats path_stats_;
  stats::UnitStats dram_stats_;
  stats::UnitStats socket_stats_;
};

}  // namespace rnic::host

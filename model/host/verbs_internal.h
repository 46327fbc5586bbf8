// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>

#include "base/timeline.h"
#include "host/root_complex.h"

/// Shared by the driver's source files; not part of its interface.
namespace rnic::host::verbs {

inline constexpr std::uint32_t kFirstQpn = 0x10;  // 0 and 1 are the management queue pairs
inline constexpr std::uint32_t kCacheLine = 64;

inline constexpr std::uint32_t kLogEventEntries = 10;
inline constexpr std::uint32_t kAsyncEvents = 0;
inline constexpr std::uint32_t kCompletionEvents = 1;

// Limits of the device that query_device() tells.
inline constexpr std::uint32_t kMaxCqEntries = 1U << 22;  // as mlx5 devices
inline constexpr std::uint32_t kMaxSrqWr = 1U << 15;      // slots have 16-bit numbers
inline constexpr std::uint32_t kMaxLogSendBlocks = 15;    // 16-bit indices
inline constexpr std::uint32_t kMaxSendBlocks = 1U << kMaxLogSendBlocks;

constexpr std::uint32_t ceil_log2(std::uint64_t n) {
  std::uint32_t log = 0;
  while ((std::uint64_t{1} << log) < n) ++log;
  return log;
}

/// A thread waits for what the device answers.
class DeviceAnswer : public MmioReader {
 public:
  void mmio_read_done(std::uint64_t value) override {
    value_ = value;
    here_ = true;
    Timeline::notify(arrived_);
  }
  std::uint64_t await() {
    while (!here_) sc_core::wait(arrived_);
    return value_;
  }

 private:
  sc_core::sc_event arrived_;
  std::uint64_t value_ = 0;
  bool here_ = false;
};

}  // namespace rnic::host::verbs

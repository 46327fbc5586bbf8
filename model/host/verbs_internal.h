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

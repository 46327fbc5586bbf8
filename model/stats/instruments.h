// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "stats/stage.h"

namespace rnic::stats {

/// Payload of one stream as it is delivered: when `skip` bytes were there (the warm-up is over) and
/// when the last byte was. What a program measures by polling its completions depends on when it
/// polls; this does not.
class DeliveryMeter {
 public:
  /// `on_start` is called once, when more than `skip` bytes have been delivered.
  void expect(std::uint64_t skip, std::function<void()> on_start) {
    skip_ = skip;
    on_start_ = std::move(on_start);
  }

  /// Counts from `now` on, whatever was to be skipped.
  void start(Time now) {
    started_ = true;
    start_ = end_ = now;
    skip_ = bytes_;
    if (on_start_) on_start_();
  }

  void deliver(std::uint32_t bytes, Time now) {
    bytes_ += bytes;
    end_ = now;
    if (!started_ && bytes_ >= skip_) start(now);
  }

  /// Bytes delivered in all.
  std::uint64_t delivered() const { return bytes_; }
  bool started() const { return started_; }
  Time window_start() const { return start_; }
  Time window_end() const { return end_; }
  /// Bytes delivered since window_start().
  std::uint64_t counted() const { return started_ ? bytes_ - skip_ : 0; }

 private:
  std::uint64_t skip_ = 0;
  std::uint64_t bytes_ = 0;
  bool started_ = false;
  Time start_{0};
  Time end_{0};
  std::function<void()> on_start_;
};

/// Where the NIC finds the instruments of a queue pair; not part of the hardware.
class Instruments {
 public:
  virtual ~Instruments() = default;
  /// Trace of the WQE at ring index `wqe_index` of queue `qpn`, or null.
  virtual MessageTrace* trace_of(std::uint32_t qpn, std::uint16_t wqe_index) = 0;
  /// Meter of what queue `qpn` writes to its host's memory, or null.
  virtual DeliveryMeter* meter_of(std::uint32_t qpn) = 0;
};

}  // namespace rnic::stats

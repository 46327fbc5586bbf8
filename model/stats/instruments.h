// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "stats/stage.h"

namespace rnic::stats {

/// Payload of one stream as it is delivered: when `skip` bytes were there (the warm-up is over) and
/// when the last byte was. What a program measures by polling its completions depends on when it
/// polls; this does not.
class DeliveryMeter {
 public:
  /// `on_start` is called once, when `skip` bytes of `total` have been delivered, `on_end` when all
  /// have.
  void expect(std::uint64_t skip, std::uint64_t total, std::function<void()> on_start,
              std::function<void()> on_end) {
    skip_ = next_ = skip;
    total_ = total;
    on_start_ = std::move(on_start);
    on_end_ = std::move(on_end);
  }
  /// Of what was expected, `bytes` will not come.
  void shorten(std::uint64_t bytes) {
    if (next_ == total_) next_ -= bytes;
    total_ -= bytes;
  }

  /// Counts from `now` on, whatever was to be skipped.
  void start(Time now) {
    started_ = true;
    start_ = end_ = now;
    first_came_ = bytes_ == 0 ? now : last_came_;
    skip_ = bytes_;
    next_ = total_;
    if (on_start_) on_start_();
  }

  /// The stream failed, at `now`: what it was to deliver does not come.
  void end(Time now) {
    if (!started_) start(now);
    next_ = kNever;
    extend(now);
    if (on_end_) on_end_();
  }
  /// The window goes on until `now` at least: so long was sent what nobody has received.
  void extend(Time now) {
    if (started_) end_ = std::max(end_, now);
  }

  /// `came`: when they had arrived at the port, or now.
  void deliver(std::uint32_t bytes, Time came, Time now) {
    bytes_ += bytes;
    end_ = now;
    last_came_ = std::max(last_came_, came);  // what was held for its turn had come before
    if (bytes_ >= next_) reached(now);
  }

  /// Bytes delivered in all.
  std::uint64_t delivered() const { return bytes_; }
  /// Bytes of those expected that are still to come.
  std::uint64_t left() const { return total_ - std::min(total_, bytes_); }
  /// Bytes still to come before `on_start`, or, once that has been called, before `on_end`.
  std::uint64_t to_next() const { return next_ - std::min(next_, bytes_); }
  bool started() const { return started_; }
  Time window_start() const { return start_; }
  Time window_end() const { return end_; }
  /// Bytes delivered since window_start().
  std::uint64_t counted() const { return started_ ? bytes_ - skip_ : 0; }

  /// By how much longer than the window it took what was counted to arrive at the port: it had
  /// queued up in the device before the window began. No wire carries faster than it does.
  Time drained() const { return longer(last_came_ - first_came_, end_ - start_); }

  /// Begin and end of the time in which several streams are compared.
  void open_common(Time now) { common_from_ = reached_by(now); }
  void close_common(Time now) { common_to_ = reached_by(now); }
  /// Bytes delivered in between.
  std::uint64_t common() const { return common_to_.bytes - common_from_.bytes; }
  /// As drained(), of that time.
  Time common_drained() const {
    return longer(common_to_.came - common_from_.came, common_to_.at - common_from_.at);
  }

  /// From here on `whole()` counts.
  void open_whole() { whole_from_ = bytes_; }
  std::uint64_t whole() const { return bytes_ - whole_from_; }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  /// How much had been delivered at an instant, and when the last of it had come.
  struct Instant {
    std::uint64_t bytes = 0;
    Time came{0};
    Time at{0};
  };

  Instant reached_by(Time now) const { return {bytes_, bytes_ == 0 ? now : last_came_, now}; }

  static Time longer(Time arrivals, Time deliveries) {
    return arrivals > deliveries ? arrivals - deliveries : kTimeZero;
  }

  void reached(Time now) {
    if (!started_) start(now);
    if (bytes_ < total_) return;
    next_ = kNever;
    if (on_end_) on_end_();
  }

  std::uint64_t skip_ = 0;
  std::uint64_t total_ = kNever;
  std::uint64_t next_ = 0;  ///< something happens when so many are there
  Instant common_from_;
  Instant common_to_;
  std::uint64_t whole_from_ = 0;
  Time first_came_{0};
  Time last_came_{0};
  std::uint64_t bytes_ = 0;
  bool started_ = false;
  Time start_{0};
  Time end_{0};
  std::function<void()> on_start_;
  std::function<void()> on_end_;
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

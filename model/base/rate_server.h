// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bit_rate.h"
#include "base/time.h"

namespace rnic {

/// When a shared resource serves a request.
struct Reservation {
  Time start;
  Time end;
};

/// A resource that serves one request after another, described by next-free arithmetic instead of
/// events: a request starts at max(asked time, end of the one before).
class Server {
 public:
  /// Occupies the resource for `duration`, not before `earliest`.
  Reservation reserve(Time earliest, Time duration) {
    const Time start = std::max(earliest, free_at_);
    free_at_ = start + duration;
    busy_ += duration;
    ++served_;
    return {start, free_at_};
  }

  Time free_at() const { return free_at_; }
  /// Total time reserved since the last reset_statistics().
  Time busy() const { return busy_; }
  std::uint64_t served() const { return served_; }
  void reset_statistics() {
    busy_ = kTimeZero;
    served_ = 0;
  }

 private:
  Time free_at_{0};
  Time busy_{0};
  std::uint64_t served_ = 0;
};

/// A Server whose durations are bytes at a rate: a link direction, a memory channel.
class RateServer {
 public:
  RateServer() = default;
  explicit RateServer(BitRate rate) : rate_(rate) {}

  Reservation reserve(Time earliest, std::uint64_t bytes) {
    return server_.reserve(earliest, rate_.time_for(bytes));
  }

  const BitRate& rate() const { return rate_; }
  Server& server() { return server_; }
  const Server& server() const { return server_; }

 private:
  BitRate rate_;
  Server server_;
};

}  // namespace rnic

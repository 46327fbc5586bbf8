// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace rnic::link {

/// Bytes that become free at known future times, given back when somebody looks: no event. Keeps
/// its storage, so it does not allocate in steady state.
class ReleaseQueue {
 public:
  void post(Time when, std::uint64_t bytes) {
    heap_.push_back(Entry{when, bytes});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  /// Bytes whose time has come at `now`; they leave the queue.
  std::uint64_t take_due(Time now) {
    std::uint64_t bytes = 0;
    while (!heap_.empty() && heap_.front().when <= now) {
      bytes += heap_.front().bytes;
      std::pop_heap(heap_.begin(), heap_.end(), Later{});
      heap_.pop_back();
    }
    return bytes;
  }

  /// Time of the next release, or kTimeNever.
  Time next() const { return heap_.empty() ? kTimeNever : heap_.front().when; }

 private:
  struct Entry {
    Time when;
    std::uint64_t bytes;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const { return a.when > b.when; }
  };

  std::vector<Entry> heap_;
};

/// A buffer of `capacity` bytes with releases in the future.
class RxBuffer {
 public:
  explicit RxBuffer(std::uint64_t capacity) : capacity_(capacity) {}

  /// Takes `bytes`; false when they do not fit at `now`.
  bool take(std::uint64_t bytes, Time now) {
    settle(now);
    if (occupied_ + bytes > capacity_) return false;
    occupied_ += bytes;
    highest_ = std::max(highest_, occupied_);
    return true;
  }
  void release(std::uint64_t bytes, Time when) { releases_.post(when, bytes); }

  /// Carries out the releases that are due.
  void settle(Time now) { occupied_ -= releases_.take_due(now); }
  /// Bytes held as of the last settle() or take().
  std::uint64_t occupied() const { return occupied_; }
  std::uint64_t highest() const { return highest_; }
  void reset_highest() { highest_ = occupied_; }
  Time next_release() const { return releases_.next(); }

 private:
  std::uint64_t capacity_;
  std::uint64_t occupied_ = 0;
  std::uint64_t highest_ = 0;
  ReleaseQueue releases_;
};

}  // namespace rnic::link

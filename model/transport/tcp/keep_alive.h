// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace rnic::transport {

/// Asks a peer of which nothing is heard whether it is still there (RFC 9293, 3.8.4): a first probe
/// after a quiet time, further ones at intervals, and after the last one's interval the peer is
/// given up. Pure decisions: when somebody has to ask, and what a probe is, are the caller's.
class KeepAlive {
 public:
  /// `quiet` 0: never asks.
  KeepAlive(Time quiet, Time interval, std::uint32_t probes)
      : quiet_(quiet), interval_(interval), probes_(probes) {}

  /// Something came from the peer, or there is a reason to wait for it from now on.
  void heard(Time now) {
    heard_ = now;
    sent_ = 0;
    due_ = false;
  }
  /// Of the next probe, or of giving up; kTimeNever: none.
  Time deadline() const {
    return quiet_ == kTimeZero ? kTimeNever : heard_ + quiet_ + interval_ * sent_;
  }
  /// deadline() has passed. False when the peer is to be given up.
  bool expire() {
    if (sent_ >= probes_) return false;
    ++sent_;
    due_ = true;
    return true;
  }
  /// A probe waits to be sent.
  bool due() const { return due_; }
  void take() { due_ = false; }

 private:
  Time quiet_;
  Time interval_;
  std::uint32_t probes_;
  std::uint32_t sent_ = 0;  ///< since heard()
  bool due_ = false;
  Time heard_{0};
};

}  // namespace rnic::transport

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ring.h"
#include "base/time.h"

namespace rnic::pcie {

/// Flow-control units of a packet or of several (PCI Express Base, 2.6): a header each, and its
/// payload in units of 16 B.
struct CreditUnits {
  std::uint32_t headers = 0;
  std::uint32_t data = 0;
};

inline constexpr std::uint32_t kCreditDataBytes = 16;

inline CreditUnits credit_units(std::uint64_t tlps, std::uint64_t payload_bytes) {
  return {static_cast<std::uint32_t>(tlps),
          static_cast<std::uint32_t>((payload_bytes + kCreditDataBytes - 1) / kCreditDataBytes)};
}

/// What a sender knows of the receiver's buffer for one class of packets: the units free now and
/// those whose UpdateFC is under way. A limit of 0 is infinite. Kernel-free: instants come as
/// arguments, and those of one kind must not decrease.
class CreditPool {
 public:
  explicit CreditPool(CreditUnits limit = {}) : limit_(limit), free_(limit) {}

  bool finite() const { return limit_.headers != 0 || limit_.data != 0; }
  CreditUnits limit() const { return limit_; }

  /// Are there credits for `need` at `now`? More than the whole buffer counts as the whole buffer.
  bool available(Time now, CreditUnits need);
  /// The earliest time from `earliest` on at which credits for `need` are here, as far as their
  /// return is known; kTimeNever: not known.
  Time ready(Time earliest, CreditUnits need);
  /// Uses credits that are available; a packet larger than the buffer takes all of it.
  void consume(CreditUnits need);
  /// An UpdateFC that returns `units` arrives at `at`.
  void give_back(Time at, CreditUnits units);
  /// When the next UpdateFC arrives; kTimeNever: none is under way.
  Time next_update() const { return updates_.empty() ? kTimeNever : updates_.front().at; }

 private:
  struct Update {
    Time at{0};
    CreditUnits units;
  };

  CreditUnits clamped(CreditUnits need) const;
  bool covers(CreditUnits need) const;
  void take_update();

  CreditUnits limit_;
  CreditUnits free_;
  Ring<Update> updates_;
};

}  // namespace rnic::pcie

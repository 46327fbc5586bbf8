// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <systemc>

#include "base/time.h"
#include "base/timeline.h"

namespace rnic {

/// The kernel runs at its default resolution of 1 ps, so the conversion is a change of type.
/// sc_time::from_value() would ask the simulation context each time, at a dozen hops a packet; a
/// sc_time is its value and nothing else.
inline sc_core::sc_time to_sc_time(Time t) {
  static_assert(sizeof(sc_core::sc_time) == sizeof(sc_dt::uint64));
  const auto value = static_cast<sc_dt::uint64>(t.count());
  sc_core::sc_time result;
  std::memcpy(static_cast<void*>(&result), &value, sizeof value);
  return result;
}

inline Time from_sc_time(const sc_core::sc_time& t) {
  return Time{static_cast<std::int64_t>(t.value())};
}

}  // namespace rnic

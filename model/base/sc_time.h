// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/time.h"
#include "base/timeline.h"

namespace rnic {

/// The kernel runs at its default resolution of 1 ps, so the conversion is a change of type.
inline sc_core::sc_time to_sc_time(Time t) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.count()));
}

inline Time from_sc_time(const sc_core::sc_time& t) {
  return Time{static_cast<std::int64_t>(t.value())};
}

}  // namespace rnic

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace rnic {

/// Simulated time, an instant or a duration, in picoseconds. Kernel-free code uses this type;
/// `base/sc_time.h` converts to and from `sc_core::sc_time` (which runs at 1 ps resolution).
using Time = std::chrono::duration<std::int64_t, std::pico>;

constexpr Time kTimeZero{0};
constexpr Time kTimeNever = Time::max();

constexpr Time picoseconds(std::int64_t n) { return Time{n}; }
constexpr Time nanoseconds(std::int64_t n) { return Time{n * 1'000}; }
constexpr Time microseconds(std::int64_t n) { return Time{n * 1'000'000}; }

constexpr double to_ns(Time t) { return static_cast<double>(t.count()) / 1e3; }
constexpr double to_us(Time t) { return static_cast<double>(t.count()) / 1e6; }
constexpr double to_seconds(Time t) { return static_cast<double>(t.count()) / 1e12; }

/// Nanoseconds as a real number, rounded down to whole picoseconds.
constexpr Time from_ns(double ns) { return Time{static_cast<std::int64_t>(ns * 1e3)}; }

}  // namespace rnic

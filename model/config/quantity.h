// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bit_rate.h"
#include "base/time.h"

/// Values as users write them: `100Gbps`, `4KiB`, `1.5us`, `1GHz`. Every function takes the whole
/// text (blanks around it are ignored) and throws ConfigError with the reason, without naming the
/// key, when it is empty, negative, not finite, too large, or has anything after the quantity.
namespace rnic::config {

/// Whole number; `1e6` and `2.0` are whole, `2.5` is not.
std::uint64_t parse_count(std::string_view text);

/// Number without a unit.
double parse_real(std::string_view text);

/// Bytes: B, KiB, MiB, GiB, TiB, and decimal kB (or KB), MB, GB, TB; bare: bytes. Must come out
/// whole.
std::uint64_t parse_bytes(std::string_view text);

/// ps, ns, us, ms, s; bare: ns. Rounded to the nearest picosecond.
Time parse_time(std::string_view text);

/// Bits per second: bps, kbps, Mbps, Gbps, Tbps (also written Gb/s); bare: Gbps. Must be positive.
BitRate parse_rate(std::string_view text);

/// Hertz: Hz, kHz, MHz, GHz; bare: GHz. Must be positive.
double parse_frequency(std::string_view text);

/// true, on, yes, 1, false, off, no, 0.
bool parse_bool(std::string_view text);

/// The parts of a comma-separated list; `none` alone is the empty list.
std::vector<std::string> split_list(std::string_view text);

/// Without blanks at either end.
std::string_view trimmed(std::string_view text);

/// Shortest text that reads back as `value`.
std::string format_number(double value);

}  // namespace rnic::config

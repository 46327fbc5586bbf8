// SPDX-License-Identifier: Apache-2.0
#include "protocol/aeth.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace rnic::protocol {
namespace {

constexpr std::uint32_t kCredits[31] = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

// In units of 10 us.
constexpr std::uint32_t kRnrTicks[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                         16,    24,   32,   48,    64,    96,    128,   192,
                                         256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                         4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

}  // namespace

std::uint32_t credits_of_code(std::uint8_t code) {
  code &= 0x1F;
  return code == kUnlimitedCreditCode ? std::numeric_limits<std::uint32_t>::max() : kCredits[code];
}

std::uint8_t credit_code(std::uint32_t posted) {
  const auto* above = std::upper_bound(std::begin(kCredits), std::end(kCredits), posted);
  return static_cast<std::uint8_t>(above - std::begin(kCredits) - 1);
}

Time rnr_timer(std::uint8_t code) {
  return microseconds(10) * static_cast<std::int64_t>(kRnrTicks[code & 0x1F]);
}

}  // namespace rnic::protocol

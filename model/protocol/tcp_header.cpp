// SPDX-License-Identifier: Apache-2.0
#include "protocol/tcp_header.h"

namespace rnic::protocol {
namespace {

constexpr std::uint8_t kEndOfList = 0;
constexpr std::uint8_t kNop = 1;
constexpr std::uint8_t kMss = 2;
constexpr std::uint8_t kWindowScale = 3;
constexpr std::uint8_t kSackPermitted = 4;
constexpr std::uint8_t kSack = 5;
constexpr std::uint8_t kTimestamps = 8;

/// Takes one option of `length` bytes, kind and length included; false when the length is wrong.
bool take(const std::uint8_t* in, std::uint8_t length, TcpOptions& options) {
  switch (in[0]) {
    case kMss:
      if (length != 4) return false;
      options.has_mss = true;
      options.mss = load_be16(in + 2);
      return true;
    case kWindowScale:
      if (length != 3) return false;
      options.has_window_scale = true;
      options.window_scale = in[2];
      return true;
    case kSackPermitted:
      options.sack_permitted = true;
      return length == 2;
    case kSack:
      if (length < 10 || (length - 2) % 8 != 0 || length > 34) return false;
      options.sack_count = static_cast<std::uint8_t>((length - 2) / 8);
      for (std::size_t i = 0; i < options.sack_count; ++i) {
        options.sack[i] = {load_be32(in + 2 + 8 * i), load_be32(in + 6 + 8 * i)};
      }
      return true;
    case kTimestamps:
      if (length != 10) return false;
      options.has_timestamps = true;
      options.timestamp = load_be32(in + 2);
      options.timestamp_echo = load_be32(in + 6);
      return true;
    default:
      return true;
  }
}

}  // namespace

std::uint32_t TcpOptions::bytes() const {
  return (has_mss ? 4U : 0U) + (has_window_scale ? 4U : 0U) +
         (sack_permitted && !has_timestamps ? 4U : 0U) + (has_timestamps ? 12U : 0U) +
         (sack_count > 0 ? 4U + 8U * sack_count : 0U);
}

std::uint32_t TcpOptions::encode(std::uint8_t* out) const {
  std::uint8_t* p = out;
  if (has_mss) {
    p[0] = kMss;
    p[1] = 4;
    store_be16(p + 2, mss);
    p += 4;
  }
  if (has_timestamps || sack_permitted) {
    // SACK-permitted is as long as the two NOPs that align the timestamps.
    p[0] = sack_permitted ? kSackPermitted : kNop;
    p[1] = sack_permitted ? 2 : kNop;
    p += 2;
    if (has_timestamps) {
      p[0] = kTimestamps;
      p[1] = 10;
      store_be32(p + 2, timestamp);
      store_be32(p + 6, timestamp_echo);
      p += 10;
    } else {
      p[0] = p[1] = kNop;
      p += 2;
    }
  }
  if (has_window_scale) {
    p[0] = kNop;
    p[1] = kWindowScale;
    p[2] = 3;
    p[3] = window_scale;
    p += 4;
  }
  if (sack_count > 0) {
    p[0] = p[1] = kNop;
    p[2] = kSack;
    p[3] = static_cast<std::uint8_t>(2 + 8 * sack_count);
    p += 4;
    for (std::size_t i = 0; i < sack_count; ++i, p += 8) {
      store_be32(p, sack[i].left);
      store_be32(p + 4, sack[i].right);
    }
  }
  return static_cast<std::uint32_t>(p - out);
}

bool TcpOptions::decode(const std::uint8_t* in, std::size_t bytes, TcpOptions& options) {
  options = TcpOptions{};
  std::size_t at = 0;
  while (at < bytes && in[at] != kEndOfList) {
    if (in[at] == kNop) {
      ++at;
      continue;
    }
    if (at + 1 >= bytes) return false;
    const std::uint8_t length = in[at + 1];
    if (length < 2 || at + length > bytes || !take(in + at, length, options)) return false;
    at += length;
  }
  return true;
}

}  // namespace rnic::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Which frames of a cable a fault is meant for.
namespace rnic::config {

/// A frame is of several kinds at once: a READ response is `response`, `data` and `any`.
enum class FrameKind : std::uint8_t {
  kAny,         ///< all but link control (IB flow-control packets, Ethernet pauses)
  kData,        ///< carries or requests user data
  kRequest,     ///< data that asks: SEND, WRITE, READ request, atomic request
  kResponse,    ///< data that answers: READ response, atomic response
  kAck,         ///< acknowledgement (iWARP: a TCP segment without data)
  kNak,         ///< NAK of a sequence or fatal error
  kRnr,         ///< receiver not ready NAK
  kCnp,         ///< congestion notification of RoCEv2
  kConnection,  ///< iWARP: set-up and tear-down
  kCount
};
inline constexpr std::size_t kFrameKinds = static_cast<std::size_t>(FrameKind::kCount);

/// Bit i: of FrameKind i.
using FrameKinds = std::uint32_t;

constexpr FrameKinds kinds(FrameKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr FrameKinds operator|(FrameKind a, FrameKind b) { return kinds(a) | kinds(b); }
constexpr FrameKinds operator|(FrameKinds a, FrameKind b) { return a | kinds(b); }

/// Names by FrameKind: any, data, ...
const std::vector<std::string>& frame_kind_names();
/// Those of `names`; unknown ones are left out (the key's list has been checked).
FrameKinds kinds_named(const std::vector<std::string>& names);

/// One frame: the `number`-th of its kind, from 1 on.
struct FaultTarget {
  FrameKind kind = FrameKind::kData;
  std::uint64_t number = 0;

  friend bool operator==(const FaultTarget& a, const FaultTarget& b) {
    return a.kind == b.kind && a.number == b.number;
  }
};

/// Reads `5,17,ack:3`: a bare number is that of a data packet. Sorted by kind and number, each
/// once; empty for `none`. Throws ConfigError with the reason, without naming the key.
std::vector<FaultTarget> parse_fault_list(std::string_view text);
/// The text that reads back as `targets`.
std::string fault_list_text(const std::vector<FaultTarget>& targets);

}  // namespace rnic::config

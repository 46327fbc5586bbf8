// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "protocol/byte_order.h"

namespace rnic::protocol {

/// What a device reports of itself, without a work request (numbers of ibv_event_type), and what an
/// armed completion queue reports.
enum class EventType : std::uint8_t {
  kCqError = 0,
  kQpFatal = 1,
  kQpRequestError = 2,  ///< the responder refused an invalid request
  kQpAccessError = 3,   ///< the responder refused an access
  kCommEstablished = 4,
  kSqDrained = 5,
  kPathMigrated = 6,
  kPathMigrationError = 7,  ///< the peer asks for another path than the alternate one
  kDeviceFatal = 8,
  kPortActive = 9,
  kPortError = 10,
  kSrqError = 14,
  kSrqLimitReached = 15,
  kQpLastWqeReached = 16,
  kCompletion = 0x80,
  kPageFault = 0x81,  ///< of an on-demand region: the range in `address` and `bytes` is wanted
};

/// Events that have a number of ibv_event_type.
inline constexpr std::size_t kAsyncEventTypes = 20;

/// Name in counters: that of ibv_event_type without IBV_EVENT_, in lower case ("qp_fatal").
const char* event_name(EventType type);
/// What ibv_event_type_str says.
const char* event_type_str(EventType type);

/// An event and the number of the object that it is about.
struct Event {
  EventType type = EventType::kCompletion;
  std::uint32_t number = 0;
  std::uint64_t address = 0;  ///< page fault: as requests name it; `number` is the key
  std::uint64_t bytes = 0;
};

/// Event queue entry: 64 bytes in host memory, type in byte 1, page fault in bytes 32 to
/// 47, number of the object in bytes 56 to 59, owner bit in the last byte, which is the last to be
/// written (after mlx5's).
struct Eqe {
  static constexpr std::uint32_t kBytes = 64;
  static constexpr std::uint32_t kOwnerOffset = 63;
  static constexpr std::uint8_t kInvalidOwner = 0xFF;

  Event event;
  bool owner = false;  ///< flips every pass of the ring

  void encode(std::uint8_t* out) const {
    std::memset(out, 0, kBytes);
    out[1] = static_cast<std::uint8_t>(event.type);
    store_be64(out + 32, event.address);
    store_be64(out + 40, event.bytes);
    store_be32(out + 56, event.number);
    out[kOwnerOffset] = owner ? 1 : 0;
  }
  /// False: not written yet in the pass whose owner bit is `pass`.
  static bool decode(const std::uint8_t* in, bool pass, Event& event) {
    if (in[kOwnerOffset] != (pass ? 1 : 0)) return false;
    event.type = static_cast<EventType>(in[1]);
    event.address = load_be64(in + 32);
    event.bytes = load_be64(in + 40);
    event.number = load_be32(in + 56);
    return true;
  }
};

/// MSI-X: a four-byte write to the interrupt controller; the data names the vector.
inline constexpr std::uint64_t kMsixAddress = 0xFEE0'0000;

}  // namespace rnic::protocol

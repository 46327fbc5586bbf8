// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::transport {

/// What keeps a queue pair from sending a request that it has.
enum class Hold : std::uint8_t {
  kNone,
  kWindow,            ///< transport.window: packets not acknowledged
  kReadSlots,         ///< transport.max_rd_atomic
  kFence,             ///< READs or atomics before a fenced request
  kReceiveCredits,    ///< the responder has told of no more RECVs
  kReceiverNotReady,  ///< the wait after an RNR NAK
  kPeerWindow,        ///< TCP: the receiver's window
  kCongestionWindow,  ///< TCP: the congestion window
  kCount
};

/// As results have it: "window", "read_slots" ...
constexpr const char* hold_name(Hold hold) {
  constexpr const char* kNames[] = {"none",
                                    "window",
                                    "read_slots",
                                    "fence",
                                    "receive_credits",
                                    "receiver_not_ready",
                                    "peer_window",
                                    "congestion_window"};
  return kNames[static_cast<std::size_t>(hold)];
}

}  // namespace rnic::transport

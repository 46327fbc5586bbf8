// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "protocol/mpa.h"

namespace rnic::transport {

/// The message by which an initiator lets a peer-to-peer responder send (RFC 6581, 9.2).
enum class ReadyToReceive : std::uint8_t { kNone, kSend, kWrite, kRead };

/// What both ends know after the enhanced MPA start-up.
struct MpaAgreement {
  bool accepted = false;  ///< false: terminate, LLP error 7, no matching ready-to-receive message
  std::uint16_t ord = 0;  ///< READs this end may have outstanding
  std::uint16_t ird = 0;  ///< READs the peer may have outstanding here
  ReadyToReceive ready = ReadyToReceive::kNone;
};

/// What the initiator concludes from its request and the reply (RFC 6581, 9.1): no more READs than
/// the other end takes, and of the offered ready-to-receive messages the one that the reply
/// selects.
inline MpaAgreement agree(const protocol::MpaEnhanced& request,
                          const protocol::MpaEnhanced& reply) {
  const auto limit = [](std::uint16_t own, std::uint16_t peer) {
    constexpr std::uint16_t kAny = protocol::MpaEnhanced::kNoNegotiation;
    return peer == kAny ? own : (own == kAny ? peer : std::min(own, peer));
  };
  MpaAgreement result;
  result.ord = limit(request.ord, reply.ird);
  result.ird = limit(request.ird, reply.ord);
  if (!request.peer_to_peer) {
    result.accepted = true;
    return result;
  }
  if (request.rtr_send && reply.rtr_send) {
    result.ready = ReadyToReceive::kSend;
  } else if (request.rtr_write && reply.rtr_write) {
    result.ready = ReadyToReceive::kWrite;
  } else if (request.rtr_read && reply.rtr_read) {
    result.ready = ReadyToReceive::kRead;
  }
  result.accepted = result.ready != ReadyToReceive::kNone;
  return result;
}

/// The half of a responder that waits for the initiator's first message.
class ReadyGate {
 public:
  explicit ReadyGate(const MpaAgreement& agreement) : expected_(agreement.ready) {}

  /// Nothing may be sent before the agreed message has come.
  bool may_send() const { return expected_ == ReadyToReceive::kNone || open_; }
  /// The first message arrived; false: it is of another kind, the stream is to be terminated.
  bool first_message(ReadyToReceive kind) {
    open_ = expected_ == ReadyToReceive::kNone || kind == expected_;
    return open_;
  }

 private:
  ReadyToReceive expected_;
  bool open_ = false;
};

}  // namespace rnic::transport

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

/// READs that one end may have outstanding at the other.
inline std::uint16_t limit_reads(std::uint16_t own, std::uint16_t peer) {
  constexpr std::uint16_t kAny = protocol::MpaEnhanced::kNoNegotiation;
  return peer == kAny ? own : (own == kAny ? peer : std::min(own, peer));
}

/// The first of the messages that both know.
inline ReadyToReceive common_ready(const protocol::MpaEnhanced& x, const protocol::MpaEnhanced& y) {
  if (x.rtr_send && y.rtr_send) return ReadyToReceive::kSend;
  if (x.rtr_write && y.rtr_write) return ReadyToReceive::kWrite;
  if (x.rtr_read && y.rtr_read) return ReadyToReceive::kRead;
  return ReadyToReceive::kNone;
}

/// What the initiator concludes from its request and the reply (RFC 6581, 9.1): no more READs than
/// the other end takes, and of the offered ready-to-receive messages the one that the reply
/// selects.
inline MpaAgreement agree(const protocol::MpaEnhanced& request,
                          const protocol::MpaEnhanced& reply) {
  MpaAgreement result;
  result.ord = limit_reads(request.ord, reply.ird);
  result.ird = limit_reads(request.ird, reply.ord);
  if (!request.peer_to_peer) {
    result.accepted = true;
    return result;
  }
  result.ready = common_ready(request, reply);
  result.accepted = result.ready != ReadyToReceive::kNone;
  return result;
}

/// A responder's reply to `request`: no more READs than the initiator takes, and one of the
/// ready-to-receive messages that it offers and this end knows. `own`: what this end could do.
inline protocol::MpaEnhanced answer(const protocol::MpaEnhanced& request,
                                    const protocol::MpaEnhanced& own) {
  protocol::MpaEnhanced reply;
  reply.ird = own.ird;
  reply.ord = limit_reads(own.ord, request.ird);
  reply.peer_to_peer = request.peer_to_peer;
  if (!request.peer_to_peer) return reply;
  const ReadyToReceive ready = common_ready(request, own);
  reply.rtr_send = ready == ReadyToReceive::kSend;
  reply.rtr_write = ready == ReadyToReceive::kWrite;
  reply.rtr_read = ready == ReadyToReceive::kRead;
  return reply;
}

/// The half of a responder that waits for the initiator's first message.
class ReadyGate {
 public:
  ReadyGate() = default;
  explicit ReadyGate(const MpaAgreement& agreement)
      : expected_(agreement.ready), refused_(!agreement.accepted) {}

  /// Nothing may be sent before the agreed message has come, or without an agreement.
  bool may_send() const { return !refused_ && !awaits(); }
  /// What arrives first must be that message.
  bool awaits() const { return expected_ != ReadyToReceive::kNone && !open_; }
  /// The first message arrived; false: it is of another kind, the stream is to be terminated.
  bool first_message(ReadyToReceive kind) {
    open_ = expected_ == ReadyToReceive::kNone || kind == expected_;
    return open_;
  }

 private:
  ReadyToReceive expected_ = ReadyToReceive::kNone;
  bool refused_ = false;
  bool open_ = false;
};

}  // namespace rnic::transport

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ring.h"
#include "transport/psn_bitmap.h"
#include "transport/rc_incoming.h"

namespace rnic::transport {

/// What selective repeat keeps for a queue pair beside the state of go-back-N: what has arrived out
/// of order, at both halves (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018).
struct SelectiveRepeat : ConnectionState {
  /// Packets under way of which none may come behind a lost one (IRN's N).
  static constexpr std::uint32_t kFew = 3;

  /// PSNs [from, to).
  struct Run {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  /// Sent again, and not known to have arrived. What was sent later and has arrived says that it is
  /// lost: a later repetition, or what has the PSN `mark` or a later one.
  struct Repetition {
    Run run;
    std::uint32_t mark = 0;
    Time at{0};  ///< when it was sent
  };
  /// What goes one way: request packets, or packets that answer READs and atomics.
  struct Way {
    std::uint32_t looked_at = 0;          ///< gaps before it have been resent
    std::vector<Repetition> repetitions;  ///< in the order in which they were sent
  };

  // Requester. PSNs compare modulo 2^24; all limits are one past the PSN they speak of.
  PsnBitmap arrived;               ///< request packets and READ responses that arrived early
  std::uint32_t executed = 0;      ///< request packets before it were executed
  std::uint32_t sacked_end = 0;    ///< behind the newest request packet known to have arrived
  std::uint32_t answered_end = 0;  ///< behind the newest PSN that was acknowledged or answered
  bool recovering = false;
  bool short_timer = false;        ///< the acknowledgement timer is that of a tail
  std::uint32_t recovery_end = 0;  ///< recovery is over when everything before it is acknowledged
  Way requests;
  Way responses;
  Time answer_time{0};  ///< of what was asked for again, lately and at most; 0: never yet
  Ring<Run> again;      ///< to be resent without further evidence: lost again, refused or timed out

  // Responder: what has arrived before its turn, by PSN.
  struct Early {
    enum class State : std::uint8_t {
      kPlacing,  ///< payload on its way to memory
      kPlaced,   ///< payload in memory; the rest of the packet's meaning waits for its turn
      kHeld,     ///< the NIC keeps the frame until its turn
    };
    State state = State::kPlacing;
    RcTransport::Incoming packet;
  };
  std::unordered_map<std::uint32_t, Early> early;

  static SelectiveRepeat& of(QueuePair& qp) {
    return static_cast<SelectiveRepeat&>(*qp.connection);
  }
  static const SelectiveRepeat& of(const QueuePair& qp) {
    return static_cast<const SelectiveRepeat&>(*qp.connection);
  }
};

}  // namespace rnic::transport

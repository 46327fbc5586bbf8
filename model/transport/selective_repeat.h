// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "transport/psn_bitmap.h"
#include "transport/rc_incoming.h"

namespace rnic::transport {

/// What selective repeat keeps for a queue pair beside the state of go-back-N: what has arrived out
/// of order, at both halves (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018).
struct SelectiveRepeat : ConnectionState {
  // Requester. PSNs compare modulo 2^24; all limits are one past the PSN they speak of.
  PsnBitmap arrived;               ///< request packets and READ responses that arrived early
  std::uint32_t executed = 0;      ///< request packets before it were executed
  std::uint32_t sacked_end = 0;    ///< behind the newest request packet known to have arrived
  std::uint32_t answered_end = 0;  ///< behind the newest PSN that was acknowledged or answered
  bool recovering = false;
  std::uint32_t recovery_end = 0;  ///< recovery is over when everything before it is acknowledged
  std::uint32_t resend_from = 0;   ///< gaps before it have been resent
  std::uint32_t again_from = 0;    ///< gaps of [again_from, again_to) are resent once more
  std::uint32_t again_to = 0;
  bool pass_over = false;  ///< every known gap has been resent
  std::uint32_t pass_end = 0;
  std::uint32_t pass_mark = 0;  ///< what has this PSN or a later one was sent after the resent ones

  // Responder. A slot a PSN of the reorder window, allocated when something arrives out of order.
  struct Slot {
    enum class State : std::uint8_t {
      kFree,
      kPlacing,  ///< payload on its way to memory
      kPlaced,   ///< payload in memory; the rest of the packet's meaning waits for its turn
      kHeld,     ///< the NIC keeps the frame until its turn
    };
    State state = State::kFree;
    RcTransport::Incoming packet;
  };
  std::vector<Slot> slots;
  std::uint32_t occupied = 0;

  static SelectiveRepeat& of(QueuePair& qp) {
    return static_cast<SelectiveRepeat&>(*qp.connection);
  }
  static const SelectiveRepeat& of(const QueuePair& qp) {
    return static_cast<const SelectiveRepeat&>(*qp.connection);
  }
  Slot& slot(std::uint32_t psn) { return slots[psn & (slots.size() - 1)]; }
  void release(Slot& used) {
    used.state = Slot::State::kFree;
    --occupied;
  }
};

}  // namespace rnic::transport

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic/recv_queue.h"
#include "protocol/wqe.h"
#include "transport/queue_pair.h"

namespace rnic::nic {

struct TxJob;
struct RxJob;

/// Which half of a queue pair touches its context, and whether for a READ or atomic: architectures
/// differ in what each needs.
enum class ContextRole : std::uint8_t { kRequester, kResponder, kRequesterRead, kResponderRead };

constexpr bool is_requester(ContextRole role) {
  return role == ContextRole::kRequester || role == ContextRole::kRequesterRead;
}
constexpr bool is_read(ContextRole role) {
  return role == ContextRole::kRequesterRead || role == ContextRole::kResponderRead;
}

/// Whom a dynamically connected send queue talks to (dc.targets).
struct DcState {
  static constexpr std::uint32_t kNobody = 0xFFFF'FFFF;
  std::uint32_t peer = kNobody;    ///< it is connected to
  std::uint32_t wanted = kNobody;  ///< of the newest message that has been looked at
  std::uint64_t drawn_until = 0;   ///< entries of the send queue before this have their peer
  Time connected_at{0};
  Time waits_since = kTimeNever;  ///< a message to another peer waits
};

/// A queue pair as the NIC's units see it: protocol state plus ring positions, scheduling flags
/// and the order of packets in flight. One object a QP; whether its context is on chip is the
/// QpContextCache's business.
struct QpContext : transport::QueuePair {
  QpContext() { own_rq.owner = this; }
  QpContext(const QpContext&) = delete;
  QpContext& operator=(const QpContext&) = delete;

  // Send ring, in 64 B blocks; 16-bit counters wrap as in hardware.
  std::uint64_t sq_address = 0;
  std::uint32_t sq_log_blocks = 0;
  std::uint16_t sq_producer = 0;         ///< from the doorbell
  std::uint16_t sq_fetched = 0;          ///< next block to decode
  std::uint32_t sq_fetches = 0;          ///< reads of the ring under way
  std::uint32_t sq_coming = 0;           ///< blocks that they bring
  struct WqeFetch* sq_oldest = nullptr;  ///< of those reads
  struct WqeFetch* sq_newest = nullptr;
  std::uint32_t sq_read_failures = 0;  ///< reads of WQEs that failed
  /// First blocks of the WQE at sq_fetched, which the fetch before brought without its rest; null:
  /// none was ever cut.
  std::unique_ptr<std::vector<std::uint8_t>> sq_cut;

  // Receives: from a ring of its own or from a shared one.
  RecvQueue own_rq;
  RecvQueue* rq = &own_rq;
  bool send_failed = false;     ///< a request failed before it left: none behind it may leave
  bool drain_event = false;     ///< in SQD: raise SQ_DRAINED when nothing is under way
  bool established = false;     ///< a request has arrived
  bool recv_told = false;       ///< the RECV of the message that is refused has its completion
  bool recv_held = false;       ///< shared: `held` belongs to the message that is arriving
  bool request_ready = false;   ///< in the scheduler's request list
  bool response_ready = false;  ///< in the scheduler's response list
  bool response_later = false;  ///< an event is set for its first response
  bool request_later = false;   ///< an event is set for its next request
  bool timer_pending = false;
  std::uint8_t granule_open = 0;  ///< bit 0 requests, bit 1 responses: the newest packet waits for
                                  ///< others of its granule
  std::uint8_t roles_used = 0;    ///< of its halves: 1 requester, 2 responder
  std::unique_ptr<protocol::RecvWqe> held;  ///< a third of a queue pair's bytes, seldom needed

  /// The RECV of the message that is arriving; acquired before.
  const protocol::RecvWqe& recv() const { return rq->shared() ? *held : rq->wqes.front(); }

  // Scheduling.
  Time request_from{0};   ///< its next request is not picked for a time before
  Time response_from{0};  ///< likewise
  Time sq_decoded{0};     ///< the decoder has begun with everything fetched so far
  Time timer_at{0};
  Time request_free_at{0};      ///< its engine takes the next request (nic.qp_rate)
  Time response_free_at{0};     ///< likewise of READ data (nic.read_engine_rate)
  std::unique_ptr<DcState> dc;  ///< null: never asked for a connection
  Time engine_busy{0};          ///< of its busier engine's work, in the measured window

  // Packets of this QP leave the transmit pipeline, and enter the responder, in order.
  TxJob* tx_head = nullptr;
  TxJob* tx_tail = nullptr;
  RxJob* rx_head = nullptr;
  RxJob* rx_tail = nullptr;
  // Accepted packets whose payload waits for the rest of its granule (nic.forward_granule).
  RxJob* kept_head = nullptr;
  RxJob* kept_tail = nullptr;
  std::uint64_t kept_bytes = 0;
  RxJob* early = nullptr;  ///< came before its turn (selective repeat, TCP), in no order

  Time executed_until{0};  ///< what has arrived so far has taken effect by then

  // Atomics under way, and the frame that must not be executed before they are over.
  std::uint32_t atomics_under_way = 0;
  RxJob* behind_atomics = nullptr;

  // Stage instants of the latest doorbell and pick, for messages whose WQE is decoded later.
  Time doorbell_at{0};
  Time picked_at{0};
  Time context_at{0};
};

/// All queue pairs of the device by number.
class QpTable {
 public:
  QpContext* find(std::uint32_t qpn) const {
    return qpn < table_.size() ? table_[qpn].get() : nullptr;
  }

  QpContext& create(std::uint32_t qpn) {
    if (qpn >= table_.size()) table_.resize(std::size_t{qpn} + 1);
    table_[qpn] = std::make_unique<QpContext>();
    table_[qpn]->qpn = qpn;
    return *table_[qpn];
  }

  void destroy(std::uint32_t qpn) { table_[qpn].reset(); }
  std::size_t size() const { return table_.size(); }

 private:
  std::vector<std::unique_ptr<QpContext>> table_;
};

}  // namespace rnic::nic

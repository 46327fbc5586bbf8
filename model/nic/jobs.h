// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "nic/qp_context.h"
#include "nic/translation.h"
#include "protocol/frame.h"
#include "transport/transport.h"

namespace rnic::nic {

/// A packet on its way from the scheduler to the port.
struct TxJob {
  QpContext* qp = nullptr;
  protocol::Frame* frame = nullptr;
  transport::TxPlan plan;
  Translation translation;
  TxJob* next = nullptr;     ///< next packet of the same QP
  std::uint32_t lane = 0;    ///< whose place in the transmit path it has
  std::uint32_t piece = 0;   ///< scatter/gather piece being translated
  std::uint32_t filled = 0;  ///< payload bytes for which reads were issued
  std::uint32_t reads_pending = 0;
  bool all_issued = false;
  bool ready = false;  ///< payload complete; leaves when it is the QP's oldest
  bool failed = false;
  bool dropped = false;  ///< an answer behind one that cannot be given: never leaves
  transport::Refusal refusal = transport::Refusal::kOperational;  ///< why, when it has failed
  bool continued = false;  ///< waits for later packets of the same granule
  Time ready_at{0};
};

/// A frame on its way from the port to memory.
struct RxJob : public Waiter {
  QpContext* qp = nullptr;
  protocol::Frame* frame = nullptr;
  transport::RxPlan plan;
  Translation translation;
  RxJob* next = nullptr;       ///< next frame of the same QP
  RxJob* next_kept = nullptr;  ///< next one that waits for the rest of its granule
  class RxPipeline* pipeline = nullptr;
  class Responder* responder = nullptr;  ///< who is to be resumed, when not the pipeline
  std::uint32_t piece_count = 0;
  std::uint32_t piece = 0;
  std::uint32_t header_bytes = 0;  ///< datagram: network header in front of the payload
  std::uint32_t placed = 0;        ///< payload bytes for which writes were issued
  std::uint32_t writes_pending = 0;
  bool finished = false;        ///< all writes issued
  bool wants_wqe = false;       ///< waits for the evicted WQE of the READ it answers
  bool recv_taken = false;      ///< holds the QP's front RECV
  bool kept = false;            ///< accepted, but written only with the rest of its granule
  bool expected = false;        ///< the responder knows what it will need
  bool in_port_buffer = false;  ///< occupies the port's receive buffer
  bool forsaken = false;        ///< came before a reset: changes nothing any more
  Time left_device{0};          ///< last payload byte on the way to memory
  Time begun{0};                ///< when it set out behind the parser
  Time arrived{0};
  Time came{0};  ///< its last bit was in
  transport::PieceList pieces;
  std::array<std::uint8_t, 8> atomic_bytes{};  ///< answer of an atomic, as memory holds it

  void resume(Time now) override;
};

}  // namespace rnic::nic

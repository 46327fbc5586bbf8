// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace rnic::stats {

/// The arrows of a message's journey. Each names what passes between the mark before it and its
/// own; the stages of one message sum to its latency because every mark closes the interval since
/// the last one.
enum class Stage : std::uint8_t {
  kPost,               ///< CPU builds the WQE, rings the doorbell
  kDoorbell,           ///< MMIO write crosses PCIe, doorbell unit decodes it
  kSqWait,             ///< waiting in the send queue: earlier messages, window, fence, READ slots
  kSqSchedule,         ///< SQ scheduler picks the QP
  kQpContext,          ///< requester QP context lookup or fetch
  kWqeFetch,           ///< WQE read over PCIe and decode; zero with BlueFlame
  kLocalTranslation,   ///< lkey -> MPT -> MTT at the requester
  kPayloadFetch,       ///< payload gather over PCIe at the requester
  kSegmentation,       ///< earlier packets of the same message
  kPacketize,          ///< headers, PSN, checksums (iWARP: MPA/DDP/TCP engine)
  kPortWait,           ///< waiting for the port: other frames, credits, pause
  kSerialize,          ///< bytes leave at line rate
  kPropagate,          ///< cable and PHY
  kSwitch,             ///< switches on the way
  kReorder,            ///< held by the receive pipeline until what is missing before it has come
  kRxParse,            ///< receive pipeline: parse, check, QP context (iWARP: TCP/MPA/DDP)
  kRqFetch,            ///< RECV WQE fetch
  kRemoteTranslation,  ///< rkey (or RECV lkey) -> MPT -> MTT at the responder
  kAtomicLock,         ///< atomic: waiting for others of the same bucket
  kResponderRead,      ///< READ: the responder reads its memory over PCIe; atomic: and writes it
  kResponse,           ///< response packets: packetize, wire, receive pipeline of the requester
  kPlacement,          ///< payload written to memory over PCIe
  kAck,                ///< acknowledgement: coalescing, wire, requester's receive pipeline
  kCompletion,         ///< CQE formed and written to memory
  kPoll,               ///< CPU sees the CQE or the data
  kCount
};

inline constexpr std::size_t kStageCount = static_cast<std::size_t>(Stage::kCount);

/// snake_case name as printed in reports and result.json.
std::string_view stage_name(Stage stage);

/// Where a message's journey ends, hence which of its two ends at the peer's NIC is on the path:
/// the data going to memory, or the acknowledgement going back.
enum class Journey : std::uint8_t {
  kToPeer,       ///< ends when the peer's program sees the data (ping-pong)
  kToCompletion  ///< ends when the requester's program sees the completion
};

/// Time of one message by stage. Pooled; follows the message through WQE and frames. Marks must
/// not go back in time; an earlier mark is taken as "no time passed".
class MessageTrace {
 public:
  void start(Time now, Journey journey = Journey::kToCompletion) {
    started_ = last_ = now;
    journey_ = journey;
    duration_.fill(kTimeZero);
  }

  void mark(Stage stage, Time now) {
    if (now <= last_) return;
    duration_[static_cast<std::size_t>(stage)] += now - last_;
    last_ = now;
  }

  /// A mark on the way of the data into the peer's memory and program.
  void mark_delivery(Stage stage, Time now) {
    if (journey_ == Journey::kToPeer) mark(stage, now);
  }
  /// A mark on the way back to the requester.
  void mark_return(Stage stage, Time now) {
    if (journey_ == Journey::kToCompletion) mark(stage, now);
  }

  bool ends_at_requester() const { return journey_ == Journey::kToCompletion; }

  Time started() const { return started_; }
  Time last() const { return last_; }
  Time total() const { return last_ - started_; }
  Time of(Stage stage) const { return duration_[static_cast<std::size_t>(stage)]; }

 private:
  Time started_{0};
  Time last_{0};
  Journey journey_ = Journey::kToCompletion;
  std::array<Time, kStageCount> duration_{};
};

}  // namespace rnic::stats

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "base/page.h"
#include "base/pool.h"

namespace rnic::stats {
class MessageTrace;
}

namespace rnic::protocol {

/// Bytes of a packet's payload, pooled with the frame that carries them: a buffer that grows to the
/// largest payload it ever carried and keeps that capacity, or a page of memory that they are.
class PayloadBuffer {
 public:
  const std::uint8_t* data() const { return page_ ? page_.get() : buffer_.get(); }
  /// The bytes, to be changed; nobody else sees that.
  std::uint8_t* writable() {
    if (page_) {
      const Page page = std::move(page_);
      reserve(Page::kBytes);
      std::memcpy(buffer_.get(), page.get(), Page::kBytes);
    }
    return buffer_.get();
  }

  /// Makes room for `bytes`; contents are undefined afterwards.
  void reserve(std::size_t bytes) {
    page_.reset();
    if (bytes <= capacity_) return;
    buffer_.reset(new std::uint8_t[bytes]);
    capacity_ = bytes;
  }

  /// Where a page may be put that the payload is; holds nothing while the bytes are in the buffer.
  Page& page() { return page_; }

 private:
  std::unique_ptr<std::uint8_t[]> buffer_;
  std::size_t capacity_ = 0;
  Page page_;
};

/// What the link layer must know about a frame.
enum class FrameClass : std::uint8_t {
  kData,         ///< carries or requests user data; counted as a data packet
  kAck,          ///< transport acknowledgement (AETH, pure TCP ACK)
  kConnection,   ///< connection set-up and tear-down
  kLinkControl,  ///< IB flow-control packet, Ethernet PFC: never queued behind data, no credits
};

/// One frame on the wire: true header bytes, payload, pad and (on demand) trailing checksums.
///
/// Checksums over the payload are computed only when somebody can look at them: a capture, or a
/// fault that changed a byte. Until then `checksums_deferred` says "as the sender would have
/// computed them"; a fault injector materialises them before it flips a bit, so that the receiver
/// finds the error by the true arithmetic.
struct Frame {
  static constexpr std::size_t kMaxHeaderBytes = 232;
  static constexpr std::size_t kMaxTrailerBytes = 8;

  std::uint8_t header[kMaxHeaderBytes];    ///< first byte on the wire .. last byte before payload
  std::uint8_t trailer[kMaxTrailerBytes];  ///< valid when !checksums_deferred
  std::uint16_t header_bytes;
  std::uint8_t trailer_bytes;       ///< ICRC + VCRC, ICRC + FCS, or MPA CRC + FCS
  std::uint8_t pad_bytes;           ///< zero bytes between payload and trailer
  std::uint16_t marker_offset = 0;  ///< MPA: where in the interval of markers the FPDU starts
  std::uint16_t marker_count = 0;   ///< MPA: markers inside it; their bytes are in no other field
  std::uint32_t payload_bytes;
  std::uint32_t wire_bytes;  ///< line time in byte times: header .. trailer, minimum size, preamble
                             ///< and gap, or start/end symbols
  FrameClass frame_class;
  std::uint8_t lane;  ///< IB virtual lane or Ethernet priority
  bool checksums_deferred;
  bool has_payload_data;  ///< false when sim.payload=none left the bytes out
  bool ecn_marked;
  bool uncounted = false;  ///< came out of turn or twice on a faulty cable: outside flow control's
                           ///< account, takes no receive buffer
  std::uint32_t answers_qpn = 0;  ///< ends what this queue pair answers to a READ or atomic, or 0;
                                  ///< set by the NIC that sends it, for itself
  PayloadBuffer payload;
  stats::MessageTrace*
      trace;               ///< instrumentation of the message that this frame completes, or null
  std::uint64_t sequence;  ///< unique in the simulation, for traces

  /// Bytes that occupy receive buffers: first header byte to last trailer byte.
  std::uint32_t frame_bytes() const {
    return header_bytes + payload_bytes + pad_bytes + trailer_bytes + marker_bytes();
  }
  std::uint32_t marker_bytes() const { return 4U * marker_count; }
};

/// Makes `copy` a frame of the same bytes. Nobody's message: it carries no trace.
inline void copy_frame(const Frame& frame, Frame& copy) {
  std::memcpy(copy.header, frame.header, frame.header_bytes);
  std::memcpy(copy.trailer, frame.trailer, sizeof copy.trailer);
  copy.header_bytes = frame.header_bytes;
  copy.trailer_bytes = frame.trailer_bytes;
  copy.pad_bytes = frame.pad_bytes;
  copy.marker_offset = frame.marker_offset;
  copy.marker_count = frame.marker_count;
  copy.payload_bytes = frame.payload_bytes;
  copy.wire_bytes = frame.wire_bytes;
  copy.frame_class = frame.frame_class;
  copy.lane = frame.lane;
  copy.checksums_deferred = frame.checksums_deferred;
  copy.has_payload_data = frame.has_payload_data;
  copy.ecn_marked = frame.ecn_marked;
  copy.uncounted = frame.uncounted;
  copy.answers_qpn = 0;
  copy.trace = nullptr;
  copy.sequence = frame.sequence;
  if (!frame.has_payload_data || frame.payload_bytes == 0) return;
  copy.payload.reserve(frame.payload_bytes);
  std::memcpy(copy.payload.writable(), frame.payload.data(), frame.payload_bytes);
}

using FramePool = Pool<Frame>;

}  // namespace rnic::protocol

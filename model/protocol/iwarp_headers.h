// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "protocol/byte_io.h"

/// DDP (RFC 5041) and RDMAP (RFC 5040, RFC 7306) headers, as they follow MPA's length field.
namespace rnic::protocol {

enum class RdmapOpcode : std::uint8_t {
  kWrite = 0x0,
  kReadRequest = 0x1,
  kReadResponse = 0x2,
  kSend = 0x3,
  kSendInvalidate = 0x4,
  kSendSolicited = 0x5,
  kSendSolicitedInvalidate = 0x6,
  kTerminate = 0x7,
  kImmediate = 0x8,
  kImmediateSolicited = 0x9,
  kAtomicRequest = 0xA,
  kAtomicResponse = 0xB,
};

/// Untagged queues.
inline constexpr std::uint32_t kDdpQueueSend = 0;
inline constexpr std::uint32_t kDdpQueueReadRequest = 1;
inline constexpr std::uint32_t kDdpQueueTerminate = 2;
inline constexpr std::uint32_t kDdpQueueAtomicResponse = 3;

/// The two control bytes at the start of every DDP segment.
struct DdpControl {
  static constexpr std::uint32_t kBytes = 2;
  bool tagged = false;
  bool last = false;
  std::uint8_t ddp_version = 1;
  std::uint8_t rdmap_version = 1;
  RdmapOpcode opcode = RdmapOpcode::kSend;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits16(0, bits<1>(h.tagged), bits<1>(h.last), Fixed<4>{}, bits<2>(h.ddp_version),
              bits<2>(h.rdmap_version), Fixed<2>{}, bits<4>(h.opcode));
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static DdpControl decode(const std::uint8_t* in) { return decode_header<DdpControl>(in); }
};

/// Tagged segment: WRITE, READ response. `control.tagged` must be set.
struct DdpTagged {
  static constexpr std::uint32_t kBytes = 14;
  DdpControl control;
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;  ///< tagged offset (TO) of this segment

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    DdpControl::layout(h.control, io);
    io.u32(2, h.stag);
    io.u64(6, h.offset);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static DdpTagged decode(const std::uint8_t* in) { return decode_header<DdpTagged>(in); }
};

/// Untagged segment: everything else.
struct DdpUntagged {
  static constexpr std::uint32_t kBytes = 18;
  DdpControl control;
  std::uint32_t invalidate_stag = 0;  ///< SEND with invalidate; else 0
  std::uint32_t queue = 0;
  std::uint32_t msn = 1;     ///< message number in its queue, from 1
  std::uint32_t offset = 0;  ///< of this segment in its message (MO)

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    DdpControl::layout(h.control, io);
    io.u32(2, h.invalidate_stag);
    io.u32(6, h.queue);
    io.u32(10, h.msn);
    io.u32(14, h.offset);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static DdpUntagged decode(const std::uint8_t* in) { return decode_header<DdpUntagged>(in); }
};

/// READ request, the payload of an untagged segment on queue 1.
struct RdmapReadRequest {
  static constexpr std::uint32_t kBytes = 28;
  std::uint32_t sink_stag = 0;
  std::uint64_t sink_offset = 0;
  std::uint32_t length = 0;
  std::uint32_t source_stag = 0;
  std::uint64_t source_offset = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u32(0, h.sink_stag);
    io.u64(4, h.sink_offset);
    io.u32(12, h.length);
    io.u32(16, h.source_stag);
    io.u64(20, h.source_offset);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static RdmapReadRequest decode(const std::uint8_t* in) {
    return decode_header<RdmapReadRequest>(in);
  }
};

/// Atomic request (RFC 7306), the payload of an untagged segment on queue 1.
struct RdmapAtomicRequest {
  static constexpr std::uint32_t kBytes = 52;
  static constexpr std::uint8_t kFetchAdd = 0;
  static constexpr std::uint8_t kCompareSwap = 2;
  std::uint8_t operation = kFetchAdd;
  std::uint32_t request_id = 0;
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t swap_or_add_mask = 0;
  std::uint64_t compare = 0;
  std::uint64_t compare_mask = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, Fixed<28>{}, bits<4>(h.operation));
    io.u32(4, h.request_id);
    io.u32(8, h.stag);
    io.u64(12, h.offset);
    io.u64(20, h.swap_or_add);
    io.u64(28, h.swap_or_add_mask);
    io.u64(36, h.compare);
    io.u64(44, h.compare_mask);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static RdmapAtomicRequest decode(const std::uint8_t* in) {
    return decode_header<RdmapAtomicRequest>(in);
  }
};

/// Atomic response, the payload of an untagged segment on queue 3.
struct RdmapAtomicResponse {
  static constexpr std::uint32_t kBytes = 12;
  std::uint32_t request_id = 0;
  std::uint64_t original = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u32(0, h.request_id);
    io.u64(4, h.original);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static RdmapAtomicResponse decode(const std::uint8_t* in) {
    return decode_header<RdmapAtomicResponse>(in);
  }
};

/// Immediate data message (RFC 7306): 8 bytes, of which verbs use the first 4.
struct RdmapImmediate {
  static constexpr std::uint32_t kBytes = 8;
  std::uint32_t imm = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u32(0, h.imm);
    io.template zeros<4>(4);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static RdmapImmediate decode(const std::uint8_t* in) { return decode_header<RdmapImmediate>(in); }
};

/// Layers and error types of a terminate message; the codes are listed in RFC 5040, section 4.8.
enum class TerminateLayer : std::uint8_t { kRdmap = 0, kDdp = 1, kLlp = 2 };

/// Terminate control word. The headers of the offending segment follow as its flags say: DDP
/// segment length (2 bytes) with `has_length`, DDP header with `has_ddp_header`, READ request with
/// `has_read_header`.
struct RdmapTerminate {
  static constexpr std::uint32_t kBytes = 4;
  TerminateLayer layer = TerminateLayer::kRdmap;
  std::uint8_t error_type = 0;
  std::uint8_t error_code = 0;
  bool has_length = false;
  bool has_ddp_header = false;
  bool has_read_header = false;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, bits<4>(h.layer), bits<4>(h.error_type), bits<8>(h.error_code),
              bits<1>(h.has_length), bits<1>(h.has_ddp_header), bits<1>(h.has_read_header),
              Fixed<13>{});
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static RdmapTerminate decode(const std::uint8_t* in) { return decode_header<RdmapTerminate>(in); }
};

}  // namespace rnic::protocol

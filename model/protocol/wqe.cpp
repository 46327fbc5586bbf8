// SPDX-License-Identifier: Apache-2.0
#include "protocol/wqe.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "protocol/byte_order.h"

namespace rnic::protocol {
namespace {

constexpr std::uint32_t kInlineFlag = 0x8000'0000;
constexpr std::uint8_t kSolicitedBit = 0x02;
constexpr std::uint8_t kCompletionBits = 0x08;  // CE = 2: write a CQE on success
constexpr std::uint8_t kFenceBits = 0x80;       // FM = 4: full fence

bool has_remote_segment(const SendWqe& wqe) {
  return wqe.is_write() || wqe.is_read() || wqe.is_atomic() || wqe.is_key_update();
}

constexpr std::uint32_t kDatagramSegments = 3;

// The handle's protection domain, as mlx4's address vectors have it: its 20 bits lie above those of
// the queue pair's number and of the flow label.
constexpr std::uint32_t kNumberBits = 24;
constexpr std::uint32_t kFlowLabelBits = 20;
constexpr std::uint32_t kLowDomainBits = 32 - kNumberBits;

constexpr std::uint32_t low_bits(std::uint32_t value, std::uint32_t bits) {
  return value & ((1U << bits) - 1);
}

std::uint32_t header_segments(const SendWqe& wqe) {
  return 1U + (wqe.is_datagram ? kDatagramSegments : 0U) + (has_remote_segment(wqe) ? 1U : 0U) +
         (wqe.is_atomic() ? 1U : 0U) + (wqe.is_key_update() ? 2U : 0U);
}

std::uint32_t wqe_segments(const SendWqe& wqe) {
  if (wqe.inline_data) {
    const std::uint32_t bytes = 4 + wqe.length;
    return header_segments(wqe) + (bytes + kWqeSegmentBytes - 1) / kWqeSegmentBytes;
  }
  return header_segments(wqe) + wqe.sge_count;
}

void store_sge(std::uint8_t* p, const Sge& sge) {
  store_be32(p, sge.length);
  store_be32(p + 4, sge.lkey);
  store_be64(p + 8, sge.address);
}

void store_datagram(std::uint8_t* p, const Datagram& datagram) {
  const AddressVector& av = datagram.av;
  store_be32(p, datagram.qkey);
  store_be16(p + 4, av.udp_source_port);
  store_be16(p + 6, av.vlan_id);
  store_be32(p + 8, low_bits(datagram.destination_qpn, kNumberBits) | datagram.pd << kNumberBits);
  p[12] = av.service_level;
  p[13] = av.lane;
  store_be16(p + 14, av.destination_lid);
  store_be32(p + 16, av.destination_ipv4);
  std::copy(av.destination_mac.begin(), av.destination_mac.end(), p + 20);
  p[26] = av.traffic_class;
  p[27] = av.hop_limit;
  store_be32(p + 28, low_bits(av.flow_label, kFlowLabelBits) |
                         datagram.pd >> kLowDomainBits << kFlowLabelBits);
  std::copy(av.destination_gid.begin(), av.destination_gid.end(), p + 32);
}

void load_datagram(const std::uint8_t* p, Datagram& datagram) {
  AddressVector& av = datagram.av;
  datagram.qkey = load_be32(p);
  av.udp_source_port = load_be16(p + 4);
  av.vlan_id = load_be16(p + 6);
  const std::uint32_t number = load_be32(p + 8);
  const std::uint32_t label = load_be32(p + 28);
  datagram.destination_qpn = low_bits(number, kNumberBits);
  datagram.pd = number >> kNumberBits | label >> kFlowLabelBits << kLowDomainBits;
  av.service_level = p[12];
  av.lane = p[13];
  av.destination_lid = load_be16(p + 14);
  av.destination_ipv4 = load_be32(p + 16);
  std::copy_n(p + 20, av.destination_mac.size(), av.destination_mac.begin());
  av.traffic_class = p[26];
  av.hop_limit = p[27];
  av.flow_label = low_bits(label, kFlowLabelBits);
  std::copy_n(p + 32, av.destination_gid.size(), av.destination_gid.begin());
}

/// A sum of lengths, or the largest that a field holds: more than any message may have.
std::uint32_t bounded(std::uint64_t length) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(length, std::numeric_limits<std::uint32_t>::max()));
}

Sge load_sge(const std::uint8_t* p) {
  return Sge{load_be64(p + 8), load_be32(p), load_be32(p + 4)};
}

bool known(WqeOpcode opcode) {
  switch (opcode) {
    case WqeOpcode::kNop:
    case WqeOpcode::kSendInval:
    case WqeOpcode::kWrite:
    case WqeOpcode::kWriteImm:
    case WqeOpcode::kSend:
    case WqeOpcode::kSendImm:
    case WqeOpcode::kRead:
    case WqeOpcode::kAtomicCas:
    case WqeOpcode::kAtomicFadd:
    case WqeOpcode::kBindMw:
    case WqeOpcode::kLocalInval:
    case WqeOpcode::kFastReg:
      return true;
  }
  return false;
}

}  // namespace

std::uint32_t wqe_blocks(const SendWqe& wqe) {
  constexpr std::uint32_t kSegmentsPerBlock = kWqeBlockBytes / kWqeSegmentBytes;
  return (wqe_segments(wqe) + kSegmentsPerBlock - 1) / kSegmentsPerBlock;
}

void encode_wqe(const SendWqe& wqe, std::uint32_t qpn, std::uint8_t* out) {
  std::memset(out, 0, std::size_t{wqe.blocks} * kWqeBlockBytes);
  store_be32(out, (std::uint32_t{wqe.index} << 8) | static_cast<std::uint32_t>(wqe.opcode));
  store_be32(out + 4, (qpn << 8) | wqe_segments(wqe));
  out[11] = static_cast<std::uint8_t>((wqe.fence ? kFenceBits : 0) |
                                      (wqe.signaled ? kCompletionBits : 0) |
                                      (wqe.solicited ? kSolicitedBit : 0));
  store_be32(out + 12, wqe.imm_or_rkey);
  std::uint8_t* p = out + kWqeSegmentBytes;
  if (wqe.is_datagram) {
    store_datagram(p, wqe.datagram);
    p += kDatagramSegments * kWqeSegmentBytes;
  }
  if (has_remote_segment(wqe)) {
    store_be64(p, wqe.remote_address);
    store_be32(p + 8, wqe.rkey);
    p += kWqeSegmentBytes;
  }
  if (wqe.is_atomic() || wqe.is_key_update()) {
    store_be64(p, wqe.swap_or_add);
    store_be64(p + 8, wqe.compare);
    p += kWqeSegmentBytes;
  }
  if (wqe.is_key_update()) {
    store_be32(p, wqe.key_access);
    p[4] = wqe.log2_page_size;
    p += kWqeSegmentBytes;
  }
  if (wqe.inline_data) {
    store_be32(p, kInlineFlag | wqe.length);
    if (wqe.length > 0) std::memcpy(p + 4, wqe.inline_bytes.data(), wqe.length);
    return;
  }
  for (std::uint32_t i = 0; i < wqe.sge_count; ++i, p += kWqeSegmentBytes) store_sge(p, wqe.sge[i]);
}

std::uint32_t peek_wqe_blocks(const std::uint8_t* in) {
  const std::uint32_t segments = in[7] & 0x3FU;
  return (segments * kWqeSegmentBytes + kWqeBlockBytes - 1) / kWqeBlockBytes;
}

bool decode_wqe(const std::uint8_t* in, std::size_t available, SendWqe& out, QpType type) {
  out.is_datagram = type == QpType::kUd;
  const std::uint32_t control = load_be32(in);
  out.opcode = static_cast<WqeOpcode>(control & 0xFF);
  out.index = static_cast<std::uint16_t>(control >> 8);
  const std::uint32_t segments = in[7] & 0x3FU;
  out.blocks = static_cast<std::uint8_t>(peek_wqe_blocks(in));
  if (!known(out.opcode) || segments == 0) return false;
  if (std::size_t{segments} * kWqeSegmentBytes > available) return false;
  out.fence = (in[11] & kFenceBits) != 0;
  out.signaled = (in[11] & kCompletionBits) != 0;
  out.solicited = (in[11] & kSolicitedBit) != 0;
  out.imm_or_rkey = load_be32(in + 12);
  if (header_segments(out) > segments) return false;
  const std::uint8_t* p = in + kWqeSegmentBytes;
  const std::uint8_t* const end = in + std::size_t{segments} * kWqeSegmentBytes;
  if (out.is_datagram) {
    load_datagram(p, out.datagram);
    p += kDatagramSegments * kWqeSegmentBytes;
  }
  if (has_remote_segment(out)) {
    out.remote_address = load_be64(p);
    out.rkey = load_be32(p + 8);
    p += kWqeSegmentBytes;
  }
  if (out.is_atomic() || out.is_key_update()) {
    out.swap_or_add = load_be64(p);
    out.compare = load_be64(p + 8);
    p += kWqeSegmentBytes;
  }
  if (out.is_key_update()) {
    out.key_access = load_be32(p);
    out.log2_page_size = p[4];
    p += kWqeSegmentBytes;
  }
  out.length = 0;
  out.sge_count = 0;
  std::uint64_t length = 0;
  out.inline_data = p < end && (load_be32(p) & kInlineFlag) != 0;
  if (out.inline_data) {
    out.length = load_be32(p) & ~kInlineFlag;
    if (out.length > static_cast<std::size_t>(end - p) - 4) return false;
    out.inline_bytes.reserve(out.length);
    if (out.length > 0) std::memcpy(out.inline_bytes.writable(), p + 4, out.length);
    return true;
  }
  for (; p < end && out.sge_count < kMaxSge; p += kWqeSegmentBytes) {
    out.sge[out.sge_count] = load_sge(p);
    length += out.sge[out.sge_count++].length;
  }
  out.length = bounded(length);
  return true;
}

void encode_srq_next(std::uint16_t next, std::uint8_t* out) {
  std::memset(out, 0, kSrqNextBytes);
  store_be16(out + 2, next);
}

std::uint16_t decode_srq_next(const std::uint8_t* in) { return load_be16(in + 2); }

void encode_recv_wqe(const Sge* sge, std::uint32_t count, std::uint32_t max_sge,
                     std::uint8_t* out) {
  for (std::uint32_t i = 0; i < count; ++i)
    store_sge(out + std::size_t{i} * kWqeSegmentBytes, sge[i]);
  if (count < max_sge)
    store_sge(out + std::size_t{count} * kWqeSegmentBytes, Sge{0, 0, kInvalidLkey});
}

void decode_recv_wqe(const std::uint8_t* in, std::uint32_t max_sge, RecvWqe& out) {
  out.sge_count = 0;
  std::uint64_t length = 0;
  for (std::uint32_t i = 0; i < std::min(max_sge, kMaxSge); ++i) {
    const Sge sge = load_sge(in + std::size_t{i} * kWqeSegmentBytes);
    if (sge.lkey == kInvalidLkey) break;
    if (sge.length == 0) continue;  // an empty element is skipped
    out.sge[out.sge_count++] = sge;
    length += sge.length;
  }
  out.length = bounded(length);
}

}  // namespace rnic::protocol

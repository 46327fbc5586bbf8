// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/byte_io.h"
#include "protocol/ip.h"
#include "protocol/opcode.h"

/// InfiniBand network and transport headers (IBTA vol 1, chapters 7.7, 8.3 and 9.2-9.3).
namespace rnic::protocol {

inline constexpr std::uint32_t kIcrcBytes = 4;
inline constexpr std::uint32_t kVcrcBytes = 2;
inline constexpr std::uint16_t kDefaultPkey = 0xFFFF;

/// What follows the LRH.
enum class LinkNextHeader : std::uint8_t { kRaw = 0, kIpv6 = 1, kBth = 2, kGrh = 3 };

/// Local route header.
struct Lrh {
  static constexpr std::uint32_t kBytes = 8;
  std::uint8_t vl = 0;  ///< 0-14 data, 15 management
  std::uint8_t link_version = 0;
  std::uint8_t service_level = 0;
  LinkNextHeader next_header = LinkNextHeader::kBth;
  std::uint16_t destination_lid = 0;
  std::uint16_t packet_words = 0;  ///< 4-byte words, LRH to ICRC; 11 bits
  std::uint16_t source_lid = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, bits<4>(h.vl), bits<4>(h.link_version), bits<4>(h.service_level), Fixed<2>{},
              bits<2>(h.next_header), bits<16>(h.destination_lid));
    io.bits32(4, Fixed<5>{}, bits<11>(h.packet_words), bits<16>(h.source_lid));
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static Lrh decode(const std::uint8_t* in) { return decode_header<Lrh>(in); }
};

/// Global route header: the IPv6 layout.
using Grh = Ipv6Header;

/// Base transport header.
struct Bth {
  static constexpr std::uint32_t kBytes = 12;
  static constexpr std::uint32_t kCongestionOffset = 4;  ///< byte with FECN and BECN
  static constexpr std::uint8_t kFecnBit = 0x80;
  BthOpcode opcode = BthOpcode::kSendFirst;
  bool solicited = false;
  bool migration = false;  ///< MigReq
  std::uint8_t pad_count = 0;
  std::uint8_t version = 0;
  std::uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  std::uint32_t dest_qpn = 0;  ///< 24 bits
  bool ack_request = false;
  std::uint32_t psn = 0;  ///< 24 bits

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, bits<8>(h.opcode), bits<1>(h.solicited), bits<1>(h.migration),
              bits<2>(h.pad_count), bits<4>(h.version), bits<16>(h.pkey));
    io.bits32(4, bits<1>(h.fecn), bits<1>(h.becn), Fixed<6>{}, bits<24>(h.dest_qpn));
    io.bits32(8, bits<1>(h.ack_request), Fixed<7>{}, bits<24>(h.psn));
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static Bth decode(const std::uint8_t* in) { return decode_header<Bth>(in); }
};

/// RDMA extended header: READ requests and the first packet of a WRITE.
struct Reth {
  static constexpr std::uint32_t kBytes = 16;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t dma_length = 0;  ///< of the whole message

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u64(0, h.va);
    io.u32(8, h.rkey);
    io.u32(12, h.dma_length);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static Reth decode(const std::uint8_t* in) { return decode_header<Reth>(in); }
};

/// ACK extended header; syndromes are in aeth.h.
struct Aeth {
  static constexpr std::uint32_t kBytes = 4;
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;  ///< 24 bits

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, bits<8>(h.syndrome), bits<24>(h.msn));
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static Aeth decode(const std::uint8_t* in) { return decode_header<Aeth>(in); }
};

/// Atomic operation's operands; FETCH_ADD sends compare 0.
struct AtomicEth {
  static constexpr std::uint32_t kBytes = 28;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u64(0, h.va);
    io.u32(8, h.rkey);
    io.u64(12, h.swap_or_add);
    io.u64(20, h.compare);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static AtomicEth decode(const std::uint8_t* in) { return decode_header<AtomicEth>(in); }
};

/// Atomic operation's result.
struct AtomicAckEth {
  static constexpr std::uint32_t kBytes = 8;
  std::uint64_t original = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u64(0, h.original);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static AtomicAckEth decode(const std::uint8_t* in) { return decode_header<AtomicAckEth>(in); }
};

/// Datagram extended header.
struct Deth {
  static constexpr std::uint32_t kBytes = 8;
  std::uint32_t qkey = 0;
  std::uint32_t source_qpn = 0;  ///< 24 bits

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u32(0, h.qkey);
    io.bits32(4, Fixed<8>{}, bits<24>(h.source_qpn));
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static Deth decode(const std::uint8_t* in) { return decode_header<Deth>(in); }
};

/// Immediate data, carried untouched from send to receive work request.
struct ImmDt {
  static constexpr std::uint32_t kBytes = 4;
  std::uint32_t imm = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u32(0, h.imm);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static ImmDt decode(const std::uint8_t* in) { return decode_header<ImmDt>(in); }
};

/// R_Key to invalidate.
struct Ieth {
  static constexpr std::uint32_t kBytes = 4;
  std::uint32_t rkey = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u32(0, h.rkey);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static Ieth decode(const std::uint8_t* in) { return decode_header<Ieth>(in); }
};

/// Shared receive queue of an XRC request, right behind the BTH.
struct XrcEth {
  static constexpr std::uint32_t kBytes = 4;
  std::uint32_t srq = 0;  ///< 24 bits

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, Fixed<8>{}, bits<24>(h.srq));
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static XrcEth decode(const std::uint8_t* in) { return decode_header<XrcEth>(in); }
};

/// Zero bytes that bring a payload to a multiple of 4.
constexpr std::uint8_t pad_to_word(std::uint32_t payload_bytes) {
  return static_cast<std::uint8_t>((0U - payload_bytes) & 3U);
}

/// Largest InfiniBand MTU whose packets fit an Ethernet MTU: 96 bytes are set aside for GRH, UDP,
/// BTH, the largest extended headers and ICRC (Linux include/rdma/ib_addr.h). 0 when none fits.
constexpr std::uint32_t roce_path_mtu(std::uint32_t ethernet_mtu) {
  for (std::uint32_t mtu = 4096; mtu >= 256; mtu /= 2) {
    if (ethernet_mtu >= mtu + 96) return mtu;
  }
  return 0;
}

}  // namespace rnic::protocol

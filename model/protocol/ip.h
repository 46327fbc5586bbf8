// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "protocol/byte_io.h"

namespace rnic::protocol {

/// An IPv6 address or an InfiniBand GID, most significant byte first.
using Gid = std::array<std::uint8_t, 16>;

inline constexpr std::uint8_t kIpProtocolTcp = 6;
inline constexpr std::uint8_t kIpProtocolUdp = 17;
inline constexpr std::uint8_t kNextHeaderBth = 0x1B;

/// ECN codepoints (RFC 3168): the low two bits of ToS or traffic class.
inline constexpr std::uint8_t kEcnMask = 3;
inline constexpr std::uint8_t kEcnCapable = 2;
inline constexpr std::uint8_t kEcnCongestion = 3;

/// One's-complement sum of RFC 1071 over pieces of any length, odd ones included.
class InternetChecksum {
 public:
  void add(const std::uint8_t* data, std::size_t bytes) {
    if (odd_ && bytes > 0) {
      sum_ += *data++;
      --bytes;
      odd_ = false;
    }
    for (; bytes >= 4; bytes -= 4, data += 4) sum_ += load_be32(data);
    if (bytes >= 2) {
      sum_ += load_be16(data);
      data += 2;
      bytes -= 2;
    }
    if (bytes == 1) {
      sum_ += static_cast<std::uint64_t>(*data) << 8;
      odd_ = true;
    }
  }
  /// Adds a number as big-endian 16-bit words; only between pieces of even total length.
  void add_number(std::uint32_t value) { sum_ += value; }

  /// The field value: complement of the folded sum. 0 over data that includes a correct checksum.
  std::uint16_t value() const {
    std::uint64_t s = sum_;
    while (s > 0xFFFF) s = (s & 0xFFFF) + (s >> 16);
    return static_cast<std::uint16_t>(~s & 0xFFFF);
  }

 private:
  std::uint64_t sum_ = 0;
  bool odd_ = false;
};

/// IPv4 header without options (RFC 791).
struct Ipv4Header {
  static constexpr std::uint32_t kBytes = 20;
  static constexpr std::uint32_t kChecksumOffset = 10;
  std::uint8_t version = 4;
  std::uint8_t header_words = 5;
  std::uint8_t tos = 0;  ///< DSCP 6 bits, ECN 2 bits
  std::uint16_t total_bytes = 0;
  std::uint16_t identification = 0;
  bool dont_fragment = true;
  bool more_fragments = false;
  std::uint16_t fragment_offset = 0;  ///< 8-byte units
  std::uint8_t ttl = 64;
  std::uint8_t protocol = 0;
  std::uint16_t checksum = 0;
  std::uint32_t source = 0;  ///< host order: 10.0.0.1 is 0x0A000001
  std::uint32_t destination = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, bits<4>(h.version), bits<4>(h.header_words), bits<8>(h.tos),
              bits<16>(h.total_bytes));
    io.bits32(4, bits<16>(h.identification), Fixed<1>{}, bits<1>(h.dont_fragment),
              bits<1>(h.more_fragments), bits<13>(h.fragment_offset));
    io.bits32(8, bits<8>(h.ttl), bits<8>(h.protocol), bits<16>(h.checksum));
    io.u32(12, h.source);
    io.u32(16, h.destination);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static Ipv4Header decode(const std::uint8_t* in) { return decode_header<Ipv4Header>(in); }

  /// Checksum field's value for these 20 bytes with the field itself zero; 0 for a correct header.
  static std::uint16_t sum(const std::uint8_t* header) {
    // Written out: the loop is not unrolled at -O2, and every packet comes through here twice.
    std::uint64_t s = std::uint64_t{load_be32(header)} + load_be32(header + 4) +
                      load_be32(header + 8) + load_be32(header + 12) + load_be32(header + 16);
    s = (s & 0xFFFF'FFFF) + (s >> 32);
    s = (s & 0xFFFF) + (s >> 16);
    s = (s & 0xFFFF) + (s >> 16);
    s = (s & 0xFFFF) + (s >> 16);
    return static_cast<std::uint16_t>(~s & 0xFFFF);
  }
  /// As encode(), with the checksum computed instead of taken from the field.
  void encode_summed(std::uint8_t* out) const {
    Ipv4Header h = *this;
    h.checksum = 0;
    h.encode(out);
    store_be16(out + kChecksumOffset, sum(out));
  }
};

/// IPv6 header (RFC 8200). InfiniBand's GRH has the same layout, GIDs for addresses.
struct Ipv6Header {
  static constexpr std::uint32_t kBytes = 40;
  std::uint8_t version = 6;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;  ///< 20 bits
  std::uint16_t payload_bytes = 0;
  std::uint8_t next_header = 0;
  std::uint8_t hop_limit = 64;
  Gid source{};
  Gid destination{};

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, bits<4>(h.version), bits<8>(h.traffic_class), bits<20>(h.flow_label));
    io.bits32(4, bits<16>(h.payload_bytes), bits<8>(h.next_header), bits<8>(h.hop_limit));
    io.bytes(8, h.source);
    io.bytes(24, h.destination);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static Ipv6Header decode(const std::uint8_t* in) { return decode_header<Ipv6Header>(in); }
};

}  // namespace rnic::protocol

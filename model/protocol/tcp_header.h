// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "protocol/byte_io.h"

namespace rnic::protocol {

/// TCP header without its options (RFC 9293).
struct TcpHeader {
  static constexpr std::uint32_t kBytes = 20;
  static constexpr std::uint32_t kDataOffsetOffset = 12;  ///< header words in its high nibble
  static constexpr std::uint32_t kChecksumOffset = 16;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgement = 0;
  std::uint8_t header_words = 5;  ///< 32-bit words, options included
  bool cwr = false;
  bool ece = false;
  bool urg = false;
  bool ack = false;
  bool psh = false;
  bool rst = false;
  bool syn = false;
  bool fin = false;
  std::uint16_t window = 0;  ///< unscaled field
  std::uint16_t checksum = 0;
  std::uint16_t urgent = 0;

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.u16(0, h.source_port);
    io.u16(2, h.destination_port);
    io.u32(4, h.sequence);
    io.u32(8, h.acknowledgement);
    io.bits32(12, bits<4>(h.header_words), Fixed<4>{}, bits<1>(h.cwr), bits<1>(h.ece),
              bits<1>(h.urg), bits<1>(h.ack), bits<1>(h.psh), bits<1>(h.rst), bits<1>(h.syn),
              bits<1>(h.fin), bits<16>(h.window));
    io.u16(16, h.checksum);
    io.u16(18, h.urgent);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static TcpHeader decode(const std::uint8_t* in) { return decode_header<TcpHeader>(in); }

  std::uint32_t header_bytes() const { return 4U * header_words; }

  /// The largest value of `window`, before any scaling.
  static constexpr std::uint32_t kMaxWindow = 0xFFFF;
};

/// TCP options that the model's engine speaks (RFC 9293, 7323, 2018).
struct TcpOptions {
  static constexpr std::uint32_t kMaxBytes = 40;
  static constexpr std::uint32_t kTimestampBytes = 12;  ///< alone, with its two NOPs
  static constexpr std::uint32_t kMaxSackBlocks = 4;

  struct SackBlock {
    std::uint32_t left = 0;   ///< first byte received
    std::uint32_t right = 0;  ///< one behind the last
  };

  bool has_mss = false;
  bool has_window_scale = false;
  bool sack_permitted = false;
  bool has_timestamps = false;
  std::uint16_t mss = 0;
  std::uint8_t window_scale = 0;  ///< 0-14
  std::uint8_t sack_count = 0;    ///< at most 4, 3 beside timestamps
  std::uint32_t timestamp = 0;
  std::uint32_t timestamp_echo = 0;
  std::array<SackBlock, kMaxSackBlocks> sack{};

  /// Bytes encode() will write, a multiple of 4.
  std::uint32_t bytes() const;
  /// Writes the options with NOP padding to a multiple of 4; returns bytes(). The choice must fit
  /// kMaxBytes.
  std::uint32_t encode(std::uint8_t* out) const;
  /// False for malformed options. Unknown ones are skipped.
  static bool decode(const std::uint8_t* in, std::size_t bytes, TcpOptions& options);
};

/// TCP sequence arithmetic: a - b modulo 2^32, negative when a is before b.
constexpr std::int32_t tcp_distance(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t d = a - b;
  return static_cast<std::int32_t>(static_cast<std::int64_t>(d) -
                                   (d >= 0x8000'0000U ? 0x1'0000'0000LL : 0));
}

}  // namespace rnic::protocol

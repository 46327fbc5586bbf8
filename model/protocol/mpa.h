// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/byte_io.h"

/// MPA framing of DDP segments in a TCP stream (RFC 5044, RFC 6581).
namespace rnic::protocol {

inline constexpr std::uint32_t kMpaLengthBytes = 2;
inline constexpr std::uint32_t kMpaCrcBytes = 4;
inline constexpr std::uint32_t kMpaMarkerBytes = 4;
inline constexpr std::uint32_t kMpaMarkerInterval = 512;
inline constexpr std::uint32_t kMpaMaxConnectBytes = 512;

/// Zero bytes between a ULPDU and the CRC.
constexpr std::uint32_t mpa_pad(std::uint32_t ulpdu_bytes) {
  return (0U - (kMpaLengthBytes + ulpdu_bytes)) & 3U;
}

/// FPDU size without markers, always a multiple of 4.
constexpr std::uint32_t fpdu_bytes(std::uint32_t ulpdu_bytes) {
  return kMpaLengthBytes + ulpdu_bytes + mpa_pad(ulpdu_bytes) + kMpaCrcBytes;
}

/// Largest ULPDU that fits a segment of `emss` TCP payload bytes in one FPDU; never below 128.
constexpr std::uint32_t mulpdu(std::uint32_t emss, bool markers) {
  constexpr std::uint32_t kLeast = 128;
  const std::uint32_t marker_bytes = markers ? 4 * ((emss + 511) / 512) : 0;
  const std::uint32_t overhead = 6 + marker_bytes + emss % 4;
  return emss < overhead + kLeast ? kLeast : emss - overhead;
}

/// Offset of the first marker at or behind stream offset `at` (a multiple of 4); offsets count
/// from the first byte of full operation, markers included.
constexpr std::uint64_t next_marker(std::uint64_t at) {
  return (at + kMpaMarkerInterval - 1) / kMpaMarkerInterval * kMpaMarkerInterval;
}

/// Bytes of the stream that an FPDU of `bytes` (fpdu_bytes()) takes when its first byte, or the
/// marker before it, is at `stream_offset`.
std::uint64_t fpdu_stream_bytes(std::uint64_t stream_offset, std::uint32_t bytes, bool markers);

/// Appends the FPDU around `ulpdu` to `out`. With `markers` they go where the stream offset asks
/// for them; with `crc` false the CRC field is zero.
void append_fpdu(std::vector<std::uint8_t>& out, const std::uint8_t* ulpdu,
                 std::uint16_t ulpdu_bytes, bool crc, bool markers, std::uint64_t stream_offset);

enum class FpduStatus : std::uint8_t {
  kOk,
  kIncomplete,  ///< more bytes are needed
  kBadCrc,
  kBadMarker,  ///< a marker disagrees with the length field
};

/// Takes the FPDU at the start of `in` apart: `ulpdu` gets its bytes without markers, `consumed`
/// the stream bytes it took.
FpduStatus parse_fpdu(const std::uint8_t* in, std::size_t bytes, bool crc, bool markers,
                      std::uint64_t stream_offset, std::vector<std::uint8_t>& ulpdu,
                      std::size_t& consumed);

/// Request or reply frame of the connection set-up, without private data and enhanced part.
struct MpaConnect {
  static constexpr std::uint32_t kBytes = 20;
  static constexpr std::array<std::uint8_t, 16> kRequestKey{'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R',
                                                            'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e'};
  static constexpr std::array<std::uint8_t, 16> kReplyKey{'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R',
                                                          'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e'};
  std::array<std::uint8_t, 16> key = kRequestKey;
  bool markers = false;   ///< wanted in what the sender of this frame receives
  bool crc = false;       ///< wanted; used if either side asks
  bool reject = false;    ///< reply only
  bool enhanced = false;  ///< MpaEnhanced follows (revision 2)
  std::uint8_t revision = 1;
  std::uint16_t private_bytes = 0;  ///< enhanced part included

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bytes(0, h.key);
    io.bits16(16, bits<1>(h.markers), bits<1>(h.crc), bits<1>(h.reject), bits<1>(h.enhanced),
              Fixed<4>{}, bits<8>(h.revision));
    io.u16(18, h.private_bytes);
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static MpaConnect decode(const std::uint8_t* in) { return decode_header<MpaConnect>(in); }

  bool is_request() const { return key == kRequestKey; }
  bool is_reply() const { return key == kReplyKey; }
};

/// Enhanced connection data of revision 2 (RFC 6581): READ limits and the ready-to-receive message.
struct MpaEnhanced {
  static constexpr std::uint32_t kBytes = 4;
  static constexpr std::uint16_t kNoNegotiation = 0x3FFF;
  bool peer_to_peer = false;
  bool rtr_send = false;
  std::uint16_t ird = 0;  ///< inbound READs, 14 bits
  bool rtr_write = false;
  bool rtr_read = false;
  std::uint16_t ord = 0;  ///< outbound READs, 14 bits

  template <class Self, class Io>
  static void layout(Self& h, Io io) {
    io.bits32(0, bits<1>(h.peer_to_peer), bits<1>(h.rtr_send), bits<14>(h.ird),
              bits<1>(h.rtr_write), bits<1>(h.rtr_read), bits<14>(h.ord));
  }
  void encode(std::uint8_t* out) const { encode_header(*this, out); }
  static MpaEnhanced decode(const std::uint8_t* in) { return decode_header<MpaEnhanced>(in); }
};

}  // namespace rnic::protocol

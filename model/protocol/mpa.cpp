// SPDX-License-Identifier: Apache-2.0
#include "protocol/mpa.h"

#include <algorithm>

#include "protocol/crc.h"

namespace rnic::protocol {
namespace {

/// Walks the stream from `stream_offset`, telling marker words from FPDU bytes.
class MarkerCursor {
 public:
  MarkerCursor(std::uint64_t stream_offset, bool markers) : at_(stream_offset), markers_(markers) {}

  bool at_marker() const { return markers_ && at_ % kMpaMarkerInterval == 0; }

  /// What the marker here must say: its distance from the length field, 0 when it comes before it.
  std::uint32_t marker_value() const {
    return started_ ? static_cast<std::uint32_t>(at_ - length_at_) : 0;
  }
  void pass_marker() { at_ += kMpaMarkerBytes; }
  /// FPDU bytes up to the next marker, at most `wanted`.
  std::size_t run(std::size_t wanted) const {
    if (!markers_) return wanted;
    const std::uint64_t room = kMpaMarkerInterval - at_ % kMpaMarkerInterval;
    return static_cast<std::size_t>(std::min<std::uint64_t>(room, wanted));
  }
  void pass(std::size_t bytes) {
    if (!started_) {
      started_ = true;
      length_at_ = at_;
    }
    at_ += bytes;
  }

 private:
  std::uint64_t at_;
  std::uint64_t length_at_ = 0;
  bool markers_;
  bool started_ = false;
};

void append_with_markers(std::vector<std::uint8_t>& out, MarkerCursor& cursor,
                         const std::uint8_t* data, std::size_t bytes) {
  while (bytes > 0) {
    if (cursor.at_marker()) {
      std::uint8_t marker[kMpaMarkerBytes];
      store_be32(marker, cursor.marker_value());
      out.insert(out.end(), marker, marker + kMpaMarkerBytes);
      cursor.pass_marker();
    }
    const std::size_t run = cursor.run(bytes);
    out.insert(out.end(), data, data + run);
    cursor.pass(run);
    data += run;
    bytes -= run;
  }
}

}  // namespace

std::uint64_t fpdu_stream_bytes(std::uint64_t stream_offset, std::uint32_t bytes, bool markers) {
  if (!markers) return bytes;
  std::uint64_t end = stream_offset;
  std::uint64_t left = bytes;
  while (left > 0) {
    if (end % kMpaMarkerInterval == 0) end += kMpaMarkerBytes;
    const std::uint64_t run = std::min(left, kMpaMarkerInterval - end % kMpaMarkerInterval);
    end += run;
    left -= run;
  }
  return end - stream_offset;
}

void append_fpdu(std::vector<std::uint8_t>& out, const std::uint8_t* ulpdu,
                 std::uint16_t ulpdu_bytes, bool crc, bool markers, std::uint64_t stream_offset) {
  const std::size_t start = out.size();
  MarkerCursor cursor(stream_offset, markers);
  std::uint8_t word[4] = {};
  store_be16(word, ulpdu_bytes);
  append_with_markers(out, cursor, word, kMpaLengthBytes);
  append_with_markers(out, cursor, ulpdu, ulpdu_bytes);
  const std::uint8_t zeros[4] = {};
  append_with_markers(out, cursor, zeros, mpa_pad(ulpdu_bytes));
  if (cursor.at_marker()) {  // between pad and CRC: covered by the CRC
    store_be32(word, cursor.marker_value());
    out.insert(out.end(), word, word + kMpaMarkerBytes);
    cursor.pass_marker();
  }
  store_le32(word, crc ? crc32c(out.data() + start, out.size() - start) : 0);
  out.insert(out.end(), word, word + kMpaCrcBytes);
}

FpduStatus parse_fpdu(const std::uint8_t* in, std::size_t bytes, bool crc, bool markers,
                      std::uint64_t stream_offset, std::vector<std::uint8_t>& ulpdu,
                      std::size_t& consumed) {
  const bool leading = markers && stream_offset % kMpaMarkerInterval == 0;
  const std::size_t length_at = leading ? kMpaMarkerBytes : 0;
  if (bytes < length_at + kMpaLengthBytes) return FpduStatus::kIncomplete;
  const std::uint16_t ulpdu_bytes = load_be16(in + length_at);
  const std::uint32_t plain = fpdu_bytes(ulpdu_bytes);
  const std::uint64_t total = fpdu_stream_bytes(stream_offset, plain, markers);
  if (bytes < total) return FpduStatus::kIncomplete;
  consumed = static_cast<std::size_t>(total);
  if (crc && crc32c(in, consumed - kMpaCrcBytes) != load_le32(in + consumed - kMpaCrcBytes)) {
    return FpduStatus::kBadCrc;
  }
  MarkerCursor cursor(stream_offset, markers);
  ulpdu.clear();
  std::size_t at = 0;
  std::size_t left = plain;
  while (left > 0) {
    if (cursor.at_marker()) {
      if (load_be32(in + at) != cursor.marker_value()) return FpduStatus::kBadMarker;
      cursor.pass_marker();
      at += kMpaMarkerBytes;
    }
    const std::size_t run = cursor.run(left);
    ulpdu.insert(ulpdu.end(), in + at, in + at + run);
    cursor.pass(run);
    at += run;
    left -= run;
  }
  ulpdu.erase(ulpdu.begin(), ulpdu.begin() + kMpaLengthBytes);
  ulpdu.resize(ulpdu_bytes);
  return FpduStatus::kOk;
}

}  // namespace rnic::protocol

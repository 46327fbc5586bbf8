// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rnic::testbench {

/// One packet as tshark sees it: the first occurrence of each field asked for, empty when the
/// packet has none.
struct Dissection {
  std::map<std::string, std::string> fields;

  const std::string& text(const std::string& field) const { return fields.at(field); }
  bool has(const std::string& field) const { return !text(field).empty(); }
  /// Decimal, or hexadecimal with 0x. A field that is absent fails the test.
  std::uint64_t number(const std::string& field) const;
};

/// Packets of `capture` that match display filter `filter` (empty: all), dissected with all
/// checksums verified. A tshark that does not run fails the test: it is part of the set-up.
std::vector<Dissection> dissect(const std::string& capture, const std::string& filter,
                                const std::vector<std::string>& fields);

/// What tshark finds wrong with a capture, one line a packet: malformed, a wrong checksum of any
/// layer that it verifies, or anything else its experts call an error. Empty when all is well.
std::string complaints(const std::string& capture);

/// Puts captures into one file, one behind the other.
void merge_captures(const std::vector<std::string>& captures, const std::string& merged);

/// The full text of `tshark -V`.
std::string dissection_text(const std::string& capture);

/// A packet of a capture file, read by the test itself.
struct CapturedPacket {
  std::uint64_t nanoseconds = 0;
  bool sent = false;
  std::vector<std::uint8_t> bytes;
};
std::vector<CapturedPacket> read_pcapng(const std::string& path);

}  // namespace rnic::testbench

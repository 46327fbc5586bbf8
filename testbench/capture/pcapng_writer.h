// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/time.h"
#include "link/frame_tap.h"
#include "report/output_file.h"

namespace rnic::testbench {

/// Link types of a capture (tcpdump.org/linktypes.html).
enum class CaptureLink : std::uint16_t {
  kEthernet = 1,  ///< first header byte to FCS
  kErf = 197,     ///< Endace records; Wireshark dissects InfiniBand in no other way
};

/// A pcapng file (draft-ietf-opsawg-pcapng) of one interface with nanosecond stamps. The file
/// appears under its name at finish(); without that call nothing is left behind.
class PcapngWriter {
 public:
  /// Throws OutputError when the file cannot be created. `description` goes into the interface's
  /// block.
  PcapngWriter(const std::filesystem::path& path, CaptureLink link, const std::string& interface,
               const std::string& description);

  /// Appends one packet. Throws OutputError.
  void write(Time at, link::TapDirection direction, const std::uint8_t* data, std::size_t bytes);
  /// Completes the file and gives it its name. Throws OutputError.
  void finish();

 private:
  void begin_block(std::uint32_t type);
  void end_block();
  void put16(std::uint16_t value);
  void put32(std::uint32_t value);
  void put_padded(const void* data, std::size_t bytes);
  void put_option(std::uint16_t code, const void* data, std::size_t bytes);
  void flush();

  OutputFile file_;
  std::vector<std::uint8_t> buffer_;  ///< blocks not written yet, native byte order
  std::size_t block_at_ = 0;
  bool ethernet_;
};

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "capture/pcapng_writer.h"
#include "link/frame_tap.h"
#include "transport/encapsulation.h"

namespace rnic::testbench {

/// Records what passes one port. Checksums are computed here, for the frames that nobody needed
/// them for before. Ethernet frames are kept from the first header byte to the FCS; InfiniBand
/// packets as ERF records, link packets padded with zeros to the 64 bytes below which Wireshark
/// takes them for cut short.
class PortCapture : public link::FrameTap {
 public:
  /// Creates `directory`/`port`.pcapng. Throws OutputError.
  PortCapture(const std::filesystem::path& directory, const std::string& port, CaptureLink link,
              const transport::Encapsulation& encapsulation);

  void frame_passed(const protocol::Frame& frame, link::TapDirection direction, Time at) override;
  /// Completes the file; throws what went wrong while recording.
  void finish();

 private:
  struct Record {
    Time at{0};
    std::uint64_t sequence = 0;
    link::TapDirection direction = link::TapDirection::kSent;
    std::vector<std::uint8_t> bytes;
  };
  struct Later {
    bool operator()(const Record& a, const Record& b) const {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };

  std::vector<std::uint8_t> bytes_of(const protocol::Frame& frame, Time at) const;
  void write_until(Time now);

  PcapngWriter writer_;
  CaptureLink link_;
  const transport::Encapsulation& encapsulation_;
  std::priority_queue<Record, std::vector<Record>, Later> pending_;  ///< not certainly the next
  std::uint64_t recorded_ = 0;
  std::exception_ptr failure_;  ///< kept for finish(): taps are called inside kernel processes
};

}  // namespace rnic::testbench

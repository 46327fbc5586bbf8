// SPDX-License-Identifier: Apache-2.0
#include "capture/port_capture.h"

#include <algorithm>
#include <utility>

#include "base/timeline.h"
#include "protocol/byte_order.h"
#include "protocol/crc.h"

namespace rnic::testbench {
namespace {

// Endace's extensible record format, version of Wireshark's wiretap/erf.c.
constexpr std::size_t kErfHeaderBytes = 16;
constexpr std::uint8_t kErfInfiniband = 21;
constexpr std::uint8_t kErfInfinibandLink = 25;
constexpr std::uint8_t kErfVaryingLength = 0x04;
constexpr std::size_t kErfLeastPayload = 64;

constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000U;

/// Whole seconds in the high word, fractions of 2^-32 s in the low one, little-endian.
void store_erf_stamp(std::uint8_t* out, Time at) {
  const auto time = static_cast<std::uint64_t>(at.count());
  const std::uint64_t seconds = time / kPicosecondsPerSecond;
  const std::uint64_t rest = time % kPicosecondsPerSecond;
  const auto fraction =
      static_cast<std::uint32_t>(static_cast<double>(rest) / kPicosecondsPerSecond * 4294967296.0);
  protocol::store_le32(out, fraction);
  protocol::store_le32(out + 4, static_cast<std::uint32_t>(seconds));
}

}  // namespace

PortCapture::PortCapture(const std::filesystem::path& directory, const std::string& port,
                         CaptureLink link, const transport::Encapsulation& encapsulation)
    : writer_(directory / (port + ".pcapng"), link, port, "stamps are of the last bit at the port"),
      link_(link),
      encapsulation_(encapsulation) {}

std::vector<std::uint8_t> PortCapture::bytes_of(const protocol::Frame& frame, Time at) const {
  std::vector<std::uint8_t> bytes;
  if (link_ == CaptureLink::kEthernet) {
    encapsulation_.linearize(frame, bytes);
    return bytes;
  }
  const bool control = frame.frame_class == protocol::FrameClass::kLinkControl;
  bytes.resize(kErfHeaderBytes);
  encapsulation_.linearize(frame, bytes);
  if (control) bytes.resize(std::max(bytes.size(), kErfHeaderBytes + kErfLeastPayload));
  store_erf_stamp(bytes.data(), at);
  bytes[8] = control ? kErfInfinibandLink : kErfInfiniband;
  bytes[9] = kErfVaryingLength;
  protocol::store_be16(bytes.data() + 10, static_cast<std::uint16_t>(bytes.size()));
  protocol::store_be16(bytes.data() + 14,
                       static_cast<std::uint16_t>(bytes.size() - kErfHeaderBytes));
  return bytes;
}

void PortCapture::frame_passed(const protocol::Frame& frame, link::TapDirection direction,
                               Time at) {
  if (failure_) return;
  try {
    pending_.push(Record{at, recorded_++, direction, bytes_of(frame, at)});
    write_until(sim_now());
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void PortCapture::write_until(Time now) {
  while (!pending_.empty() && pending_.top().at < now) {
    const Record& record = pending_.top();
    writer_.write(record.at, record.direction, record.bytes.data(), record.bytes.size());
    pending_.pop();
  }
}

void PortCapture::finish() {
  if (!failure_) write_until(kTimeNever);
  if (failure_) std::rethrow_exception(failure_);
  writer_.finish();
}

}  // namespace rnic::testbench

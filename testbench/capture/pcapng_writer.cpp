// SPDX-License-Identifier: Apache-2.0
#include "capture/pcapng_writer.h"

#include <cstring>
#include <string_view>

namespace rnic::testbench {
namespace {

// Block types and option codes of the format.
constexpr std::uint32_t kSectionHeader = 0x0A0D'0D0A;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1A2B'3C4D;
constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kApplication = 4;  // of the section
constexpr std::uint16_t kName = 2;         // of the interface
constexpr std::uint16_t kDescription = 3;  // of the interface
constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint16_t kFcsLength = 13;
constexpr std::uint16_t kFlags = 2;  // of the packet

constexpr std::uint8_t kNanoseconds = 9;  // 10^-9 s
constexpr std::uint8_t kFcsBytes = 4;
/// Bits 0-1: direction; bits 5-8: bytes of FCS at the end.
constexpr std::uint32_t kInbound = 1;
constexpr std::uint32_t kOutbound = 2;
constexpr std::uint32_t kFcsShift = 5;

constexpr std::size_t kFlushBytes = 1U << 18;

}  // namespace

PcapngWriter::PcapngWriter(const std::filesystem::path& path, CaptureLink link,
                           const std::string& interface, const std::string& description)
    : file_(path), ethernet_(link == CaptureLink::kEthernet) {
  begin_block(kSectionHeader);
  put32(kByteOrderMagic);
  put16(1);  // version 1.0
  put16(0);
  put32(0xFFFF'FFFF);  // section length: not given
  put32(0xFFFF'FFFF);
  constexpr std::string_view kProgram = "rnicsim";
  put_option(kApplication, kProgram.data(), kProgram.size());
  put_option(kEndOfOptions, nullptr, 0);
  end_block();
  begin_block(kInterfaceDescription);
  put16(static_cast<std::uint16_t>(link));
  put16(0);
  put32(0);  // no limit to a packet's length
  put_option(kName, interface.data(), interface.size());
  put_option(kDescription, description.data(), description.size());
  put_option(kTimeResolution, &kNanoseconds, 1);
  if (ethernet_) put_option(kFcsLength, &kFcsBytes, 1);
  put_option(kEndOfOptions, nullptr, 0);
  end_block();
}

void PcapngWriter::write(Time at, link::TapDirection direction, const std::uint8_t* data,
                         std::size_t bytes) {
  const auto stamp = static_cast<std::uint64_t>(at / nanoseconds(1));
  begin_block(kEnhancedPacket);
  put32(0);  // interface
  put32(static_cast<std::uint32_t>(stamp >> 32));
  put32(static_cast<std::uint32_t>(stamp));
  put32(static_cast<std::uint32_t>(bytes));  // captured
  put32(static_cast<std::uint32_t>(bytes));  // on the wire
  put_padded(data, bytes);
  std::uint32_t flags = direction == link::TapDirection::kSent ? kOutbound : kInbound;
  if (ethernet_) flags |= std::uint32_t{kFcsBytes} << kFcsShift;
  put_option(kFlags, &flags, sizeof flags);
  put_option(kEndOfOptions, nullptr, 0);
  end_block();
}

void PcapngWriter::finish() {
  flush();
  file_.keep();
}

void PcapngWriter::begin_block(std::uint32_t type) {
  block_at_ = buffer_.size();
  put32(type);
  put32(0);  // length, known at the end
}

void PcapngWriter::end_block() {
  const auto length =
      static_cast<std::uint32_t>(buffer_.size() - block_at_ + sizeof(std::uint32_t));
  std::memcpy(buffer_.data() + block_at_ + sizeof(std::uint32_t), &length, sizeof length);
  put32(length);
  if (buffer_.size() >= kFlushBytes) flush();
}

void PcapngWriter::put16(std::uint16_t value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  buffer_.insert(buffer_.end(), bytes, bytes + sizeof value);
}

void PcapngWriter::put32(std::uint32_t value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  buffer_.insert(buffer_.end(), bytes, bytes + sizeof value);
}

void PcapngWriter::put_padded(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  buffer_.insert(buffer_.end(), from, from + bytes);
  buffer_.insert(buffer_.end(), (4 - bytes % 4) % 4, 0);
}

void PcapngWriter::put_option(std::uint16_t code, const void* data, std::size_t bytes) {
  put16(code);
  put16(static_cast<std::uint16_t>(bytes));
  put_padded(data, bytes);
}

void PcapngWriter::flush() {
  file_.write({reinterpret_cast<const char*>(buffer_.data()), buffer_.size()});
  buffer_.clear();
}

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#include "network/fault_injector.h"

#include <algorithm>

#include "base/error.h"

namespace rnic::network {

using protocol::Frame;
using protocol::FrameClass;

FaultInjector::FaultInjector(const FaultConfig& config, std::uint64_t seed, std::string_view stream,
                             const FrameChecksums* checksums)
    : loss_rate_(config.loss_rate),
      corrupt_rate_(config.corrupt_rate),
      drop_list_(config.drop_list),
      rng_(seed, stream),
      checksums_(checksums),
      active_(loss_rate_ > 0 || corrupt_rate_ > 0 || !drop_list_.empty()) {
  std::sort(drop_list_.begin(), drop_list_.end());
  if (corrupt_rate_ > 0 && checksums_ == nullptr) {
    throw ConfigError("corrupting frames needs their checksums");
  }
}

bool FaultInjector::listed() {
  ++data_packets_;
  bool hit = false;
  while (next_drop_ < drop_list_.size() && drop_list_[next_drop_] <= data_packets_) {
    hit = hit || drop_list_[next_drop_] == data_packets_;
    ++next_drop_;
  }
  return hit;
}

bool FaultInjector::lose_or_damage(Frame& frame) {
  if (frame.frame_class == FrameClass::kLinkControl) return false;
  // Each rate draws for every frame, so that one fault does not shift the places of the others.
  bool lost = frame.frame_class == FrameClass::kData && listed();
  if (loss_rate_ > 0) lost = rng_.uniform() < loss_rate_ || lost;
  const bool damaged = corrupt_rate_ > 0 && rng_.uniform() < corrupt_rate_;
  if (lost) {
    ++lost_;
    return true;
  }
  if (damaged) flip_bit(frame);
  return false;
}

void FaultInjector::flip_bit(Frame& frame) {
  ++corrupted_;
  checksums_->materialize(frame);
  const std::uint64_t bit = rng_.below(std::uint64_t{frame.frame_bytes()} * 8);
  std::uint64_t byte = bit / 8;
  const auto mask = static_cast<std::uint8_t>(1U << (bit % 8));
  if (byte < frame.header_bytes) {
    frame.header[byte] ^= mask;
    return;
  }
  byte -= frame.header_bytes;
  if (byte < frame.payload_bytes && frame.has_payload_data) {
    frame.payload.data()[byte] ^= mask;
    return;
  }
  // Bytes that exist on the wire only (padding, payload left out) would fail the checksum: let it
  // fail by a bit of its own.
  const std::uint64_t before_trailer = std::uint64_t{frame.payload_bytes} + frame.pad_bytes;
  const std::uint64_t in_trailer = byte < before_trailer ? 0 : byte - before_trailer;
  frame.trailer[in_trailer] ^= mask;
}

}  // namespace rnic::network

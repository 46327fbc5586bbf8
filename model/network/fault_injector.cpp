// SPDX-License-Identifier: Apache-2.0
#include "network/fault_injector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace rnic::network {

using protocol::Frame;
using protocol::FrameClass;

FaultInjector::Cause::Cause(double rate, std::vector<std::uint64_t> list, std::uint64_t seed,
                            std::string_view stream, const char* kind)
    : rate_(rate), list_(std::move(list)), rng_(seed, std::string(stream) + kind) {
  std::sort(list_.begin(), list_.end());
}

bool FaultInjector::Cause::strikes(std::uint64_t number) {
  bool hit = false;
  while (number != 0 && next_ < list_.size() && list_[next_] <= number) {
    hit = hit || list_[next_] == number;
    ++next_;
  }
  return (rate_ > 0 && rng_.uniform() < rate_) || hit;
}

FaultInjector::FaultInjector(const FaultConfig& config, std::uint64_t seed, std::string_view stream,
                             const FrameChecksums* checksums)
    : loss_(config.loss_rate, config.drop_list, seed, stream, ".loss"),
      corruption_(config.corrupt_rate, config.corrupt_list, seed, stream, ".corruption"),
      duplication_(config.duplicate_rate, config.duplicate_list, seed, stream, ".duplication"),
      reordering_(config.reorder_rate, config.reorder_list, seed, stream, ".reordering"),
      reorder_delay_(config.reorder_delay),
      burst_rate_(config.burst_rate),
      burst_end_(1 / std::max(1.0, config.burst_length)),
      burst_loss_(config.burst_loss),
      burst_rng_(seed, std::string(stream) + ".bursts"),
      checksums_(checksums),
      active_(loss_.possible() || corruption_.possible() || duplication_.possible() ||
              reordering_.possible() || burst_rate_ > 0) {
  if (corruption_.possible() && checksums_ == nullptr) {
    throw ConfigError("corrupting frames needs their checksums");
  }
}

bool FaultInjector::lost_in_burst(std::size_t direction) {
  if (burst_rate_ == 0) return false;
  bool& burst = in_burst_[direction];
  if (!burst && burst_rng_.uniform() < burst_rate_) burst = true;
  if (!burst) return false;
  const bool lost = burst_rng_.uniform() < burst_loss_;
  burst = burst_rng_.uniform() >= burst_end_;
  return lost;
}

Fate FaultInjector::judge(Frame& frame, std::size_t direction) {
  Fate fate;
  if (frame.frame_class == FrameClass::kLinkControl) return fate;
  const std::uint64_t number = frame.frame_class == FrameClass::kData ? ++data_packets_ : 0;
  const bool struck = loss_.strikes(number);
  const bool burst = lost_in_burst(direction);
  const bool damaged = corruption_.strikes(number);
  fate.duplicated = duplication_.strikes(number);
  fate.held_back = reordering_.strikes(number);
  if (struck || burst) {
    ++counters_.lost;
    return Fate{true, false, false};
  }
  if (damaged) flip_bit(frame);
  if (fate.duplicated) ++counters_.duplicated;
  if (fate.held_back) ++counters_.reordered;
  return fate;
}

void FaultInjector::flip_bit(Frame& frame) {
  ++counters_.corrupted;
  checksums_->materialize(frame);
  const std::uint64_t bit = corruption_.rng().below(std::uint64_t{frame.frame_bytes()} * 8);
  std::uint64_t byte = bit / 8;
  const auto mask = static_cast<std::uint8_t>(1U << (bit % 8));
  if (byte < frame.header_bytes) {
    frame.header[byte] ^= mask;
    return;
  }
  byte -= frame.header_bytes;
  if (byte < frame.payload_bytes && frame.has_payload_data) {
    frame.payload.writable()[byte] ^= mask;
    return;
  }
  // Bytes that exist on the wire only (padding, payload left out) would fail the checksum: let it
  // fail by a bit of its own.
  const std::uint64_t before_trailer =
      std::uint64_t{frame.payload_bytes} + frame.pad_bytes + frame.marker_bytes();
  const std::uint64_t in_trailer = byte < before_trailer ? 0 : byte - before_trailer;
  frame.trailer[in_trailer] ^= mask;
}

}  // namespace rnic::network

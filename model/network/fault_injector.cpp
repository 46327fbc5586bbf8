// SPDX-License-Identifier: Apache-2.0
#include "network/fault_injector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace rnic::network {

using protocol::Frame;
using protocol::FrameClass;

namespace {

using config::FrameKind;
using config::FrameKinds;

/// What the link layer itself can tell.
FrameKinds kinds_of_class(FrameClass frame_class) {
  switch (frame_class) {
    case FrameClass::kData:
      return FrameKind::kAny | FrameKind::kData;
    case FrameClass::kAck:
      return FrameKind::kAny | FrameKind::kAck;
    case FrameClass::kConnection:
      return FrameKind::kAny | FrameKind::kConnection;
    case FrameClass::kLinkControl:
      break;
  }
  return 0;
}

constexpr FrameKinds kByClass = FrameKind::kAny | FrameKind::kData | FrameKind::kConnection;

}  // namespace

FaultInjector::Cause::Cause(double rate, const std::vector<config::FaultTarget>& list,
                            std::uint64_t seed, std::string_view stream, const char* kind)
    : rate_(rate), targets_(list.size()), rng_(seed, std::string(stream) + kind) {
  for (const config::FaultTarget& target : list) {
    lists_[static_cast<std::size_t>(target.kind)].push_back(target.number);
  }
  for (auto& numbers : lists_) std::sort(numbers.begin(), numbers.end());
}

bool FaultInjector::Cause::looks_inside() const {
  for (std::size_t kind = 0; kind < lists_.size(); ++kind) {
    if (!lists_[kind].empty() && ((kByClass >> kind) & 1U) == 0) return true;
  }
  return false;
}

bool FaultInjector::Cause::listed(std::size_t kind, std::uint64_t number) {
  const std::vector<std::uint64_t>& list = lists_[kind];
  std::size_t& next = next_[kind];
  bool hit = false;
  while (next < list.size() && list[next] <= number) {
    hit = hit || list[next] == number;
    ++next;
  }
  return hit;
}

bool FaultInjector::Cause::strikes(FrameKinds kinds, const Numbers& numbers, bool by_rate) {
  bool hit = false;
  for (FrameKinds rest = targets_ > 0 ? kinds : 0; rest != 0; rest &= rest - 1) {
    const auto kind = static_cast<std::size_t>(__builtin_ctz(rest));
    hit |= listed(kind, numbers[kind]);
  }
  return (rate_ > 0 && by_rate && rng_.uniform() < rate_) || hit;
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
      frames_(config.frames),
      directions_(config.directions),
      checksums_(checksums),
      active_(loss_.possible() || corruption_.possible() || duplication_.possible() ||
              reordering_.possible() || burst_rate_ > 0) {
  if (corruption_.possible() && checksums_ == nullptr) {
    throw ConfigError("corrupting frames needs their checksums");
  }
  const bool inside = (frames_ & ~kByClass) != 0 || loss_.looks_inside() ||
                      corruption_.looks_inside() || duplication_.looks_inside() ||
                      reordering_.looks_inside();
  if (inside && checksums_ == nullptr) {
    throw ConfigError("telling kinds of frames apart needs their format");
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

FrameKinds FaultInjector::kinds_of(const Frame& frame) const {
  return checksums_ != nullptr ? checksums_->kinds_of(frame) : kinds_of_class(frame.frame_class);
}

Fate FaultInjector::judge(Frame& frame, std::size_t direction) {
  Fate fate;
  if (frame.frame_class == FrameClass::kLinkControl) return fate;
  if (((directions_ >> direction) & 1U) == 0) return fate;
  const FrameKinds kinds = kinds_of(frame);
  for (std::size_t kind = 0; kind < numbers_.size(); ++kind) numbers_[kind] += (kinds >> kind) & 1U;
  const bool by_rate = (kinds & frames_) != 0;
  const bool struck = loss_.strikes(kinds, numbers_, by_rate);
  const bool burst = by_rate && lost_in_burst(direction);
  const bool damaged = corruption_.strikes(kinds, numbers_, by_rate);
  fate.duplicated = duplication_.strikes(kinds, numbers_, by_rate);
  fate.held_back = reordering_.strikes(kinds, numbers_, by_rate);
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

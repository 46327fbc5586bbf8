// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/timeline.h"
#include "pcie/dma.h"

namespace rnic::testbench {

/// What a DmaLoop repeats: a read, a write, or both at the same pace.
struct DmaPattern {
  std::uint32_t bytes = 64;
  bool read = true;
  bool write = false;
  std::uint64_t offset = 0;  ///< address of the first transfer
  std::uint64_t stride = 0;  ///< between transfers
  std::uint64_t window = 1;  ///< transfers until addresses repeat
};

inline DmaPattern reads_of(std::uint32_t bytes) {
  DmaPattern pattern;
  pattern.bytes = bytes;
  return pattern;
}

inline DmaPattern writes_of(std::uint32_t bytes) {
  DmaPattern pattern = reads_of(bytes);
  pattern.read = false;
  pattern.write = true;
  return pattern;
}

inline DmaPattern both_of(std::uint32_t bytes) {
  DmaPattern pattern = reads_of(bytes);
  pattern.write = true;
  return pattern;
}

/// Keeps `depth` transfers in flight until `total` are done, as pcie-bench does: bandwidth with
/// many, latency with one.
class DmaLoop : public pcie::DmaClient {
 public:
  DmaLoop(pcie::DmaIf& dma, const DmaPattern& pattern) : dma_(dma), pattern_(pattern) {}

  void start(std::uint32_t depth, std::uint32_t total) {
    left_ = total;
    parts_.resize(depth);
    issued_at_.resize(depth);
    for (std::uint32_t i = 0; i < depth && left_ > 0; ++i) issue(i);
  }

  void dma_done(std::uint64_t slot) override {
    if (--parts_[slot] > 0) return;
    finished_.push_back(sim_now());
    latency_ += sim_now() - issued_at_[slot];
    if (left_ > 0) issue(slot);
  }

  /// Payload bandwidth of one direction over the middle of the run, Gb/s.
  double gbps() const {
    const std::size_t from = finished_.size() / 4;
    const std::size_t to = finished_.size() * 3 / 4;
    const Time span = finished_[to] - finished_[from];
    return static_cast<double>((to - from) * pattern_.bytes) * 8 / to_ns(span);
  }
  double mean_latency_ns() const { return to_ns(latency_) / static_cast<double>(finished_.size()); }
  std::size_t finished() const { return finished_.size(); }

 private:
  void issue(std::uint64_t slot) {
    --left_;
    const std::uint64_t address = pattern_.offset + issued_++ % pattern_.window * pattern_.stride;
    parts_[slot] = (pattern_.read ? 1 : 0) + (pattern_.write ? 1 : 0);
    issued_at_[slot] = sim_now();
    constexpr auto kPayload = tlm_ext::Purpose::kPayload;
    if (pattern_.read) {
      dma_.dma_read(sim_now(), address, pattern_.bytes, nullptr, kPayload, this, slot);
    }
    if (pattern_.write) {
      dma_.dma_write(sim_now(), address, pattern_.bytes, nullptr, kPayload, this, slot);
    }
  }

  pcie::DmaIf& dma_;
  DmaPattern pattern_;
  std::uint32_t left_ = 0;
  std::uint64_t issued_ = 0;
  std::vector<int> parts_;
  std::vector<Time> issued_at_;
  std::vector<Time> finished_;
  Time latency_{0};
};

}  // namespace rnic::testbench

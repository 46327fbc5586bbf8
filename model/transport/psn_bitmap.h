// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/psn.h"

namespace rnic::transport {

/// A mark for each PSN of a sliding window. Nothing is allocated before the first mark; the window
/// grows by doubling and never shrinks.
class PsnBitmap {
 public:
  /// `psn` is not older than the window.
  bool test(std::uint32_t psn) const {
    return marks_ > 0 && protocol::psn_before(psn, end_) &&
           (words_[word(psn)] >> (psn % kBits) & 1U) != 0;
  }

  /// Marks `psn`; `base` is the oldest PSN of the window.
  void set(std::uint32_t psn, std::uint32_t base) {
    const auto window = static_cast<std::uint32_t>(protocol::psn_distance(psn, base)) + 1;
    if (window > words_.size() * kBits) grow(window, base);
    if (test(psn)) return;
    const std::uint32_t behind = protocol::psn_add(psn, 1);
    if (marks_ == 0 || protocol::psn_before(end_, behind)) end_ = behind;
    words_[word(psn)] |= std::uint64_t{1} << (psn % kBits);
    ++marks_;
  }

  void clear(std::uint32_t psn) {
    if (!test(psn)) return;
    words_[word(psn)] &= ~(std::uint64_t{1} << (psn % kBits));
    --marks_;
  }

  /// Forgets the marks in [from, to).
  void clear(std::uint32_t from, std::uint32_t to) {
    for (; marks_ > 0 && from != to; from = protocol::psn_add(from, 1)) clear(from);
  }

  std::uint32_t marks() const { return marks_; }

  void reset() {
    std::fill(words_.begin(), words_.end(), 0);
    marks_ = 0;
  }

 private:
  static constexpr std::uint32_t kBits = 64;

  std::size_t word(std::uint32_t psn) const { return (psn / kBits) & (words_.size() - 1); }

  void grow(std::uint32_t window, std::uint32_t base) {
    std::size_t larger = std::max<std::size_t>(words_.size(), 1);
    while (larger * kBits < window) larger *= 2;
    PsnBitmap moved;
    moved.words_.resize(larger);
    // A window that is not aligned to words may touch one word more than it fills: exact bits do.
    const std::size_t old = words_.size() * kBits;
    for (std::size_t i = 0; i < old && marks_ > 0; ++i) {
      const std::uint32_t psn = protocol::psn_add(base, static_cast<std::uint32_t>(i));
      if (test(psn)) moved.set(psn, base);
    }
    words_.swap(moved.words_);
  }

  std::vector<std::uint64_t> words_;  ///< a power of two of them
  std::uint32_t marks_ = 0;
  std::uint32_t end_ = 0;  ///< behind the newest mark
};

}  // namespace rnic::transport

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rnic::testbench {

/// Tells the messages of a ping-pong apart where nobody acknowledges them, so that they may be
/// lost, late or come twice: each carries the number of its turn, as many bytes of it as it has
/// room for. Knows which numbers of one direction have been seen.
class TurnNumbers {
 public:
  enum class Arrival {
    kCurrent,  ///< what is waited for
    kLate,     ///< of a turn that is over
    kAgain     ///< has been seen before
  };

  static constexpr std::uint32_t kMostBytes = 4;

  /// `bytes`: of the number that a message carries, 0 to kMostBytes; 0: none, and whatever comes is
  /// what was waited for.
  explicit TurnNumbers(std::uint32_t bytes = 0) : bytes_(std::min(bytes, kMostBytes)) {}

  std::uint32_t bytes() const { return bytes_; }

  /// What the message of `turn`, from 0, carries. Never 0 for the first: memory may begin so.
  std::uint32_t carried(std::uint64_t turn) const {
    return static_cast<std::uint32_t>((turn + 1) & mask());
  }

  /// For who asks, and waits for the answer of `turn`.
  Arrival answer(std::uint32_t number, std::uint64_t turn) {
    if (bytes_ == 0) return Arrival::kCurrent;
    const std::uint64_t behind = (turn + 1 - number) & mask();
    if (behind > turn) return Arrival::kAgain;  // damaged, or garbage: no turn had that number
    const bool first = see(turn - behind);
    if (!first) return Arrival::kAgain;
    return behind == 0 ? Arrival::kCurrent : Arrival::kLate;
  }

  /// For who answers: what is new is current, and latest() is then its turn. Of a short number, a
  /// quarter of the values stand for turns before the latest, and the others for turns to come.
  Arrival question(std::uint32_t number) {
    if (bytes_ == 0) {
      ++next_;
      return Arrival::kCurrent;
    }
    const std::uint64_t behind = (next_ - number) & mask();
    if (behind <= mask() / 4 && behind < next_) {
      return see(next_ - 1 - behind) ? Arrival::kLate : Arrival::kAgain;
    }
    const std::uint64_t ahead = (number - next_) & mask();
    if (ahead == 0) return Arrival::kAgain;  // nothing has been asked for, and this is no turn's
    next_ += ahead;
    see(next_ - 1);
    return Arrival::kCurrent;
  }
  /// The last turn that was asked for, from 0.
  std::uint64_t latest() const { return next_ - 1; }

 private:
  std::uint64_t mask() const { return (std::uint64_t{1} << (8 * bytes_)) - 1; }

  /// False when it has been seen before.
  bool see(std::uint64_t turn) {
    const auto at = static_cast<std::size_t>(turn);
    if (at >= seen_.size()) seen_.resize(at + 1);
    const bool first = !seen_[at];
    seen_[at] = true;
    return first;
  }

  std::uint32_t bytes_;
  std::uint64_t next_ = 0;  ///< turn behind the latest that was asked for
  std::vector<bool> seen_;
};

}  // namespace rnic::testbench

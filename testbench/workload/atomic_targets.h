// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "workload/endpoint.h"

namespace rnic::testbench {

/// What a sender's atomics make of the words they work on, which nobody else touches: each
/// operation adds one, fetch-and-add by itself, compare-and-swap because it expects the value that
/// the one before left.
class AtomicTargets {
 public:
  /// `qps`: queue pairs of the sender, each with words of its own.
  explicit AtomicTargets(std::size_t qps = 0) : words_(qps) {}

  /// Value that the next operation on `slot` of `remote` should find; counts the operation.
  std::uint64_t next(Endpoint& remote, std::size_t qp, std::uint64_t slot) {
    const auto [word, added] = words_[qp].try_emplace(slot);
    if (added) word->second = memory_word(remote, qp, slot);
    return word->second++;
  }

  /// Words that do not hold what the operations should have left.
  std::uint64_t wrong_words(Endpoint& remote) const {
    std::uint64_t wrong = 0;
    for (std::size_t qp = 0; qp < words_.size(); ++qp) {
      for (const auto& [slot, value] : words_[qp]) {
        wrong += memory_word(remote, qp, slot) != value ? 1U : 0U;
      }
    }
    return wrong;
  }

 private:
  static std::uint64_t memory_word(Endpoint& remote, std::size_t qp, std::uint64_t slot) {
    std::uint64_t value = 0;
    remote.host.space.read(remote.slot_address(remote.buffers[qp].send, slot), &value,
                           sizeof value);
    return value;
  }

  std::vector<std::unordered_map<std::uint64_t, std::uint64_t>> words_;
};

}  // namespace rnic::testbench

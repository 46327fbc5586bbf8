// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace rnic {

/// Free list of default-constructed objects: allocates while warming up, never in steady state.
/// Objects keep their contents between uses; the taker resets what it needs. Addresses are stable
/// until the pool is destroyed.
template <typename T>
class Pool {
 public:
  T* take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<T>());
      free_.push_back(all_.back().get());
    }
    T* object = free_.back();
    free_.pop_back();
    return object;
  }

  void give(T* object) { free_.push_back(object); }

  /// Objects ever made; the pool's high-water mark.
  std::size_t created() const { return all_.size(); }
  std::size_t in_use() const { return all_.size() - free_.size(); }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

}  // namespace rnic

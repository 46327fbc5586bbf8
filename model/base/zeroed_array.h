// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace rnic {

/// A fixed number of zeros, aligned to the cache lines of the machine that simulates. What is never
/// written costs no memory: of a large table of a device most stays untouched in most runs.
template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  /// Throws std::bad_alloc when the system has no memory left.
  explicit ZeroedArray(std::size_t size)
      : raw_(std::calloc(size * sizeof(T) + kAlignment, 1)), size_(size) {
    if (raw_ == nullptr) throw std::bad_alloc();
    void* at = raw_.get();
    std::size_t room = size * sizeof(T) + kAlignment;
    data_ = static_cast<T*>(std::align(kAlignment, size * sizeof(T), at, room));
  }

  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::unique_ptr<void, Free> raw_;
  T* data_ = nullptr;
  std::size_t size_;
};

}  // namespace rnic

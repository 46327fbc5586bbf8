// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rnic {

/// FIFO on a power-of-two ring that grows by doubling and never shrinks: no allocation in steady
/// state, one pointer when empty and never used. Elements are addressed from the front.
template <typename T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  T& front() { return data_[head_]; }
  const T& front() const { return data_[head_]; }
  T& back() { return (*this)[size_ - 1]; }
  T& operator[](std::size_t i) { return data_[(head_ + i) & (capacity_ - 1)]; }
  const T& operator[](std::size_t i) const { return data_[(head_ + i) & (capacity_ - 1)]; }

  T& push_back(T value) {
    if (size_ == capacity_) grow();
    T& slot = data_[(head_ + size_) & (capacity_ - 1)];
    slot = std::move(value);
    ++size_;
    return slot;
  }

  /// Appends a slot and returns it with whatever it last held: for elements that keep buffers.
  T& push_slot() {
    if (size_ == capacity_) grow();
    return data_[(head_ + size_++) & (capacity_ - 1)];
  }

  void pop_front() {
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
  }

  void pop_back() { --size_; }

  /// Takes every element equal to `value` out; the others keep their order.
  void remove(const T& value) {
    for (std::size_t left = size_; left > 0; --left) {
      T element = std::move(front());
      pop_front();
      if (!(element == value)) push_back(std::move(element));
    }
  }

  void clear() {
    head_ = 0;
    size_ = 0;
  }

 private:
  void grow() {
    const std::uint32_t larger = capacity_ == 0 ? 4 : capacity_ * 2;
    auto moved = std::make_unique<T[]>(larger);
    for (std::size_t i = 0; i < size_; ++i) moved[i] = std::move((*this)[i]);
    data_ = std::move(moved);
    capacity_ = larger;
    head_ = 0;
  }

  std::unique_ptr<T[]> data_;
  std::uint32_t capacity_ = 0;  // 32 bits each: rings are most of what an idle queue pair is
  std::uint32_t head_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace rnic

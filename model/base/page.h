// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rnic {

/// A holder's share of 4 KiB of bytes, aligned to 4 KiB: a frame of physical memory, or the payload
/// of a packet that has come out of one. Several may hold the same page as long as none writes:
/// who does calls unshare() first (copy on write), so that a payload need not be copied out of
/// memory and into it again.
///
/// Pages are cut from chunks of 2 MiB for which huge pages are asked: a simulation's payload is far
/// larger than any cache and its frames are scattered, so that with small pages most accesses would
/// miss the TLB of the machine that simulates. All hosts of a process share the chunks; what is
/// given back is used again, and nothing goes back to the system before the process ends.
class Page {
 public:
  static constexpr std::size_t kBytes = 4096;

  /// Holds nothing.
  Page() = default;
  ~Page() { reset(); }
  Page(const Page& other) : bytes_(other.bytes_) {
    if (bytes_ != nullptr) ++holders(bytes_);
  }
  Page(Page&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)) {}
  Page& operator=(const Page& other) {
    if (bytes_ == other.bytes_) return *this;
    if (other.bytes_ != nullptr) ++holders(other.bytes_);
    reset();
    bytes_ = other.bytes_;
    return *this;
  }
  Page& operator=(Page&& other) noexcept {
    if (this != &other) {
      reset();
      bytes_ = std::exchange(other.bytes_, nullptr);
    }
    return *this;
  }

  /// A page of zeros. Throws std::bad_alloc when the system has no memory left.
  static Page zeros();

  explicit operator bool() const { return bytes_ != nullptr; }
  const std::uint8_t* get() const { return bytes_; }
  std::uint8_t* get() { return bytes_; }
  /// Whether others hold it as well.
  bool shared() const { return bytes_ != nullptr && holders(bytes_) > 1; }
  /// Makes this holder the only one, of a copy if need be.
  void unshare() {
    if (shared()) copy();
  }
  /// Holds nothing any more.
  void reset() {
    if (bytes_ != nullptr && --holders(bytes_) == 0) give(bytes_);
    bytes_ = nullptr;
  }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{2} << 20;  // a huge page of x86-64

  struct Store;

  /// The first page of a chunk counts the holders of the others.
  static std::uint32_t& holders(std::uint8_t* bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes);
    const std::uintptr_t within = address % kChunkBytes;
    return reinterpret_cast<std::uint32_t*>(bytes - within)[within / kBytes];
  }
  static std::uint8_t* take();
  static void give(std::uint8_t* bytes);
  void copy();

  std::uint8_t* bytes_ = nullptr;
};

}  // namespace rnic

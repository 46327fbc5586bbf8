// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "protocol/byte_order.h"

/// One description of a wire format serves both directions. A header declares
/// `template <class Self, class Io> static void layout(Self& h, Io io)` that names each field at
/// its byte offset; `Writer` stores them, `Reader` loads them. Everything inlines to a few moves,
/// shifts and byte swaps. Fields inside a word are listed from its most significant bit down.
namespace rnic::protocol {

/// A field of `Width` bits inside a word. T is const when writing.
template <unsigned Width, class T>
struct BitField {
  static constexpr unsigned kWidth = Width;
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << Width) - 1;
  T& value;

  std::uint64_t get() const { return static_cast<std::uint64_t>(value) & kMask; }
  void set(std::uint64_t bits) const { value = static_cast<T>(bits & kMask); }
};
template <unsigned Width, class T>
BitField<Width, T> bits(T& value) {
  return {value};
}

/// Bits that are sent as `Value` and ignored when received.
template <unsigned Width, std::uint64_t Value = 0>
struct Fixed {
  static constexpr unsigned kWidth = Width;
  static std::uint64_t get() { return Value; }
  static void set(std::uint64_t) {}
};

class Writer {
 public:
  explicit Writer(std::uint8_t* out) : out_(out) {}

  template <class T>
  void u8(std::size_t offset, const T& value) {
    out_[offset] = static_cast<std::uint8_t>(value);
  }
  void u16(std::size_t offset, const std::uint16_t& value) { store_be16(out_ + offset, value); }
  void u32(std::size_t offset, const std::uint32_t& value) { store_be32(out_ + offset, value); }
  void u64(std::size_t offset, const std::uint64_t& value) { store_be64(out_ + offset, value); }
  template <std::size_t N>
  void bytes(std::size_t offset, const std::array<std::uint8_t, N>& value) {
    std::memcpy(out_ + offset, value.data(), N);
  }
  /// Reserved bytes, sent as zero.
  template <std::size_t N>
  void zeros(std::size_t offset) {
    std::memset(out_ + offset, 0, N);
  }

  template <class... Fields>
  void bits8(std::size_t offset, Fields... fields) {
    out_[offset] = static_cast<std::uint8_t>(pack<8>(fields...));
  }
  template <class... Fields>
  void bits16(std::size_t offset, Fields... fields) {
    store_be16(out_ + offset, static_cast<std::uint16_t>(pack<16>(fields...)));
  }
  template <class... Fields>
  void bits32(std::size_t offset, Fields... fields) {
    store_be32(out_ + offset, static_cast<std::uint32_t>(pack<32>(fields...)));
  }

 private:
  template <unsigned Width, class... Fields>
  static std::uint64_t pack(Fields... fields) {
    static_assert((Fields::kWidth + ...) == Width, "the fields do not fill the word");
    std::uint64_t word = 0;
    ((word = (word << Fields::kWidth) | fields.get()), ...);
    return word;
  }

  std::uint8_t* out_;
};

class Reader {
 public:
  explicit Reader(const std::uint8_t* in) : in_(in) {}

  template <class T>
  void u8(std::size_t offset, T& value) {
    value = static_cast<T>(in_[offset]);
  }
  void u16(std::size_t offset, std::uint16_t& value) { value = load_be16(in_ + offset); }
  void u32(std::size_t offset, std::uint32_t& value) { value = load_be32(in_ + offset); }
  void u64(std::size_t offset, std::uint64_t& value) { value = load_be64(in_ + offset); }
  template <std::size_t N>
  void bytes(std::size_t offset, std::array<std::uint8_t, N>& value) {
    std::memcpy(value.data(), in_ + offset, N);
  }
  template <std::size_t N>
  void zeros(std::size_t) {}

  template <class... Fields>
  void bits8(std::size_t offset, Fields... fields) {
    unpack<8>(in_[offset], fields...);
  }
  template <class... Fields>
  void bits16(std::size_t offset, Fields... fields) {
    unpack<16>(load_be16(in_ + offset), fields...);
  }
  template <class... Fields>
  void bits32(std::size_t offset, Fields... fields) {
    unpack<32>(load_be32(in_ + offset), fields...);
  }

 private:
  template <unsigned Width, class... Fields>
  static void unpack(std::uint64_t word, Fields... fields) {
    static_assert((Fields::kWidth + ...) == Width, "the fields do not fill the word");
    unsigned shift = Width;
    ((shift -= Fields::kWidth, fields.set(word >> shift)), ...);
  }

  const std::uint8_t* in_;
};

/// Writes the `Header::kBytes` bytes of `header` to `out`.
template <class Header>
void encode_header(const Header& header, std::uint8_t* out) {
  Header::layout(header, Writer(out));
}

/// Reads a header from `Header::kBytes` bytes; reserved bits are ignored.
template <class Header>
Header decode_header(const std::uint8_t* in) {
  Header header{};
  Header::layout(header, Reader(in));
  return header;
}

}  // namespace rnic::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

namespace rnic::reference {

using Bytes = std::vector<std::uint8_t>;

/// What one host's memory must hold. A byte that a failed operation may or may not have reached has
/// two allowed values: the old and the new one.
class Memory {
 public:
  void map(std::uint64_t address, const Bytes& content) {
    areas_[address] = {content, content, {}, {}};
  }
  void unmap(std::uint64_t address) { areas_.erase(address); }

  Bytes read(std::uint64_t address, std::uint64_t count) const {
    const auto at = find(address, count);
    const auto from = at->second.value.begin() + static_cast<std::ptrdiff_t>(address - at->first);
    return {from, from + static_cast<std::ptrdiff_t>(count)};
  }

  void write(std::uint64_t address, const Bytes& bytes) { store(address, bytes, true); }
  /// Each byte may have been written or not.
  void perhaps_write(std::uint64_t address, const Bytes& bytes) { store(address, bytes, false); }

  /// Each byte may hold anything.
  void forget(std::uint64_t address, std::uint64_t count) {
    const std::uint64_t start = find(address, count)->first;
    Area& area = areas_[start];
    for (std::uint64_t i = 0; i < count; ++i) area.unknown.insert(address - start + i);
  }

  /// What was found there, after it was compared: no byte has two values any more.
  void settle(std::uint64_t address, const Bytes& found) {
    areas_.at(address) = {found, found, {}, {}};
  }

  struct Area {
    Bytes value;
    Bytes other;  ///< the second allowed value; the same as `value` where there is none
    /// By offset: further allowed values, where several writes may have come to pass.
    std::map<std::uint64_t, std::set<std::uint8_t>> further;
    std::set<std::uint64_t> unknown;  ///< offsets of bytes that may hold anything
    bool allows(std::size_t at, std::uint8_t found) const {
      if (found == value[at] || found == other[at] || unknown.count(at) > 0) return true;
      const auto more = further.find(at);
      return more != further.end() && more->second.count(found) > 0;
    }
  };
  const std::map<std::uint64_t, Area>& areas() const { return areas_; }

 private:
  using Areas = std::map<std::uint64_t, Area>;

  Areas::const_iterator find(std::uint64_t address, std::uint64_t count) const {
    auto at = areas_.upper_bound(address);
    if (at == areas_.begin()) throw std::logic_error("the reference has no memory there");
    --at;
    if (address - at->first + count > at->second.value.size()) {
      throw std::logic_error("the reference's memory ends there");
    }
    return at;
  }

  void store(std::uint64_t address, const Bytes& bytes, bool certain) {
    Area& area = areas_[find(address, bytes.size())->first];
    const std::uint64_t offset = address - find(address, bytes.size())->first;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::uint64_t at = offset + i;
      if (!certain && area.other[at] != area.value[at]) area.further[at].insert(area.other[at]);
      area.other[at] = bytes[i];
      if (!certain) continue;
      area.further.erase(at);
      area.value[at] = bytes[i];
      area.unknown.erase(offset + i);
    }
  }

  Areas areas_;
};

}  // namespace rnic::reference

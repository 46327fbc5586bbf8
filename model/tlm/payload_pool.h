// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tlm>

#include "base/pool.h"
#include "base/time.h"
#include "tlm/pcie_extension.h"

namespace rnic::tlm_ext {

/// A generic payload that is never built anew: its extension stays attached between uses, and short
/// data may live inside it.
class PooledPayload : public tlm::tlm_generic_payload {
 public:
  static constexpr std::size_t kInlineBytes = 256;

  PooledPayload() { set_extension(&extension); }
  ~PooledPayload() override { clear_extension(&extension); }
  PooledPayload(const PooledPayload&) = delete;
  PooledPayload& operator=(const PooledPayload&) = delete;

  PcieExtension extension;
  std::array<std::uint8_t, kInlineBytes> inline_data;
  void* owner = nullptr;  ///< for whoever took it
  Time sent{0};           ///< likewise
};

/// Pool of payloads; a payload returns by itself when its last holder releases it. The pool must
/// outlive them.
class PayloadPool : public tlm::tlm_mm_interface {
 public:
  /// A payload for one transfer, already acquired once. `data` may be null (timing only).
  PooledPayload* take(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                      std::uint32_t bytes, Purpose purpose);

  void free(tlm::tlm_generic_payload* payload) override;

  std::size_t created() const { return pool_.created(); }
  std::size_t in_use() const { return pool_.in_use(); }

 private:
  Pool<PooledPayload> pool_;
};

}  // namespace rnic::tlm_ext

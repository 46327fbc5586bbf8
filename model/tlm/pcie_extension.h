// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <tlm>

namespace rnic::tlm_ext {

/// What a TLP is for; PCIe counters and reports are kept by purpose.
enum class Purpose : std::uint8_t {
  kDoorbell,
  kBlueFlame,
  kDoorbellRecord,
  kWqe,
  kRqWqe,
  kQpc,
  kCqc,
  kMpt,
  kMtt,
  kPayload,
  kCqe,
  kEqe,
  kMsix,
  kCommand,
  kAtomic,  ///< read and write of an atomic operation
  kCount
};
inline constexpr std::size_t kPurposeCount = static_cast<std::size_t>(Purpose::kCount);

const char* purpose_name(Purpose purpose);

/// What became of a read's completions on their way.
enum class CompletionFate : std::uint8_t {
  kIntact,
  kPoisoned,  ///< arrived marked as damaged (EP)
  kLost       ///< will not arrive: the requester's completion time-out runs
};

/// What PCIe needs beyond address, command, data and length. Ignorable (TLM-2.0 base protocol).
struct PcieExtension : public tlm::tlm_extension<PcieExtension> {
  Purpose purpose = Purpose::kPayload;
  bool relaxed_ordering = false;
  bool id_based_ordering = false;
  CompletionFate fate = CompletionFate::kIntact;
  std::uint16_t requester = 0;  ///< requester ID: the function that asks
  std::uint32_t tags = 0;   ///< read tags the request holds
  std::uint64_t token = 0;  ///< requester's own

  tlm::tlm_extension_base* clone() const override { return new PcieExtension(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    *this = static_cast<const PcieExtension&>(other);
  }
};

}  // namespace rnic::tlm_ext

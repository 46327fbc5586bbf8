// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <tlm>

#include "base/page.h"

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
  kAtomic,        ///< read and write of an atomic operation
  kRegister,      ///< the CPU reads a register of the device
  kTranslation,   ///< ATS: translation request and completion
  kInvalidation,  ///< ATS: invalidate request and completion
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

/// An AtomicOp request (PCI Express Base, 6.15) of 8 bytes: compare-and-swap or fetch-and-add.
struct AtomicOperands {
  bool compare_swap = false;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
  /// Operands in the request.
  std::uint32_t bytes() const { return compare_swap ? 16 : 8; }
};

/// What PCIe needs beyond address, command, data and length. Ignorable (TLM-2.0 base protocol).
struct PcieExtension : public tlm::tlm_extension<PcieExtension> {
  Purpose purpose = Purpose::kPayload;
  bool relaxed_ordering = false;
  bool id_based_ordering = false;
  CompletionFate fate = CompletionFate::kIntact;
  bool translated = false;      ///< the address is a physical one already (ATS)
  std::uint16_t requester = 0;  ///< requester ID: the function that asks
  bool follows = false;         ///< a write that goes on where the one before it ended
  bool followed = false;        ///< a write that the next one goes on with
  bool is_atomic = false;       ///< a read that changes what it reads: see `operands`
  AtomicOperands operands;
  std::uint32_t tags = 0;   ///< read tags the request holds
  std::uint64_t token = 0;  ///< requester's own
  /// Of a transfer of one whole page: where a read may leave the page itself instead of its bytes,
  /// and which page the bytes of a write are. Null: none.
  Page* page = nullptr;

  tlm::tlm_extension_base* clone() const override { return new PcieExtension(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    *this = static_cast<const PcieExtension&>(other);
  }
};

/// What PCIe knows of `payload`: of one without the extension, what the extension says by default.
inline const PcieExtension& extension_of(const tlm::tlm_generic_payload& payload) {
  if (const auto* extension = payload.get_extension<PcieExtension>()) return *extension;
  static const PcieExtension plain;
  return plain;
}

}  // namespace rnic::tlm_ext

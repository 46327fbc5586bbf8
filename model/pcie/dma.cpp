// SPDX-License-Identifier: Apache-2.0
#include "pcie/dma.h"

#include <array>
#include <cstdio>
#include <string>

#include "base/error.h"

namespace rnic::pcie {

const char* dma_error_name(DmaError error) {
  static constexpr const char* kNames[] = {"unsupported request", "completer abort",
                                           "completion time-out", "poisoned data"};
  return kNames[static_cast<std::size_t>(error)];
}

void DmaIf::dma_atomic(Time /*earliest*/, std::uint64_t /*address*/,
                       const tlm_ext::AtomicOperands& /*operands*/, std::uint8_t* /*into*/,
                       DmaClient* /*client*/, std::uint64_t /*token*/) {
  panic("DMA", "this engine has no AtomicOps");
}

namespace {

/// What to look at.
const char* remedy(DmaError error) {
  switch (error) {
    case DmaError::kUnsupportedRequest:
      return " (no memory is there, or iommu.mapped_bytes leaves it unmapped)";
    case DmaError::kCompleterAbort:
      return " (peer.reads=false: the way to the peer forwards writes only)";
    case DmaError::kCompletionTimeout:
      return " (pcie.fault.lost, pcie.fault.loss_rate: its completion did not come within "
             "pcie.completion_timeout)";
    case DmaError::kPoisoned:
      return " (pcie.fault.poisoned, pcie.fault.poison_rate)";
  }
  return "";
}

}  // namespace

void DmaClient::dma_failed(const DmaFault& fault) {
  std::array<char, 20> address{};
  std::snprintf(address.data(), address.size(), "0x%llx",
                static_cast<unsigned long long>(fault.address));
  throw SimulationError(std::string("fatal device error: DMA ") +
                        (fault.is_read ? "read" : "write") + " of " +
                        tlm_ext::purpose_name(fault.purpose) + " at bus address " + address.data() +
                        " failed: " + dma_error_name(fault.error) + remedy(fault.error) +
                        "; nobody can take this error: the device stops");
}

}  // namespace rnic::pcie

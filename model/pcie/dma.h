// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>

#include "base/page.h"
#include "base/time.h"
#include "tlm/pcie_extension.h"

namespace rnic::pcie {

/// Why a DMA request failed (PCI Express Base, 2.2.9 and 2.8).
enum class DmaError : std::uint8_t {
  kUnsupportedRequest,  ///< nothing answers at that address
  kCompleterAbort,      ///< the completer cannot do it
  kCompletionTimeout,   ///< a completion did not come within pcie.completion_timeout
  kPoisoned             ///< the data came marked as damaged (EP)
};

const char* dma_error_name(DmaError error);

/// A request that failed. Pieces of a read that succeeded have been filled in, the others not.
struct DmaFault {
  DmaError error = DmaError::kUnsupportedRequest;
  bool is_read = true;
  tlm_ext::Purpose purpose = tlm_ext::Purpose::kPayload;
  std::uint64_t address = 0;  ///< of the transfer that failed
  std::uint64_t token = 0;    ///< the caller's
};

/// Told when a DMA request is over: dma_done() or dma_failed(), one of them, once.
class DmaClient {
 public:
  virtual ~DmaClient() = default;
  /// A read: the last byte is in the device, `into` is filled. A write: the data has been taken
  /// from `from` (it is visible in host memory); the buffer may be reused. `token` is the caller's.
  virtual void dma_done(std::uint64_t token) = 0;
  /// The request failed. The unit ends what it was for as hardware does: the message, the queue
  /// pair, the completion queue or the command. The default, of posted writes that no unit keeps
  /// track of, ends the simulation with SimulationError: no device would learn of their loss.
  virtual void dma_failed(const DmaFault& fault);
};

/// Whether a transfer is of one whole page.
constexpr bool is_page(std::uint64_t address, std::uint32_t bytes) {
  return bytes == Page::kBytes && address % Page::kBytes == 0;
}

/// The device's access to host memory, by bus address. Requests of any length: the engine splits
/// them by MRRS, MPS, RCB and 4 KiB boundaries.
class DmaIf : public virtual sc_core::sc_interface {
 public:
  /// Reads `bytes` into `into` (may be null: timing only). `client->dma_done(token)` is called when
  /// the last byte has arrived, or `client->dma_failed()`. `earliest` may lie in the future, never
  /// in the past.
  virtual void dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes,
                        std::uint8_t* into, tlm_ext::Purpose purpose, DmaClient* client,
                        std::uint64_t token) = 0;

  /// dma_read() of one whole page (4 KiB, aligned to as much) into `into`, or, without a copy, the
  /// page itself into `page`: whichever memory can do.
  virtual void dma_read_page(Time earliest, std::uint64_t address, std::uint8_t* into,
                             Page& /*page*/, tlm_ext::Purpose purpose, DmaClient* client,
                             std::uint64_t token) {
    dma_read(earliest, address, Page::kBytes, into, purpose, client, token);
  }
  /// dma_write() of one whole page, which memory may keep instead of a copy.
  virtual Time dma_write_page(Time earliest, std::uint64_t address, Page& page,
                              tlm_ext::Purpose purpose, DmaClient* client, std::uint64_t token) {
    return dma_write(earliest, address, Page::kBytes, page.get(), purpose, client, token);
  }

  /// AtomicOp on the 8 bytes at `address`, which the root complex carries out as one access; `into`
  /// gets what was there before. As dma_read() otherwise.
  virtual void dma_atomic(Time earliest, std::uint64_t address,
                          const tlm_ext::AtomicOperands& operands, std::uint8_t* into,
                          DmaClient* client, std::uint64_t token);

  /// Writes `bytes` from `from` (may be null: timing only) as posted writes; `from` must stay
  /// unchanged until `client->dma_done(token)` (null client: the engine copies the bytes at once;
  /// for short writes such as CQEs, at most 256 B). Returns when the last byte leaves the device,
  /// i.e. when the device's buffer is free again. Posted writes become visible in call order.
  virtual Time dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                         const std::uint8_t* from, tlm_ext::Purpose purpose, DmaClient* client,
                         std::uint64_t token) = 0;
};

}  // namespace rnic::pcie

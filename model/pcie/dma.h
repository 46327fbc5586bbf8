// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>

#include "base/time.h"
#include "tlm/pcie_extension.h"

namespace rnic::pcie {

/// Told when a DMA request is over.
class DmaClient {
 public:
  virtual ~DmaClient() = default;
  /// A read: the last byte is in the device, `into` is filled. A write: the data has been taken
  /// from `from` (it is visible in host memory); the buffer may be reused. `token` is the caller's.
  virtual void dma_done(std::uint64_t token) = 0;
};

/// The device's access to host memory, by bus address. Requests of any length: the engine splits
/// them by MRRS, MPS, RCB and 4 KiB boundaries.
class DmaIf : public virtual sc_core::sc_interface {
 public:
  /// Reads `bytes` into `into` (may be null: timing only). `client->dma_done(token)` is called when
  /// the last byte has arrived. `earliest` may lie in the future, never in the past.
  virtual void dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes,
                        std::uint8_t* into, tlm_ext::Purpose purpose, DmaClient* client,
                        std::uint64_t token) = 0;

  /// Writes `bytes` from `from` (may be null: timing only) as posted writes; `from` must stay
  /// unchanged until `client->dma_done(token)` (null client: the engine copies the bytes at once;
  /// for short writes such as CQEs, at most 256 B). Returns when the last byte leaves the device,
  /// i.e. when the device's buffer is free again. Posted writes become visible in call order.
  virtual Time dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                         const std::uint8_t* from, tlm_ext::Purpose purpose, DmaClient* client,
                         std::uint64_t token) = 0;
};

}  // namespace rnic::pcie

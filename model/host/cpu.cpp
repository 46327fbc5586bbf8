// SPDX-License-Identifier: Apache-2.0
#include "host/cpu.h"

#include <cstring>

namespace rnic::host {

void StoreBuffer::store(Time at, std::uint64_t offset, const std::uint8_t* data,
                        std::uint32_t bytes, tlm_ext::Purpose purpose) {
  Store* entry = pool_.take();
  if (bytes > entry->data.size()) panic(name(), "a store larger than a BlueFlame push");
  entry->offset = offset;
  entry->bytes = bytes;
  entry->purpose = purpose;
  entry->reader = nullptr;
  std::memcpy(entry->data.data(), data, bytes);
  stores_.post(at, entry);
}

void StoreBuffer::load(Time at, std::uint64_t offset, MmioReader& reader) {
  Store* entry = pool_.take();
  entry->offset = offset;
  entry->reader = &reader;
  stores_.post(at, entry);
}

void StoreBuffer::drain(Store*& store) {
  if (store->reader != nullptr) {
    mmio_.mmio_read(sim_now(), store->offset, *store->reader);
    pool_.give(store);
    return;
  }
  mmio_.mmio_write(sim_now(), store->offset, store->data.data(), store->bytes, store->purpose);
  pool_.give(store);
}

}  // namespace rnic::host

// SPDX-License-Identifier: Apache-2.0
#include "nic/device_memory.h"

#include <algorithm>
#include <cstring>

#include "protocol/atomic.h"

namespace rnic::nic {

DeviceMemory::DeviceMemory(const sc_core::sc_module_name& name, const config::NicConfig& config,
                           std::uint64_t base, pcie::DmaIf& behind, pcie::DmaEngine& engine)
    : sc_module(name),
      base_(base),
      size_(config.device_memory),
      latency_(config.device_memory_latency),
      port_(config.device_memory_rate),
      behind_(behind),
      engine_(engine),
      turns_("turns", this, &DeviceMemory::carry_out) {}

DeviceMemory::Access* DeviceMemory::take(Access::Kind kind, std::uint64_t address,
                                         std::uint32_t bytes, pcie::DmaClient* client,
                                         std::uint64_t token) {
  Access* access = accesses_.take();
  access->kind = kind;
  access->address = address;
  access->bytes = bytes;
  access->into = nullptr;
  access->from = nullptr;
  access->client = client;
  access->token = token;
  return access;
}

Time DeviceMemory::serve(Access* access, Time earliest) {
  const Time taken = port_.reserve(std::max(earliest, sim_now()), access->bytes).end;
  turns_.post(taken + latency_, access);
  return taken;
}

void DeviceMemory::dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes,
                            std::uint8_t* into, tlm_ext::Purpose purpose, pcie::DmaClient* client,
                            std::uint64_t token) {
  if (!contains(address)) {
    behind_.dma_read(earliest, address, bytes, into, purpose, client, token);
    return;
  }
  Access* access = take(Access::Kind::kRead, address, bytes, client, token);
  access->into = into;
  serve(access, earliest);
}

void DeviceMemory::dma_atomic(Time earliest, std::uint64_t address,
                              const tlm_ext::AtomicOperands& operands, std::uint8_t* into,
                              pcie::DmaClient* client, std::uint64_t token) {
  if (!contains(address)) {
    behind_.dma_atomic(earliest, address, operands, into, client, token);
    return;
  }
  Access* access = take(Access::Kind::kAtomic, address, protocol::kAtomicBytes, client, token);
  access->into = into;
  access->operands = operands;
  serve(access, earliest);
}

Time DeviceMemory::dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                             const std::uint8_t* from, tlm_ext::Purpose purpose,
                             pcie::DmaClient* client, std::uint64_t token) {
  if (!contains(address)) {
    return behind_.dma_write(earliest, address, bytes, from, purpose, client, token);
  }
  Access* access = take(Access::Kind::kWrite, address, bytes, client, token);
  access->from = from;
  if (client == nullptr && from != nullptr) {
    std::memcpy(access->copy.data(), from, std::min(bytes, kCopied));
    access->from = access->copy.data();
  }
  return serve(access, earliest);
}

void DeviceMemory::carry_out(Access*& access) {
  switch (access->kind) {
    case Access::Kind::kRead:
      load(access->address, access->into, access->bytes);
      break;
    case Access::Kind::kWrite:
      store(access->address, access->from, access->bytes);
      break;
    case Access::Kind::kAtomic: {
      std::array<std::uint8_t, protocol::kAtomicBytes> word{};
      load(access->address, word.data(), protocol::kAtomicBytes);
      const std::uint64_t before = protocol::load_operand(word.data());
      protocol::store_operand(access->into, before);
      protocol::store_operand(
          word.data(),
          protocol::atomic_result(access->operands.compare_swap, before,
                                  access->operands.swap_or_add, access->operands.compare));
      store(access->address, word.data(), protocol::kAtomicBytes);
      break;
    }
  }
  pcie::DmaClient* const client = access->client;
  const std::uint64_t token = access->token;
  accesses_.give(access);
  if (client != nullptr) client->dma_done(token);
}

void DeviceMemory::load(std::uint64_t address, std::uint8_t* into, std::uint32_t bytes) {
  if (into == nullptr || bytes == 0) return;  // timing only
  tlm::tlm_generic_payload payload;
  payload.set_read();
  payload.set_address(address);
  payload.set_data_ptr(into);
  payload.set_data_length(bytes);
  engine_.socket->transport_dbg(payload);
}

void DeviceMemory::store(std::uint64_t address, const std::uint8_t* from, std::uint32_t bytes) {
  if (bytes == 0) return;
  tlm::tlm_generic_payload payload;
  payload.set_write();
  payload.set_address(address);
  // A write command does not change what the pointer leads to. Null: only watchers learn of it.
  payload.set_data_ptr(const_cast<std::uint8_t*>(from));  // NOLINT
  payload.set_data_length(bytes);
  engine_.socket->transport_dbg(payload);
}

}  // namespace rnic::nic

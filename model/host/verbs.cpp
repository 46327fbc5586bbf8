// SPDX-License-Identifier: Apache-2.0
#include "host/verbs.h"

#include "base/error.h"
#include "config/config.h"
#include "host/verbs_internal.h"
#include "protocol/doorbell.h"

namespace rnic::host::verbs {

using protocol::CommandStatus;

namespace {

constexpr std::uint64_t kRingChunk = 1U << 20;

}  // namespace

Context::Context(const sc_core::sc_module_name& name, const config::Config& config,
                 PhysicalMemory& memory, AddressSpace& space, ContextMemory& context_memory,
                 MmioPort& mmio)
    : sc_module(name),
      nic_(config.nic),
      cpu_(config.cpu),
      memory_(memory),
      space_(space),
      registrar_(context_memory, config.memory),
      store_buffer_("store_buffer", mmio),
      doorbell_registers_(config.cpu.doorbell_registers) {
  mailbox_address_ = allocate_ring(sizeof(protocol::CommandMailbox));
  memory_.watch(mailbox_address_ + protocol::kCommandStatusOffset, 1, &mailbox_written_);
}

std::uint64_t Context::allocate_ring(std::uint64_t bytes) {
  const std::uint64_t rounded = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  if (rounded > kRingChunk) {
    const auto address = memory_.allocate_contiguous(rounded);
    if (!address) throw ConfigError("the host has no memory left for queue rings");
    return *address;
  }
  if (rounded > ring_chunk_left_) {
    const auto address = memory_.allocate_contiguous(kRingChunk);
    if (!address) throw ConfigError("the host has no memory left for queue rings");
    ring_chunk_ = *address;
    ring_chunk_left_ = kRingChunk;
  }
  const std::uint64_t address = ring_chunk_;
  ring_chunk_ += rounded;
  ring_chunk_left_ -= rounded;
  return address;
}

CommandStatus Context::execute(Core& core, const protocol::CommandMailbox& mailbox) {
  ++stats_.commands;
  core.sync();
  while (mailbox_taken_) sc_core::wait(mailbox_free_);  // one command at a time, as under a mutex
  mailbox_taken_ = true;
  memory_.write(mailbox_address_, &mailbox, sizeof mailbox);
  const std::uint64_t seen = mailbox_written_.writes();
  std::uint8_t address[8];
  protocol::store_be64(address, mailbox_address_);
  core.spend(cpu_.doorbell_cost);
  store_buffer_.store(core.now(), protocol::BarLayout::kCommand, address, sizeof address,
                      tlm_ext::Purpose::kCommand);
  mailbox_written_.spin(core, cpu_.poll_cost, seen);
  std::uint8_t status = 0;
  memory_.read(mailbox_address_ + protocol::kCommandStatusOffset, &status, 1);
  core.sync();
  mailbox_taken_ = false;
  mailbox_free_.notify();
  return static_cast<CommandStatus>(status);
}

stats::DeliveryMeter* Context::meter_of(std::uint32_t qpn) {
  const QueuePair* qp = find_qp(qpn);
  return qp == nullptr ? nullptr : qp->meter;
}

stats::MessageTrace* Context::trace_of(std::uint32_t qpn, std::uint16_t wqe_index) {
  const QueuePair* qp = find_qp(qpn);
  if (qp == nullptr || qp->traces.empty()) return nullptr;
  return qp->traces[wqe_index & (qp->traces.size() - 1)];
}

}  // namespace rnic::host::verbs

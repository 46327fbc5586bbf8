// SPDX-License-Identifier: Apache-2.0
#include "host/verbs.h"

#include <algorithm>

#include "base/error.h"
#include "config/config.h"
#include "host/verbs_internal.h"
#include "protocol/doorbell.h"
#include "protocol/multicast.h"

namespace rnic::host::verbs {

using protocol::CommandStatus;

namespace {

constexpr std::uint64_t kRingChunk = 1U << 20;
constexpr std::uint32_t kNoDomain = ~0U;  // user count of a protection domain that is gone

PortAttr port_of(const config::Config& config) {
  constexpr std::uint32_t kLargestPathMtu = 4096;
  constexpr std::uint32_t kLongestMessage = 1U << 31;  // IBTA vol 1, 9.7.6
  PortAttr port;
  port.max_mtu = std::max(kLargestPathMtu, config.transport.mtu);
  port.active_mtu = config.transport.mtu;
  port.max_msg_sz = kLongestMessage;
  port.pkey_tbl_len = 1;
  port.gid_tbl_len = 1;
  port.active_gbps = config.link.rate.to_gbps();
  port.ethernet = config.transport.protocol != config::Protocol::kIb;
  return port;
}

GroupAddressing group_addressing_of(const config::TransportConfig& transport) {
  switch (transport.protocol) {
    case config::Protocol::kIb:
      return GroupAddressing::kLid;
    case config::Protocol::kRoceV1:
      return GroupAddressing::kGid;
    case config::Protocol::kRoceV2:
      return transport.ip_version == 6 ? GroupAddressing::kGid : GroupAddressing::kIpv4;
    case config::Protocol::kIwarp:
      break;
  }
  return GroupAddressing::kNone;
}

}  // namespace

Context::Context(const sc_core::sc_module_name& name, const config::Config& config,
                 PhysicalMemory& memory, AddressSpace& space, ContextMemory& context_memory,
                 MmioPort& mmio)
    : sc_module(name),
      context_memory_(context_memory),
      nic_(config.nic),
      cpu_(config.cpu),
      memory_config_(config.memory),
      port_(port_of(config)),
      connection_setup_(config.transport.protocol == config::Protocol::kIwarp
                            ? config.tcp.connection_setup
                            : kTimeZero),
      memory_(memory),
      space_(space),
      registrar_(context_memory, config.memory, config.nic.key_policy),
      mmio_(mmio),
      store_buffer_("store_buffer", mmio),
      unmap_cost_(config.iommu.enabled && !config.iommu.passthrough
                      ? config.iommu.invalidate_latency
                      : kTimeZero),
      handlers_("interrupt_handlers", this, &Context::handle_interrupt),
      page_fault_unit_(std::string(this->name()) + ".page_faults"),
      fault_handlers_(config.memory.odp_handlers),
      page_jobs_("page_jobs", this, &Context::pages_ready),
      post_rules_{config.transport.protocol == config::Protocol::kIwarp},
      group_addressing_(group_addressing_of(config.transport)),
      doorbell_registers_(config.cpu.doorbell_registers) {
  mailbox_address_ = allocate_ring(sizeof(protocol::CommandMailbox));
  create_event_rings();
  memory_.watch(mailbox_address_ + protocol::kCommandStatusOffset, 1, &mailbox_written_);
}

std::uint64_t Context::read_register(Core& core, std::uint64_t offset) {
  DeviceAnswer answer;
  const Time start = core.now();
  store_buffer_.load(start, offset, answer);
  core.sync();
  const Time issued = sim_now();
  const std::uint64_t value = answer.await();
  core.add_stall(sim_now() - issued);
  return value;
}

AddressHandle* Context::create_ah(Core& core, std::uint32_t pd, const protocol::AddressVector& av) {
  const bool group = protocol::is_multicast_gid(av.destination_gid);
  if (!pd_exists(pd) || (group && !group_valid(av.destination_gid, av.destination_lid))) {
    return nullptr;
  }
  core.spend(cpu_.post_cost);  // user space builds it, as mlx5's driver does
  use_pd(pd);
  address_handles_.push_back(std::make_unique<AddressHandle>(AddressHandle{pd, av}));
  AddressHandle* const made = address_handles_.back().get();
  if (group) protocol::complete_group_address(made->av);
  tell_address(core, protocol::CommandOpcode::kAddAddress, *made);
  return made;
}

void Context::tell_address(Core& core, protocol::CommandOpcode opcode, const AddressHandle& ah) {
  if (!nic_.write_imm_needs_handle) return;
  protocol::CommandMailbox mailbox{};
  mailbox.opcode = opcode;
  mailbox.address = {ah.pd, ah.av};
  execute(core, mailbox);
}

Status Context::destroy_ah(Core& core, AddressHandle* ah) {
  const auto found = std::find_if(address_handles_.begin(), address_handles_.end(),
                                  [ah](const auto& kept) { return kept.get() == ah; });
  if (found == address_handles_.end()) return Status::kEinval;
  core.spend(cpu_.post_cost);
  tell_address(core, protocol::CommandOpcode::kDropAddress, *ah);
  leave_pd(ah->pd);
  address_handles_.erase(found);
  return Status::kOk;
}

std::uint32_t Context::alloc_pd() {
  pd_users_.push_back(0);
  return static_cast<std::uint32_t>(pd_users_.size());  // 0 is no domain
}

bool Context::pd_exists(std::uint32_t pd) const {
  return pd != 0 && pd <= pd_users_.size() && pd_users_[pd - 1] != kNoDomain;
}

Status Context::dealloc_pd(std::uint32_t pd) {
  if (!pd_exists(pd)) return Status::kEinval;
  if (pd_users_[pd - 1] > 0) return Status::kEbusy;
  pd_users_[pd - 1] = kNoDomain;
  return Status::kOk;
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

Status Context::execute_status(Core& core, const protocol::CommandMailbox& mailbox) {
  switch (execute(core, mailbox)) {
    case CommandStatus::kOk:
      return Status::kOk;
    case CommandStatus::kDeviceFailed:
      return Status::kEio;
    case CommandStatus::kNoRoom:
      return Status::kEnomem;
    default:
      return Status::kEinval;
  }
}

stats::DeliveryMeter* Context::meter_of(std::uint32_t qpn) {
  const QueuePair* qp = find_qp(qpn);
  return qp == nullptr ? nullptr : qp->meter;
}

stats::MessageTrace* Context::trace_of(std::uint32_t qpn, std::uint16_t wqe_index) {
  const QueuePair* qp = find_qp(qpn);
  if (qp == nullptr || qp->extras == nullptr || qp->extras->traces.empty()) return nullptr;
  const std::vector<stats::MessageTrace*>& traces = qp->extras->traces;
  return traces[wqe_index & (traces.size() - 1)];
}

}  // namespace rnic::host::verbs

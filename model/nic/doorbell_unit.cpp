// SPDX-License-Identifier: Apache-2.0
#include "nic/doorbell_unit.h"

#include <algorithm>
#include <cstring>

#include "protocol/atomic.h"

namespace rnic::nic {

using protocol::BarLayout;
using protocol::kWqeBlockBytes;

DoorbellUnit::DoorbellUnit(const sc_core::sc_module_name& name, const config::NicConfig& config,
                           const QpTable& queue_pairs, Time register_read_time)
    : sc_module(name),
      queue_pairs_(queue_pairs),
      clock_(config.clock_hz),
      stage_(this->name(), config.doorbell, clock_),
      read_time_(register_read_time),
      flush_late_sends_(config.flush_late_sends),
      arrivals_("arrivals", this, &DoorbellUnit::arrive),
      reads_("reads", this, &DoorbellUnit::answer_read) {
  bar.bind(*this);
}

tlm::tlm_sync_enum DoorbellUnit::nb_transport_fw(tlm::tlm_generic_payload& payload,
                                                 tlm::tlm_phase& /*phase*/,
                                                 sc_core::sc_time& delay) {
  const Time at_bar = sim_now() + from_sc_time(delay);
  if (payload.is_read()) {
    begin_read(payload, at_bar);
    return tlm::TLM_ACCEPTED;
  }
  if (agent_ != nullptr) {
    const auto* extension = payload.get_extension<tlm_ext::PcieExtension>();
    if (extension != nullptr && extension->purpose == tlm_ext::Purpose::kInvalidation) {
      const std::uint8_t* range = payload.get_data_ptr();
      agent_->invalidate(protocol::load_operand(range),
                         protocol::load_operand(range + protocol::kAtomicBytes), at_bar);
      payload.set_response_status(tlm::TLM_OK_RESPONSE);
      return tlm::TLM_COMPLETED;
    }
  }
  if (payload.get_command() != tlm::TLM_WRITE_COMMAND ||
      payload.get_data_length() > kWqeBlockBytes) {
    payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
    return tlm::TLM_COMPLETED;
  }
  Write* write = writes_.take();
  write->offset = payload.get_address();
  write->bytes = payload.get_data_length();
  std::memcpy(write->data.data(), payload.get_data_ptr(), write->bytes);
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
  const Time arrival = clock_.next_edge(at_bar);
  arrivals_.post(stage_.pass(arrival), write);
  return tlm::TLM_COMPLETED;
}

void DoorbellUnit::begin_read(tlm::tlm_generic_payload& payload, Time arrival) {
  payload.acquire();
  reads_.post(clock_.next_edge(arrival) + read_time_, &payload);
}

void DoorbellUnit::answer_read(tlm::tlm_generic_payload*& payload) {
  constexpr std::uint32_t kBytes = 8;
  const std::uint32_t bytes = payload->get_data_length();
  if (payload->get_data_ptr() != nullptr) {
    std::array<std::uint8_t, kBytes> value{};
    if (payload->get_address() == BarLayout::kClock) {
      protocol::store_operand(value.data(), static_cast<std::uint64_t>(sim_now() / nanoseconds(1)));
    }
    std::memcpy(payload->get_data_ptr(), value.data(), std::min(bytes, kBytes));
  }
  payload->set_response_status(tlm::TLM_OK_RESPONSE);
  tlm::tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  bar->nb_transport_bw(*payload, phase, delay);
  payload->release();
}

void DoorbellUnit::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  nb_transport_fw(payload, phase, delay);
}

bool DoorbellUnit::get_direct_mem_ptr(tlm::tlm_generic_payload& /*payload*/,
                                      tlm::tlm_dmi& /*dmi*/) {
  return false;  // registers have side effects
}

unsigned DoorbellUnit::transport_dbg(tlm::tlm_generic_payload& /*payload*/) { return 0; }

void DoorbellUnit::arrive(Write*& write) {
  const Time now = sim_now();
  const std::uint64_t offset = write->offset % BarLayout::kRegisterStride;
  const std::uint64_t block = offset - BarLayout::kSendDoorbell;
  const bool is_block = offset >= BarLayout::kSendDoorbell && write->bytes == kWqeBlockBytes &&
                        block % kWqeBlockBytes == 0 &&
                        block / kWqeBlockBytes < protocol::kMaxWqeBlocks;
  if (is_block) {
    blueflame(*write, now);
  } else if (write->offset == BarLayout::kSendDoorbell &&
             write->bytes == protocol::SendDoorbell::kBytes) {
    send_doorbell(*write, now);
  } else if (write->offset == BarLayout::kCommand) {
    commands->execute(protocol::load_be64(write->data.data()), now);
  } else if (!queue_doorbell(*write, now)) {
    ++ignored_;
  }
  writes_.give(write);
}

/// The registers beside those of the send path.
bool DoorbellUnit::queue_doorbell(const Write& write, Time t) {
  if (write.offset == BarLayout::kFaultResume && translation.size() > 0 &&
      write.bytes == protocol::FaultResumeDoorbell::kBytes) {
    translation->resume_faults(protocol::FaultResumeDoorbell::decode(write.data.data()), t);
    return true;
  }
  if (write.bytes != protocol::CqArmDoorbell::kBytes) return false;
  if (write.offset == BarLayout::kCqArm && completion_queues.size() > 0) {
    completion_queues->arm(protocol::CqArmDoorbell::decode(write.data.data()), t);
    return true;
  }
  if (write.offset == BarLayout::kEqArm && events.size() > 0) {
    events->arm(protocol::EqArmDoorbell::decode(write.data.data()), t);
    return true;
  }
  if (write.offset == BarLayout::kRecvDoorbell && recv_queues.size() > 0) {
    QpContext* qp = queue_pairs_.find(protocol::RecvDoorbell::decode(write.data.data()).qpn);
    if (qp == nullptr) return false;
    if (qp->state == protocol::QpState::kError) recv_queues->flush(*qp, t);
    return true;
  }
  return false;
}

void DoorbellUnit::send_doorbell(const Write& write, Time t) {
  const auto doorbell = protocol::SendDoorbell::decode(write.data.data());
  QpContext* qp = queue_pairs_.find(doorbell.qpn);
  if (qp == nullptr) {
    ++ignored_;
    return;
  }
  ++doorbells_;
  if (forgets(*qp)) return;
  qp->sq_producer = doorbell.producer;
  qp->doorbell_at = t;
  if (contexts_ != nullptr) contexts_->expect(*qp, t);
  if (qp->flushes_sends()) {
    wqes->fetch(*qp, t);  // accepted and flushed
  } else if (transport::Transport::idle(*qp)) {
    scheduler->activate(*qp, t);
  }
}

QpContext* DoorbellUnit::ring_for(const Push& push, Time t) {
  const std::uint32_t qpn = protocol::load_be32(push.blocks.data() + 4) >> 8;
  QpContext* qp = queue_pairs_.find(qpn);
  if (qp == nullptr) {
    ++ignored_;
    return nullptr;
  }
  ++blueflames_;
  if (forgets(*qp)) return nullptr;
  const auto index = static_cast<std::uint16_t>(protocol::load_be32(push.blocks.data()) >> 8);
  qp->sq_producer = static_cast<std::uint16_t>(index + push.wanted);
  qp->doorbell_at = t;
  if (contexts_ != nullptr) contexts_->expect(*qp, t);
  return qp;
}

void DoorbellUnit::blueflame(const Write& write, Time t) {
  const std::uint64_t page = write.offset / BarLayout::kRegisterStride;
  Push& push = page == 0 ? push_ : pushes_[page];
  const std::uint64_t at = write.offset % BarLayout::kRegisterStride - BarLayout::kSendDoorbell;
  if (at == 0) {
    if (!push.complete()) {
      // Another WQE begins before this one is whole: its head was a doorbell, its data are lost.
      ++interleaved_;
      if (QpContext* qp = ring_for(push, t)) {
        if (qp->flushes_sends()) {
          wqes->fetch(*qp, t);
        } else if (transport::Transport::idle(*qp)) {
          scheduler->activate(*qp, t);
        }
      }
    }
    push.wanted =
        std::clamp(protocol::peek_wqe_blocks(write.data.data()), 1U, protocol::kMaxWqeBlocks);
    push.have = 0;
  } else if (push.complete()) {
    ++ignored_;  // the rest of one that was interrupted
    return;
  }
  std::memcpy(push.blocks.data() + at, write.data.data(), write.bytes);
  ++push.have;
  if (!push.complete()) return;
  QpContext* qp = ring_for(push, t);
  if (qp == nullptr) return;
  if (qp->flushes_sends()) {
    wqes->fetch(*qp, t);  // the copy in the ring is flushed
    return;
  }
  const bool idle = transport::Transport::idle(*qp);
  // Not usable when earlier WQEs are still to be read from the ring: the push is a doorbell then.
  wqes->blueflame(*qp, push.blocks.data(), push.wanted, t);
  if (idle) scheduler->activate(*qp, t);
}

}  // namespace rnic::nic

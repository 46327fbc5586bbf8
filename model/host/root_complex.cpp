// SPDX-License-Identifier: Apache-2.0
#include "host/root_complex.h"

#include <algorithm>
#include <string>

#include "base/sc_time.h"

namespace rnic::host {
namespace {

constexpr std::uint32_t kMmioTlpBytes = 64;  // a write-combining buffer

bool is_interrupt(const tlm::tlm_generic_payload& payload) {
  const auto* extension = payload.get_extension<tlm_ext::PcieExtension>();
  return extension != nullptr && extension->purpose == tlm_ext::Purpose::kMsix;
}

bool is_relaxed(const tlm::tlm_generic_payload& payload) {
  const auto* extension = payload.get_extension<tlm_ext::PcieExtension>();
  return extension != nullptr && extension->relaxed_ordering;
}

}  // namespace

RootComplex::RootComplex(const sc_core::sc_module_name& name,
                         const config::MemoryConfig& memory_config,
                         const config::IommuConfig& iommu_config, MemoryPort& memory)
    : sc_core::sc_module(name),
      dma_socket("dma_socket"),
      mmio_socket("mmio_socket"),
      memory_(memory),
      memory_system_(this->name(), memory_config),
      reads_wait_for_writes_(memory_config.reads_wait_for_writes),
      line_latency_(memory_config.read_line_latency),
      pending_("pending", this, &RootComplex::perform) {
  if (iommu_config.enabled) iommu_.emplace(std::string(this->name()) + ".iommu", iommu_config);
  dma_socket.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
  mmio_socket.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
}

void RootComplex::set_link(const config::PcieConfig& config) {
  if (OrderingPoint::matters(config)) ordering_.emplace(config);
  link_rules_.mrrs = config.mrrs;
}

Time RootComplex::further_lines(std::uint64_t address, std::uint32_t bytes) const {
  constexpr std::uint64_t kLine = LastLevelCache::kLineBytes;
  const std::uint32_t first =
      std::min(bytes, protocol::first_read_request(link_rules_, address, bytes));
  const std::uint64_t lines = (address % kLine + std::max(first, 1U) - 1) / kLine;
  return line_latency_ * static_cast<std::int64_t>(lines);
}

void RootComplex::reset_statistics(Time now) {
  memory_system_.reset_statistics(now);
  faults_ = 0;
  if (iommu_) iommu_->reset_statistics(now);
}

void RootComplex::mmio_write(Time earliest, std::uint64_t offset, const std::uint8_t* data,
                             std::uint32_t bytes, tlm_ext::Purpose purpose) {
  for (std::uint32_t done = 0; done < bytes;) {
    const std::uint32_t chunk = std::min(bytes - done, kMmioTlpBytes);
    tlm_ext::PooledPayload* payload =
        payloads_.take(tlm::TLM_WRITE_COMMAND, offset + done, nullptr, chunk, purpose);
    std::copy_n(data + done, chunk, payload->inline_data.begin());
    payload->set_data_ptr(payload->inline_data.data());
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = to_sc_time(earliest - sim_now());
    mmio_socket->nb_transport_fw(*payload, phase, delay);
    payload->release();
    done += chunk;
  }
}

Time RootComplex::schedule(const tlm::tlm_generic_payload& payload, Time arrival) {
  const std::uint32_t bytes = payload.get_data_length();
  const std::uint64_t address = payload.get_address();
  const bool relaxed = is_relaxed(payload);
  const bool read = payload.is_read();
  if (is_interrupt(payload)) {
    strictly_visible_ =
        std::max(strictly_visible_, memory_system_.deliver_interrupt(arrival, bytes));
    return strictly_visible_;
  }
  Time instant = read ? memory_system_.read(arrival, address, bytes)
                      : memory_system_.write(arrival, address, bytes);
  if (read && line_latency_ > kTimeZero) instant += further_lines(address, bytes);
  // Waits hold up their own request only, so they are added to what memory takes: it serves others
  // meanwhile.
  if (iommu_) instant += iommu_->translate(arrival, address, bytes);
  if (ordering_ && !read) instant = ordering_->admit(instant, address, bytes, relaxed);
  if (read && !relaxed && reads_wait_for_writes_) {
    instant += std::max(kTimeZero, strictly_visible_ - arrival);
  }
  // Relaxed ordering lets writes pass writes. A read would find what a write has not yet changed.
  if (!relaxed || read) instant = std::max(instant, strictly_visible_);
  if (!read) strictly_visible_ = std::max(strictly_visible_, instant);
  return instant;
}

tlm::tlm_sync_enum RootComplex::nb_transport_fw(tlm::tlm_generic_payload& payload,
                                                tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_REQ) return tlm::TLM_ACCEPTED;
  payload.acquire();
  const Time now = sim_now();
  const Time performed = schedule(payload, now + from_sc_time(delay));
  pending_.post(performed, &payload);
  phase = tlm::END_REQ;
  delay = to_sc_time(performed - now);
  return tlm::TLM_UPDATED;
}

void RootComplex::perform(tlm::tlm_generic_payload*& payload) {
  access(*payload);
  tlm::tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  dma_socket->nb_transport_bw(*payload, phase, delay);
  payload->release();
}

void RootComplex::access(tlm::tlm_generic_payload& payload) {
  if (is_interrupt(payload)) {
    if (interrupt_sink_ != nullptr) {
      interrupt_sink_->interrupt(payload.get_address(), payload.get_data_ptr(),
                                 payload.get_data_length());
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return;
  }
  if (access_memory(payload)) {
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  } else {
    ++faults_;
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
}

bool RootComplex::access_memory(const tlm::tlm_generic_payload& payload) {
  std::uint8_t* data = payload.get_data_ptr();
  const std::uint32_t bytes = payload.get_data_length();
  if (bytes == 0) return true;
  if (payload.is_read()) return data == nullptr || memory_.read(payload.get_address(), data, bytes);
  memory_system_.begin_device_access();
  const bool done = data == nullptr ? memory_.touch(payload.get_address(), bytes)
                                    : memory_.write(payload.get_address(), data, bytes);
  memory_system_.end_device_access();
  return done;
}

void RootComplex::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const Time now = sim_now();
  delay = to_sc_time(schedule(payload, now + from_sc_time(delay)) - now);
  access(payload);
}

bool RootComplex::get_direct_mem_ptr(tlm::tlm_generic_payload& /*payload*/, tlm::tlm_dmi& /*dmi*/) {
  return false;
}

unsigned RootComplex::transport_dbg(tlm::tlm_generic_payload& payload) {
  return access_memory(payload) ? payload.get_data_length() : 0;
}

tlm::tlm_sync_enum RootComplex::nb_transport_bw(tlm::tlm_generic_payload& /*payload*/,
                                                tlm::tlm_phase& /*phase*/,
                                                sc_core::sc_time& /*delay*/) {
  return tlm::TLM_COMPLETED;
}

void RootComplex::invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) {}

}  // namespace rnic::host

// SPDX-License-Identifier: Apache-2.0
#include "host/root_complex.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/sc_time.h"
#include "protocol/atomic.h"

namespace rnic::host {

using tlm_ext::PcieExtension;

namespace {

constexpr std::uint32_t kMmioTlpBytes = 64;  // a write-combining buffer

WriteOrder::Request request_of(const tlm::tlm_generic_payload& payload, Time arrival,
                               Time instant) {
  return {sim_now(), arrival, instant, payload.get_address(), payload.get_data_length()};
}

/// Where the cache line of `address` begins.
std::uint64_t line_of(std::uint64_t address) {
  return address - address % LastLevelCache::kLineBytes;
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
      ats_latency_(iommu_config.ats_latency),
      pending_("pending", this, &RootComplex::perform),
      registers_read_("registers_read", this, &RootComplex::register_read) {
  if (iommu_config.enabled) iommu_.emplace(std::string(this->name()) + ".iommu", iommu_config);
  dma_socket.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
  mmio_socket.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
}

void RootComplex::set_link(const config::PcieConfig& config) {
  if (OrderingPoint::matters(config)) own_order_.point.emplace(name(), config);
  link_rules_ = protocol::tlp_rules(config.gen, config.mps, config.mrrs, config.rcb);
  link_rules_.completion_size = std::min(config.completion_size, config.mps);
  link_rate_ = protocol::tlp_rate(config.gen, config.lanes, config.mps, config.dllp_overhead);
  memory_system_.set_link(link_rate_);
  ats_ = config.atc.enabled;
}

bool RootComplex::minds_order() const {
  const bool walks = iommu_ && !iommu_->passes_through();
  return walks || order_->point || reads_wait_for_writes_ || peer_ != nullptr ||
         memory_system_.minds_order();
}

Time RootComplex::further_lines(std::uint64_t address, std::uint32_t bytes) const {
  constexpr std::uint64_t kUnit = LastLevelCache::kLineBytes;
  const std::uint32_t first =
      std::min(bytes, protocol::first_read_request(link_rules_, address, bytes));
  const std::uint64_t lines = (address % kUnit + std::max(first, 1U) - 1) / kUnit;
  return line_latency_ * static_cast<std::int64_t>(lines);
}

void RootComplex::reset_statistics(Time now) {
  memory_system_.reset_statistics(now);
  if (own_order_.point) own_order_.point->reset_statistics(now);
  faults_ = 0;
  if (iommu_) iommu_->reset_statistics(now);
  if (peer_ != nullptr) peer_->reset_statistics(now);
}

void RootComplex::mmio_read(Time earliest, std::uint64_t offset, MmioReader& reader) {
  constexpr std::uint32_t kBytes = 8;
  tlm_ext::PooledPayload* payload =
      payloads_.take(tlm::TLM_READ_COMMAND, offset, nullptr, kBytes, tlm_ext::Purpose::kRegister);
  payload->inline_data.fill(0);
  payload->set_data_ptr(payload->inline_data.data());
  payload->owner = &reader;
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = to_sc_time(earliest + memory_system_.socket_crossing() - sim_now());
  mmio_socket->nb_transport_fw(*payload, phase, delay);
}

void RootComplex::register_read(tlm_ext::PooledPayload*& payload) {
  auto* reader = static_cast<MmioReader*>(payload->owner);
  const std::uint64_t value = protocol::load_operand(payload->inline_data.data());
  payload->release();
  reader->mmio_read_done(value);
}

bool RootComplex::invalidate(std::uint64_t address, std::uint64_t bytes, MmioReader& reader) {
  if (!iommu_ || iommu_->passes_through()) return false;
  iommu_->invalidate(address, bytes);
  if (!ats_) return false;
  invalidations_.push_back(&reader);
  std::array<std::uint8_t, 16> range{};
  protocol::store_operand(range.data(), address);
  protocol::store_operand(range.data() + protocol::kAtomicBytes, bytes);
  mmio_write(sim_now(), 0, range.data(), range.size(), tlm_ext::Purpose::kInvalidation);
  return true;
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
    sc_core::sc_time delay = to_sc_time(earliest + memory_system_.socket_crossing() - sim_now());
    mmio_socket->nb_transport_fw(*payload, phase, delay);
    payload->release();
    done += chunk;
  }
}

std::optional<Time> RootComplex::schedule_elsewhere(const tlm::tlm_generic_payload& payload,
                                                    const PcieExtension& extension, Time arrival) {
  const tlm_ext::Purpose purpose = extension.purpose;
  if (purpose == tlm_ext::Purpose::kMsix || purpose == tlm_ext::Purpose::kInvalidation) {
    const Time instant = memory_system_.deliver_interrupt(arrival, payload.get_data_length());
    return order_->writes.strict(request_of(payload, arrival, instant));
  }
  if (purpose == tlm_ext::Purpose::kTranslation) {
    const Time done = arrival + ats_latency_;
    return iommu_ ? done + iommu_->translate(arrival, payload.get_address(), 1) : done;
  }
  if (!is_for_peer(payload)) return std::nullopt;
  const std::uint32_t bytes = payload.get_data_length();
  if (payload.is_read()) {
    return peer_writes_.read(request_of(payload, arrival, peer_->read(arrival, bytes)));
  }
  const WriteOrder::Request write = request_of(payload, arrival, peer_->write(arrival, bytes));
  return extension.relaxed_ordering ? peer_writes_.relaxed(write) : peer_writes_.strict(write);
}

Time RootComplex::translate(const tlm::tlm_generic_payload& payload, Time arrival) {
  const std::uint32_t bytes = payload.get_data_length();
  const std::uint64_t address = payload.get_address();
  if (payload.is_read() || bytes <= link_rules_.mps || !link_rate_.valid()) {
    return iommu_->translate(arrival, address, bytes);
  }
  // Of a burst of writes the first packet asks, while the others are still coming.
  const std::uint64_t all = protocol::write_tlps(link_rules_, address, bytes).wire_bytes;
  const std::uint32_t first =
      protocol::first_write(link_rules_, address, bytes) + link_rules_.request_overhead;
  const Time asked = arrival - link_rate_.time_for(all - first);
  return std::max(kTimeZero, asked + iommu_->translate(asked, address, bytes) - arrival);
}

/// Link time from the first packet of a burst to its last: of data that come, or of completions
/// that go.
Time RootComplex::stream_of(bool read, std::uint64_t address, std::uint32_t bytes) const {
  if (bytes <= link_rules_.mps || !link_rate_.valid()) return kTimeZero;
  const protocol::TlpCount all = read ? protocol::completion_tlps(link_rules_, address, bytes)
                                      : protocol::write_tlps(link_rules_, address, bytes);
  const Time whole = link_rate_.time_for(all.wire_bytes);
  return whole - whole / static_cast<std::int64_t>(all.tlps);
}

Time RootComplex::read_memory(Time arrival, std::uint64_t address, std::uint32_t bytes) {
  if (!memory_system_.stands_by_requests() || !link_rate_.valid()) {
    return memory_system_.read(arrival, address, bytes);
  }
  if (bytes <= link_rules_.mrrs) {
    return memory_system_.read(arrival, address, bytes, stream_of(true, address, bytes));
  }
  answers_.clear();
  const Time request = link_rate_.time_for(link_rules_.request_overhead);
  while (bytes > 0) {
    const std::uint32_t piece = protocol::first_read_request(link_rules_, address, bytes);
    const Time ready =
        memory_system_.read(arrival, address, piece, stream_of(true, address, piece));
    const std::uint64_t wire = protocol::completion_tlps(link_rules_, address, piece).wire_bytes;
    answers_.push_back({ready, link_rate_.time_for(wire)});
    arrival += request;
    address += piece;
    bytes -= piece;
  }
  // Completions go out request by request as they are ready; the burst's are one stream, which has
  // to begin so late that none is ahead of its data.
  std::sort(answers_.begin(), answers_.end(),
            [](const Answer& a, const Answer& b) { return a.ready < b.ready; });
  Time begin{0};
  Time before{0};
  for (const Answer& answer : answers_) {
    begin = std::max(begin, answer.ready - before);
    before += answer.wire;
  }
  return begin;
}

Time RootComplex::write_memory(const tlm::tlm_generic_payload& payload, Time arrival) {
  std::uint64_t address = payload.get_address();
  std::uint32_t bytes = payload.get_data_length();
  // A line that two packets of a DMA write share is written once, whole, with the later one: the
  // same whether they come as one burst or each as a transaction of its own.
  const PcieExtension& extension = tlm_ext::extension_of(payload);
  std::uint64_t from = extension.follows ? line_of(address) : address;
  const std::uint64_t end =
      extension.followed ? std::max(from, line_of(address + bytes)) : address + bytes;
  if (bytes <= link_rules_.mps || !link_rate_.valid()) {
    return memory_system_.write(arrival, from, end - from);
  }
  if (!memory_system_.stands_by_requests()) {
    // The packets cross the path as they come.
    const Time stream = stream_of(false, address, bytes);
    return memory_system_.write(arrival - stream, from, end - from) + stream;
  }
  std::uint64_t to_come = protocol::write_tlps(link_rules_, address, bytes).wire_bytes;
  Time visible{0};
  while (bytes > 0) {
    const std::uint32_t packet = protocol::first_write(link_rules_, address, bytes);
    to_come -= packet + link_rules_.request_overhead;
    address += packet;
    bytes -= packet;
    const std::uint64_t to = bytes == 0 ? end : line_of(address);
    if (to == from) continue;
    const Time at = arrival - link_rate_.time_for(to_come);
    visible = std::max(visible, memory_system_.write(at, from, to - from));
    from = to;
  }
  return visible;
}

Time RootComplex::schedule(const tlm::tlm_generic_payload& payload, Time arrival) {
  const std::uint32_t bytes = payload.get_data_length();
  const std::uint64_t address = payload.get_address();
  const PcieExtension& extension = tlm_ext::extension_of(payload);
  const bool relaxed = extension.relaxed_ordering;
  const bool read = payload.is_read();
  if (const auto elsewhere = schedule_elsewhere(payload, extension, arrival)) return *elsewhere;
  Time instant = read ? read_memory(arrival, address, bytes) : write_memory(payload, arrival);
  if (read && line_latency_ > kTimeZero) instant += further_lines(address, bytes);
  // Waits hold up their own request only, so they are added to what memory takes: it serves others
  // meanwhile.
  if (iommu_ && !extension.translated) instant += translate(payload, arrival);
  WriteOrder& writes = order_->writes;
  if (read) {
    if (!relaxed && reads_wait_for_writes_) {
      instant += std::max(kTimeZero, writes.settled() - arrival);
    }
    return writes.read(request_of(payload, arrival, instant));
  }
  if (order_->point) {
    const Time stream = stream_of(false, address, bytes);
    instant = order_->point->admit(instant, stream, address, bytes, relaxed);
  }
  const WriteOrder::Request write = request_of(payload, arrival, instant);
  return relaxed ? writes.relaxed(write) : writes.strict(write);
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
  const PcieExtension& extension = tlm_ext::extension_of(payload);
  const tlm_ext::Purpose purpose = extension.purpose;
  if (purpose == tlm_ext::Purpose::kMsix) {
    if (interrupt_sink_ != nullptr) {
      interrupt_sink_->interrupt(payload.get_address(), payload.get_data_ptr(),
                                 payload.get_data_length());
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return;
  }
  if (purpose == tlm_ext::Purpose::kTranslation) {
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return;
  }
  if (purpose == tlm_ext::Purpose::kInvalidation) {
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    MmioReader* waiting = invalidations_.front();
    invalidations_.pop_front();
    waiting->mmio_read_done(0);
    return;
  }
  if (payload.is_read() && is_for_peer(payload) && !peer_->allows_reads()) {
    ++faults_;
    payload.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);  // completer abort
    return;
  }
  // A fault of the IOMMU answers a read as an address without memory does.
  const bool mapped = !iommu_ || purpose != tlm_ext::Purpose::kPayload ||
                      iommu_->maps(payload.get_address(), payload.get_data_length());
  if (mapped && access_memory(payload, extension)) {
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  } else {
    ++faults_;
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
}

bool RootComplex::access_memory(const tlm::tlm_generic_payload& payload,
                                const PcieExtension& extension) {
  std::uint8_t* data = payload.get_data_ptr();
  const std::uint32_t bytes = payload.get_data_length();
  if (bytes == 0) return true;
  const std::uint64_t address = payload.get_address();
  if (extension.is_atomic) return atomic_access(address, data, extension.operands);
  Page* page = extension.page;
  if (payload.is_read()) {
    if (page != nullptr) *page = memory_.lend(address);
    if (page != nullptr && *page) return true;
    return data == nullptr || memory_.read(address, data, bytes);
  }
  memory_system_.begin_device_access();
  const bool done =
      (page != nullptr && memory_.adopt(address, *page)) ||
      (data == nullptr ? memory_.touch(address, bytes) : memory_.write(address, data, bytes));
  memory_system_.end_device_access();
  return done;
}

bool RootComplex::atomic_access(std::uint64_t address, std::uint8_t* original,
                                const tlm_ext::AtomicOperands& operands) {
  if (!memory_.read(address, original, protocol::kAtomicBytes)) return false;
  std::array<std::uint8_t, protocol::kAtomicBytes> changed{};
  protocol::store_operand(
      changed.data(),
      protocol::atomic_result(operands.compare_swap, protocol::load_operand(original),
                              operands.swap_or_add, operands.compare));
  memory_system_.begin_device_access();
  const bool done = memory_.write(address, changed.data(), changed.size());
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
  return access_memory(payload, tlm_ext::extension_of(payload)) ? payload.get_data_length() : 0;
}

tlm::tlm_sync_enum RootComplex::nb_transport_bw(tlm::tlm_generic_payload& payload,
                                                tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase == tlm::BEGIN_RESP && payload.is_read()) {
    // Every payload on this socket came out of payloads_.
    registers_read_.post(sim_now() + from_sc_time(delay) + memory_system_.socket_crossing(),
                         static_cast<tlm_ext::PooledPayload*>(&payload));
  }
  return tlm::TLM_COMPLETED;
}

void RootComplex::invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) {}

}  // namespace rnic::host

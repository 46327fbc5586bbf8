// SPDX-License-Identifier: Apache-2.0
#include "workload/dma_stream.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "protocol/tlp.h"

namespace rnic::testbench {

using config::Op;
using config::Pattern;
using stats::Stage;

namespace {

constexpr std::uint64_t kCacheLine = 64;
constexpr std::uint64_t kWindowAlignment = std::uint64_t{2} << 20;
/// Windows beyond this are not filled with data: their accesses take the same time without.
constexpr std::uint64_t kMaxFilledBytes = std::uint64_t{64} << 20;

/// Distance of accesses, so that none crosses a boundary that its size does not force it to.
std::uint64_t stride_of(std::uint64_t bytes) {
  std::uint64_t stride = kCacheLine;
  while (stride < bytes && stride < protocol::kTlpBoundary) stride *= 2;
  return (std::max(stride, bytes) + stride - 1) / stride * stride;
}

/// What memory holds at a bus address that is a multiple of 8, so that any access can be checked on
/// its own.
std::uint64_t content_of(std::uint64_t address) { return (address + 1) * 0x9E3779B97F4A7C15ULL; }

}  // namespace

DmaStream::DmaStream(const sc_core::sc_module_name& name, const config::Config& config,
                     host::Host& host, DmaStaging& device, Measurement& measurement)
    : sc_module(name),
      config_(config),
      host_(host),
      device_(device),
      measurement_(measurement),
      bytes_(static_cast<std::uint32_t>(config.workload.msg_size)),
      stride_(stride_of(bytes_ + config.workload.offset)),
      slots_(std::max<std::uint64_t>(1, config.workload.window / stride_)),
      total_(config.sim.warmup + config.workload.iterations),
      moves_bytes_(config.sim.payload == config::PayloadMode::kBytes &&
                   slots_ * stride_ <= kMaxFilledBytes),
      reads_(config.workload.op != Op::kDmaWrite),
      writes_(config.workload.op != Op::kDmaRead),
      pattern_(config.workload.access, slots_, Rng(config.sim.seed, this->name())),
      accesses_(config.workload.pattern == Pattern::kLatency ? 1 : config.workload.depth),
      departures_("departures", this, &DmaStream::read_back) {
  const bool both_directions = reads_ && writes_ && config.workload.pattern == Pattern::kBandwidth;
  measured_.resize(both_directions ? 2 : 1);
  if (moves_bytes_) {
    for (Access& access : accesses_) access.bytes.resize(bytes_);
    written_.resize(slots_);
  }
  ++measurement_.flows_total;
  measurement_.messages_total += total_;
  device_.set_program(this);
  SC_HAS_PROCESS(DmaStream);
  SC_METHOD(start);
  SC_METHOD(finish);
  sensitive << finished_;
  dont_initialize();
}

void DmaStream::allocate_window() {
  const auto address = host_.memory.allocate_contiguous(slots_ * stride_, kWindowAlignment);
  if (!address) {
    measurement_.failure = std::make_exception_ptr(ConfigError(
        "workload.window=" + std::to_string(config_.workload.window) + " does not fit in memory"));
    sc_core::sc_stop();
    return;
  }
  base_ = *address;
  prepare_window();
  host::MemorySystem& memory = host_.root_complex.memory_system();
  if (config_.workload.host_cache == config::HostCache::kWarm) {
    memory.warm(base_, slots_ * stride_);
  } else {
    memory.cool();
  }
}

void DmaStream::prepare_window() {
  if (!moves_bytes_ || writes_) return;
  std::vector<std::uint8_t> bytes(bytes_);
  for (std::uint64_t slot = 0; slot < slots_; ++slot) {
    const std::uint64_t at = base_ + slot * stride_ + config_.workload.offset;
    fill(at, bytes.data());
    host_.memory.write(at, bytes.data(), bytes_);
  }
}

void DmaStream::fill(std::uint64_t address, std::uint8_t* into) const {
  for (std::uint32_t i = 0; i < bytes_;) {
    const std::uint64_t word = content_of((address + i) & ~std::uint64_t{7});
    const auto skip = static_cast<std::uint32_t>((address + i) & 7);
    const std::uint32_t count = std::min(8 - skip, bytes_ - i);
    std::memcpy(into + i, reinterpret_cast<const std::uint8_t*>(&word) + skip, count);
    i += count;
  }
}

void DmaStream::start() {
  allocate_window();
  if (measurement_.failure) return;
  if (config_.sim.warmup == 0) {
    for (FlowMeasurement& flow : measured_) flow.window_start = sim_now();
    measurement_.flow_warm();
  }
  const std::uint64_t first = std::min<std::uint64_t>(accesses_.size(), total_);
  for (std::uint64_t slot = 0; slot < first; ++slot) post(slot);
}

/// In a process of the kernel, whose time has then caught up with the last access.
void DmaStream::finish() { measurement_.flow_done(); }

void DmaStream::post(std::uint64_t slot) {
  Access& access = accesses_[slot];
  const std::uint64_t number = posted_++;
  const std::uint64_t place = pattern_.next();
  access.address = base_ + place * stride_ + config_.workload.offset;
  access.started = sim_now();
  access.trace.start(access.started);
  access.read_follows = reads_ && writes_ && config_.workload.pattern == Pattern::kLatency;
  const bool write = writes_ && (!reads_ || access.read_follows || number % 2 == 1);
  if (write && moves_bytes_) written_[place] = true;
  begin(slot, write);
}

void DmaStream::begin(std::uint64_t slot, bool write) {
  Access& access = accesses_[slot];
  access.write = write;
  ++access.outstanding;
  std::uint8_t* bytes = moves_bytes_ ? access.bytes.data() : nullptr;
  if (!write) {
    device_.read(access.address, bytes_, bytes, slot);
    return;
  }
  if (moves_bytes_) fill(access.address, bytes);
  device_.write(access.address, bytes_, bytes, slot);
}

void DmaStream::write_leaves(std::uint64_t token, Time at) {
  if (accesses_[token].read_follows) departures_.post(at, token);
}

void DmaStream::read_back(std::uint64_t& slot) {
  Access& access = accesses_[slot];
  access.trace.mark(Stage::kPlacement, sim_now());
  access.read_follows = false;
  begin(slot, false);
}

void DmaStream::transfer_done(std::uint64_t token) {
  Access& access = accesses_[token];
  // Of a write and the read behind it, whichever is last: relaxed ordering lets the read pass.
  if (--access.outstanding > 0 || access.read_follows) return;
  complete(access);
  if (posted_ < total_) post(token);
}

void DmaStream::complete(Access& access) {
  const Time now = sim_now();
  access.trace.mark(access.write ? Stage::kPlacement : Stage::kPayloadFetch, now);
  // A window that is both read and written may be read before its first write.
  if (moves_bytes_ && !access.write && !writes_) check(access);
  ++done_;
  ++measurement_.messages_done;
  if (done_ == config_.sim.warmup) {
    for (FlowMeasurement& flow : measured_) flow.window_start = now;
    measurement_.flow_warm();
  } else if (done_ > config_.sim.warmup) {
    count(access);
  }
  if (done_ == total_) Timeline::notify(finished_);
}

void DmaStream::count(const Access& access) {
  FlowMeasurement& flow = measured_[access.write && measured_.size() > 1 ? 1 : 0];
  flow.latency.add(sim_now() - access.started);
  ++flow.messages;
  flow.bytes += bytes_;
  flow.window_end = sim_now();
  measurement_.breakdown.add(access.trace);
}

void DmaStream::check(const Access& access) {
  std::vector<std::uint8_t> expected(bytes_);
  fill(access.address, expected.data());
  for (std::uint32_t i = 0; i < bytes_; ++i) corrupt_ += expected[i] != access.bytes[i] ? 1U : 0U;
}

std::uint64_t DmaStream::verify() {
  if (!moves_bytes_ || !writes_) return corrupt_;
  std::vector<std::uint8_t> expected(bytes_);
  std::vector<std::uint8_t> found(bytes_);
  for (std::uint64_t slot = 0; slot < slots_; ++slot) {
    if (!written_[slot]) continue;
    const std::uint64_t at = base_ + slot * stride_ + config_.workload.offset;
    fill(at, expected.data());
    host_.memory.read(at, found.data(), bytes_);
    for (std::uint32_t i = 0; i < bytes_; ++i) corrupt_ += expected[i] != found[i] ? 1U : 0U;
  }
  return corrupt_;
}

}  // namespace rnic::testbench

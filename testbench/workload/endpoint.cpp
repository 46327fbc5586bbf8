// SPDX-License-Identifier: Apache-2.0
#include "workload/endpoint.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "protocol/access.h"
#include "transport/encapsulation.h"
#include "workload/device_state.h"

namespace rnic::testbench {

using host::Status;
using protocol::QpAttrMask;
using protocol::QpState;
using protocol::QpType;

namespace {

constexpr std::uint64_t kCacheLine = 64;
constexpr std::uint32_t kQkey = 0x1111'1111;  // as perftest's

protocol::QpType type_of(const config::Config& config) {
  switch (config.transport.type) {
    case config::TransportType::kUc:
      return QpType::kUc;
    case config::TransportType::kUd:
      return QpType::kUd;
    case config::TransportType::kRc:
      break;
  }
  return QpType::kRc;
}

constexpr std::uint64_t kCycleBytes = 4096;  // perftest steps through a page of the buffer

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// A device that has failed makes nothing any more.
void refuse_set_up(const char* call, const host::Host& host, std::uint32_t index) {
  if (!device_failed(host)) return;
  throw ConfigError(std::string(call) + " fails on host " + std::to_string(index) +
                    ": fabric.fatal_at comes before its queues are made (remedy: a later one)");
}

}  // namespace

Endpoint::Endpoint(host::Host& on, const config::Config& config, std::uint32_t index,
                   config::BufferMemory memory)
    : host(on),
      waiting(on, core, config, std::string(on.name()) + ".waiting"),
      config_(config),
      memory_(memory),
      index_(index) {
  size_buffers();
}

void Endpoint::size_buffers() {
  const config::WorkloadConfig& w = config_.workload;
  if (config_.transport.type == config::TransportType::kUd) {
    header_room = transport::kNetworkHeaderArea;
  }
  const std::uint64_t alignment = std::max<std::uint64_t>(1, w.alignment);
  slot_bytes = round_up(std::max<std::uint64_t>(1, header_room + w.msg_size), alignment);
  // Buffers of one message are given a cache line at least: several would share it.
  slot_bytes = alignment < kCacheLine ? slot_bytes : std::max(kCacheLine, slot_bytes);
  offset_ = w.offset;
  region_bytes_ = w.mr_size != 0 ? w.mr_size : std::max(kCycleBytes, automatic_bytes());
  slots =
      std::max<std::uint64_t>(1, (region_bytes_ - std::min(region_bytes_, offset_)) / slot_bytes);
  regions = std::max(1U, w.mrs);
  recv_depth = std::max(1U, w.recv_depth);
  region_bytes_ = round_up(std::max(region_bytes_, slots * slot_bytes + offset_), kCycleBytes);
}

/// Place for one message, which others follow there; of packed ones for a window of them, each of
/// which begins elsewhere in its line.
std::uint64_t Endpoint::automatic_bytes() const {
  constexpr std::uint64_t kMostPacked = 16 << 20;
  const config::WorkloadConfig& w = config_.workload;
  const bool packed = w.alignment < kCacheLine && w.pattern == config::Pattern::kBandwidth;
  const std::uint64_t places = packed ? std::max(1U, w.depth) : 1;
  return std::max(slot_bytes, std::min(places * slot_bytes, kMostPacked)) + offset_;
}

std::uint64_t Endpoint::map_buffer(std::uint64_t bytes) {
  switch (memory_) {
    case config::BufferMemory::kPeer:
      return host.map_peer(bytes);
    case config::BufferMemory::kDevice:
      return host.map_device_memory(bytes);
    case config::BufferMemory::kHost:
      break;
  }
  return host.space.map(bytes);
}

/// Without regions for each queue pair: the buffers of all, one behind the other.
void Endpoint::share_buffers() {
  const std::uint64_t bytes = regions * region_bytes_;
  const std::uint64_t all = bytes * config_.workload.qps;
  Buffer first;
  first.send = map_buffer(all);
  first.receive = map_buffer(all);
  register_buffer(first.send, all, first.send_regions);
  register_buffer(first.receive, all, first.receive_regions);
  for (std::uint32_t i = 0; i < config_.workload.qps; ++i) {
    buffers.push_back(first);
    buffers.back().send += i * bytes;
    buffers.back().receive += i * bytes;
  }
}

void Endpoint::own_buffer() {
  Buffer buffer;
  buffer.send = map_buffer(regions * region_bytes_);
  buffer.receive = map_buffer(regions * region_bytes_);
  register_buffer(buffer.send, region_bytes_, buffer.send_regions);
  register_buffer(buffer.receive, region_bytes_, buffer.receive_regions);
  buffers.push_back(std::move(buffer));
}

std::uint32_t Endpoint::access_flags() const {
  constexpr std::uint32_t kAccess = protocol::kAccessLocalWrite | protocol::kAccessRemoteWrite |
                                    protocol::kAccessRemoteRead | protocol::kAccessRemoteAtomic;
  const bool paged = config_.workload.odp != config::OnDemand::kNone;
  return paged ? kAccess | protocol::kAccessOnDemand : kAccess;
}

/// The one region of the whole process.
host::MemoryRegion Endpoint::implicit_region() {
  if (!implicit_) {
    const auto result =
        host.verbs.reg_mr(core, pd_, 0, host::MemoryRegistrar::kWholeSpace, access_flags());
    if (result.status != Status::kOk) {
      throw ConfigError(std::string("registering a whole process fails with ") +
                        host::status_name(result.status) + " (see workload.odp, nic.max_mr)");
    }
    implicit_ = result.region;
  }
  return *implicit_;
}

/// With workload.odp_prefetch: ibv_advise_mr, and the wait for the pages.
void Endpoint::bring_in(const host::MemoryRegion& region, std::uint64_t address,
                        std::uint64_t bytes) {
  const config::MemoryConfig& memory = config_.memory;
  if (!config_.workload.odp_prefetch || config_.workload.odp == config::OnDemand::kNone) return;
  host.verbs.advise_mr(core, region, address, bytes);
  constexpr std::uint64_t kPage = 4096;
  core.spend(memory.odp_page_cost * static_cast<std::int64_t>(bytes / kPage + 1));
  core.sync();
}

host::MemoryRegion Endpoint::register_for_message(std::uint64_t address, std::uint64_t bytes) {
  const auto result = host.verbs.reg_mr(core, pd_, address, bytes, access_flags());
  if (result.status != Status::kOk) {
    throw ConfigError("registering " + std::to_string(bytes) + " bytes of a message fails with " +
                      host::status_name(result.status) +
                      " (see memory.memlock_limit, nic.max_mr, workload.depth)");
  }
  return result.region;
}

bool Endpoint::lacks_translations(std::uint64_t bytes) const {
  const std::uint64_t pages = bytes / config_.memory.page_size;
  return pages > host.context_memory.free_mtt_count();
}

void Endpoint::register_buffer(std::uint64_t base, std::uint64_t bytes,
                               std::vector<host::MemoryRegion>& out) {
  const bool implicit = config_.workload.odp == config::OnDemand::kImplicit;
  for (std::uint32_t i = 0; i < regions; ++i) {
    if (implicit) {
      out.push_back(implicit_region());
      bring_in(out.back(), base + i * bytes, bytes);
      continue;
    }
    const auto result = host.verbs.reg_mr(core, pd_, base + i * bytes, bytes, access_flags());
    if (result.status == Status::kEnomem && lacks_translations(bytes)) {
      throw ConfigError("registering " + std::to_string(bytes) + " bytes on host " +
                        std::to_string(index_) +
                        " fails with ENOMEM: the device's table has room for " +
                        std::to_string(host.context_memory.free_mtt_count()) +
                        " more pages (remedy: larger ones, memory.page_size=2MiB, or a smaller "
                        "workload.mr_size)");
    }
    if (result.status != Status::kOk) {
      throw ConfigError("registering " + std::to_string(bytes) + " bytes on host " +
                        std::to_string(index_) + " fails with " + host::status_name(result.status) +
                        ", with " + std::to_string(host.space.pinned_bytes()) +
                        " bytes locked and " +
                        std::to_string(host.verbs.stats().registration.calls - 1) +
                        " regions made before (see memory.memlock_limit, nic.max_mr, workload.mrs, "
                        "workload.mr_size)");
    }
    out.push_back(result.region);
    bring_in(out.back(), base + i * bytes, bytes);
  }
}

void Endpoint::create() {
  const config::WorkloadConfig& w = config_.workload;
  host::verbs::Context& verbs = host.verbs;
  pd_ = verbs.alloc_pd();
  const std::uint32_t entries = std::max(1U, w.qps) * std::max(recv_depth, w.depth) + 1;
  host::verbs::CqInitAttr cq;
  cq.entries = entries;
  cq.channel = waiting.channel();
  cq.ignore_overrun = true;  // it has room for all that can be posted
  if (w.bidirectional && config::takes_recv(w.op)) {
    // One thread sends and receives: it spins on one queue for both.
    cq.entries = 2 * entries;
    send_cq = recv_cq = verbs.create_cq(core, cq);
  } else {
    send_cq = verbs.create_cq(core, cq);
    recv_cq = verbs.create_cq(core, cq);
  }
  if (send_cq == nullptr || recv_cq == nullptr) refuse_set_up("create_cq", host, index_);
  moderate_events();
  host::verbs::QpInitAttr attr;
  attr.max_send_wr = std::max(1U, w.depth);
  attr.max_recv_wr = recv_depth;
  attr.max_inline_data = w.inline_max;
  if (w.srq) {
    srq = attr.srq = verbs.create_srq(core, pd_, {std::max(1U, w.qps * recv_depth), 1});
    if (srq == nullptr) {
      refuse_set_up("create_srq", host, index_);
      throw ConfigError("create_srq refuses workload.qps=" + std::to_string(w.qps) +
                        " times workload.recv_depth=" + std::to_string(recv_depth) +
                        " RECVs (device limit: 32768)");
    }
  }
  attr.qp_type = type_of(config_);
  attr.max_send_sge = std::max(1U, w.sges);
  if (!w.mr_per_qp) share_buffers();
  for (std::uint32_t i = 0; i < w.qps + w.idle_qps; ++i) {
    auto* qp = verbs.create_qp(core, pd_, *send_cq, *recv_cq, attr);
    if (qp == nullptr) {
      refuse_set_up("create_qp", host, index_);
      throw ConfigError("create_qp refuses workload.inline_max=" + std::to_string(w.inline_max) +
                        ", workload.depth=" + std::to_string(w.depth) +
                        " (device limits: nic.max_inline, 32768 WQE blocks)");
    }
    qps.push_back(qp);
    places_.resize(qp->qpn - qps.front()->qpn + 1);
    places_.back() = i;
    std::uint32_t mask = 0;
    const host::verbs::QpAttr init = initial_attributes(mask);
    verbs.modify_qp(core, *qp, init, mask);
    if (i >= w.qps) continue;
    if (w.mr_per_qp) own_buffer();
    receives_posted.push_back(0);
    receives_used.push_back(0);
  }
  if (w.mistake != config::Mistake::kNone) make_spare();
}

void Endpoint::moderate_events() {
  const config::WorkloadConfig& w = config_.workload;
  if (w.solicited_only) waiting.solicited_only(*recv_cq);
  if (w.cq_count <= 1) return;
  const host::verbs::CqModeration moderation{static_cast<std::uint16_t>(w.cq_count),
                                             static_cast<std::uint32_t>(to_us(w.cq_period))};
  host.verbs.modify_cq(core, *send_cq, moderation);
  if (recv_cq != send_cq) host.verbs.modify_cq(core, *recv_cq, moderation);
}

void Endpoint::make_spare() {
  constexpr std::uint32_t kAll = protocol::kAccessLocalWrite | protocol::kAccessRemoteMask;
  foreign_pd_ = host.verbs.alloc_pd();
  const auto make = [&](std::uint32_t pd, std::uint32_t access) {
    return host.verbs.reg_mr(core, pd, host.space.map(region_bytes_), region_bytes_, access).region;
  };
  spare.plain = make(pd_, 0);
  spare.foreign = make(foreign_pd_, kAll);
}

host::verbs::QpAttr Endpoint::initial_attributes(std::uint32_t& mask) const {
  host::verbs::QpAttr init;
  init.qp_state = QpState::kInit;
  const bool no_right = config_.workload.mistake == config::Mistake::kQpRight;
  init.access_flags = no_right ? 0 : protocol::kAccessRemoteMask;
  init.qkey = kQkey;
  const bool datagrams = type_of(config_) == QpType::kUd;
  mask = QpAttrMask::kState | QpAttrMask::kPkeyIndex | QpAttrMask::kPort |
         (datagrams ? QpAttrMask::kQkey : QpAttrMask::kAccessFlags);
  return init;
}

QpInfo Endpoint::info(std::uint32_t i) const {
  QpInfo info;
  info.qpn = qps[i]->qpn;
  info.qkey = kQkey;
  info.psn = (qps[i]->qpn * 0x1357) & 0xFF'FFFF;  // any start will do; it need not be 0
  if (i < buffers.size()) {
    info.address = buffers[i].receive;
    info.rkey = buffers[i].receive_regions.front().rkey;
  }
  return info;
}

host::Status Endpoint::bring_up(std::uint32_t i, const QpInfo& peer,
                                const protocol::AddressVector& path) {
  const config::TransportConfig& t = config_.transport;
  host::verbs::QpAttr attr;
  attr.ah_attr = path;
  attr.path_mtu = t.mtu;
  attr.dest_qp_num = peer.qpn;
  attr.rq_psn = peer.psn;
  attr.sq_psn = info(i).psn;
  attr.timeout = t.ack_timeout;
  attr.retry_cnt = t.retry_count;
  attr.rnr_retry = t.rnr_retry;
  attr.min_rnr_timer = t.min_rnr_timer;
  attr.max_rd_atomic = t.max_rd_atomic;
  attr.max_dest_rd_atomic = t.max_dest_rd_atomic;
  const QpType type = type_of(config_);
  std::uint32_t ready = QpAttrMask::kState;
  std::uint32_t sending = QpAttrMask::kState | QpAttrMask::kSqPsn;
  if (type != QpType::kUd) {
    ready |= QpAttrMask::kAv | QpAttrMask::kPathMtu | QpAttrMask::kDestQpn | QpAttrMask::kRqPsn;
  }
  if (type == QpType::kRc) {
    ready |= QpAttrMask::kMaxDestRdAtomic | QpAttrMask::kMinRnrTimer;
    sending |= QpAttrMask::kTimeout | QpAttrMask::kRetryCnt | QpAttrMask::kRnrRetry |
               QpAttrMask::kMaxQpRdAtomic;
  }
  attr.qp_state = QpState::kRtr;
  const Status status = host.verbs.modify_qp(core, *qps[i], attr, ready);
  if (status != Status::kOk) return status;
  attr.qp_state = QpState::kRts;
  return host.verbs.modify_qp(core, *qps[i], attr, sending);
}

void Endpoint::connect(std::uint32_t i, const QpInfo& peer, const protocol::AddressVector& path) {
  const Status status = bring_up(i, peer, path);
  // One that a fault has ended meanwhile (QP_FATAL) flushes what will be posted.
  const bool lost = status != Status::kOk && host.verbs.query_qp(core, *qps[i]) == QpState::kError;
  if (status != Status::kOk && !lost) {
    refuse_set_up("modify_qp", host, index_);
    throw ConfigError(std::string("connecting a queue pair fails with ") +
                      host::status_name(status) +
                      " (see transport.max_rd_atomic, nic.max_rd_atomic)");
  }
  const config::Mistake mistake = config_.workload.mistake;
  const bool asked = config_.nic.write_imm_needs_handle && mistake != config::Mistake::kNoHandle;
  if (type_of(config_) != QpType::kUd && !asked) return;
  if (mistake == config::Mistake::kHandlePd) {
    spare.foreign_path = host.verbs.create_ah(core, foreign_pd_, path);
  }
  paths.resize(qps.size());
  paths[i] = host.verbs.create_ah(core, pd_, path);
}

}  // namespace rnic::testbench

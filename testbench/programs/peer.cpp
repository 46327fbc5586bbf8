// SPDX-License-Identifier: Apache-2.0
#include "programs/peer.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "config/service_level.h"
#include "protocol/multicast.h"
#include "simulation/addresses.h"
#include "workload/device_state.h"

namespace rnic::testbench {

using host::Status;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using Mask = protocol::QpAttrMask;

namespace {

constexpr std::uint32_t kDepth = 64;
constexpr std::uint32_t kWord = 8;
constexpr std::uint32_t kQkey = 0x1111'1111;

protocol::QpType type_of(const config::Config& config) {
  switch (config.transport.type) {
    case config::TransportType::kUc:
      return protocol::QpType::kUc;
    case config::TransportType::kUd:
      return protocol::QpType::kUd;
    default:
      return protocol::QpType::kRc;
  }
}

[[noreturn]] void refuse_registration(std::uint64_t bytes, Status status) {
  throw ConfigError("registering " + std::to_string(bytes) + " bytes fails with " +
                    host::status_name(status) + " (see memory.memlock_limit, workload.msg_size)");
}

}  // namespace

Peer::Peer(host::Host& on, const config::Config& config, std::uint32_t host_index)
    : host(on),
      waiting(on, core, config, std::string(on.name()) + ".process"),
      index(host_index),
      config_(config) {}

void Peer::fail(const std::string& what) const {
  if (device_failed(host)) end({}, what + ", the device has failed");
  throw SimulationError("host" + std::to_string(index) + ": " + what);
}

void Peer::open() {
  host::verbs::Context& verbs = host.verbs;
  pd_ = verbs.alloc_pd();
  host::verbs::CqInitAttr cq;
  cq.entries = kDepth;
  cq.channel = waiting.channel();
  send_cq_ = verbs.create_cq(core, cq);
  recv_cq_ = verbs.create_cq(core, cq);
  if (send_cq_ == nullptr || recv_cq_ == nullptr) fail("create_cq fails");
  host::verbs::QpInitAttr attr;
  attr.max_send_wr = attr.max_recv_wr = kDepth;
  attr.max_inline_data = std::min(config_.nic.max_inline, kWord);
  attr.qp_type = type_of(config_);
  if (config_.workload.srq) {
    host::verbs::SrqInitAttr shared;
    shared.max_wr = kDepth;
    attr.srq = srq_ = verbs.create_srq(core, pd_, shared);
    if (srq_ == nullptr) fail("create_srq fails");
  }
  qp_ = verbs.create_qp(core, pd_, *send_cq_, *recv_cq_, attr);
  if (qp_ == nullptr) fail("create_qp fails");
  host::verbs::QpAttr init;
  init.qp_state = QpState::kInit;
  init.access_flags = protocol::kAccessRemoteMask;
  init.qkey = kQkey;
  const bool datagrams = attr.qp_type == protocol::QpType::kUd;
  const Status status = verbs.modify_qp(core, *qp_, init,
                                        Mask::kState | Mask::kPkeyIndex | Mask::kPort |
                                            (datagrams ? Mask::kQkey : Mask::kAccessFlags));
  if (status != Status::kOk) fail("modify_qp to INIT fails");
}

Buffer Peer::allocate(std::uint64_t bytes, protocol::AccessFlags remote_access) {
  return share({host.space.map(bytes), bytes, 0, 0}, remote_access);
}

Buffer Peer::share(const Buffer& memory, protocol::AccessFlags remote_access) {
  protocol::AccessFlags access = protocol::kAccessLocalWrite | remote_access;
  // The answer of an iWARP READ is a remote write to its sink (RFC 5040, 5.2).
  if (config_.transport.protocol == config::Protocol::kIwarp) {
    access |= protocol::kAccessRemoteWrite;
  }
  const auto made = host.verbs.reg_mr(core, pd_, memory.address, memory.bytes, access);
  if (made.status != Status::kOk) refuse_registration(memory.bytes, made.status);
  return {memory.address, memory.bytes, made.region.lkey, made.region.rkey};
}

FastBuffer Peer::allocate_fast(std::uint64_t bytes) {
  constexpr std::uint64_t kPage = 4096;
  FastBuffer made;
  made.memory = {host.space.map(bytes, kPage), bytes, 0, 0};
  const auto pages = static_cast<std::uint32_t>((bytes + kPage - 1) / kPage);
  const auto region = host.verbs.alloc_fast_mr(core, pd_, pages);
  if (!region) fail("alloc_fast_mr fails");
  made.region = *region;
  const Status status = host.verbs.map_fast_mr(core, made.region, made.memory.address, bytes);
  if (status != Status::kOk) refuse_registration(bytes, status);
  return made;
}

void Peer::connect(const Peer& peer) {
  to_rtr(peer);
  to_rts();
  if (type_of(config_) != protocol::QpType::kUd) return;
  path_ = host.verbs.create_ah(core, pd_, path_to(peer));
  peer_qpn_ = peer.qp_->qpn;
}

protocol::AddressVector Peer::path_to(const Peer& peer) const {
  const std::uint8_t level = index == 0 ? config::request_service_level(config_, 0)
                                        : config::response_service_level(config_, 0);
  return path_of_qp(config_, path_between(index, peer.index), level, qp_->qpn, peer.qp_->qpn);
}

void Peer::join(std::uint32_t group) {
  const protocol::AddressVector av = path_to_group(config_, index, group);
  const Status status = host.verbs.attach_mcast(core, *qp_, av.destination_gid, av.destination_lid);
  if (status != Status::kOk) fail(std::string("attach_mcast: ") + host::status_name(status));
}

void Peer::send_to_group(std::uint32_t group) {
  path_ = host.verbs.create_ah(core, pd_, path_to_group(config_, index, group));
  if (path_ == nullptr) fail("create_ah of a multicast group fails");
  peer_qpn_ = protocol::kMulticastQpn;
}

void Peer::reply(const Buffer& from, std::uint32_t qpn) {
  peer_qpn_ = qpn;
  send(from);
}

void Peer::to_rtr(const Peer& peer) {
  const config::TransportConfig& t = config_.transport;
  host::verbs::QpAttr attr;
  attr.qp_state = QpState::kRtr;
  attr.ah_attr = path_to(peer);
  attr.path_mtu = t.mtu;
  attr.dest_qp_num = peer.qp_->qpn;
  attr.max_dest_rd_atomic = t.max_dest_rd_atomic;
  attr.min_rnr_timer = t.min_rnr_timer;
  std::uint32_t mask = Mask::kState;
  const protocol::QpType type = type_of(config_);
  if (type != protocol::QpType::kUd) {
    mask |= Mask::kAv | Mask::kPathMtu | Mask::kDestQpn | Mask::kRqPsn;
  }
  if (type == protocol::QpType::kRc) mask |= Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer;
  if (host.verbs.modify_qp(core, *qp_, attr, mask) != Status::kOk) fail("modify_qp to RTR fails");
}

void Peer::to_rts() {
  const config::TransportConfig& t = config_.transport;
  host::verbs::QpAttr attr;
  attr.qp_state = QpState::kRts;
  attr.timeout = t.ack_timeout;
  attr.retry_cnt = t.retry_count;
  attr.rnr_retry = t.rnr_retry;
  attr.max_rd_atomic = t.max_rd_atomic;
  std::uint32_t mask = Mask::kState | Mask::kSqPsn;
  if (type_of(config_) == protocol::QpType::kRc) {
    mask |= Mask::kTimeout | Mask::kRetryCnt | Mask::kRnrRetry | Mask::kMaxQpRdAtomic;
  }
  if (host.verbs.modify_qp(core, *qp_, attr, mask) != Status::kOk) fail("modify_qp to RTS fails");
}

std::uint64_t Peer::header_bytes() const {
  constexpr std::uint64_t kGrh = 40;
  return type_of(config_) == protocol::QpType::kUd ? kGrh : 0;
}

Bytes Peer::received(const Buffer& buffer, const Wc& wc) {
  if (wc.byte_len < header_bytes()) fail("a datagram without the place of its GRH");
  return load(buffer.part(header_bytes(), wc.byte_len - header_bytes()));
}

void Peer::post_recv(std::uint64_t id, const Buffer& into) {
  const protocol::Sge sge{into.address, static_cast<std::uint32_t>(into.bytes), into.lkey};
  const host::verbs::RecvWr wr{id, &sge, into.bytes > 0 ? 1U : 0U};
  const Status status = srq_ != nullptr ? host.verbs.post_srq_recv(core, *srq_, &wr, 1)
                                        : host.verbs.post_recv(core, *qp_, &wr, 1);
  if (status != Status::kOk) fail(std::string("post_recv: ") + host::status_name(status));
}

void Peer::post(SendWr& wr, const Buffer& local) {
  const protocol::Sge sge{local.address, static_cast<std::uint32_t>(local.bytes), local.lkey};
  wr.wr_id = ++wr_ids_;
  wr.flags |= SendFlags::kSignaled;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.ah = path_;
  wr.remote_qpn = peer_qpn_;
  wr.remote_qkey = kQkey;
  const Status status = host.verbs.post_send(core, *qp_, &wr, 1);
  if (status != Status::kOk) fail(std::string("post_send: ") + host::status_name(status));
}

void Peer::send(const Buffer& from) {
  SendWr wr;
  wr.opcode = WrOpcode::kSend;
  post(wr, from);
}

void Peer::send_with_invalidate(const Buffer& from, std::uint32_t key) {
  SendWr wr;
  wr.opcode = WrOpcode::kSendWithInv;
  wr.invalidate_key = key;
  post(wr, from);
}

std::uint32_t Peer::register_fast(FastBuffer& buffer, protocol::AccessFlags remote_access) {
  SendWr wr;
  wr.wr_id = ++wr_ids_;
  wr.opcode = WrOpcode::kRegMr;
  wr.reg = {&buffer.region, host::verbs::next_key(buffer.region.key),
            protocol::kAccessLocalWrite | remote_access};
  const Status status = host.verbs.post_send(core, *qp_, &wr, 1);
  if (status != Status::kOk) fail(std::string("post_send: ") + host::status_name(status));
  return buffer.region.key;
}

void Peer::write(const Buffer& from, const Buffer& to) {
  SendWr wr;
  wr.opcode = WrOpcode::kRdmaWrite;
  wr.remote_addr = to.address;
  wr.rkey = to.rkey;
  post(wr, from);
}

void Peer::write_with_imm(const Buffer& from, const Buffer& to, std::uint32_t imm) {
  SendWr wr;
  wr.opcode = WrOpcode::kRdmaWriteWithImm;
  wr.remote_addr = to.address;
  wr.rkey = to.rkey;
  wr.imm_data = imm;
  post(wr, from);
}

void Peer::read(const Buffer& into, const Buffer& from) {
  SendWr wr;
  wr.opcode = WrOpcode::kRdmaRead;
  wr.remote_addr = from.address;
  wr.rkey = from.rkey;
  post(wr, into);
}

void Peer::compare_and_swap(const Buffer& into, const Buffer& word, std::uint64_t expected,
                            std::uint64_t desired) {
  SendWr wr;
  wr.opcode = WrOpcode::kAtomicCmpAndSwp;
  wr.remote_addr = word.address;
  wr.rkey = word.rkey;
  wr.compare_add = expected;
  wr.swap = desired;
  post(wr, into.part(0, kWord));
}

Wc Peer::await(host::verbs::CompletionQueue& cq) {
  Wc wc;
  do {
    waiting.wait(cq);
    if (cq.failed && !host.verbs.has_completion(cq)) {
      end({}, "its completion queue is lost (event_cq_err)");
    }
  } while (host.verbs.poll_cq(core, cq, 1, &wc) == 0);
  core.sync();
  if (wc.status != protocol::WcStatus::kSuccess) {
    const protocol::WcStatus cause = cause_of(wc.status);
    end(cause, std::string("a work request completed with ") + protocol::wc_status_name(cause));
  }
  return wc;
}

void Peer::end(std::optional<protocol::WcStatus> status, const std::string& what) const {
  const std::string qp = qp_ != nullptr ? ", QP " + std::to_string(qp_->qpn) : std::string();
  throw ProcessFailure{status, "on host " + std::to_string(index) + qp + ": " + what};
}

protocol::WcStatus Peer::cause_of(protocol::WcStatus status) {
  Wc wc;
  while (status == protocol::WcStatus::kWrFlushError &&
         host.verbs.poll_cq(core, *send_cq_, 1, &wc) > 0) {
    if (wc.status != protocol::WcStatus::kSuccess) status = wc.status;
  }
  return status;
}

void Peer::store(const Buffer& to, const Bytes& bytes) {
  core.sync();
  if (host.space.write(to.address, bytes.data(), bytes.size()) != Status::kOk) fail("bad store");
}

Bytes Peer::load(const Buffer& from) {
  core.sync();
  Bytes bytes(static_cast<std::size_t>(from.bytes));
  if (host.space.read(from.address, bytes.data(), bytes.size()) != Status::kOk) fail("bad load");
  return bytes;
}

void Peer::store_word(const Buffer& to, std::uint64_t value) {
  Bytes bytes(kWord);
  std::memcpy(bytes.data(), &value, kWord);
  store(to, bytes);
}

std::uint64_t Peer::load_word(const Buffer& from) {
  const Bytes bytes = load(from.part(0, kWord));
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), kWord);
  return value;
}

void Peer::await_word(const Buffer& at, std::uint64_t value) {
  if (watched_ != at.address) {
    watched_ = at.address;
    host.memory.watch(*host.space.translate(at.address), kWord, &spot_);
  }
  std::uint64_t seen = spot_.writes();
  while (load_word(at) < value) {
    spot_.spin(core, config_.cpu.poll_cost, seen);
    core.sync();
    seen = spot_.writes();
  }
}

}  // namespace rnic::testbench

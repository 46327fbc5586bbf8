// SPDX-License-Identifier: Apache-2.0
#include "reference/verbs_model.h"

#include <algorithm>
#include <cstring>

namespace rnic::reference {

using host::verbs::SendFlags;

namespace {

bool is_write(WrOpcode opcode) {
  return opcode == WrOpcode::kRdmaWrite || opcode == WrOpcode::kRdmaWriteWithImm;
}

bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
}

bool has_imm(WrOpcode opcode) {
  return opcode == WrOpcode::kRdmaWriteWithImm || opcode == WrOpcode::kSendWithImm;
}

WcOpcode completed_opcode(WrOpcode opcode) {
  if (is_write(opcode)) return WcOpcode::kRdmaWrite;
  if (opcode == WrOpcode::kRdmaRead) return WcOpcode::kRdmaRead;
  if (opcode == WrOpcode::kAtomicCmpAndSwp) return WcOpcode::kCompSwap;
  if (opcode == WrOpcode::kAtomicFetchAndAdd) return WcOpcode::kFetchAdd;
  if (opcode == WrOpcode::kLocalInv) return WcOpcode::kLocalInv;
  if (opcode == WrOpcode::kBindMw) return WcOpcode::kBindMw;
  if (opcode == WrOpcode::kRegMr) return WcOpcode::kRegMr;
  return WcOpcode::kSend;
}

std::uint64_t total(const std::vector<Sge>& sges) {
  std::uint64_t bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

bool is_key_operation(WrOpcode opcode) {
  return opcode == WrOpcode::kLocalInv || opcode == WrOpcode::kBindMw || opcode == WrOpcode::kRegMr;
}

/// [address, address + bytes) within the region; no sum may wrap around.
bool inside(const Region& region, std::uint64_t address, std::uint64_t bytes) {
  if (address < region.address) return false;
  const std::uint64_t offset = address - region.address;
  return offset <= region.bytes && bytes <= region.bytes - offset;
}

}  // namespace

void VerbsModel::remove_region(std::uint32_t host, std::uint32_t lkey) {
  std::vector<Region>& regions = hosts_[host].regions;
  regions.erase(std::remove_if(regions.begin(), regions.end(),
                               [lkey](const Region& region) { return region.lkey == lkey; }),
                regions.end());
}

QpName VerbsModel::add_qp(std::uint32_t host, const QpAttributes& attributes) {
  Qp qp;
  qp.attributes = attributes;
  qp.host = host;
  hosts_[host].qps.push_back(std::move(qp));
  return {host, static_cast<std::uint32_t>(hosts_[host].qps.size() - 1)};
}

void VerbsModel::connect(QpName a, QpName b) {
  at(a).peer = b;
  at(b).peer = a;
  restart(a);
  restart(b);
}

void VerbsModel::restart(QpName name) {
  Qp& qp = at(name);
  qp.broken = qp.stopped = qp.flushed = false;
  qp.sends.clear();
  if (!qp.attributes.shared_recvs) qp.recvs.clear();
}

void VerbsModel::run() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (Host& host : hosts_) {
      for (Qp& qp : host.qps) {
        while (advance(qp)) moved = true;
      }
    }
  }
}

bool VerbsModel::advance(Qp& qp) {
  if (qp.broken) {
    const bool had = !qp.sends.empty() || (!qp.attributes.shared_recvs && !qp.recvs.empty());
    flush(qp);
    return had;
  }
  if (qp.sends.empty()) return false;
  if (qp.stopped) {
    flush_sends(qp);
    return true;
  }
  const SendRequest request = qp.sends.front();
  const Outcome outcome = execute(qp, request);
  if (outcome.waits) return false;
  qp.sends.pop_front();
  if (outcome.peer_breaks) at(qp.peer).broken = true;
  const bool failed = outcome.status != WcStatus::kSuccess;
  const bool signaled = qp.attributes.signal_all || (request.flags & SendFlags::kSignaled) != 0;
  if (!failed && !signaled) return true;
  Completion done;
  done.wr_id = request.wr_id;
  done.status = outcome.status;
  done.opcode = completed_opcode(request.opcode);
  done.has_length = request.opcode == WrOpcode::kRdmaRead || is_atomic(request.opcode);
  done.byte_len = outcome.bytes;
  complete_send(qp, done);
  const bool unacknowledged = qp.attributes.connected_only || qp.attributes.datagram;
  (unacknowledged ? qp.stopped : qp.broken) |= failed;
  return true;
}

void VerbsModel::flush_sends(Qp& qp) {
  for (const SendRequest& request : qp.sends) {
    Completion flushed;
    flushed.wr_id = request.wr_id;
    flushed.status = WcStatus::kWrFlushError;
    complete_send(qp, flushed);
  }
  qp.sends.clear();
}

void VerbsModel::complete_send(Qp& qp, const Completion& done) {
  if (qp.sent.size() >= qp.sent_limit) {
    qp.broken = true;
  } else {
    qp.sent.push_back(done);
  }
}

void VerbsModel::flush(Qp& qp) {
  for (const SendRequest& request : qp.sends) {
    if (early_placement_ && !qp.flushed && is_write(request.opcode)) {
      perhaps_place(at(qp.peer), request, gather_good(qp, request));
    }
  }
  flush_sends(qp);
  qp.flushed = true;
  if (qp.attributes.shared_recvs) return;
  for (const RecvRequest& request : qp.recvs) {
    Completion flushed;
    flushed.wr_id = request.wr_id;
    flushed.status = WcStatus::kWrFlushError;
    qp.received.push_back(flushed);
  }
  qp.recvs.clear();
}

void VerbsModel::give_up_waiting(QpName name) {
  Qp& qp = at(name);
  Completion done;
  done.wr_id = qp.sends.front().wr_id;
  done.status = WcStatus::kRnrRetryExceededError;
  qp.sent.push_back(done);
  qp.sends.pop_front();
  qp.broken = true;
}

const Region* VerbsModel::local_region(const Qp& qp, const Sge& sge, AccessFlags needed) const {
  for (const Region& region : hosts_[qp.host].regions) {
    if (region.lkey != sge.lkey) continue;
    const bool granted = region.valid && region.pd == qp.attributes.pd &&
                         inside(region, sge.address, sge.length) &&
                         (region.access & needed) == needed;
    return granted ? &region : nullptr;
  }
  return nullptr;
}

bool VerbsModel::local_access(const Qp& qp, const std::vector<Sge>& sges,
                              AccessFlags needed) const {
  return std::all_of(sges.begin(), sges.end(), [&](const Sge& sge) {
    return sge.length == 0 || local_region(qp, sge, needed) != nullptr;
  });
}

bool VerbsModel::remote_access(const Qp& peer, const SendRequest& request, std::uint64_t bytes,
                               AccessFlags needed) const {
  if (bytes == 0) return true;  // nothing is touched, no key is looked at
  for (const Region& region : hosts_[peer.host].regions) {
    if (region.rkey != request.rkey) continue;
    const bool mine = region.kind != Region::Kind::kWindow || &at({peer.host, region.qp}) == &peer;
    return region.valid && mine && region.pd == peer.attributes.pd &&
           inside(region, request.remote_address, bytes) && (region.access & needed) == needed;
  }
  return false;
}

Bytes VerbsModel::gather(const Qp& qp, const std::vector<Sge>& sges) const {
  Bytes data;
  for (const Sge& sge : sges) {
    if (sge.length == 0) continue;
    const Bytes part = hosts_[qp.host].memory.read(sge.address, sge.length);
    data.insert(data.end(), part.begin(), part.end());
  }
  return data;
}

/// What lies before the first element that may not be read: its packets may have left.
Bytes VerbsModel::gather_good(const Qp& qp, const SendRequest& request) const {
  std::vector<Sge> good;
  for (const Sge& sge : request.sges) {
    if (sge.length != 0 && local_region(qp, sge, protocol::kAccessLocalRead) == nullptr) break;
    good.push_back(sge);
  }
  return gather(qp, good);
}

void VerbsModel::scatter(const Qp& qp, const std::vector<Sge>& sges, const Bytes& data) {
  auto from = data.begin();
  for (const Sge& sge : sges) {
    const auto count = std::min<std::ptrdiff_t>(sge.length, data.end() - from);
    if (count > 0) hosts_[qp.host].memory.write(sge.address, Bytes(from, from + count));
    from += count;
  }
}

/// Data that came, in part or whole, before the failure: into the elements that may be written.
void VerbsModel::perhaps_scatter(const Qp& qp, const std::vector<Sge>& sges, const Bytes& data) {
  auto from = data.begin();
  for (const Sge& sge : sges) {
    const auto count = std::min<std::ptrdiff_t>(sge.length, data.end() - from);
    if (count > 0 && local_region(qp, sge, protocol::kAccessLocalWrite) != nullptr) {
      hosts_[qp.host].memory.perhaps_write(sge.address, Bytes(from, from + count));
    }
    from += count;
  }
}

/// A WRITE that stopped on its way: what lies in the region may have been written.
void VerbsModel::perhaps_place(const Qp& peer, const SendRequest& request, const Bytes& data) {
  for (const Region& region : hosts_[peer.host].regions) {
    if (region.rkey != request.rkey || region.pd != peer.attributes.pd || !region.valid) continue;
    if ((region.access & protocol::kAccessRemoteWrite) == 0) continue;
    if (request.remote_address < region.address) continue;
    const std::uint64_t offset = request.remote_address - region.address;
    if (offset >= region.bytes) continue;
    const std::uint64_t count = std::min<std::uint64_t>(data.size(), region.bytes - offset);
    hosts_[peer.host].memory.perhaps_write(
        request.remote_address,
        Bytes(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

/// A queue pair that does not allow the operation: an invalid request to InfiniBand (vol 1,
/// 9.7.5.2.8), an access violation to RDMAP (RFC 5040, 4.8).
WcStatus VerbsModel::not_allowed() const {
  return rules_ == Rules::kInfiniband ? WcStatus::kRemoteInvalidRequestError
                                      : WcStatus::kRemoteAccessError;
}

bool VerbsModel::too_long(const Qp& qp, const SendRequest& request) {
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 31;  // IBTA vol 1, 9.7.2
  return total(request.sges) > (qp.attributes.datagram ? qp.attributes.packet : kLongest);
}

VerbsModel::Outcome VerbsModel::execute(Qp& qp, const SendRequest& request) {
  if (is_key_operation(request.opcode)) return execute_key_operation(qp, request);
  if (too_long(qp, request)) {
    Outcome outcome;
    outcome.status = WcStatus::kLocalLengthError;
    return outcome;
  }
  if (qp.attributes.datagram) return execute_datagram(qp, request);
  if (qp.attributes.connected_only) return execute_unacknowledged(qp, request);
  if (request.opcode == WrOpcode::kRdmaRead) return execute_read(qp, request);
  if (is_atomic(request.opcode)) return execute_atomic(qp, request);
  return is_write(request.opcode) ? execute_write(qp, request) : execute_send(qp, request);
}

/// The sender learns of its own mistakes only; what the peer cannot do leaves no trace, but for a
/// RECV that cannot be written to.
VerbsModel::Outcome VerbsModel::execute_unacknowledged(Qp& qp, const SendRequest& request) {
  Qp& peer = at(qp.peer);
  const bool sends = !is_write(request.opcode);
  const bool is_inline = (request.flags & SendFlags::kInline) != 0;
  const bool good = is_inline || local_access(qp, request.sges, protocol::kAccessLocalRead);
  if (sends && good && !peer.recvs.empty() && !peer.broken &&
      total(request.sges) > total(peer.recvs.front().sges)) {
    // Packets before the one that did not fit have been written; the RECV waits for the next.
    perhaps_scatter(peer, peer.recvs.front().sges, gather(qp, request.sges));
    return Outcome{};
  }
  Outcome outcome = sends ? execute_send(qp, request) : execute_write(qp, request);
  outcome.peer_breaks = outcome.status == WcStatus::kRemoteOperationError;
  if (outcome.status != WcStatus::kLocalProtectionError) outcome.status = WcStatus::kSuccess;
  outcome.waits = false;
  return outcome;
}

Region* VerbsModel::find_key(std::uint32_t host, std::uint32_t key) {
  constexpr std::uint32_t kVariant = 0xFF;
  for (Region& region : hosts_[host].regions) {
    if ((region.rkey & ~kVariant) == (key & ~kVariant)) return &region;
  }
  return nullptr;
}

/// Only what work requests make valid can be ended by one, by its owner's queue pair.
bool VerbsModel::end_key(Qp& owner, std::uint32_t key) {
  Region* region = find_key(owner.host, key);
  if (region == nullptr || region->rkey != key || !region->valid ||
      region->pd != owner.attributes.pd || region->kind == Region::Kind::kKernel) {
    return false;
  }
  if (region->kind == Region::Kind::kWindow && &at({owner.host, region->qp}) != &owner) {
    return false;
  }
  region->valid = false;
  return true;
}

bool VerbsModel::bind(Qp& qp, Region& window, const SendRequest& request) {
  constexpr AccessFlags kChanging = protocol::kAccessRemoteWrite | protocol::kAccessRemoteAtomic;
  const bool writes = (request.bound_access & kChanging) != 0;
  const Sge wanted{request.remote_address, static_cast<std::uint32_t>(request.bound_bytes),
                   request.bound_lkey};
  const AccessFlags needed =
      protocol::kAccessMwBind | (writes ? protocol::kAccessLocalWrite : AccessFlags{0});
  if (local_region(qp, wanted, needed) == nullptr) return false;
  window.address = request.remote_address;
  window.bytes = request.bound_bytes;
  window.access = request.bound_access;
  for (std::uint32_t i = 0; i < hosts_[qp.host].qps.size(); ++i) {
    if (&hosts_[qp.host].qps[i] == &qp) window.qp = i;
  }
  return true;
}

/// What is wrong with it stays with its queue pair, and the peer hears nothing of it.
VerbsModel::Outcome VerbsModel::execute_key_operation(Qp& qp, const SendRequest& request) {
  Outcome outcome;
  bool done = false;
  if (request.opcode == WrOpcode::kLocalInv) {
    done = end_key(qp, request.key);
  } else {
    Region* object = find_key(qp.host, request.key);
    const bool free =
        object != nullptr && !object->valid && object->pd == qp.attributes.pd &&
        (object->kind == Region::Kind::kWindow) == (request.opcode == WrOpcode::kBindMw);
    done = free && (request.opcode == WrOpcode::kRegMr || bind(qp, *object, request));
    if (done) {
      object->rkey = request.key;
      object->valid = true;
      if (object->kind == Region::Kind::kFast) object->lkey = request.key;
    }
  }
  if (!done) {
    outcome.status = request.opcode == WrOpcode::kBindMw ? WcStatus::kMwBindError
                                                         : WcStatus::kLocalQpOperationError;
  }
  return outcome;
}

VerbsModel::Outcome VerbsModel::fail_recv(Qp& peer, WcStatus of_recv, WcStatus of_request) {
  Completion failed;
  failed.wr_id = peer.recvs.front().wr_id;
  failed.status = of_recv;
  peer.received.push_back(failed);
  peer.recvs.pop_front();
  Outcome outcome;
  outcome.status = of_request;
  outcome.peer_breaks = true;
  return outcome;
}

void VerbsModel::complete_recv(Qp& peer, const SendRequest& request, std::uint32_t bytes) {
  Completion done;
  done.wr_id = peer.recvs.front().wr_id;
  done.opcode = is_write(request.opcode) ? WcOpcode::kRecvRdmaWithImm : WcOpcode::kRecv;
  done.has_length = true;
  done.byte_len = bytes;
  done.has_imm = has_imm(request.opcode);
  done.imm = request.imm;
  done.has_key = request.opcode == WrOpcode::kSendWithInv;
  done.key = request.key;
  peer.received.push_back(done);
  peer.recvs.pop_front();
}

VerbsModel::Outcome VerbsModel::execute_send(Qp& qp, const SendRequest& request) {
  Qp& peer = at(qp.peer);
  Outcome outcome;
  const bool is_inline = (request.flags & SendFlags::kInline) != 0;
  if (!is_inline && !local_access(qp, request.sges, protocol::kAccessLocalRead)) {
    if (!peer.recvs.empty())
      perhaps_scatter(peer, peer.recvs.front().sges, gather_good(qp, request));
    outcome.status = WcStatus::kLocalProtectionError;
    return outcome;
  }
  if (peer.broken) {
    outcome.status = WcStatus::kRetryExceededError;
    return outcome;
  }
  if (peer.recvs.empty()) {
    outcome.waits = true;
    return outcome;
  }
  const Bytes data = gather(qp, request.sges);
  const RecvRequest recv = peer.recvs.front();
  if (data.size() > total(recv.sges)) {
    perhaps_scatter(peer, recv.sges, data);
    return fail_recv(peer, WcStatus::kLocalLengthError, WcStatus::kRemoteInvalidRequestError);
  }
  std::vector<Sge> used = recv.sges;
  std::uint64_t left = data.size();
  for (Sge& sge : used) {
    sge.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(sge.length, left));
    left -= sge.length;
  }
  if (!local_access(peer, used, protocol::kAccessLocalWrite)) {
    perhaps_scatter(peer, used, data);
    return fail_recv(peer, WcStatus::kLocalProtectionError, WcStatus::kRemoteOperationError);
  }
  scatter(peer, used, data);
  if (request.opcode == WrOpcode::kSendWithInv && !end_key(peer, request.key)) {
    return fail_recv(peer, WcStatus::kRemoteInvalidRequestError, WcStatus::kRemoteAccessError);
  }
  complete_recv(peer, request, static_cast<std::uint32_t>(data.size()));
  return outcome;
}

VerbsModel::Outcome VerbsModel::execute_write(Qp& qp, const SendRequest& request) {
  Qp& peer = at(qp.peer);
  Outcome outcome;
  const bool is_inline = (request.flags & SendFlags::kInline) != 0;
  if (!is_inline && !local_access(qp, request.sges, protocol::kAccessLocalRead)) {
    perhaps_place(peer, request, gather_good(qp, request));
    outcome.status = WcStatus::kLocalProtectionError;
    return outcome;
  }
  if (peer.broken) {
    outcome.status = WcStatus::kRetryExceededError;
    return outcome;
  }
  const Bytes data = gather(qp, request.sges);
  if ((peer.attributes.access & protocol::kAccessRemoteWrite) == 0) {
    outcome.status = not_allowed();
    outcome.peer_breaks = true;
    return outcome;
  }
  if (!remote_access(peer, request, data.size(), protocol::kAccessRemoteWrite)) {
    // iWARP checks each segment by itself; InfiniBand the message before its first byte.
    if (rules_ == Rules::kIwarp) perhaps_place(peer, request, data);
    outcome.status = WcStatus::kRemoteAccessError;
    outcome.peer_breaks = true;
    return outcome;
  }
  const bool takes_recv = request.opcode == WrOpcode::kRdmaWriteWithImm;
  if (takes_recv && peer.recvs.empty()) {
    outcome.waits = true;  // data before the last packet is there already; later tries rewrite it
    if (!data.empty()) hosts_[peer.host].memory.perhaps_write(request.remote_address, data);
    return outcome;
  }
  if (!data.empty()) hosts_[peer.host].memory.write(request.remote_address, data);
  if (takes_recv) complete_recv(peer, request, static_cast<std::uint32_t>(data.size()));
  return outcome;
}

VerbsModel::Outcome VerbsModel::execute_read(Qp& qp, const SendRequest& request) {
  Qp& peer = at(qp.peer);
  const std::uint64_t bytes = total(request.sges);
  Outcome outcome;
  outcome.bytes = static_cast<std::uint32_t>(bytes);
  if (peer.broken) {
    outcome.status = WcStatus::kRetryExceededError;
    return outcome;
  }
  if ((peer.attributes.access & protocol::kAccessRemoteRead) == 0) {
    outcome.status = not_allowed();
    outcome.peer_breaks = true;
    return outcome;
  }
  if (!remote_access(peer, request, bytes, protocol::kAccessRemoteRead)) {
    outcome.status = WcStatus::kRemoteAccessError;
    outcome.peer_breaks = true;
    return outcome;
  }
  const Bytes data =
      bytes == 0 ? Bytes{} : hosts_[peer.host].memory.read(request.remote_address, bytes);
  // Over iWARP a READ's data comes as a tagged write of the peer, which needs the right to write.
  const protocol::AccessFlags sink =
      protocol::kAccessLocalWrite |
      (rules_ == Rules::kIwarp ? protocol::kAccessRemoteWrite : protocol::AccessFlags{0});
  if (!local_access(qp, request.sges, sink)) {
    perhaps_scatter(qp, request.sges, data);
    outcome.status = WcStatus::kLocalProtectionError;
    return outcome;
  }
  scatter(qp, request.sges, data);
  return outcome;
}

VerbsModel::Outcome VerbsModel::execute_atomic(Qp& qp, const SendRequest& request) {
  constexpr std::uint32_t kWord = 8;
  Qp& peer = at(qp.peer);
  Outcome outcome;
  outcome.bytes = kWord;
  if (peer.broken) {
    outcome.status = WcStatus::kRetryExceededError;
    return outcome;
  }
  outcome.peer_breaks = true;
  if ((peer.attributes.access & protocol::kAccessRemoteAtomic) == 0) {
    outcome.status = not_allowed();
    return outcome;
  }
  if (request.remote_address % kWord != 0) {
    outcome.status = not_allowed();
    return outcome;
  }
  if (!remote_access(peer, request, kWord, protocol::kAccessRemoteAtomic)) {
    outcome.status = WcStatus::kRemoteAccessError;
    return outcome;
  }
  outcome.peer_breaks = false;
  const Bytes before = hosts_[peer.host].memory.read(request.remote_address, kWord);
  std::uint64_t old = 0;
  std::memcpy(&old, before.data(), kWord);
  std::uint64_t now = old + request.compare_add;
  if (request.opcode == WrOpcode::kAtomicCmpAndSwp) {
    now = old == request.compare_add ? request.swap : old;
  }
  Bytes after(kWord);
  std::memcpy(after.data(), &now, kWord);
  hosts_[peer.host].memory.write(request.remote_address, after);
  if (!local_access(qp, request.sges, protocol::kAccessLocalWrite)) {
    outcome.status = WcStatus::kLocalProtectionError;
    return outcome;
  }
  scatter(qp, request.sges, before);
  return outcome;
}

}  // namespace rnic::reference

// SPDX-License-Identifier: Apache-2.0
#include "reference/random_program.h"

#include <algorithm>
#include <stdexcept>

namespace rnic::reference {

using host::verbs::SendFlags;

namespace {

constexpr std::uint32_t kWord = 8;
constexpr std::uint32_t kMostUnsignaled = 12;  // a quarter of the send queue at most
constexpr std::uint32_t kMostInBatch = 6;

bool two_sided(WrOpcode opcode) {
  return opcode == WrOpcode::kSend || opcode == WrOpcode::kSendWithImm ||
         opcode == WrOpcode::kSendWithInv || opcode == WrOpcode::kRdmaWriteWithImm;
}

bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
}

bool is_write(WrOpcode opcode) {
  return opcode == WrOpcode::kRdmaWrite || opcode == WrOpcode::kRdmaWriteWithImm;
}

/// The right that the responder's queue pair must grant.
AccessFlags right_of(WrOpcode opcode) {
  if (is_write(opcode)) return protocol::kAccessRemoteWrite;
  if (opcode == WrOpcode::kRdmaRead) return protocol::kAccessRemoteRead;
  return is_atomic(opcode) ? protocol::kAccessRemoteAtomic : 0;
}

std::uint64_t total(const std::vector<Sge>& sges) {
  std::uint64_t bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

const std::vector<WrOpcode> kOneSided = {WrOpcode::kRdmaWrite, WrOpcode::kRdmaWriteWithImm,
                                         WrOpcode::kRdmaRead, WrOpcode::kAtomicCmpAndSwp,
                                         WrOpcode::kAtomicFetchAndAdd};
const std::vector<WrOpcode> kGathering = {WrOpcode::kRdmaWrite, WrOpcode::kRdmaWriteWithImm,
                                          WrOpcode::kSend, WrOpcode::kSendWithImm};
const std::vector<WrOpcode> kFetching = {WrOpcode::kRdmaRead, WrOpcode::kAtomicCmpAndSwp,
                                         WrOpcode::kAtomicFetchAndAdd};
const std::vector<WrOpcode> kByKey = {WrOpcode::kRdmaWrite, WrOpcode::kRdmaWriteWithImm,
                                      WrOpcode::kRdmaRead};
const std::vector<WrOpcode> kAtomics = {WrOpcode::kAtomicCmpAndSwp, WrOpcode::kAtomicFetchAndAdd};
const std::vector<WrOpcode> kSends = {WrOpcode::kSend, WrOpcode::kSendWithImm};
const std::vector<WrOpcode> kTakingRecvs = {WrOpcode::kSend, WrOpcode::kSendWithImm,
                                            WrOpcode::kRdmaWriteWithImm};

}  // namespace

std::string ending_name(Ending ending) {
  switch (ending) {
    case Ending::kLocalKey:
      return "local_key";
    case Ending::kLocalBounds:
      return "local_bounds";
    case Ending::kLocalPd:
      return "local_pd";
    case Ending::kSinkNotWritable:
      return "sink_not_writable";
    case Ending::kRemoteKey:
      return "remote_key";
    case Ending::kRemoteBounds:
      return "remote_bounds";
    case Ending::kRemoteTop:
      return "remote_top";
    case Ending::kRemoteRight:
      return "remote_right";
    case Ending::kRemotePd:
      return "remote_pd";
    case Ending::kQpRight:
      return "qp_right";
    case Ending::kMisaligned:
      return "misaligned";
    case Ending::kRecvSmall:
      return "recv_small";
    case Ending::kRecvKey:
      return "recv_key";
    case Ending::kRnr:
      return "rnr";
    case Ending::kPeerGone:
      return "peer_gone";
    case Ending::kDeadKey:
      return "dead_key";
    case Ending::kEndWrong:
      return "end_wrong";
    case Ending::kEndWrongHere:
      return "end_wrong_here";
  }
  return "?";
}

bool ProgramWriter::offers(WrOpcode opcode) const {
  return std::find(abilities_.opcodes.begin(), abilities_.opcodes.end(), opcode) !=
         abilities_.opcodes.end();
}

std::vector<WrOpcode> ProgramWriter::usable(const Lane& lane) const {
  std::vector<WrOpcode> result;
  for (const WrOpcode opcode : abilities_.opcodes) {
    const bool reliable =
        opcode == WrOpcode::kRdmaRead || opcode == WrOpcode::kSendWithInv || is_atomic(opcode);
    if (lane.connected_only && reliable) continue;
    if ((lane.allowed & right_of(opcode)) == right_of(opcode)) result.push_back(opcode);
  }
  return result;
}

WrOpcode ProgramWriter::any_of(const Lane& lane, const std::vector<WrOpcode>& wanted) {
  std::vector<WrOpcode> both;
  for (const WrOpcode opcode : usable(lane)) {
    if (std::find(wanted.begin(), wanted.end(), opcode) != wanted.end()) both.push_back(opcode);
  }
  if (both.empty()) throw std::logic_error("no operation for this ending");
  return both[rng_.below(both.size())];
}

std::uint32_t ProgramWriter::size() {
  switch (rng_.below(5)) {
    case 0:
      return between(0, 16);
    case 1:
      return between(17, 300);
    case 2:  // around a whole number of packets
      return between(1, 3) * abilities_.mtu + between(0, 2) - 1;
    case 3:
      return between(1, abilities_.mtu);
    default:
      return between(1, 4 * abilities_.mtu);
  }
}

ProgramWriter::Span ProgramWriter::place(const Area& area, std::uint64_t bytes,
                                         std::uint32_t alignment) {
  const std::uint64_t room = area.region.bytes - bytes;
  return {area.region.address + rng_.below(room / alignment + 1) * alignment, bytes};
}

/// A place that no WRITE under way has; without bytes when none was found.
ProgramWriter::Span ProgramWriter::place_apart(const Area& area, std::uint64_t bytes) {
  constexpr int kTries = 30;
  for (int i = 0; i < kTries; ++i) {
    const Span span = place(area, bytes);
    const bool met = std::any_of(open_writes_.begin(), open_writes_.end(),
                                 [&span](const Span& open) { return span.meets(open); });
    if (met) continue;
    open_writes_.push_back(span);
    return span;
  }
  return place(area, 0);
}

/// Cuts `span` into up to `most` elements, in any order, some of them empty.
std::vector<Sge> ProgramWriter::pieces(const Area& area, const Span& span, std::uint32_t most) {
  std::vector<Sge> result;
  if (span.bytes == 0 && chance(0.5)) return result;
  const std::uint32_t count = chance(0.5) ? 1 : between(1, most);
  std::vector<std::uint64_t> cuts = {0, span.bytes};
  for (std::uint32_t i = 1; i < count; ++i) cuts.push_back(rng_.below(span.bytes + 1));
  std::sort(cuts.begin(), cuts.end());
  for (std::uint32_t i = 0; i < count; ++i) {
    result.push_back({span.address + cuts[i], static_cast<std::uint32_t>(cuts[i + 1] - cuts[i]),
                      area.region.lkey});
  }
  for (std::size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[rng_.below(i)]);
  return result;
}

/// Fences a request that must not overtake the READs and atomics before it (IBTA vol 1, table 79).
/// READs keep their order among themselves at both ends, and so do atomics.
void ProgramWriter::order(SendRequest& request, const Span& local, const Span& remote) {
  const bool atomic = is_atomic(request.opcode);
  const bool fetches = request.opcode == WrOpcode::kRdmaRead || atomic;
  bool conflict = chance(0.08) || fence_next_;
  fence_next_ = false;
  for (const OpenRead& open : open_reads_) {
    const bool same_source = remote.meets(open.source) && !(fetches && atomic == open.atomic);
    conflict = conflict || same_source || (!fetches && local.meets(open.sink));
  }
  if (conflict) {
    request.flags |= SendFlags::kFence;
    open_reads_.clear();
  }
  if (fetches) open_reads_.push_back({local, remote, atomic});
}

KeyArea* ProgramWriter::valid_key(Lane& lane) {
  std::vector<KeyArea*> valid;
  for (KeyArea& key : lane.keys) {
    if (key.valid) valid.push_back(&key);
  }
  return valid.empty() ? nullptr : valid[rng_.below(valid.size())];
}

void ProgramWriter::spoil(const Lane& lane, SendRequest& request) {
  if (request.opcode != WrOpcode::kRdmaWrite) return;  // others would leave a RECV to the next one
  switch (rng_.below(3)) {
    case 0:
      request.rkey ^= 0x01;
      break;
    case 1:
      request.remote_address = lane.exposed.region.address - kWord;
      break;
    default:
      request.rkey = lane.inbox.region.rkey;
      request.remote_address = lane.inbox.region.address;
      break;
  }
}

SendRequest ProgramWriter::request(Lane& lane, WrOpcode opcode, std::uint32_t bytes) {
  SendRequest made;
  made.wr_id = ++wr_ids_;
  made.opcode = opcode;
  if (chance(0.4) || unsignaled_ >= kMostUnsignaled) made.flags |= SendFlags::kSignaled;
  unsignaled_ = (made.flags & SendFlags::kSignaled) != 0 ? 0 : unsignaled_ + 1;
  if (two_sided(opcode) && chance(0.2)) made.flags |= SendFlags::kSolicited;
  made.imm = static_cast<std::uint32_t>(rng_.next());
  Span local;
  Span remote;
  if (is_atomic(opcode)) {
    local = place(lane.scratch, kWord, kWord);
    made.sges = {{local.address, kWord, lane.scratch.region.lkey}};
    remote = place(lane.counters, kWord, kWord);
    made.rkey = lane.counters.region.rkey;
    // Few values, so that comparisons succeed now and then.
    made.compare_add = rng_.below(3);
    made.swap = rng_.below(3);
  } else if (opcode == WrOpcode::kRdmaRead) {
    const bool of_counters = bytes <= lane.counters.region.bytes && chance(0.3);
    KeyArea* key = !of_counters && chance(0.3) ? valid_key(lane) : nullptr;
    if (key != nullptr && bytes > key->area.region.bytes) key = nullptr;
    const Area& area = key != nullptr ? key->area : of_counters ? lane.counters : lane.exposed;
    local = place(lane.scratch, bytes);
    made.sges = pieces(lane.scratch, local, abilities_.max_read_sge);
    remote = place(area, bytes);
    made.rkey = area.region.rkey;
  } else {
    const bool apart = abilities_.early_placement && is_write(opcode);
    if (apart) {
      remote = place_apart(lane.exposed, bytes);
      bytes = static_cast<std::uint32_t>(remote.bytes);
    }
    const bool in_wqe = bytes <= abilities_.max_inline && chance(0.5);
    if (in_wqe) made.flags |= SendFlags::kInline;  // copied when posted: of what never changes
    const Area& area = in_wqe || chance(0.5) ? lane.constant : lane.scratch;
    local = place(area, bytes);
    made.sges = pieces(area, local, abilities_.max_sge);
    if (is_write(opcode)) {
      KeyArea* key = chance(0.3) ? valid_key(lane) : nullptr;
      const bool fits = key != nullptr && bytes <= key->area.region.bytes;
      if (!apart) remote = place(fits ? key->area : lane.exposed, bytes);
      const bool inside =
          fits && remote.address >= key->area.region.address &&
          remote.address + bytes <= key->area.region.address + key->area.region.bytes;
      made.rkey = inside ? key->area.region.rkey : lane.exposed.region.rkey;
    }
  }
  if (opcode == WrOpcode::kSendWithInv) {
    KeyArea* key = valid_key(lane);
    if (key == nullptr) {
      made.opcode = WrOpcode::kSend;
    } else {
      made.key = key->area.region.rkey;
      key->valid = false;
      fence_next_ = true;  // READs by that key are over
    }
  }
  made.remote_address = remote.address;
  if (bytes == 0 && chance(0.5)) made.rkey ^= 0x5A5A5A5A;  // nobody looks at it
  order(made, local, remote);
  return made;
}

RecvRequest ProgramWriter::recv_for(const Lane& lane, std::uint32_t bytes) {
  RecvRequest recv;
  recv.wr_id = ++wr_ids_;
  const std::uint32_t room = chance(0.5) ? bytes : bytes + between(0, 200);
  recv.sges = pieces(lane.inbox, place(lane.inbox, room), abilities_.max_sge);
  return recv;
}

void ProgramWriter::flush(const Lane& lane, std::vector<Step>& steps) {
  const bool late = abilities_.late_recvs && lane.patient && !lane.connected_only && chance(0.3);
  Step recvs;
  recvs.qp = lane.to;
  recvs.recvs.swap(waiting_recvs_);
  Step sends;
  sends.qp = lane.from;
  sends.sends.swap(batch_);
  if (!late && !recvs.recvs.empty()) steps.push_back(recvs);
  if (!sends.sends.empty()) steps.push_back(sends);
  if (late) waiting_recvs_.swap(recvs.recvs);
}

void ProgramWriter::add(const Lane& lane, const SendRequest& made, std::vector<Step>& steps) {
  batch_.push_back(made);
  if (two_sided(made.opcode)) {
    const auto bytes = made.opcode == WrOpcode::kRdmaWriteWithImm
                           ? 0
                           : static_cast<std::uint32_t>(total(made.sges));
    waiting_recvs_.push_back(recv_for(lane, bytes));
  }
  if (batch_.size() >= kMostInBatch || chance(0.4)) flush(lane, steps);
}

std::vector<Step> ProgramWriter::key_steps(Lane& lane) {
  Step step;
  step.qp = lane.to;
  for (KeyArea& key : lane.keys) {
    Region& region = key.area.region;
    if (key.valid && chance(0.6)) continue;
    if (key.valid) {
      SendRequest end;
      end.wr_id = ++wr_ids_;
      end.opcode = WrOpcode::kLocalInv;
      end.key = region.rkey;
      step.sends.push_back(end);
    }
    SendRequest make;
    make.wr_id = ++wr_ids_;
    make.flags = SendFlags::kSignaled;
    make.key = region.rkey = host::verbs::next_key(region.rkey);
    make.opcode = key.window ? WrOpcode::kBindMw : WrOpcode::kRegMr;
    make.bound_access = region.access;
    if (key.window) {
      const Span span = place(lane.exposed, between(1, 3) * std::uint64_t{2000});
      region.address = make.remote_address = span.address;
      region.bytes = make.bound_bytes = span.bytes;
      make.bound_lkey = lane.exposed.region.lkey;
    }
    key.valid = true;
    step.sends.push_back(make);
  }
  if (step.sends.empty()) return {};
  return {step};
}

std::vector<Step> ProgramWriter::traffic(Lane& lane, std::uint32_t count) {
  std::vector<Step> steps;
  open_reads_.clear();
  open_writes_.clear();
  const std::vector<WrOpcode> opcodes = usable(lane);
  for (std::uint32_t i = 0; i < count; ++i) {
    const WrOpcode opcode = opcodes[rng_.below(opcodes.size())];
    SendRequest made = request(lane, opcode, is_atomic(opcode) ? kWord : size());
    const bool in_vain = lane.connected_only && chance(0.15) && total(made.sges) > 0;
    if (in_vain) spoil(lane, made);
    if (i + 1 == count) made.flags |= SendFlags::kSignaled;  // tells when all is done
    add(lane, made, steps);
  }
  flush(lane, steps);
  if (!waiting_recvs_.empty()) {
    Step rest;
    rest.qp = lane.to;
    rest.recvs.swap(waiting_recvs_);
    steps.push_back(rest);
  }
  return steps;
}

bool ProgramWriter::can_end(const Lane& lane, Ending ending) const {
  const auto any = [&](const std::vector<WrOpcode>& wanted, bool allowed) {
    return std::any_of(wanted.begin(), wanted.end(), [&](WrOpcode opcode) {
      return offers(opcode) && ((lane.allowed & right_of(opcode)) == right_of(opcode)) == allowed;
    });
  };
  switch (ending) {
    case Ending::kLocalKey:
    case Ending::kLocalBounds:
    case Ending::kLocalPd:
      // Part of a SEND may have taken a RECV of a shared queue by then, or not.
      return !lane.shared_recvs;
    case Ending::kEndWrongHere:
      return true;
    case Ending::kRecvSmall:
    case Ending::kRecvKey:
      return !lane.connected_only;
    case Ending::kEndWrong:
      return !lane.connected_only && offers(WrOpcode::kSendWithInv);
    case Ending::kDeadKey:
      return !lane.connected_only && lane.unused_key != 0 && any(kByKey, true);
    case Ending::kSinkNotWritable:
      return !lane.connected_only && any(kFetching, true);
    case Ending::kRemoteKey:
    case Ending::kRemoteBounds:
    case Ending::kRemoteTop:
    case Ending::kRemoteRight:
    case Ending::kRemotePd:
      return !lane.connected_only && any(kOneSided, true);
    case Ending::kQpRight:
      return !lane.connected_only && any(kOneSided, false);
    case Ending::kMisaligned:
      return !lane.connected_only && any(kAtomics, true);
    case Ending::kRnr:
      return !lane.connected_only && abilities_.late_recvs && !lane.patient;
    case Ending::kPeerGone:
      return !lane.connected_only && abilities_.late_recvs;
  }
  return false;
}

SendRequest ProgramWriter::failing(Lane& lane, Ending ending) {
  const auto some = [&](const std::vector<WrOpcode>& wanted) {
    const WrOpcode opcode = any_of(lane, wanted);
    SendRequest made = request(lane, opcode, is_atomic(opcode) ? kWord : std::max(2U, size()));
    made.flags &= ~SendFlags::kInline;
    // What is on its way when an iWARP stream ends may be lost with it.
    made.flags |= SendFlags::kFence;
    return made;
  };
  switch (ending) {
    case Ending::kLocalKey: {
      SendRequest made = some(kGathering);
      for (Sge& sge : made.sges) sge.lkey ^= chance(0.5) ? 0x01U : 0x4000'0000U;
      return made;
    }
    case Ending::kLocalBounds: {
      SendRequest made = some(kGathering);
      const Region& region = lane.constant.region;
      made.sges = {{region.address + region.bytes - between(0, 1), 2, region.lkey}};
      return made;
    }
    case Ending::kLocalPd: {
      SendRequest made = some(kGathering);
      made.sges = pieces(lane.foreign,
                         place(lane.foreign, std::max<std::uint64_t>(1, total(made.sges))), 1);
      return made;
    }
    case Ending::kSinkNotWritable: {
      SendRequest made = some(kFetching);
      const std::uint64_t bytes = total(made.sges);
      made.sges = pieces(lane.constant, place(lane.constant, bytes), 1);
      return made;
    }
    case Ending::kRemoteKey: {
      SendRequest made = some(kOneSided);
      made.rkey ^= chance(0.5) ? 0x01U : 0x4000'0000U;
      return made;
    }
    case Ending::kRemoteBounds: {
      SendRequest made = some(kOneSided);
      const Region& region = is_atomic(made.opcode) ? lane.counters.region : lane.exposed.region;
      made.rkey = region.rkey;
      const std::uint64_t bytes = total(made.sges);
      made.remote_address = chance(0.5) && !is_atomic(made.opcode)
                                ? region.address + region.bytes - bytes + 1
                                : region.address - kWord;
      open_writes_.push_back({made.remote_address, bytes});
      return made;
    }
    case Ending::kRemoteTop: {
      SendRequest made = some(kOneSided);
      made.remote_address = ~std::uint64_t{0} - kWord + 1;
      return made;
    }
    case Ending::kRemoteRight: {
      SendRequest made = some(kOneSided);
      made.rkey = lane.inbox.region.rkey;
      made.remote_address = lane.inbox.region.address;
      return made;
    }
    case Ending::kRemotePd: {
      SendRequest made = some(kOneSided);
      made.rkey = lane.peer_foreign.region.rkey;
      made.remote_address = lane.peer_foreign.region.address;
      return made;
    }
    case Ending::kQpRight: {
      std::vector<WrOpcode> refused;
      for (const WrOpcode opcode : kOneSided) {
        if (offers(opcode) && (lane.allowed & right_of(opcode)) == 0) refused.push_back(opcode);
      }
      const WrOpcode opcode = refused[rng_.below(refused.size())];
      SendRequest made = request(lane, opcode, is_atomic(opcode) ? kWord : std::max(2U, size()));
      made.flags &= ~SendFlags::kInline;
      made.flags |= SendFlags::kFence;
      return made;
    }
    case Ending::kMisaligned: {
      SendRequest made = some(kAtomics);
      made.remote_address = lane.counters.region.address + between(1, 7);
      return made;
    }
    case Ending::kRecvSmall:
    case Ending::kRecvKey:
      return some(kSends);
    case Ending::kRnr:
      return some(kTakingRecvs);
    case Ending::kDeadKey: {
      SendRequest made = some(kByKey);
      made.rkey = dead_keys_[rng_.below(dead_keys_.size())];
      return made;
    }
    case Ending::kEndWrong: {
      SendRequest made = some(kSends);
      made.opcode = WrOpcode::kSendWithInv;
      const std::uint32_t wrong[] = {lane.exposed.region.rkey, lane.unused_key ^ 0x4000'0000U,
                                     lane.peer_foreign.region.rkey};
      made.key = wrong[rng_.below(3)];
      return made;
    }
    case Ending::kEndWrongHere: {
      SendRequest made;
      made.wr_id = ++wr_ids_;
      made.opcode = WrOpcode::kLocalInv;
      made.flags = SendFlags::kFence;
      made.key = chance(0.5) ? lane.scratch.region.lkey : lane.foreign.region.lkey;
      return made;
    }
    case Ending::kPeerGone:
      break;
  }
  return some(kGathering);
}

/// The RECV that makes a good SEND fail.
RecvRequest ProgramWriter::bad_recv(const Lane& lane, Ending ending, std::uint32_t bytes) {
  RecvRequest recv;
  recv.wr_id = ++wr_ids_;
  if (ending == Ending::kRecvSmall) {
    recv.sges = pieces(lane.inbox, place(lane.inbox, rng_.below(bytes)), abilities_.max_sge);
    return recv;
  }
  recv.sges = {{place(lane.inbox, bytes).address, bytes, lane.inbox.region.lkey ^ 0x01}};
  return recv;
}

std::vector<Step> ProgramWriter::finale(Lane& lane, Ending ending) {
  std::vector<Step> steps;
  open_reads_.clear();
  open_writes_.clear();
  // What has ended before: of what ends on the way it is open when that happens.
  dead_keys_ = {lane.unused_key};
  for (const KeyArea& key : lane.keys) {
    if (!key.valid) dead_keys_.push_back(key.area.region.rkey);
  }
  const std::vector<WrOpcode> opcodes = usable(lane);
  const auto good = [&](std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const WrOpcode opcode = opcodes[rng_.below(opcodes.size())];
      add(lane, request(lane, opcode, is_atomic(opcode) ? kWord : size()), steps);
    }
  };
  good(between(0, 8));
  SendRequest bad = failing(lane, ending);
  if (ending == Ending::kRecvSmall || ending == Ending::kRecvKey) {
    waiting_recvs_.push_back(bad_recv(lane, ending, static_cast<std::uint32_t>(total(bad.sges))));
    batch_.push_back(bad);
  } else if (ending == Ending::kRnr) {
    flush(lane, steps);  // its RECV never comes
    batch_.push_back(bad);
    flush(lane, steps);
    return steps;
  } else {
    add(lane, bad, steps);
  }
  // What follows a READ may be executed before its answer fails: not behind a fence.
  fence_next_ = ending == Ending::kSinkNotWritable;
  good(between(0, 8));
  flush(lane, steps);
  if (!waiting_recvs_.empty()) {
    Step rest;
    rest.qp = lane.to;
    rest.recvs.swap(waiting_recvs_);
    steps.push_back(rest);
  }
  // The device learns of a RECV that meets ERR when its driver knows of the error, too.
  if (ending != Ending::kPeerGone) {
    std::stable_partition(steps.begin(), steps.end(),
                          [](const Step& step) { return step.sends.empty(); });
  }
  return steps;
}

std::vector<Step> ProgramWriter::late_posts(Lane& lane) {
  std::vector<Step> steps;
  open_reads_.clear();
  open_writes_.clear();
  const std::vector<WrOpcode> opcodes = usable(lane);
  for (std::uint32_t i = between(1, 3); i > 0; --i) {
    const WrOpcode opcode = opcodes[rng_.below(opcodes.size())];
    batch_.push_back(request(lane, opcode, is_atomic(opcode) ? kWord : size()));
  }
  waiting_recvs_.push_back(recv_for(lane, 100));
  Step recvs;
  recvs.qp = lane.to;
  recvs.recvs.swap(waiting_recvs_);
  Step sends;
  sends.qp = lane.from;
  sends.sends.swap(batch_);
  steps = {recvs, sends};
  return steps;
}

}  // namespace rnic::reference

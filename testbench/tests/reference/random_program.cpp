// SPDX-License-Identifier: Apache-2.0
#include "reference/random_program.h"

#include <algorithm>
#include <stdexcept>

#include "reference/random_opcodes.h"

namespace rnic::reference {

using host::verbs::SendFlags;

bool ProgramWriter::offers(WrOpcode opcode) const {
  return std::find(abilities_.opcodes.begin(), abilities_.opcodes.end(), opcode) !=
         abilities_.opcodes.end();
}

std::vector<WrOpcode> ProgramWriter::usable(const Lane& lane) const {
  std::vector<WrOpcode> result;
  for (const WrOpcode opcode : abilities_.opcodes) {
    const bool reliable =
        opcode == WrOpcode::kRdmaRead || opcode == WrOpcode::kSendWithInv || is_atomic(opcode);
    if (lane.unacknowledged() && reliable) continue;
    if (lane.datagram && opcode != WrOpcode::kSend && opcode != WrOpcode::kSendWithImm) continue;
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

std::uint32_t ProgramWriter::size(const Lane& lane) {
  if (lane.datagram) return chance(0.2) ? abilities_.mtu : between(0, abilities_.mtu);
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
  if (lane.datagram) {
    request.addressee = chance(0.5) ? Addressee::kOtherQkey : Addressee::kNobody;
    return;
  }
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

RecvRequest ProgramWriter::recv_for(const Lane& lane, const Area& inbox, std::uint32_t bytes) {
  RecvRequest recv;
  recv.wr_id = ++wr_ids_;
  const std::uint32_t needed = bytes + (lane.datagram ? kHeaderArea : 0);
  const std::uint32_t room = chance(0.5) ? needed : needed + between(0, 200);
  recv.sges = pieces(inbox, place(inbox, room), abilities_.max_sge);
  return recv;
}

void ProgramWriter::flush(const Lane& lane, std::vector<Step>& steps) {
  const bool late = abilities_.late_recvs && lane.patient && !lane.unacknowledged() && chance(0.3);
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

SendRequest ProgramWriter::overlong(Lane& lane, std::uint64_t room) {
  const std::uint64_t area = lane.datagram ? kHeaderArea : 0;
  return request(lane, WrOpcode::kSend,
                 static_cast<std::uint32_t>(std::max(room, area) - area) + between(1, 100));
}

void ProgramWriter::add(Lane& lane, const SendRequest& made, std::vector<Step>& steps) {
  if (two_sided(made.opcode)) {
    const auto bytes = made.opcode == WrOpcode::kRdmaWriteWithImm
                           ? 0
                           : static_cast<std::uint32_t>(total(made.sges));
    const RecvRequest recv = recv_for(lane, lane.inbox, bytes);
    const std::uint64_t room = total(recv.sges);
    const bool fits_packet = room + 100 <= abilities_.mtu || !lane.datagram;
    if (lane.unacknowledged() && !lane.shared_recvs && fits_packet && chance(0.1)) {
      batch_.push_back(overlong(lane, room));
    }
    waiting_recvs_.push_back(recv);
  }
  batch_.push_back(made);
  if (batch_.size() >= kMostInBatch || chance(0.4)) flush(lane, steps);
}

/// To all members of the lane's group, each of which has a RECV for it by then.
void ProgramWriter::publish(Lane& lane, SendRequest made, std::vector<Step>& steps) {
  for (const GroupMember& member : lane.members) {
    Step recv;
    recv.qp = member.qp;
    recv.recvs = {recv_for(lane, member.inbox, static_cast<std::uint32_t>(total(made.sges)))};
    steps.push_back(recv);
  }
  made.addressee = Addressee::kGroup;
  made.group = lane.group;
  batch_.push_back(made);
  if (batch_.size() >= kMostInBatch || chance(0.4)) flush(lane, steps);
}

void ProgramWriter::starve(Lane& lane, std::vector<Step>& steps) {
  std::vector<WrOpcode> taking;
  for (const WrOpcode opcode : usable(lane)) {
    if (two_sided(opcode)) taking.push_back(opcode);
  }
  if (taking.empty()) return;
  const std::uint32_t count = between(1, 3);
  for (std::uint32_t i = 0; i < count; ++i) {
    SendRequest made = request(lane, taking[rng_.below(taking.size())], size(lane));
    if (i + 1 == count) made.flags |= SendFlags::kSignaled;
    batch_.push_back(made);
  }
  flush(lane, steps);
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
    SendRequest made = request(lane, opcode, is_atomic(opcode) ? kWord : size(lane));
    const bool in_vain = lane.unacknowledged() && chance(0.15) && total(made.sges) > 0;
    if (in_vain) spoil(lane, made);
    if (i + 1 == count) made.flags |= SendFlags::kSignaled;  // tells when all is done
    if (!in_vain && !lane.members.empty() && chance(0.3)) {
      publish(lane, made, steps);
    } else if (made.addressee == Addressee::kPeer) {
      add(lane, made, steps);
    } else {
      batch_.push_back(made);  // no RECV is taken
    }
  }
  flush(lane, steps);
  if (!waiting_recvs_.empty()) {
    Step rest;
    rest.qp = lane.to;
    rest.recvs.swap(waiting_recvs_);
    steps.push_back(rest);
  }
  if (lane.unacknowledged() && chance(0.5)) starve(lane, steps);
  return steps;
}

std::vector<Step> ProgramWriter::late_posts(Lane& lane) {
  std::vector<Step> steps;
  open_reads_.clear();
  open_writes_.clear();
  const std::vector<WrOpcode> opcodes = usable(lane);
  for (std::uint32_t i = between(1, 3); i > 0; --i) {
    const WrOpcode opcode = opcodes[rng_.below(opcodes.size())];
    batch_.push_back(request(lane, opcode, is_atomic(opcode) ? kWord : size(lane)));
  }
  waiting_recvs_.push_back(recv_for(lane, lane.inbox, 100));
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

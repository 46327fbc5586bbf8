// SPDX-License-Identifier: Apache-2.0
// How random programs end: the work that fails, and what is posted around it.
#include <algorithm>
#include <stdexcept>

#include "reference/random_opcodes.h"

namespace rnic::reference {

using host::verbs::SendFlags;

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
    case Ending::kTooLong:
      return "too_long";
    case Ending::kForeignHandle:
      return "foreign_handle";
    case Ending::kCqFull:
      return "cq_full";
  }
  return "?";
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
      return !lane.datagram;
    case Ending::kCqFull:
      return lane.own_send_cq && (lane.allowed & protocol::kAccessRemoteWrite) != 0;
    case Ending::kTooLong:
    case Ending::kRecvKey:
      return true;
    case Ending::kForeignHandle:
      return lane.datagram;
    case Ending::kRecvSmall:
      return !lane.unacknowledged();
    case Ending::kEndWrong:
      return !lane.unacknowledged() && offers(WrOpcode::kSendWithInv);
    case Ending::kDeadKey:
      return !lane.unacknowledged() && lane.unused_key != 0 && any(kByKey, true);
    case Ending::kSinkNotWritable:
      return !lane.unacknowledged() && any(kFetching, true);
    case Ending::kRemoteKey:
    case Ending::kRemoteBounds:
    case Ending::kRemoteTop:
    case Ending::kRemoteRight:
    case Ending::kRemotePd:
      return !lane.unacknowledged() && any(kOneSided, true);
    case Ending::kQpRight:
      return !lane.unacknowledged() && any(kOneSided, false);
    case Ending::kMisaligned:
      return !lane.unacknowledged() && any(kAtomics, true);
    case Ending::kRnr:
      return !lane.unacknowledged() && abilities_.late_recvs && !lane.patient;
    case Ending::kPeerGone:
      return abilities_.late_recvs;
  }
  return false;
}

SendRequest ProgramWriter::failing(Lane& lane, Ending ending) {
  const auto some = [&](const std::vector<WrOpcode>& wanted) {
    const WrOpcode opcode = any_of(lane, wanted);
    SendRequest made = request(lane, opcode, is_atomic(opcode) ? kWord : std::max(2U, size(lane)));
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
      SendRequest made =
          request(lane, opcode, is_atomic(opcode) ? kWord : std::max(2U, size(lane)));
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
    case Ending::kTooLong: {
      SendRequest made = some(kGathering);
      const Region& region = lane.constant.region;
      if (lane.datagram) {
        made.sges = {{region.address, abilities_.mtu + between(1, 100), region.lkey}};
      } else {
        constexpr std::uint32_t kHalf = 1U << 30;
        made.sges = {{region.address, kHalf, region.lkey},
                     {region.address, kHalf + between(1, 100), region.lkey}};
      }
      return made;
    }
    case Ending::kForeignHandle: {
      SendRequest made = some(kGathering);
      made.addressee = Addressee::kForeignHandle;
      return made;
    }
    case Ending::kCqFull:
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
  if (lane.datagram) bytes += kHeaderArea;
  recv.sges = {{place(lane.inbox, bytes).address, bytes, lane.inbox.region.lkey ^ 0x01}};
  return recv;
}

/// Signalled WRITEs of no bytes, which change nothing wherever their queue pair fails: one more
/// than the queue of their completions has room for, or a few.
std::vector<Step> ProgramWriter::overrun(Lane& lane) {
  std::vector<Step> steps;
  for (std::uint32_t left = kSmallCq + between(1, 6); left > 0; --left) {
    SendRequest made;
    made.wr_id = ++wr_ids_;
    made.opcode = WrOpcode::kRdmaWrite;
    made.flags = SendFlags::kSignaled;
    batch_.push_back(made);
    if (left == 1 || batch_.size() >= kMostInBatch || chance(0.3)) flush(lane, steps);
  }
  return steps;
}

std::vector<Step> ProgramWriter::finale(Lane& lane, Ending ending) {
  if (ending == Ending::kCqFull) return overrun(lane);
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
      add(lane, request(lane, opcode, is_atomic(opcode) ? kWord : size(lane)), steps);
    }
  };
  good(between(0, 8));
  SendRequest bad = failing(lane, ending);
  if (ending == Ending::kRecvSmall || ending == Ending::kRecvKey) {
    waiting_recvs_.push_back(bad_recv(lane, ending, static_cast<std::uint32_t>(total(bad.sges))));
    batch_.push_back(bad);
  } else if (ending == Ending::kTooLong) {
    batch_.push_back(bad);  // never leaves, takes no RECV
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
  return steps;
}

}  // namespace rnic::reference

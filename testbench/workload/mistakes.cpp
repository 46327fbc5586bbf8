// SPDX-License-Identifier: Apache-2.0
#include "workload/mistakes.h"

#include "workload/endpoint.h"

namespace rnic::testbench {

using config::Mistake;
using host::verbs::SendFlags;

namespace {

/// The local key of the region of `end` whose remote one is `rkey`.
std::uint32_t local_key_of(const Endpoint& end, std::uint32_t rkey) {
  for (const Endpoint::Buffer& buffer : end.buffers) {
    for (const auto* regions : {&buffer.send_regions, &buffer.receive_regions}) {
      for (const host::MemoryRegion& region : *regions) {
        if (region.rkey == rkey) return region.lkey;
      }
    }
  }
  return rkey;
}

}  // namespace

void Mistakes::spoil(const Endpoint& local, const Endpoint& remote, host::verbs::SendWr& wr,
                     protocol::Sge& sge) const {
  const Endpoint::Spare& here = local.spare;
  const Endpoint::Spare& there = remote.spare;
  switch (kind_) {
    case Mistake::kLocalKey:
      sge.lkey ^= 1;
      break;
    case Mistake::kLocalBounds:
      sge.address += local.region_bytes();
      break;
    case Mistake::kLocalPd:
      sge.address = here.foreign.va;
      sge.lkey = here.foreign.lkey;
      break;
    case Mistake::kSinkNotWritable:
      sge.address = here.plain.va;
      sge.lkey = here.plain.lkey;
      break;
    case Mistake::kTooLong:
      sge.length = config_.transport.type == config::TransportType::kUd ? config_.transport.mtu + 1
                                                                        : sge.length + 1;
      break;
    case Mistake::kRemoteKey:
      wr.rkey ^= 1;
      break;
    case Mistake::kLkeyAsRkey:
      wr.rkey = local_key_of(remote, wr.rkey);
      break;
    case Mistake::kRemoteBounds:
      wr.remote_addr += remote.region_bytes();
      break;
    case Mistake::kRemotePd:
      wr.remote_addr = there.foreign.va;
      wr.rkey = there.foreign.rkey;
      break;
    case Mistake::kRemoteRight:
      wr.remote_addr = there.plain.va;
      wr.rkey = there.plain.rkey;
      break;
    case Mistake::kMisaligned:
      wr.remote_addr += 1;
      break;
    case Mistake::kQkey:
      wr.remote_qkey ^= 1;
      break;
    case Mistake::kHandlePd:
      wr.ah = here.foreign_path;
      break;
    case Mistake::kNone:
    case Mistake::kQpRight:
    case Mistake::kRecvSmall:
    case Mistake::kRecvKey:
    case Mistake::kNoHandle:
      return;
  }
  wr.flags &= ~SendFlags::kInline;  // a device does not look at inline data's keys
}

void Mistakes::spoil_recv(std::uint64_t number, protocol::Sge& sge) const {
  if (number != at_) return;
  if (kind_ == Mistake::kRecvSmall) --sge.length;
  if (kind_ == Mistake::kRecvKey) sge.lkey ^= 1;
}

}  // namespace rnic::testbench

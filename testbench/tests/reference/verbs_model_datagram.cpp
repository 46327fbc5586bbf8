// SPDX-License-Identifier: Apache-2.0
// Datagrams of the reference model: to a queue pair, or to all members of a multicast group.
#include <algorithm>

#include "reference/verbs_model.h"

namespace rnic::reference {

using host::verbs::SendFlags;

namespace {

// IBTA vol 1, 9.8.3 and 11.4.1.2: a RECV has 40 bytes for the network header in front of the data.
constexpr std::uint64_t kHeaderArea = 40;

std::uint64_t total(const std::vector<Sge>& sges) {
  std::uint64_t bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

/// The part of a list that holds its bytes [from, from + count).
std::vector<Sge> slice(const std::vector<Sge>& sges, std::uint64_t from, std::uint64_t count) {
  std::vector<Sge> part;
  std::uint64_t at = 0;
  for (const Sge& sge : sges) {
    const std::uint64_t first = std::max(from, at);
    const std::uint64_t end = std::min(from + count, at + sge.length);
    if (first < end) {
      part.push_back(
          {sge.address + (first - at), static_cast<std::uint32_t>(end - first), sge.lkey});
    }
    at += sge.length;
  }
  return part;
}

}  // namespace

VerbsModel::Outcome VerbsModel::execute_datagram(Qp& qp, const SendRequest& request) {
  Outcome outcome;
  const bool is_inline = (request.flags & SendFlags::kInline) != 0;
  if (request.addressee == Addressee::kForeignHandle) {
    outcome.status = WcStatus::kLocalQpOperationError;
    return outcome;
  }
  if (!is_inline && !local_access(qp, request.sges, protocol::kAccessLocalRead)) {
    outcome.status = WcStatus::kLocalProtectionError;
    return outcome;
  }
  const Bytes data = gather(qp, request.sges);
  if (request.addressee == Addressee::kGroup) {
    // Not to the sender itself, though it be a member (IBTA vol 1, 10.5.2).
    for (const QpName name : groups_[request.group]) {
      Qp& member = at(name);
      if (&member != &qp) deliver_datagram(member, request, data, member.attributes.group_header);
    }
  } else if (request.addressee == Addressee::kPeer) {
    Qp& peer = at(qp.peer);
    outcome.peer_breaks = !deliver_datagram(peer, request, data, peer.attributes.header);
  }
  return outcome;
}

/// False: its RECV could not be written to, which breaks the receiver. What it cannot take is
/// dropped.
bool VerbsModel::deliver_datagram(Qp& receiver, const SendRequest& request, const Bytes& data,
                                  std::uint32_t header_bytes) {
  if (receiver.broken || receiver.recvs.empty()) return true;
  const std::vector<Sge> room = receiver.recvs.front().sges;
  if (kHeaderArea + data.size() > total(room)) return true;
  const std::vector<Sge> header = slice(room, kHeaderArea - header_bytes, header_bytes);
  const std::vector<Sge> body = slice(room, kHeaderArea, data.size());
  for (const std::vector<Sge>& part : {header, body}) {
    if (local_access(receiver, part, protocol::kAccessLocalWrite)) continue;
    perhaps_scatter(receiver, body, data);
    for (const Sge& sge : header) {
      if (local_region(receiver, sge, protocol::kAccessLocalWrite) != nullptr) {
        hosts_[receiver.host].memory.forget(sge.address, sge.length);
      }
    }
    return !fail_recv(receiver, WcStatus::kLocalProtectionError, WcStatus::kSuccess).peer_breaks;
  }
  for (const Sge& sge : header) hosts_[receiver.host].memory.forget(sge.address, sge.length);
  scatter(receiver, body, data);
  complete_recv(receiver, request, static_cast<std::uint32_t>(kHeaderArea + data.size()));
  receiver.received.back().has_header = !header.empty();
  return true;
}

}  // namespace rnic::reference

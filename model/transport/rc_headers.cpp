// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "protocol/aeth.h"
#include "protocol/ib_headers.h"
#include "protocol/multicast.h"
#include "protocol/opcode.h"
#include "protocol/psn.h"
#include "transport/path_hint.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"

namespace rnic::transport {

using protocol::BthOpcode;
using protocol::OpcodeInfo;

namespace {

/// Selective repeat: 8 bits reserved and the PSN that arrived, behind the AETH of a sequence NAK.
constexpr std::uint32_t kSackBytes = 4;

bool serves(protocol::BthTransport transport) {
  return transport == protocol::BthTransport::kRc || transport == protocol::BthTransport::kUc ||
         transport == protocol::BthTransport::kUd ||
         transport == protocol::BthTransport::kCongestion;
}

/// The sender's own key goes out for one whose top bit is set (IBTA vol 1, 10.2.5).
std::uint32_t qkey_of(const QueuePair& qp, const protocol::Datagram& datagram) {
  constexpr std::uint32_t kUseOwn = 1U << 31;
  return (datagram.qkey & kUseOwn) != 0 ? qp.qkey : datagram.qkey;
}

/// Extension headers behind the BTH, in wire order; returns the byte behind them.
std::uint8_t* write_extensions(const OpcodeInfo& info, const TxPlan& plan, std::uint32_t extra,
                               std::uint8_t* p) {
  if (info.has_reth) {
    protocol::Reth{plan.address, plan.rkey, plan.message_length}.encode(p);
    p += protocol::Reth::kBytes;
  } else if (extra == protocol::Reth::kBytes) {
    protocol::Reth{plan.address + plan.message_offset, plan.rkey,
                   plan.message_length - plan.message_offset}
        .encode(p);
    p += protocol::Reth::kBytes;
  }
  if (info.has_atomiceth) {
    protocol::AtomicEth{plan.address, plan.rkey, plan.swap_or_add, plan.compare}.encode(p);
    p += protocol::AtomicEth::kBytes;
  }
  if (info.has_aeth) {
    protocol::Aeth{plan.syndrome, plan.msn}.encode(p);
    p += protocol::Aeth::kBytes;
  }
  if (info.has_atomicacketh) {
    protocol::AtomicAckEth{plan.swap_or_add}.encode(p);
    p += protocol::AtomicAckEth::kBytes;
  }
  if (info.has_immdt) {
    protocol::ImmDt{plan.imm}.encode(p);
    p += protocol::ImmDt::kBytes;
  }
  if (info.has_ieth) {
    protocol::Ieth{plan.imm}.encode(p);
    p += protocol::Ieth::kBytes;
  }
  if (info.kind == protocol::OpcodeKind::kCnp) {
    std::memset(p, 0, protocol::kCnpReservedBytes);
    p += protocol::kCnpReservedBytes;
  }
  if (extra == kSackBytes) {
    protocol::store_be32(p, plan.sack_psn);
    p += kSackBytes;
  }
  return p;
}

}  // namespace

/// What a message with immediate data, or one that takes a RECV, tells is told in order; a WRITE
/// tells nobody.
bool RcTransport::may_take_any_path(const QueuePair& qp, const TxPlan& plan,
                                    const OpcodeInfo& info) {
  if (info.transport != protocol::BthTransport::kRc || info.kind != protocol::OpcodeKind::kWrite) {
    return false;
  }
  const SendEntry* entry = qp.entry(plan.entry_number);
  return entry != nullptr && !entry->wqe.has_imm();
}

/// Header bytes that selective repeat adds to those of the standard.
std::uint32_t RcTransport::extra_header_bytes(const OpcodeInfo& info, std::uint8_t syndrome) const {
  if (!config_.selective_repeat || info.transport != protocol::BthTransport::kRc) return 0;
  if (info.kind == protocol::OpcodeKind::kWrite && !info.has_reth) return protocol::Reth::kBytes;
  const bool sack = info.kind == protocol::OpcodeKind::kAck &&
                    syndrome == protocol::nak_syndrome(protocol::NakCode::kPsnSequence);
  return sack ? kSackBytes : 0;
}

protocol::AddressVector RcTransport::datagram_path(const protocol::Datagram& datagram) const {
  protocol::AddressVector av = datagram.av;
  av.source_mac = identity_.mac;
  av.source_ipv4 = identity_.ipv4;
  av.source_gid = identity_.gid;
  av.source_lid = identity_.lid;
  return av;
}

void RcTransport::build(const QueuePair& qp, const TxPlan& plan, protocol::Frame& frame) const {
  const protocol::OpcodeInfo& info = protocol::opcode_info(plan.opcode);
  if (info.kind == protocol::OpcodeKind::kCnp) {
    build_packet(qp, plan, cnp_path(qp.av), nullptr, frame);
    return;
  }
  if (!info.has_deth) {
    build_packet(qp, plan, qp.av, nullptr, frame);
    return;
  }
  const SendEntry* entry = qp.entry(plan.entry_number);
  const protocol::Datagram datagram = entry != nullptr ? entry->wqe.datagram : protocol::Datagram{};
  build_packet(qp, plan, datagram_path(datagram), &datagram, frame);
}

void RcTransport::build_packet(const QueuePair& qp, const TxPlan& plan,
                               const protocol::AddressVector& av,
                               const protocol::Datagram* datagram, protocol::Frame& frame) const {
  const auto opcode = static_cast<BthOpcode>(plan.opcode);
  const OpcodeInfo& info = protocol::opcode_info(opcode);
  const std::uint8_t pad = protocol::pad_to_word(plan.length);
  const std::uint32_t extra = extra_header_bytes(info, plan.syndrome);
  const std::uint32_t inner = protocol::Bth::kBytes + info.extension_bytes + extra + plan.length +
                              pad + protocol::kIcrcBytes;
  encapsulation_.write_outer(av, inner, frame.header);
  std::uint8_t* p = frame.header + encapsulation_.outer_bytes(av);
  protocol::Bth bth;
  bth.opcode = opcode;
  bth.solicited = plan.solicited;
  bth.migration = qp.migration != nullptr && qp.migration->moved;
  bth.pad_count = pad;
  bth.pkey = qp.av.pkey;
  bth.dest_qpn = datagram != nullptr ? datagram->destination_qpn : qp.dest_qpn;
  bth.becn = info.kind == protocol::OpcodeKind::kCnp;
  bth.ack_request = plan.ack_request;
  bth.psn = plan.psn;
  bth.encode(p);
  if (config_.marks_free_packets && may_take_any_path(qp, plan, info)) {
    p[kAnyPathOffset] |= kAnyPathBit;
  }
  p += protocol::Bth::kBytes;
  if (datagram != nullptr) {
    protocol::Deth{qkey_of(qp, *datagram), qp.qpn}.encode(p);
    p += protocol::Deth::kBytes;
  }
  p = write_extensions(info, plan, extra, p);
  frame.header_bytes = static_cast<std::uint16_t>(p - frame.header);
  frame.payload_bytes = plan.length;
  frame.pad_bytes = pad;
  frame.trailer_bytes = static_cast<std::uint8_t>(encapsulation_.trailer_bytes());
  frame.lane = encapsulation_.lane_of(av);
  frame.wire_bytes = encapsulation_.wire_bytes(frame.frame_bytes());
}

std::uint32_t RcTransport::destination(const protocol::Frame& frame) {
  const ParsedOuter outer = encapsulation_.parse(frame);
  if (!outer.ok() || !encapsulation_.addressed_to(outer, identity_)) return 0;
  if (frame.header_bytes < outer.inner_offset + protocol::Bth::kBytes) return 0;
  const auto bth = protocol::Bth::decode(frame.header + outer.inner_offset);
  const OpcodeInfo& info = protocol::opcode_info(bth.opcode);
  const std::uint32_t headers = outer.inner_offset + protocol::Bth::kBytes + info.extension_bytes;
  if (!info.valid() || !serves(info.transport) || frame.header_bytes < headers) {
    return 0;
  }
  const std::uint8_t syndrome =
      info.has_aeth ? frame.header[outer.inner_offset + protocol::Bth::kBytes] : std::uint8_t{0};
  if (frame.header_bytes != headers + extra_header_bytes(info, syndrome)) return 0;
  return bth.dest_qpn;
}

Transport::GroupAddress RcTransport::group_of(const protocol::Frame& frame) const {
  GroupAddress address;
  const ParsedOuter outer = encapsulation_.parse(frame);
  if (!outer.ok()) return address;
  const protocol::Gid group = encapsulation_.group_of(outer);
  const std::uint32_t headers = outer.inner_offset + protocol::Bth::kBytes + protocol::Deth::kBytes;
  if (!protocol::is_multicast_gid(group) || frame.header_bytes < headers) return address;
  const auto bth = protocol::Bth::decode(frame.header + outer.inner_offset);
  const OpcodeInfo& info = protocol::opcode_info(bth.opcode);
  if (bth.dest_qpn != protocol::kMulticastQpn || !info.has_deth || !serves(info.transport) ||
      frame.header_bytes != outer.inner_offset + protocol::Bth::kBytes + info.extension_bytes) {
    return address;
  }
  address.group = group;
  const bool own =
      outer.source.lid != 0 ? outer.source.lid == identity_.lid : outer.source.mac == identity_.mac;
  if (own) {
    address.source_qpn =
        protocol::Deth::decode(frame.header + outer.inner_offset + protocol::Bth::kBytes)
            .source_qpn;
  }
  return address;
}

FrameUse RcTransport::use_of(const protocol::Frame& frame) const {
  const std::uint8_t* p = frame.header + encapsulation_.outer_bytes(frame);
  const OpcodeInfo info = protocol::opcode_info(protocol::Bth::decode(p).opcode);
  const bool atomic = info.has_atomiceth || info.has_atomicacketh;
  return {info.is_response(), info.is_read() || atomic};
}

FrameTarget RcTransport::target_of(const protocol::Frame& frame) const {
  const Incoming in = decode(frame);
  if (!in.info.has_reth) return {};
  return {in.reth.rkey, in.reth.va, in.reth.dma_length};
}

RcTransport::Incoming RcTransport::decode(const protocol::Frame& frame) const {
  Incoming in;
  const std::uint8_t* p = frame.header + encapsulation_.outer_bytes(frame);
  in.bth = protocol::Bth::decode(p);
  in.info = protocol::opcode_info(in.bth.opcode);
  in.payload_bytes = frame.payload_bytes;
  in.pad_bytes = frame.pad_bytes;
  p += protocol::Bth::kBytes;
  if (in.info.has_deth) {
    in.deth = protocol::Deth::decode(p);
    p += protocol::Deth::kBytes;
  }
  if (in.info.has_reth || extra_header_bytes(in.info, 0) == protocol::Reth::kBytes) {
    in.reth = protocol::Reth::decode(p);
    p += protocol::Reth::kBytes;
  }
  if (in.info.has_atomiceth) {
    in.atomic = protocol::AtomicEth::decode(p);
    p += protocol::AtomicEth::kBytes;
  }
  if (in.info.has_aeth) {
    in.aeth = protocol::Aeth::decode(p);
    p += protocol::Aeth::kBytes;
  }
  if (in.info.has_atomicacketh) {
    in.atomic_ack = protocol::AtomicAckEth::decode(p);
    p += protocol::AtomicAckEth::kBytes;
  }
  if (in.info.has_immdt) in.imm = protocol::ImmDt::decode(p).imm;
  if (in.info.has_ieth) in.imm = protocol::Ieth::decode(p).rkey;
  if (extra_header_bytes(in.info, in.aeth.syndrome) == kSackBytes) {
    in.sack_psn = protocol::load_be32(p) & protocol::kPsnMask;
  }
  return in;
}

}  // namespace rnic::transport

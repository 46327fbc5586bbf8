// SPDX-License-Identifier: Apache-2.0
#include "protocol/ib_headers.h"
#include "protocol/opcode.h"
#include "transport/rc_incoming.h"
#include "transport/rc_transport.h"

namespace rnic::transport {

using protocol::BthOpcode;
using protocol::OpcodeInfo;

namespace {

/// Extension headers behind the BTH, in wire order; returns the byte behind them.
std::uint8_t* write_extensions(const OpcodeInfo& info, const TxPlan& plan, std::uint8_t* p) {
  if (info.has_reth) {
    protocol::Reth{plan.address, plan.rkey, plan.message_length}.encode(p);
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
  return p;
}

}  // namespace

void RcTransport::build(const QueuePair& qp, const TxPlan& plan, protocol::Frame& frame) const {
  const auto opcode = static_cast<BthOpcode>(plan.opcode);
  const OpcodeInfo& info = protocol::opcode_info(opcode);
  const std::uint8_t pad = protocol::pad_to_word(plan.length);
  const std::uint32_t inner =
      protocol::Bth::kBytes + info.extension_bytes + plan.length + pad + protocol::kIcrcBytes;
  encapsulation_.write_outer(qp.av, inner, frame.header);
  std::uint8_t* p = frame.header + encapsulation_.outer_bytes();
  protocol::Bth bth;
  bth.opcode = opcode;
  bth.solicited = plan.solicited;
  bth.pad_count = pad;
  bth.pkey = qp.av.pkey;
  bth.dest_qpn = qp.dest_qpn;
  bth.ack_request = plan.ack_request;
  bth.psn = plan.psn;
  bth.encode(p);
  p = write_extensions(info, plan, p + protocol::Bth::kBytes);
  frame.header_bytes = static_cast<std::uint16_t>(p - frame.header);
  frame.payload_bytes = plan.length;
  frame.pad_bytes = pad;
  frame.trailer_bytes = static_cast<std::uint8_t>(encapsulation_.trailer_bytes());
  frame.lane = encapsulation_.lane_of(qp.av);
  frame.wire_bytes = encapsulation_.wire_bytes(frame.frame_bytes());
}

std::uint32_t RcTransport::destination(const protocol::Frame& frame) {
  const ParsedOuter outer = encapsulation_.parse(frame);
  if (!outer.ok() || !encapsulation_.addressed_to(outer, identity_)) return 0;
  if (frame.header_bytes < outer.inner_offset + protocol::Bth::kBytes) return 0;
  const auto bth = protocol::Bth::decode(frame.header + outer.inner_offset);
  const OpcodeInfo& info = protocol::opcode_info(bth.opcode);
  const std::uint32_t headers = outer.inner_offset + protocol::Bth::kBytes + info.extension_bytes;
  if (!info.valid() || info.transport != protocol::BthTransport::kRc ||
      frame.header_bytes != headers) {
    return 0;
  }
  return bth.dest_qpn;
}

FrameUse RcTransport::use_of(const protocol::Frame& frame) const {
  const std::uint8_t* p = frame.header + encapsulation_.outer_bytes();
  const OpcodeInfo info = protocol::opcode_info(protocol::Bth::decode(p).opcode);
  const bool atomic = info.has_atomiceth || info.has_atomicacketh;
  return {info.is_response(), info.is_read() || atomic};
}

RcTransport::Incoming RcTransport::decode(const protocol::Frame& frame) const {
  Incoming in;
  const std::uint8_t* p = frame.header + encapsulation_.outer_bytes();
  in.bth = protocol::Bth::decode(p);
  in.info = protocol::opcode_info(in.bth.opcode);
  in.payload_bytes = frame.payload_bytes;
  in.pad_bytes = frame.pad_bytes;
  p += protocol::Bth::kBytes;
  if (in.info.has_reth) {
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
  return in;
}

}  // namespace rnic::transport

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <systemc>

#include "protocol/frame.h"
#include "tlm/frame_types.h"

namespace rnic::testbench {

/// Sits between a port and its cable, and remembers the last refusal and ACK that passed.
class WireSpy : public sc_core::sc_module,
                public tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>,
                public tlm::tlm_bw_transport_if<tlm_ext::FrameTypes> {
 public:
  tlm_ext::FrameTargetSocket in{"in"};
  tlm_ext::FrameInitiatorSocket out{"out"};

  enum class Protocol { kIb, kRoceV1, kRoceV2, kIwarp };
  static Protocol named(const std::string& protocol) {
    if (protocol == "ib") return Protocol::kIb;
    if (protocol == "rocev1") return Protocol::kRoceV1;
    return protocol == "rocev2" ? Protocol::kRoceV2 : Protocol::kIwarp;
  }

  WireSpy(const sc_core::sc_module_name& name, Protocol protocol)
      : sc_module(name), protocol_(protocol) {
    in.bind(static_cast<tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>&>(*this));
    out.bind(static_cast<tlm::tlm_bw_transport_if<tlm_ext::FrameTypes>&>(*this));
  }

  /// IB and RoCE: syndrome of the last NAK or RNR NAK. iWARP: layer and type, then code, of the
  /// last terminate message. 0: none passed since forget().
  std::uint32_t refusal() const { return refusal_; }
  /// IB and RoCE: its PSN; how many have passed; syndrome and PSN of the last ACK.
  std::uint32_t refusal_psn() const { return refusal_psn_; }
  int refusals() const { return refusals_; }
  std::uint8_t ack_syndrome() const { return ack_syndrome_; }
  std::uint32_t ack_psn() const { return ack_psn_; }
  void forget() {
    refusal_ = refusal_psn_ = ack_psn_ = 0;
    refusals_ = 0;
    ack_syndrome_ = 0;
  }

  tlm::tlm_sync_enum nb_transport_fw(protocol::Frame& frame, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override {
    if (protocol_ == Protocol::kIwarp) {
      look_at_rdmap(frame);
    } else {
      look_at_bth(frame);
    }
    return out->nb_transport_fw(frame, phase, delay);
  }
  tlm::tlm_sync_enum nb_transport_bw(protocol::Frame& /*frame*/, tlm::tlm_phase& /*phase*/,
                                     sc_core::sc_time& /*delay*/) override {
    return tlm::TLM_ACCEPTED;
  }
  void b_transport(protocol::Frame& /*frame*/, sc_core::sc_time& /*delay*/) override {}
  bool get_direct_mem_ptr(protocol::Frame& /*frame*/, tlm::tlm_dmi& /*dmi*/) override {
    return false;
  }
  unsigned transport_dbg(protocol::Frame& /*frame*/) override { return 0; }
  void invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) override {}

 private:
  /// Offsets from the first byte: LRH 8 (GRH 40); Ethernet 14, GRH 40; Ethernet 14, IPv4 20, UDP 8.
  void look_at_bth(const protocol::Frame& frame) {
    std::uint32_t bth = 14 + 20 + 8;
    if (protocol_ == Protocol::kRoceV1) bth = 14 + 40;
    if (protocol_ == Protocol::kIb) bth = (frame.header[1] & 3) == 3 ? 48 : 8;
    constexpr std::uint8_t kAcknowledge = 0x11;
    if (frame.header_bytes < bth + 16 || (frame.header[bth] & 0x1F) != kAcknowledge) return;
    const std::uint8_t syndrome = frame.header[bth + 12];
    const std::uint32_t psn = frame.header[bth + 9] * 0x1'0000U + frame.header[bth + 10] * 0x100U +
                              frame.header[bth + 11];
    if (syndrome < 0x20) {
      ack_syndrome_ = syndrome;
      ack_psn_ = psn;
      return;
    }
    refusal_ = syndrome;
    refusal_psn_ = psn;
    ++refusals_;
  }

  /// Ethernet 14, IPv4 20, TCP by its data offset, MPA length 2, then DDP and RDMAP control.
  void look_at_rdmap(const protocol::Frame& frame) {
    const std::uint32_t tcp = 14 + 20;
    const std::uint32_t ddp = tcp + (frame.header[tcp + 12] >> 4) * 4U + 2;
    constexpr std::uint32_t kUntagged = 18;
    constexpr std::uint8_t kTerminate = 7;
    if (frame.header_bytes < ddp + kUntagged + 4) return;
    if ((frame.header[ddp] & 0x80) != 0 || (frame.header[ddp + 1] & 0x0F) != kTerminate) return;
    // 0 is RDMAP's local catastrophic error, which nothing here causes.
    refusal_ = frame.header[ddp + kUntagged] * 256U + frame.header[ddp + kUntagged + 1];
  }

  const Protocol protocol_;
  std::uint32_t refusal_ = 0;
  std::uint32_t refusal_psn_ = 0;
  int refusals_ = 0;
  std::uint8_t ack_syndrome_ = 0;
  std::uint32_t ack_psn_ = 0;
};

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>

#include "base/time.h"
#include "config/pcie_config.h"
#include "pcie/completion_faults.h"
#include "pcie/lane.h"
#include "pcie/link_path.h"
#include "protocol/tlp.h"
#include "stats/unit_stats.h"
#include "tlm/pcie_extension.h"

namespace rnic::pcie {

/// A PCIe link between a device and the root complex: two directions that serialise TLPs at the
/// rate left after coding and DLLPs, a constant latency through both ends and whatever lies between
/// (switches, retimers), flow-control credits, replays after bit errors. Upstream go read requests
/// and posted writes, downstream completions and MMIO writes.
///
/// How they cross is a LinkPath's business: `pcie.detail=fast` annotates delays on the calls
/// (BurstPath), `tlp` moves every packet by events (TlpPath). Either way a request (BEGIN_REQ) is
/// passed on with the delay of its arrival (a read: of its first TLP; a write: of its last byte)
/// and answered TLM_UPDATED / END_REQ with the delay after which its last byte has left. A target
/// that answers so tells when its receive buffer is free again. A response (BEGIN_RESP) comes at
/// the instant the first data is ready and is passed on with the delay of the last byte's arrival;
/// a posted write's response takes no time and no wire. Calls must come in the order in which the
/// packets are to travel.
class Link : public sc_core::sc_module, private LinkEnds {
 public:
  static constexpr unsigned kWidth = 32;
  using OptionalInitiator = tlm::tlm_initiator_socket<kWidth, tlm::tlm_base_protocol_types, 1,
                                                      sc_core::SC_ZERO_OR_MORE_BOUND>;
  using OptionalTarget = tlm::tlm_target_socket<kWidth, tlm::tlm_base_protocol_types, 1,
                                                sc_core::SC_ZERO_OR_MORE_BOUND>;

  /// `seed`: of bit errors and lost completions.
  Link(const sc_core::sc_module_name& name, const config::PcieConfig& config,
       std::uint64_t seed = 1);

  OptionalTarget device_target;        ///< from the device's DMA engine
  OptionalInitiator device_initiator;  ///< to the device's BAR
  OptionalInitiator host_initiator;    ///< to the root complex
  OptionalTarget host_target;          ///< MMIO from the root complex

  /// Requests of the device are passed on in the order in which they reach the link, which costs an
  /// event each: for a host whose memory is more than a latency.
  void deliver_in_order() { path_->deliver_in_order(); }

  const protocol::TlpRules& rules() const override { return rules_; }
  /// Rate left to TLPs, each direction.
  const BitRate& rate() const { return lane(Direction::kToHost).rate(); }
  /// One way, switches and retimers included.
  Time latency() const { return latency_; }

  /// What was handed to the wire since statistics were reset, though it may cross later.
  const TlpCounter& counter(Direction direction, tlm_ext::Purpose purpose) const {
    return lane(direction).crossings.handed_over()[static_cast<std::size_t>(purpose)];
  }
  /// All purposes together.
  TlpCounter total(Direction direction) const {
    return sum(lane(direction).crossings.handed_over());
  }
  /// What has crossed by `now` since statistics were reset.
  TlpCounters crossed(Direction direction, Time now) const {
    return lane(direction).crossings.by(now);
  }
  const stats::UnitStats& unit(Direction direction) const { return lane(direction).unit; }
  /// Packets sent again after a bit error.
  std::uint64_t replays(Direction direction) const { return lane(direction).replays; }
  /// What befalls completions of the device's reads.
  CompletionFaults& faults() { return faults_; }
  void reset_statistics(Time now);

 private:
  /// What the sockets of one end are bound to.
  struct End : public tlm::tlm_fw_transport_if<>, public tlm::tlm_bw_transport_if<> {
    Link* link = nullptr;
    bool is_device = false;

    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) override;
    tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) override;
    void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override;
    bool get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) override;
    unsigned transport_dbg(tlm::tlm_generic_payload& payload) override;
    void invalidate_direct_mem_ptr(sc_dt::uint64 start, sc_dt::uint64 end) override;
  };

  Lane& lane(Direction direction) override { return lanes_[static_cast<std::size_t>(direction)]; }
  const Lane& lane(Direction direction) const {
    return lanes_[static_cast<std::size_t>(direction)];
  }
  Time one_way() const override { return latency_; }
  tlm::tlm_sync_enum deliver_request(Direction direction, tlm::tlm_generic_payload& payload,
                                     Time arrival, Time& freed) override;
  tlm::tlm_sync_enum deliver_response(Direction direction, tlm::tlm_generic_payload& payload,
                                      Time arrival) override;
  OptionalInitiator& request_exit(Direction direction) {
    return direction == Direction::kToHost ? host_initiator : device_initiator;
  }
  /// A completion that never comes back, or comes back damaged; true: it is lost.
  bool lose_or_poison(tlm::tlm_generic_payload& payload);

  protocol::TlpRules rules_;
  Time latency_;
  std::array<Lane, static_cast<std::size_t>(Direction::kCount)> lanes_;
  CompletionFaults faults_;
  std::unique_ptr<LinkPath> path_;
  End device_end_;
  End host_end_;
};

}  // namespace rnic::pcie

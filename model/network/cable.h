// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <systemc>

#include "base/time.h"
#include "link/link_port.h"
#include "network/fault_injector.h"
#include "tlm/frame_types.h"

namespace rnic::network {

/// A cable between two ports: propagation delay, and what goes wrong on the way. It only adds to
/// the delay annotated on each frame, so it needs no kernel events.
class Cable : public sc_core::sc_module {
 public:
  /// `delay` one way. `frames` takes lost frames back. `checksums`: see FaultInjector.
  Cable(const sc_core::sc_module_name& name, Time delay, const FaultConfig& faults,
        std::uint64_t seed, protocol::FramePool& frames, const FrameChecksums* checksums = nullptr);

  tlm_ext::FrameTargetSocket from_a{"from_a"};
  tlm_ext::FrameTargetSocket from_b{"from_b"};
  tlm_ext::FrameInitiatorSocket to_a{"to_a"};
  tlm_ext::FrameInitiatorSocket to_b{"to_b"};

  /// Binds all four sockets.
  void connect(link::LinkPort& a, link::LinkPort& b);

  Time delay() const { return delay_; }
  std::uint64_t lost() const { return injector_.lost(); }
  std::uint64_t corrupted() const { return injector_.corrupted(); }
  void reset_statistics() { injector_.reset_statistics(); }

 private:
  /// What the sockets of one end are bound to.
  struct End : public tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>,
               public tlm::tlm_bw_transport_if<tlm_ext::FrameTypes> {
    Cable* cable = nullptr;
    tlm_ext::FrameInitiatorSocket* onward = nullptr;

    tlm::tlm_sync_enum nb_transport_fw(protocol::Frame& frame, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) override;
    tlm::tlm_sync_enum nb_transport_bw(protocol::Frame& frame, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) override;
    void b_transport(protocol::Frame& frame, sc_core::sc_time& delay) override;
    bool get_direct_mem_ptr(protocol::Frame& frame, tlm::tlm_dmi& dmi) override;
    unsigned transport_dbg(protocol::Frame& frame) override;
    void invalidate_direct_mem_ptr(sc_dt::uint64 start, sc_dt::uint64 end) override;
  };

  Time delay_;
  protocol::FramePool& frames_;
  FaultInjector injector_;
  std::array<End, 2> ends_;
};

}  // namespace rnic::network

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <systemc>
#include <vector>

#include "base/time.h"
#include "link/alarm.h"
#include "link/link_port.h"
#include "network/fault_injector.h"
#include "network/paths.h"
#include "tlm/frame_types.h"

namespace rnic::network {

/// When a cable is down: everything that would leave it meanwhile is lost, link control included.
struct Outage {
  Time at{0};
  Time length{0};  ///< 0: never
};

/// A cable between two ports: propagation delay, and what goes wrong on the way. It only adds to
/// the delay annotated on each frame, so it needs no events, but when an outage begins and ends:
/// both ports lose their link and get it back, and tell their flow control's state anew, as after a
/// training of the link.
class Cable : public sc_core::sc_module {
 public:
  /// `delay` one way. `frames` takes lost frames back. `checksums`: see FaultInjector.
  Cable(const sc_core::sc_module_name& name, Time delay, const FaultConfig& faults,
        std::uint64_t seed, protocol::FramePool& frames, const FrameChecksums* checksums = nullptr,
        const Outage& outage = {});

  tlm_ext::FrameTargetSocket from_a{"from_a"};
  tlm_ext::FrameTargetSocket from_b{"from_b"};
  tlm_ext::FrameInitiatorSocket to_a{"to_a"};
  tlm_ext::FrameInitiatorSocket to_b{"to_b"};

  /// What a frame's bytes say about its way.
  using PathReader = std::function<PathHint(const protocol::Frame&)>;
  /// To be called before the simulation starts: it stands for a network of parallel paths, behind
  /// its delay. Frames of the link itself are not held up.
  void use_paths(const PathConfig& config, PathReader reader);

  /// Binds all four sockets.
  void connect(link::LinkPort& a, link::LinkPort& b);

  Time delay() const { return delay_; }
  const FaultInjector& injector() const { return injector_; }
  const FaultCounters& faults() const { return injector_.counters(); }
  /// Frames lost because the cable was down.
  std::uint64_t lost_while_down() const { return lost_while_down_; }
  /// Whether the outage has struck a frame yet that is not the link's own, in the whole run.
  bool outage_met() const { return outage_met_; }
  void reset_statistics() {
    injector_.reset_statistics();
    lost_while_down_ = 0;
  }

 private:
  /// What the sockets of one end are bound to.
  struct End : public tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>,
               public tlm::tlm_bw_transport_if<tlm_ext::FrameTypes> {
    Cable* cable = nullptr;
    tlm_ext::FrameInitiatorSocket* onward = nullptr;
    std::size_t direction = 0;

    tlm::tlm_sync_enum nb_transport_fw(protocol::Frame& frame, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) override;
    tlm::tlm_sync_enum nb_transport_bw(protocol::Frame& frame, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) override;
    void b_transport(protocol::Frame& frame, sc_core::sc_time& delay) override;
    bool get_direct_mem_ptr(protocol::Frame& frame, tlm::tlm_dmi& dmi) override;
    unsigned transport_dbg(protocol::Frame& frame) override;
    void invalidate_direct_mem_ptr(sc_dt::uint64 start, sc_dt::uint64 end) override;
  };

  void start_of_simulation() override;
  void go_down(Time now);
  void up_again(Time now);
  bool down(Time at) const { return at >= outage_.at && at < outage_.at + outage_.length; }
  void repeat(const protocol::Frame& frame, End& end, Time delay);

  Time delay_;
  protocol::FramePool& frames_;
  Outage outage_;
  link::LinkPort* ports_[2] = {nullptr, nullptr};
  std::uint64_t lost_while_down_ = 0;
  bool outage_met_ = false;
  link::Alarm<Cable> down_alarm_;
  link::Alarm<Cable> up_alarm_;
  FaultInjector injector_;
  std::vector<Paths> paths_;  ///< by direction; empty: there is one path
  PathReader path_reader_;
  std::array<End, 2> ends_;
};

}  // namespace rnic::network

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "base/event_queue.h"
#include "base/rate_server.h"
#include "config/nic_config.h"
#include "config/transport_config.h"
#include "link/link_port.h"
#include "nic/interfaces.h"
#include "nic/rx_pipeline.h"

namespace rnic::nic {

/// The NIC's end of the cable: its transmit queue feeds the scheduler's slots, what arrives goes
/// to the receive pipeline. The link layer itself (lanes, credits, pause, serialisation) is
/// link::LinkPort's. A frame to the port itself never gets there: it turns around inside the NIC.
class Port : public sc_core::sc_module,
             public PortIf,
             private link::FrameReceiver,
             private link::EgressClient {
 public:
  sc_core::sc_export<PortIf> port{"port"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};
  sc_core::sc_port<EventIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> events{"events"};

  static constexpr std::uint32_t kNumber = 1;  ///< as verbs count ports

  Port(const sc_core::sc_module_name& name, const config::NicConfig& nic, config::Protocol protocol,
       const link::LinkPortConfig& config, protocol::FramePool& frames);

  void send(protocol::Frame* frame, Time ready) override;
  void release(const protocol::Frame& frame, Time when) override;

  protocol::PortState state() const { return state_; }

  void set_receive_pipeline(RxPipeline& pipeline) { pipeline_ = &pipeline; }
  /// Where what is sent to a group has receivers behind this port, too.
  void set_multicast_groups(const MulticastGroups& groups) { groups_ = &groups; }

  /// Busy: the way of frames to the port itself.
  const stats::UnitStats& loopback() const { return loopback_stats_; }
  void reset_statistics(Time now);

  link::LinkPort link;  ///< sockets `tx` and `rx` go to the cable

 private:
  void turn_around(protocol::Frame* frame, Time ready);
  void copy_for_own_members(const protocol::Frame& frame, Time ready);
  void leave(protocol::Frame*& frame);
  void come_back(protocol::Frame*& frame);
  void frame_arrived(protocol::Frame* frame, Time now) override;
  void link_lost(Time now) override;
  void link_regained(Time now) override;
  void egress_space(Time now) override;
  void frame_sent(std::uint32_t lane, std::uint32_t bytes, std::uint32_t answers_qpn, Time start,
                  Time end) override;

  protocol::FramePool& frames_;
  const MulticastGroups* groups_ = nullptr;
  bool ethernet_;
  protocol::PortState state_ = protocol::PortState::kActive;
  Time loopback_latency_;
  RateServer loopback_;
  link::CutThrough loopback_cut_through_;
  stats::UnitStats loopback_stats_;
  EventQueue<Port, protocol::Frame*> leaving_;
  EventQueue<Port, protocol::Frame*> coming_back_;
  RxPipeline* pipeline_ = nullptr;
  std::uint32_t freed_lane_ = 0;  ///< of the frame that egress_space() is about
};

}  // namespace rnic::nic

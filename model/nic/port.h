// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "link/link_port.h"
#include "nic/interfaces.h"
#include "nic/rx_pipeline.h"

namespace rnic::nic {

/// The NIC's end of the cable: its transmit queue feeds the scheduler's slots, what arrives goes
/// to the receive pipeline. The link layer itself (lanes, credits, pause, serialisation) is
/// link::LinkPort's.
class Port : public sc_core::sc_module,
             public PortIf,
             private link::FrameReceiver,
             private link::EgressClient {
 public:
  sc_core::sc_export<PortIf> port{"port"};
  sc_core::sc_port<SchedulerIf> scheduler{"scheduler"};

  Port(const sc_core::sc_module_name& name, const link::LinkPortConfig& config,
       protocol::FramePool& frames);

  void send(protocol::Frame* frame, Time ready) override;
  void release(const protocol::Frame& frame, Time when) override;

  void set_receive_pipeline(RxPipeline& pipeline) { pipeline_ = &pipeline; }

  link::LinkPort link;  ///< sockets `tx` and `rx` go to the cable

 private:
  void frame_arrived(protocol::Frame* frame, Time now) override;
  void egress_space(Time now) override;
  void frame_sent(std::uint32_t lane, std::uint32_t bytes, std::uint32_t answers_qpn, Time start,
                  Time end) override;

  RxPipeline* pipeline_ = nullptr;
  std::uint32_t freed_lane_ = 0;  ///< of the frame that egress_space() is about
};

}  // namespace rnic::nic

// SPDX-License-Identifier: Apache-2.0
#include "transport/factory.h"

#include "config/config.h"
#include "transport/ib_transport.h"
#include "transport/iwarp_transport.h"

namespace rnic::transport {
namespace {

DcqcnParameters dcqcn_parameters(const config::Config& config, const Encapsulation& encapsulation) {
  const config::DcqcnConfig& from = config.dcqcn;
  DcqcnParameters p;
  p.notifies = from.notification_point;
  p.reacts = from.reaction_point;
  p.cnp_interval = from.cnp_interval;
  p.gain = from.gain;
  p.alpha_period = from.alpha_period;
  p.increase_time = from.increase_time;
  p.increase_bytes = from.increase_bytes;
  p.fast_recovery = from.fast_recovery;
  p.line_gbps = config.link.rate.to_gbps();
  p.additive_gbps = from.additive_rate.to_gbps();
  p.hyper_gbps = from.hyper_rate.to_gbps();
  p.min_gbps = from.min_rate.to_gbps();
  p.overhead_bytes = encapsulation.wire_bytes(encapsulation.outer_bytes() + protocol::Bth::kBytes +
                                              encapsulation.trailer_bytes());
  return p;
}

}  // namespace

std::unique_ptr<Transport> make_transport(const config::Config& config,
                                          const Encapsulation& encapsulation,
                                          const PortIdentity& identity) {
  if (config.transport.protocol == config::Protocol::kIwarp) {
    return std::make_unique<IwarpTransport>(config.tcp, config.transport, encapsulation, identity);
  }
  RcConfig rc;
  rc.ack_every = config.transport.ack_every;
  rc.ack_gap = config.transport.ack_coalesce_time;
  rc.window = config.transport.window;
  rc.selective_repeat = config.transport.recovery == config::Recovery::kSelectiveRepeat;
  // Selective repeat asks for what is missing by packet, and for a READ as a whole.
  if (!rc.selective_repeat) {
    rc.read_segment = static_cast<std::uint32_t>(config.nic.read_segment);
  }
  rc.end_to_end_credits = config.transport.end_to_end_credits;
  rc.reorder_tolerance = config.transport.reorder_tolerance;
  rc.marks_free_packets = config.link.path_choice == config::PathChoice::kAdaptive;
  rc.atomic_waits = config.transport.atomic_waits;
  rc.sequence_nak = config.transport.sequence_nak;
  rc.timers.min_ack_timeout = config.transport.min_ack_timeout;
  rc.timers.ack_timeout_factor = config.transport.ack_timeout_factor;
  rc.timers.adaptive = config.transport.adaptive_retransmission;
  rc.timers.adaptive_start = config.transport.adaptive_start;
  if (rc.selective_repeat) rc.tail_start = config.transport.adaptive_start;
  rc.timers.rnr_factor = config.transport.rnr_timer_factor;
  if (config.transport.congestion_control == config::RoceCongestion::kDcqcn) {
    rc.dcqcn = dcqcn_parameters(config, encapsulation);
    rc.cnp_priority = config.transport.cnp_service_level;
  }
  return std::make_unique<IbTransport>(rc, encapsulation, identity, config.transport.mtu);
}

}  // namespace rnic::transport

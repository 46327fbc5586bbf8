// SPDX-License-Identifier: Apache-2.0
#include "simulation/stuck.h"

#include "base/sc_time.h"
#include "base/timeline.h"
#include "protocol/event.h"
#include "protocol/qp_state.h"
#include "transport/iwarp_connection.h"

namespace rnic::testbench {
namespace {

/// A stream has byte sequences and a connection instead of PSNs.
void explain_stream(const transport::IwarpConnection& stream, std::string& text) {
  const transport::TcpConnection& tcp = stream.tcp;
  text += ", TCP snd_una " + std::to_string(tcp.send_unacknowledged()) + ", snd_nxt " +
          std::to_string(tcp.send_next()) + ", snd_max " + std::to_string(tcp.send_max()) +
          ", rcv_nxt " + std::to_string(tcp.receive_next()) + ", " +
          std::to_string(tcp.timeouts()) + " time-outs in a row, RTO " +
          std::to_string(tcp.rto() / microseconds(1)) + " us, MPA " + stream.setup.stage_name();
  if (stream.closed) text += ", closed";
}

void explain_queue_pair(const nic::QpContext& qp, bool stream, std::string& text) {
  const std::uint64_t waiting = qp.sq.size();
  if (waiting == 0 && qp.sq_producer == qp.sq_fetched) return;
  text += " QP " + std::to_string(qp.qpn) + " (" + protocol::qp_state_name(qp.state) +
          "): " + std::to_string(waiting) + " requests, " + std::to_string(qp.outstanding_reads) +
          " READs outstanding";
  if (!stream) {
    text += ", oldest unacknowledged PSN " + std::to_string(qp.una_psn) + ", next " +
            std::to_string(qp.next_psn);
  } else if (qp.connection != nullptr) {
    explain_stream(static_cast<const transport::IwarpConnection&>(*qp.connection), text);
  }
  text += ";";
}

/// Events that an application would have been told of while it slept or spun.
void explain_events(const host::Host& host, std::string& text) {
  const auto& events = host.verbs.stats().async_events;
  for (std::size_t type = 0; type < events.size(); ++type) {
    if (events[type] == 0 ||
        type == static_cast<std::size_t>(protocol::EventType::kCommEstablished))
      continue;
    text += " " + std::to_string(events[type]) + " event_" +
            protocol::event_name(static_cast<protocol::EventType>(type)) + ";";
  }
}

/// What the configuration has to do with it; empty: nothing that would be known.
std::string cause_in(const config::Config& config) {
  const bool reliable = config.transport.type == config::TransportType::kRc;
  if (!reliable && config.workload.program == config::Program::kNone &&
      config.workload.answer_timeout == kTimeZero &&
      config.workload.pattern == config::Pattern::kLatency && config.sim.max_time > sim_now()) {
    return " a message is lost that nobody sends again, and its answer is waited for without a "
           "limit (workload.answer_timeout is 0);";
  }
  const bool timed =
      config.transport.protocol == config::Protocol::kIwarp || config.transport.ack_timeout != 0;
  if (reliable && !timed) {
    return " transport.ack_timeout=0 sets no timer, so that nobody sends again what is lost with "
           "nothing behind it (remedy: transport.ack_timeout=1..31);";
  }
  return {};
}

}  // namespace

std::string explain(const System& system) {
  const Measurement& m = system.measurement;
  std::string text = std::to_string(m.messages_done) + " of " + std::to_string(m.messages_total) +
                     " messages are done;";
  if (system.dma_node) {
    const pcie::DmaEngine& dma = system.dma_node->dma;
    return text + " " + std::to_string(dma.outstanding()) + " DMA requests are under way, " +
           std::to_string(dma.waiting()) + " wait for tags, " +
           std::to_string(system.dma_node->host.root_complex.pending()) +
           " are at the root complex";
  }
  const config::Config& config = system.config();
  text += cause_in(config);
  const bool stream = config.transport.protocol == config::Protocol::kIwarp;
  constexpr std::size_t kMostNodes = 4;
  for (std::size_t i = 0; i < system.nodes.size() && i < kMostNodes; ++i) {
    const nic::Nic& nic = system.nodes[i]->nic;
    text += " host" + std::to_string(i) + ": " + std::to_string(nic.scheduler.slots_in_use()) +
            " packets in the transmit path, " + std::to_string(nic.dma.outstanding()) +
            " DMA requests (" + std::to_string(nic.dma.waiting()) + " wait for tags);";
    explain_events(system.nodes[i]->host, text);
    for (std::uint32_t qpn = 0; qpn < nic.queue_pairs.size(); ++qpn) {
      const nic::QpContext* qp = nic.queue_pairs.find(qpn);
      if (qp != nullptr) explain_queue_pair(*qp, stream, text);
      if (text.size() > 1500) return text + " ...";
    }
  }
  return text;
}

}  // namespace rnic::testbench

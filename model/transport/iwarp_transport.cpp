// SPDX-License-Identifier: Apache-2.0
#include "transport/iwarp_transport.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "protocol/mpa.h"
#include "protocol/tcp_header.h"

namespace rnic::transport {
namespace {

constexpr std::uint32_t kIpv4Bytes = protocol::Ipv4Header::kBytes;
constexpr std::uint32_t kIpv6Bytes = protocol::Ipv6Header::kBytes;
constexpr std::uint8_t kMaxWindowScale = 14;  // RFC 7323, 2.3

/// Ports are 0x8000 and 15 bits of the queue pair number.
constexpr std::uint32_t kPortBase = 0x8000;
constexpr std::uint32_t kPortBits = 15;
constexpr std::uint32_t kPortMask = (1U << kPortBits) - 1;
/// Odd: spreads the high bits of a number over the ports without collisions.
constexpr std::uint32_t kPortSpread = 0x2F0B;

std::uint16_t port_number(std::uint32_t n) {
  return static_cast<std::uint16_t>(kPortBase | (n & kPortMask));
}

}  // namespace

IwarpTransport::IwarpTransport(const config::TcpConfig& tcp,
                               const config::TransportConfig& transport,
                               const Encapsulation& encapsulation, const PortIdentity& identity)
    : config_(tcp),
      encapsulation_(encapsulation),
      identity_(identity),
      mpa_bytes_(protocol::MpaConnect::kBytes +
                 (tcp.mpa_revision > 1 ? protocol::MpaEnhanced::kBytes : 0)) {
  ipv6_ = encapsulation.outer_bytes() >= protocol::EthernetHeader::kBytes + kIpv6Bytes;
  tcp_header_bytes_ =
      protocol::TcpHeader::kBytes + (tcp.timestamps ? protocol::TcpOptions::kTimestampBytes : 0);
  const std::uint32_t headers = (ipv6_ ? kIpv6Bytes : kIpv4Bytes) + tcp_header_bytes_;
  const std::uint32_t emss = transport.mtu - headers;
  mss_option_ = transport.mtu - (ipv6_ ? kIpv6Bytes : kIpv4Bytes) - protocol::TcpHeader::kBytes;
  mulpdu_ = protocol::mulpdu(emss, tcp.mpa_markers);
  // A marker before the first byte is the worst case.
  if (transport.mtu < headers + stream_bytes(0, mulpdu_)) {
    throw ConfigError("transport.mtu=" + std::to_string(transport.mtu) +
                      " is too small for one FPDU of iWARP");
  }
  constexpr std::uint64_t kMaxField = 0xFFFF;
  while ((tcp.window >> window_scale_) > kMaxField && window_scale_ < kMaxWindowScale) {
    ++window_scale_;
  }
  tcp_.mss = emss;
  tcp_.initial_cwnd = tcp.initial_cwnd;
  // What the scaled field can say.
  tcp_.window = std::min(tcp.window >> window_scale_, kMaxField) << window_scale_;
  tcp_.delayed_ack = tcp.delayed_ack;
  tcp_.delayed_ack_time = tcp.delayed_ack_time;
  tcp_.min_rto = tcp.min_rto;
  tcp_.sack = tcp.sack;
  tcp_.keepalive_time = tcp.keepalive_time;
  tcp_.keepalive_interval = tcp.keepalive_interval;
  tcp_.keepalive_probes = tcp.keepalive_probes;
  tcp_.congestion_control = tcp.congestion_control;
}

std::uint64_t IwarpTransport::address_key(std::uint32_t ipv4, const protocol::Gid& gid) const {
  return ipv6_ ? protocol::load_be64(gid.data() + 8) : ipv4;
}

void IwarpTransport::choose_ports(const QueuePair& qp, IwarpConnection& c) const {
  const std::uint64_t here = address_key(identity_.ipv4, identity_.gid);
  const std::uint64_t there = address_key(qp.av.destination_ipv4, qp.av.destination_gid);
  // Both ends must come to the same two numbers. The end with the lower address uses its own
  // number; the other mixes in what does not fit the lower end's port, so that more than 2^15
  // queue pairs between two hosts still have different pairs of ports.
  const bool lower = std::tie(here, qp.qpn) <= std::tie(there, qp.dest_qpn);
  const std::uint32_t low_qpn = lower ? qp.qpn : qp.dest_qpn;
  const std::uint32_t high_qpn = lower ? qp.dest_qpn : qp.qpn;
  const std::uint16_t low_port = port_number(low_qpn);
  const std::uint16_t high_port = port_number(high_qpn + (low_qpn >> kPortBits) * kPortSpread);
  c.local_port = lower ? low_port : high_port;
  c.peer_port = lower ? high_port : low_port;
  c.initiator = lower;
}

void IwarpTransport::connect(QueuePair& qp) {
  auto c = std::make_unique<IwarpConnection>(tcp_);
  choose_ports(qp, *c);
  open_receive(*c, qp.expected_psn);
  c->next_msn.fill(1);
  c->expected_msn.fill(1);
  c->key = {address_key(qp.av.destination_ipv4, qp.av.destination_gid), c->peer_port,
            c->local_port};
  connections_.insert(c->key, qp.qpn);
  qp.connection = std::move(c);
  qp.responses.clear();
  qp.reads_in_service = 0;
  qp.retry_deadline = kTimeNever;
}

/// The peer begins with `psn`.
void IwarpTransport::open_receive(IwarpConnection& c, std::uint32_t psn) const {
  c.peer_sequence = first_sequence(psn, mpa_bytes_);
  c.tcp.open_receive(c.peer_sequence);
}

void IwarpTransport::start_sending(QueuePair& qp, Time now) {
  IwarpConnection& c = connection(qp);
  c.tcp.open_send(first_sequence(qp.next_psn, mpa_bytes_));
  c.stream_end = c.first_sequence = c.tcp.send_next();
  start_setup(qp, now);
  qp.retries_left = qp.retry_count;
  update_deadline(qp);
}

void IwarpTransport::update_deadline(QueuePair& qp) {
  const IwarpConnection& c = connection(qp);
  Time next = std::min(c.setup.deadline(), c.tcp.next_deadline());
  if (!c.reads.empty()) next = std::min(next, c.keep_alive.deadline());
  qp.retry_deadline = qp.can_receive() && !c.closed ? next : kTimeNever;
}

bool IwarpTransport::timeout(QueuePair& qp, Time now) {
  if (qp.connection == nullptr) return true;
  IwarpConnection& c = connection(qp);
  bool alive = true;
  if (c.setup.deadline() <= now && !c.setup.timeout(qp.retry_count, now)) {
    ++counters_.local_ack_timeout_err;
    alive = fail(qp, nullptr, protocol::WcStatus::kRetryExceededError);
  }
  if (c.tcp.ack_deadline() <= now) c.tcp.request_ack();
  if (c.tcp.rto_deadline() <= now) {
    ++counters_.local_ack_timeout_err;
    if (c.tcp.timeouts() < qp.retry_count) {
      c.tcp.on_timeout(now);
      seek(c);
    } else {
      c.tcp.stop_timer();
      c.closed = true;  // nobody is there whom a reset could tell
      alive = fail(qp, nullptr, protocol::WcStatus::kRetryExceededError);
    }
  }
  if (alive && !c.reads.empty() && c.keep_alive.deadline() <= now) alive = probe(qp, now);
  update_deadline(qp);
  return alive;
}

/// The peer owes an answer and was not heard of for long. False when it is given up.
bool IwarpTransport::probe(QueuePair& qp, Time now) {
  IwarpConnection& c = connection(qp);
  if (c.tcp.send_unacknowledged() != c.tcp.send_max()) {
    c.keep_alive.heard(now);  // the retransmission timer asks already
    return true;
  }
  if (c.keep_alive.expire()) return true;
  ++counters_.local_ack_timeout_err;
  return fail(qp, nullptr, protocol::WcStatus::kRetryExceededError);
}

}  // namespace rnic::transport

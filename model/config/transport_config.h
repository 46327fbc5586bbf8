// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bit_rate.h"
#include "base/time.h"

namespace rnic::config {

/// transport.dscp=by_priority.
inline constexpr std::uint32_t kDscpOfPriority = 64;
/// transport.cnp_service_level=as_data.
inline constexpr std::uint32_t kCnpAsData = 8;

enum class Protocol { kIb, kRoceV1, kRoceV2, kIwarp };
enum class TransportType { kRc, kUc, kUd };
enum class Recovery { kGoBackN, kSelectiveRepeat };
enum class CongestionControl { kNewReno, kCubic, kNone };
enum class RoceCongestion { kNone, kDcqcn };
/// Messages by which an MPA initiator lets a peer-to-peer responder send; kAgreed: the one that
/// both have agreed on.
enum class ReadyMessage { kNone, kSend, kWrite, kRead, kAny, kAgreed };

struct TransportConfig {
  Protocol protocol;
  TransportType type;
  std::uint32_t mtu;
  Recovery recovery;
  std::uint32_t window;     ///< packets in flight on a QP; 0: no limit but that of the PSN space
  bool end_to_end_credits;  ///< RC: ACKs carry the number of RECVs, SENDs wait for them
  bool sequence_nak;        ///< a responder tells of a gap; else only the timer finds a loss
  std::uint32_t reorder_tolerance;  ///< selective repeat: packets by which a lost one is overtaken
  bool atomic_waits;                ///< for what is before it, in case the path reorders
  std::uint32_t ack_timeout;        ///< exponent: 4.096 us * 2^n, 0 = no timer
  std::uint32_t min_ack_timeout;    ///< smaller exponents than this count as this
  double ack_timeout_factor;        ///< expiry over 4.096 us * 2^n
  bool adaptive_retransmission;
  Time adaptive_start;      ///< first interval of the adaptive phase
  double rnr_timer_factor;  ///< wait over the time of the RNR code
  std::uint32_t retry_count;
  std::uint32_t rnr_retry;
  std::uint32_t min_rnr_timer;
  std::uint32_t max_rd_atomic;
  std::uint32_t max_dest_rd_atomic;
  std::uint32_t ip_version;  ///< RoCEv2 and iWARP: 4 or 6
  bool grh;                  ///< InfiniBand: GRH on every packet
  bool vlan;                 ///< Ethernet: 802.1Q tag
  std::uint32_t vlan_id;
  std::uint32_t dscp;  ///< of RoCEv2 and iWARP; kDscpOfPriority: 8 x priority
  std::uint32_t ecn;   ///< ECN codepoint that is sent
  std::uint32_t hop_limit;
  std::uint32_t flow_label;  ///< 0: the source port's entropy comes from the QP numbers
  std::vector<std::uint64_t> service_level;           ///< of the i-th QP of a flow, repeated
  std::vector<std::uint64_t> response_service_level;  ///< of the answering end; empty: the same
  RoceCongestion congestion_control;
  std::uint32_t cnp_service_level;  ///< priority of CNPs; kCnpAsData: that of the QP
  std::uint32_t ack_every;          ///< AckReq every n packets inside a long message
  Time ack_coalesce_time;  ///< least time between two ACKs of a QP; those between are merged
};

/// Dynamically connected queue pairs: a send queue whose messages go to one of many peers.
struct DcConfig {
  std::uint32_t targets;  ///< 1: each queue pair keeps its connection
  Time connect_time;      ///< from the decision to change the peer to the first packet to it
  Time connect_interval;  ///< of the device's connection unit
};

/// DCQCN (Zhu et al., SIGCOMM 2015); in effect with transport.congestion_control=dcqcn.
struct DcqcnConfig {
  bool notification_point;       ///< a receiver of marked packets sends CNPs
  bool reaction_point;           ///< a sender that gets CNPs reduces its rate
  Time cnp_interval;             ///< N: least time between two CNPs of a QP
  double gain;                   ///< g
  Time alpha_period;             ///< K
  Time increase_time;            ///< t: a stage of the timer
  std::uint64_t increase_bytes;  ///< b: a stage of the byte counter
  std::uint32_t fast_recovery;   ///< F: stages
  BitRate additive_rate;         ///< R_AI
  BitRate hyper_rate;            ///< R_HAI
  BitRate min_rate;              ///< of a QP
};

struct TcpConfig {
  std::uint64_t window;        ///< receive window, bytes
  std::uint32_t initial_cwnd;  ///< segments
  std::uint32_t delayed_ack;   ///< full segments per ACK
  Time delayed_ack_time;
  Time min_rto;
  Time keepalive_time;  ///< quiet time before the first probe; 0: none
  Time keepalive_interval;
  std::uint32_t keepalive_probes;
  CongestionControl congestion_control;
  bool sack;              ///< selective acknowledgement and placement out of order; else go-back-N
  Time connection_setup;  ///< of the connection manager, besides the frames
  std::uint32_t context_lines;  ///< context cache entries that a connection takes
  bool handshake;               ///< connections are set up by frames on the wire
  bool tear_down;               ///< a queue pair that leaves its connection tells the peer
  Time syn_timeout;             ///< first retry of a set-up segment; doubles
  Time connect_timeout;         ///< a set-up that takes longer has failed
  bool timestamps;
  bool mpa_crc;
  bool mpa_markers;
  std::uint32_t mpa_revision;   ///< 1, or 2: enhanced set-up, READ limits are negotiated
  ReadyMessage mpa_rtr;         ///< the initiator offers; kNone: not peer-to-peer
  ReadyMessage mpa_rtr_accept;  ///< the responder selects from
  ReadyMessage mpa_rtr_sent;    ///< the initiator sends
};

}  // namespace rnic::config

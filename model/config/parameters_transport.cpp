// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_table.h"

namespace rnic::config {
namespace {

constexpr double kSecond = 1e9;  // ns

void add_headers(ParameterTable& table) {
  constexpr const char* kFreeChoice = "free choice of the user";
  table.count("transport.ip_version", RNIC_FIELD(transport.ip_version), "4")
      .one_of({4, 6})
      .spec("IBTA annex A17 (RoCEv2 over IPv4 or IPv6); RFC 9293 (TCP over both)")
      .means("RoCEv2 and iWARP: IP version; with 6 the addresses are the GIDs");
  table.flag("transport.grh", RNIC_FIELD(transport.grh), "false")
      .spec("IBTA vol. 1, 8.3: only packets that leave the subnet need one")
      .means("InfiniBand: a GRH on every packet (RoCE always has one, or IP)");
  table.flag("transport.vlan", RNIC_FIELD(transport.vlan), "false")
      .spec("IEEE 802.1Q, 9.6: optional; carries the priority")
      .means("Ethernet: frames have a VLAN tag");
  table.count("transport.vlan_id", RNIC_FIELD(transport.vlan_id), "0")
      .range(0, 4094)
      .spec("IEEE 802.1Q, 9.6: 0 is a tag for the priority alone")
      .means("Ethernet: VLAN of the tag");
  table.count("transport.dscp", RNIC_FIELD(transport.dscp), "by_priority")
      .range(0, 63)
      .or_word("by_priority", kDscpOfPriority)
      .spec("RFC 2474; without a VLAN tag the class selector (DSCP / 8) is the priority")
      .means("RoCEv2 and iWARP: DSCP; by_priority: 8 x the priority of the QP");
  table.count("transport.ecn", RNIC_FIELD(transport.ecn), "auto")
      .one_of({0, 1, 2})
      .or_auto()
      .spec("RFC 3168: 0 not capable, 1 ECT(1), 2 ECT(0)")
      .means("RoCEv2 and iWARP: ECN codepoint of what is sent; auto: 2 with DCQCN, else 0");
  table.count("transport.hop_limit", RNIC_FIELD(transport.hop_limit), "64")
      .range(1, 255)
      .spec("RFC 1700: the recommended default TTL")
      .means("TTL or hop limit");
  table.count("transport.flow_label", RNIC_FIELD(transport.flow_label), "0")
      .range(0, 0xFFFFF)
      .spec("IBTA annex A17 and Linux ib_verbs.h: the UDP source port is a hash of it")
      .means("flow label of GRH and IPv6; RoCEv2's source port, 0: from the QP numbers");
  table.list("transport.service_level", RNIC_FIELD(transport.service_level), "0")
      .range(0, 15)
      .in_order()
      .assumed(kFreeChoice)
      .means("SL (Ethernet: priority, 0..7) of a flow's first, second, ... QP, repeated");
  table
      .list("transport.response_service_level", RNIC_FIELD(transport.response_service_level),
            "none")
      .range(0, 15)
      .in_order()
      .assumed("none: as transport.service_level, which is how connections are usually made")
      .means("the same for the QPs of the answering end: its ACKs and READ responses use it");
}

void add_protocol(ParameterTable& table) {
  table
      .choice<Protocol>("transport.protocol", RNIC_CHOICE(transport.protocol), "ib",
                        {{"ib", Protocol::kIb},
                         {"rocev1", Protocol::kRoceV1},
                         {"rocev2", Protocol::kRoceV2},
                         {"iwarp", Protocol::kIwarp}})
      .assumed("free choice of the user")
      .means("what the wire speaks");
  table
      .choice<TransportType>(
          "transport.type", RNIC_CHOICE(transport.type), "rc",
          {{"rc", TransportType::kRc}, {"uc", TransportType::kUc}, {"ud", TransportType::kUd}})
      .assumed("the service that all four protocols have; uc and ud: ib, rocev1, rocev2")
      .means("transport service of the QPs");
  table.count("transport.mtu", RNIC_FIELD(transport.mtu), "auto")
      .range(256, 9216)
      .in("B")
      .or_auto()
      .spec("IBTA vol. 1: path MTU 256, 512, 1024, 2048 or 4096")
      .means("IB/RoCE: path MTU; iWARP: Ethernet MTU (576..9216); auto: 4096, iWARP 9000");
  add_headers(table);
  table
      .choice<Recovery>(
          "transport.recovery", RNIC_CHOICE(transport.recovery), "go_back_n",
          {{"go_back_n", Recovery::kGoBackN}, {"selective_repeat", Recovery::kSelectiveRepeat}})
      .spec("IBTA vol. 1, 9.7: a responder accepts in PSN order only; Mittal et al., SIGCOMM 2018")
      .means(
          "what is sent again after a loss (IB and RoCE): all from there on, or what is missing");
  table.count("transport.window", RNIC_FIELD(transport.window), "auto")
      .range(0, 1 << 20)
      .in("packets")
      .or_auto()
      .assumed("selective repeat: twice the bandwidth-delay product, which bounds the bitmaps")
      .means(
          "request packets in flight on a QP (a READ is one), 0: any; auto: 0 for go_back_n, else "
          "2 BDP, 256 at least");
  table.flag("transport.sequence_nak", RNIC_FIELD(transport.sequence_nak), "true")
      .spec("IBTA vol. 1, 9.7.5.2.8: one NAK a gap")
      .means("go_back_n: a responder reports a gap; false: only timers find losses");
  table.count("transport.reorder_tolerance", RNIC_FIELD(transport.reorder_tolerance), "0")
      .range(0, 1 << 20)
      .in("packets")
      .assumed("0: one path, where whatever is overtaken was lost (Mittal et al., SIGCOMM 2018)")
      .means(
          "selective_repeat: by how many packets another must be ahead of a request packet that "
          "has not arrived before that is resent (0 and 1: any); what paths reorder is not lost");
  table.flag("transport.atomic_waits", RNIC_FIELD(transport.atomic_waits), "false")
      .assumed("the responder keeps the order; true: requesters that spray packets over paths")
      .means("an atomic is sent when the WRITEs and SENDs before it are acknowledged");
}

void add_reliability(ParameterTable& table) {
  table.count("transport.ack_timeout", RNIC_FIELD(transport.ack_timeout), "14")
      .range(0, 31)
      .spec("IBTA vol. 1, 9.7.6 (4.096 us x 2^n); 14 is perftest's --qp-timeout")
      .means("exponent of the requester's timer, as in verbs; 0: no timer");
  table.count("transport.min_ack_timeout", RNIC_FIELD(transport.min_ack_timeout), "0")
      .range(0, 31)
      .spec(
          "IBTA vol. 1, 9.7.6.1.3 knows no floor; devices have one (ConnectX: 16, ConnectX-2: 17)")
      .means("smaller transport.ack_timeout than this is taken as this; 0: no floor");
  table.real("transport.ack_timeout_factor", RNIC_FIELD(transport.ack_timeout_factor), "1")
      .range(1, 4)
      .spec("IBTA vol. 1, 9.7.6.1.3: an expiry may take 1 to 4 times the nominal time")
      .means("time of an expiry over 4.096 us x 2^transport.ack_timeout");
  table
      .flag("transport.adaptive_retransmission", RNIC_FIELD(transport.adaptive_retransmission),
            "false")
      .spec("IBTA knows none; an option of vendors, see configs/transport/vendor_timers.ini")
      .means("quick retransmissions at doubling intervals before the regular timer counts");
  table.time("transport.adaptive_start", RNIC_FIELD(transport.adaptive_start), "auto")
      .range(1000, kSecond)
      .or_auto()
      .measured(
          "ConnectX-5: 2, 4, 8, 16 ms whatever the time-out (linux-rdma/perftest issue 251), auto "
          "for adaptive_retransmission; else for selective repeat IRN's RTO_low of 100 us (Mittal "
          "et al., SIGCOMM 2018) and four round trips of the cables")
      .means(
          "first interval of adaptive retransmission, and of selective repeat's timer while at "
          "most 3 packets are under way; doubles up to the nominal time-out");
  table.count("transport.retry_count", RNIC_FIELD(transport.retry_count), "7")
      .range(0, 7)
      .spec("IBTA vol. 1, chapter 9 (3 bits); perftest uses 7")
      .means("retries after a timeout or sequence error before the QP fails");
  table.count("transport.rnr_retry", RNIC_FIELD(transport.rnr_retry), "7")
      .range(0, 7)
      .spec("IBTA vol. 1, chapter 9 (3 bits, 7 is without limit); perftest uses 7")
      .means("retries after receiver-not-ready; 7: without limit");
  table.count("transport.min_rnr_timer", RNIC_FIELD(transport.min_rnr_timer), "12")
      .range(0, 31)
      .spec("IBTA vol. 1, 9.7.5.2.8 (12 is 0.64 ms); perftest uses 12")
      .means("code of the time a sender waits after receiver-not-ready");
  table.real("transport.rnr_timer_factor", RNIC_FIELD(transport.rnr_timer_factor), "1")
      .range(1, 4)
      .spec("IBTA vol. 1, 9.7.5.2.8: at least the time of the code")
      .means("time a sender waits after receiver-not-ready over that of the code");
  table.count("transport.max_rd_atomic", RNIC_FIELD(transport.max_rd_atomic), "16")
      .range(1, 255)
      .datasheet("what mlx5 devices advertise (rdma-core, ibv_devinfo -v); perftest uses it all")
      .means("READs and atomics a requester keeps outstanding on a QP");
  table.count("transport.max_dest_rd_atomic", RNIC_FIELD(transport.max_dest_rd_atomic), "auto")
      .range(0, 255)
      .or_auto()
      .spec(
          "IBTA vol. 1, chapter 12: the requester's depth is negotiated to what the responder has")
      .means(
          "READs a responder has resources for on a QP; auto: transport.max_rd_atomic. Fewer than "
          "that: both ends disagree, and what exceeds them is refused as an invalid request");
}

void add_acknowledgement(ParameterTable& table) {
  table.count("transport.ack_every", RNIC_FIELD(transport.ack_every), "64")
      .range(1, 65536)
      .in("packets")
      .assumed("IBTA leaves it open; often enough to bound what a loss repeats, rare on the wire")
      .means("a long message asks for an acknowledgement every n packets, always in its last");
  table.flag("transport.end_to_end_credits", RNIC_FIELD(transport.end_to_end_credits), "false")
      .spec("IBTA vol 1, 9.7.7.2; RoCE devices send code 31, no limit, as does any QP with an SRQ")
      .means("RC: ACKs tell how many RECVs are posted, and SENDs beyond them wait (one may probe)");
  table.time("transport.ack_coalesce_time", RNIC_FIELD(transport.ack_coalesce_time), "0ns")
      .range(0, 1e6)
      .assumed("every request that asks is answered at once: the shortest completion latency")
      .means("least time between two acknowledgements of a QP; those in between are coalesced");
}

void add_congestion_control(ParameterTable& table) {
  constexpr const char* kPaper = "Zhu et al., SIGCOMM 2015 (DCQCN), the paper's setting";
  table
      .choice<RoceCongestion>("transport.congestion_control",
                              RNIC_CHOICE(transport.congestion_control), "none",
                              {{"none", RoceCongestion::kNone}, {"dcqcn", RoceCongestion::kDcqcn}})
      .assumed("lossless fabrics without it are the base that it is compared with")
      .means("RoCEv2: what slows a sender down when switches mark its packets");
  table.count("transport.cnp_service_level", RNIC_FIELD(transport.cnp_service_level), "as_data")
      .range(0, 7)
      .or_word("as_data", kCnpAsData)
      .spec("IBTA annex A17 leaves it open; ConnectX: priority 6, DSCP 48 (captured on the wire)")
      .means("RoCEv2: priority of CNPs, whose DSCP is 8 x that; as_data: as the QP's packets");
  table.flag("dcqcn.notification_point", RNIC_FIELD(dcqcn.notification_point), "true")
      .datasheet(kPaper)
      .means("a receiver of marked packets sends CNPs");
  table.flag("dcqcn.reaction_point", RNIC_FIELD(dcqcn.reaction_point), "true")
      .datasheet(kPaper)
      .means("a sender that gets CNPs reduces its rate");
  table.time("dcqcn.cnp_interval", RNIC_FIELD(dcqcn.cnp_interval), "50us")
      .range(0, kSecond)
      .datasheet(kPaper)
      .means("least time between two CNPs of a QP");
  table.real("dcqcn.gain", RNIC_FIELD(dcqcn.gain), "0.00390625")
      .range(0, 1)
      .datasheet("1/256 (Zhu et al., SIGCOMM 2015); ConnectX: 5/1024")
      .means("g: weight of the newest period in the estimate alpha of the marked share");
  table.time("dcqcn.alpha_period", RNIC_FIELD(dcqcn.alpha_period), "55us")
      .range(1, kSecond)
      .datasheet(kPaper)
      .means("time without a CNP after which alpha falls");
  table.time("dcqcn.increase_time", RNIC_FIELD(dcqcn.increase_time), "55us")
      .range(1, kSecond)
      .datasheet("55 us (Zhu et al., SIGCOMM 2015); ConnectX: 300 us")
      .means("a rate increase each time");
  table.bytes("dcqcn.increase_bytes", RNIC_FIELD(dcqcn.increase_bytes), "10000000")
      .range(1, 1e15)
      .datasheet(kPaper)
      .means("a rate increase each so many bytes");
  table.count("dcqcn.fast_recovery", RNIC_FIELD(dcqcn.fast_recovery), "5")
      .range(1, 1000)
      .in("increases")
      .datasheet("5 (Zhu et al., SIGCOMM 2015); ConnectX: 1")
      .means("increases half-way back to the rate before the last reduction; then faster ones");
  table.rate("dcqcn.additive_rate", RNIC_FIELD(dcqcn.additive_rate), "auto")
      .range(0.001, 1000)
      .or_auto()
      .datasheet("40 Mb/s at 40 Gb/s (Zhu et al., SIGCOMM 2015); ConnectX: 5 Mb/s")
      .means("additive increase of the target rate; auto: a 1,000th of link.rate");
  table.rate("dcqcn.hyper_rate", RNIC_FIELD(dcqcn.hyper_rate), "auto")
      .range(0.001, 1000)
      .or_auto()
      .assumed("ten additive increases")
      .means("its increase once timer and bytes are beyond fast recovery; auto: link.rate / 100");
  table.rate("dcqcn.min_rate", RNIC_FIELD(dcqcn.min_rate), "100Mbps")
      .range(0.001, 1000)
      .assumed("as the simulator of HPCC's authors; ConnectX: 1 Mb/s")
      .means("least rate of a QP");
}

void add_tcp_flow(ParameterTable& table) {
  table.bytes("tcp.window", RNIC_FIELD(tcp.window), "1MiB")
      .range(4096, 1073741824)
      .assumed("several bandwidth-delay products of a rack at 100 Gb/s, so that it never limits")
      .means("iWARP: TCP receive window");
  table.count("tcp.initial_cwnd", RNIC_FIELD(tcp.initial_cwnd), "10")
      .range(1, 65536)
      .in("segments")
      .spec("RFC 6928, section 2")
      .means("iWARP: TCP congestion window at the start");
  table.count("tcp.delayed_ack", RNIC_FIELD(tcp.delayed_ack), "2")
      .range(1, 64)
      .in("segments")
      .spec("RFC 5681, 4.2: an ACK at least every second full segment")
      .means("iWARP: full segments that one TCP ACK covers");
  table.time("tcp.delayed_ack_time", RNIC_FIELD(tcp.delayed_ack_time), "2us")
      .range(0, kSecond / 2)
      .assumed("RFC 5681 allows 500 ms; here completions wait for ACKs, so about a round trip")
      .means("iWARP: longest time a TCP ACK is held back");
  table.time("tcp.min_rto", RNIC_FIELD(tcp.min_rto), "10ms")
      .range(1000, 60 * kSecond)
      .assumed("RFC 6298 says 1 s; data-centre stacks use 1 to 200 ms")
      .means("iWARP: least retransmission timeout of TCP");
  table.time("tcp.keepalive_time", RNIC_FIELD(tcp.keepalive_time), "10s")
      .range(0, 7200 * kSecond)
      .assumed("RFC 9293, 3.8.4: 2 hours unless a program asks for less, as those of a cluster do")
      .means("iWARP: quiet time, while READs are unanswered, before the peer is probed; 0: never");
  table.time("tcp.keepalive_interval", RNIC_FIELD(tcp.keepalive_interval), "1s")
      .range(1000, 7200 * kSecond)
      .assumed("Linux: 75 s unless a program asks for less, as those of a cluster do")
      .means("iWARP: time between two unanswered probes of tcp.keepalive_time");
  table.count("tcp.keepalive_probes", RNIC_FIELD(tcp.keepalive_probes), "9")
      .range(1, 127)
      .spec("Linux, tcp(7), tcp_keepalive_probes: 9")
      .means("iWARP: unanswered probes after which the peer is given up");
  table
      .choice<CongestionControl>("tcp.congestion_control", RNIC_CHOICE(tcp.congestion_control),
                                 "newreno",
                                 {{"newreno", CongestionControl::kNewReno},
                                  {"cubic", CongestionControl::kCubic},
                                  {"none", CongestionControl::kNone}})
      .spec("RFC 5681 and RFC 6582 (newreno); RFC 9438 (cubic)")
      .means("iWARP: what moves TCP's congestion window; none: only the peer's window limits");
  table.flag("tcp.sack", RNIC_FIELD(tcp.sack), "true")
      .spec("RFC 2018, RFC 6675; RFC 5041 places tagged segments in any order")
      .means("iWARP: selective acknowledgement and placement out of order; false: go-back-N");
  table.time("tcp.connection_setup", RNIC_FIELD(tcp.connection_setup), "0ns")
      .range(0, kSecond)
      .assumed("0: free of cost; kernel connection managers take milliseconds")
      .means("iWARP: time of the connection manager on the way to RTS, besides the frames");
  table.count("tcp.context_lines", RNIC_FIELD(tcp.context_lines), "1")
      .range(1, 16)
      .assumed("1: as RC; TCP state (congestion, RTT, reassembly) may need a second line")
      .means("iWARP: context cache entries that a connection takes");
}

void add_tcp_framing(ParameterTable& table) {
  table.flag("tcp.handshake", RNIC_FIELD(tcp.handshake), "true")
      .spec("RFC 9293, 3.5 (SYN); RFC 5044, 7.1 (MPA request and reply frames)")
      .means("iWARP: connections are set up on the wire; false: they exist at once");
  table.flag("tcp.tear_down", RNIC_FIELD(tcp.tear_down), "true")
      .spec("RFC 9293, 3.10.5 (ABORT); RFC 5040, 7.2 (a terminate message ends the stream)")
      .means(
          "iWARP: RST when a queue pair goes to ERR or RESET, FIN with TERMINATE; false: silence");
  table.time("tcp.syn_timeout", RNIC_FIELD(tcp.syn_timeout), "1s")
      .range(1000, 60 * kSecond)
      .spec("RFC 6298, 2.1: 1 s before the first measurement of a round trip")
      .means(
          "iWARP: wait before an unanswered SYN or SYN-ACK, or what follows one that was sent "
          "again, is sent again; doubles each time");
  table.time("tcp.connect_timeout", RNIC_FIELD(tcp.connect_timeout), "60s")
      .range(1000, 3600 * kSecond)
      .spec("Linux cxgb4, ep_timeout_secs: 60 s for each step of a connection")
      .means("iWARP: a set-up that is not done by then is an error, at both ends");
  table.flag("tcp.timestamps", RNIC_FIELD(tcp.timestamps), "false")
      .spec("RFC 7323, section 3: optional")
      .means("iWARP: 12 B timestamp option in each segment");
  table.flag("tcp.mpa_markers", RNIC_FIELD(tcp.mpa_markers), "false")
      .spec("RFC 5044, 4.3: a receiver's choice; few devices ask for them")
      .means("iWARP: 4 B marker every 512 B of the stream, both directions");
  table.flag("tcp.mpa_crc", RNIC_FIELD(tcp.mpa_crc), "true")
      .spec("RFC 5044, 4.4: CRC32c unless both ends agree to leave it out")
      .means("iWARP: CRC32c of each FPDU is computed and checked");
}

void add_dynamic_connections(ParameterTable& table) {
  table.count("dc.targets", RNIC_FIELD(dc.targets), "1")
      .range(1, 1 << 20)
      .in("peers")
      .assumed("1: reliable connections; above: dynamically connected transport (DCT)")
      .means(
          "peers that the messages of a queue pair go to at random; a change of peer waits for all "
          "answers and connects anew (all peers are the one connected host)");
  table.time("dc.connect_time", RNIC_FIELD(dc.connect_time), "1us")
      .range(0, 1e6)
      .measured(
          "Connect-IB: a READ takes 1.9 us to the same target, 2.9 us to another each time "
          "(rdma_bench, DCT notes)")
      .means("with dc.targets: from the last answer of a peer to the first packet to the next");
  table.time("dc.connect_interval", RNIC_FIELD(dc.connect_interval), "0ns")
      .range(0, 1e6)
      .assumed("0: connections are made side by side; Connect-IB seems to make some 18 M/s")
      .means("with dc.targets: from one connection of the device to the next");
}

void add_mpa_set_up(ParameterTable& table) {
  table.count("tcp.mpa_revision", RNIC_FIELD(tcp.mpa_revision), "1")
      .one_of({1, 2})
      .spec("RFC 5044, 7.1 (revision 1); RFC 6581, section 9 (2: enhanced set-up)")
      .means(
          "iWARP: revision of the set-up frames; with 2 they negotiate how many READs a QP keeps");
  table
      .choice<ReadyMessage>("tcp.mpa_rtr", RNIC_CHOICE(tcp.mpa_rtr), "none",
                            {{"none", ReadyMessage::kNone},
                             {"send", ReadyMessage::kSend},
                             {"write", ReadyMessage::kWrite},
                             {"read", ReadyMessage::kRead},
                             {"any", ReadyMessage::kAny}})
      .spec("RFC 6581, section 9: peer-to-peer mode; none: without it")
      .means(
          "iWARP: ready-to-receive messages that the initiator offers; needs tcp.mpa_revision=2");
  table
      .choice<ReadyMessage>("tcp.mpa_rtr_accept", RNIC_CHOICE(tcp.mpa_rtr_accept), "any",
                            {{"send", ReadyMessage::kSend},
                             {"write", ReadyMessage::kWrite},
                             {"read", ReadyMessage::kRead},
                             {"any", ReadyMessage::kAny}})
      .spec("RFC 6581, section 9; nothing in common ends the connection")
      .means("iWARP: ready-to-receive messages from which the responder selects one");
  table
      .choice<ReadyMessage>("tcp.mpa_rtr_sent", RNIC_CHOICE(tcp.mpa_rtr_sent), "agreed",
                            {{"agreed", ReadyMessage::kAgreed},
                             {"send", ReadyMessage::kSend},
                             {"write", ReadyMessage::kWrite},
                             {"read", ReadyMessage::kRead}})
      .spec("RFC 6581, section 9: the agreed one; others do occur (zrlio/softiwarp issue 14)")
      .means("iWARP: what the initiator sends as its ready-to-receive message");
}

}  // namespace

void add_transport_parameters(ParameterTable& table) {
  add_protocol(table);
  add_reliability(table);
  add_acknowledgement(table);
  add_congestion_control(table);
  add_dynamic_connections(table);
  add_tcp_flow(table);
  add_tcp_framing(table);
  add_mpa_set_up(table);
}

}  // namespace rnic::config

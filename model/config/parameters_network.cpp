// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_table.h"

namespace rnic::config {
namespace {

constexpr double kMillisecond = 1e6;  // ns
constexpr double kSecond = 1e9;       // ns
constexpr double kHour = 3600e9;
constexpr double kGiB = 1073741824.0;

void add_fabric(ParameterTable& table) {
  table.count("fabric.hosts", RNIC_FIELD(fabric.hosts), "2")
      .range(2, 64)
      .assumed("the two machines of a perftest run")
      .means("hosts, each with one NIC");
  table
      .word("fabric.topology", RNIC_FIELD(fabric.topology), "back_to_back",
            {"back_to_back", "single_switch"})
      .assumed("the simplest set-up, and that of most published latencies")
      .means("how the hosts are cabled");
  table.count("fabric.silent_host", RNIC_FIELD(fabric.silent_host), "none")
      .range(0, 63)
      .or_word("none", kNoHost)
      .assumed("free choice of the user")
      .means("a host whose NIC stops answering: it takes frames off the link and ignores them");
  table.time("fabric.silent_from", RNIC_FIELD(fabric.silent_from), "0")
      .range(0, kHour)
      .assumed("free choice of the user")
      .means("simulated time from which on fabric.silent_host is silent");
  table.count("fabric.fatal_host", RNIC_FIELD(fabric.fatal_host), "none")
      .range(0, 63)
      .or_word("none", kNoHost)
      .assumed("free choice of the user")
      .means(
          "a host whose NIC fails for good: it raises DEVICE_FATAL, all its queue pairs are in "
          "error, commands fail with EIO");
  table.time("fabric.fatal_at", RNIC_FIELD(fabric.fatal_at), "0")
      .range(0, kHour)
      .assumed("free choice of the user")
      .means("simulated time at which the NIC of fabric.fatal_host fails");
}

void add_link(ParameterTable& table) {
  table.rate("link.rate", RNIC_FIELD(link.rate), "100Gbps")
      .range(1, 1600)
      .spec("InfiniBand EDR 4x and IEEE 802.3 100GBASE: 100 Gb/s after line coding")
      .means("data rate, after line coding");
  table.time("link.delay", RNIC_FIELD(link.delay), "10ns")
      .range(0, kSecond)
      .assumed("2 m of copper at about 5 ns/m")
      .means("propagation delay of one cable");
  table
      .choice<FlowControl>("link.flow_control", RNIC_CHOICE(link.flow_control), "auto",
                           {{"none", FlowControl::kNone},
                            {"pfc", FlowControl::kPfc},
                            {"credit", FlowControl::kCredit},
                            {"pause", FlowControl::kPause}})
      .or_auto()
      .spec("IBTA vol. 1, 7.9 (credits); IEEE 802.1Q clause 36 (PFC), which RoCE deployments need")
      .means("auto: credit for ib, pfc for RoCE, none for iwarp; pause: all of a link at once");
  table.bytes("link.mtu", RNIC_FIELD(link.mtu), "any")
      .range(576, 9216)
      .or_word("any", 0)
      .spec("IEEE 802.3, 4.2.4.2.1: a receiver need not pass on what is longer than it is set for")
      .means(
          "Ethernet MTU of every port: longer frames are dropped as they arrive, and nobody is "
          "told; transport.mtu=auto fits it");
  table.count("link.data_vls", RNIC_FIELD(link.data_vls), "1")
      .one_of({1, 2, 4, 8, 15})
      .spec("IBTA vol. 1, 7.6: 1, 2, 4, 8 or 15 data VLs; one is the least a port may have")
      .means("InfiniBand data virtual lanes (priorities on Ethernet are always 8)");
  table.bytes("link.credit_update", RNIC_FIELD(link.credit_update), "8KiB")
      .range(64, 16777216)
      .assumed("a few updates per receive buffer: far more often than credits run out")
      .means("InfiniBand: freed bytes of a VL that make the port send a credit update");
  table.time("link.commit_ahead", RNIC_FIELD(link.commit_ahead), "200ns")
      .range(0, 1e6)
      .assumed("a transmit path of a packet or two; larger saves events of the simulation")
      .means(
          "an idle port commits itself to a frame that is ready so soon: what comes meanwhile goes "
          "behind it, and a pause does not stop it (PFC's headroom accounts for that)");
  table.list("link.sl2vl", RNIC_FIELD(link.sl2vl), "none")
      .range(0, 14)
      .in_order()
      .spec("IBTA vol. 1, 7.6.6; without a table SL i uses VL i modulo link.data_vls")
      .means("InfiniBand: VL of SL 0, 1, ..., repeated when shorter than 16; none: SL modulo VLs");
  table.text("link.vl_arb_high", RNIC_FIELD(link.vl_arb_high), "none")
      .spec("IBTA vol. 1, 7.6.9: up to 64 entries of a VL and a weight in units of 64 B")
      .means("InfiniBand: high-priority VL arbitration table, VL:WEIGHT,...; none: empty");
  table.text("link.vl_arb_low", RNIC_FIELD(link.vl_arb_low), "none")
      .spec("IBTA vol. 1, 7.6.9")
      .means("InfiniBand: low-priority table; none in both tables: VLs in turn, frame by frame");
  table.count("link.vl_high_limit", RNIC_FIELD(link.vl_high_limit), "255")
      .range(0, 255)
      .spec("IBTA vol. 1, 7.6.9: x 4,096 B; 0: one packet, 255: without limit")
      .means("InfiniBand: high-priority bytes that may pass a waiting low-priority packet");
  table.list("link.pfc_priorities", RNIC_FIELD(link.pfc_priorities), "0,1,2,3,4,5,6,7")
      .range(0, 7)
      .assumed("all: nothing is lost whatever priority is used; fabrics protect one or two")
      .means("Ethernet priorities that PFC protects; others drop what does not fit");
  table.bytes("link.pfc_headroom", RNIC_FIELD(link.pfc_headroom), "computed")
      .range(1, 1073741824)
      .or_word("computed", 0)
      .spec("IEEE 802.1Q annex N: what rate, delays, response time and frame size ask for")
      .means(
          "receive buffer for what comes behind the frame that crosses the pause threshold; "
          "less than computed loses frames");
  table.time("link.pfc_response", RNIC_FIELD(link.pfc_response), "0")
      .range(0, 100000)
      .assumed("at once, between frames; IEEE 802.3 allows 394 quanta (2 us) at 100 Gb/s")
      .means("from the arrival of a pause until its receiver obeys it");
  table.text("link.ets", RNIC_FIELD(link.ets), "none")
      .spec("IEEE 802.1Q clause 37 (ETS); none: priorities in turn, frame by frame")
      .means("Ethernet: PRIORITY:WEIGHT or PRIORITY:strict,...; unlisted ones come last");
  table.time("link.phy_latency", RNIC_FIELD(link.phy_latency), "50ns")
      .range(0, kMillisecond)
      .assumed("about 100 ns for both ends: what RS(528,514) FEC at 100 Gb/s is known to add")
      .means("PCS/PMA and FEC latency of one end of a cable, each direction");
}

/// Which frames, on which cable and which way.
void add_fault_targets(ParameterTable& table) {
  table.count("link.fault_cable", RNIC_FIELD(link.fault_cable), "all")
      .range(0, 63)
      .or_word("all", kAllCables)
      .assumed("a network is as good everywhere; exact frames need one place to be counted at")
      .means(
          "the cable that faults strike: the number of its first host, 0 when there is one cable; "
          "all: rates strike every cable, lists the first");
  table
      .choice<FaultDirection>("link.fault_direction", RNIC_CHOICE(link.fault_direction), "both",
                              {{"both", FaultDirection::kBoth},
                               {"from_host", FaultDirection::kFromHost},
                               {"to_host", FaultDirection::kToHost}})
      .assumed("free choice of the user")
      .means(
          "which way faults strike, and frames of the lists are counted: both, or what the host at "
          "the cable's first end sends or receives");
  table.list("link.fault_frames", RNIC_FIELD(link.fault_frames), "any", frame_kind_choices())
      .assumed("cables do not look at what they carry")
      .means(
          "frames that the rates and bursts strike: any (all but link control), data, request, "
          "response (to READs and atomics), ack, nak, rnr, cnp, connection (iWARP)");
  table.frames("link.drop_list", RNIC_FIELD(link.drop_list), "none")
      .range(1, 1e15)
      .assumed("free choice of the user")
      .means(
          "frames to drop, each kind counted from 1 over the ways of link.fault_direction: 5,17 "
          "are data packets, ack:3 is the third acknowledgement (kinds as in link.fault_frames)");
  table.frames("link.corrupt_list", RNIC_FIELD(link.corrupt_list), "none")
      .range(1, 1e15)
      .assumed("free choice of the user")
      .means("frames that get a flipped bit, named as in link.drop_list");
  table.frames("link.duplicate_list", RNIC_FIELD(link.duplicate_list), "none")
      .range(1, 1e15)
      .assumed("free choice of the user")
      .means("frames that arrive twice, named as in link.drop_list");
  table.frames("link.reorder_list", RNIC_FIELD(link.reorder_list), "none")
      .range(1, 1e15)
      .assumed("free choice of the user")
      .means("frames that are held back, named as in link.drop_list");
}

void add_paths(ParameterTable& table) {
  table.count("link.paths", RNIC_FIELD(link.paths), "1")
      .range(1, 64)
      .assumed("1: a cable; several: the network between two ports, as its routing sees it")
      .means("parallel paths between two ports, each of link.rate over their number");
  table.time("link.path_skew", RNIC_FIELD(link.path_skew), "0ns")
      .range(0, 1e6)
      .assumed("free choice of the user")
      .means("link.paths: each path is longer by this than the one before");
  table
      .choice<PathChoice>("link.path_choice", RNIC_CHOICE(link.path_choice), "pinned",
                          {{"pinned", PathChoice::kPinned},
                           {"hashed", PathChoice::kHashed},
                           {"adaptive", PathChoice::kAdaptive},
                           {"spray", PathChoice::kSpray}})
      .assumed("static routing; adaptive as NCCL reports it of InfiniBand (NVIDIA/nccl#850)")
      .means(
          "link.paths: a connection keeps one, by its number, or hashed: by chance, with sim.seed; "
          "adaptive: packets of RC WRITEs without immediate data take the one that is free first; "
          "spray: all packets do");
}

void add_faults(ParameterTable& table) {
  table.real("link.loss_rate", RNIC_FIELD(link.loss_rate), "0")
      .range(0, 1)
      .assumed("a healthy cable: losses are an experiment")
      .means("probability that a frame is lost on a cable (which frames: link.fault_frames)");
  table.real("link.corrupt_rate", RNIC_FIELD(link.corrupt_rate), "0")
      .range(0, 1)
      .assumed("a healthy cable: bit errors are an experiment")
      .means("probability that a frame gets a flipped bit on a cable");
  table.real("link.duplicate_rate", RNIC_FIELD(link.duplicate_rate), "0")
      .range(0, 1)
      .assumed("a healthy network: duplicates are an experiment")
      .means("probability that a frame arrives twice");
  table.real("link.reorder_rate", RNIC_FIELD(link.reorder_rate), "0")
      .range(0, 1)
      .assumed("a healthy network: reordering is an experiment")
      .means("probability that a frame is held back by link.reorder_delay while others pass");
  table.time("link.reorder_delay", RNIC_FIELD(link.reorder_delay), "1us")
      .range(1, 1e9)
      .assumed("three 4 KiB packets at 100 Gb/s")
      .means("how long a reordered packet is held back");
  table.real("link.burst_rate", RNIC_FIELD(link.burst_rate), "0")
      .range(0, 1)
      .assumed("a healthy network; Gilbert (1960) and Elliott (1963) describe the model")
      .means("probability that a packet begins a burst of losses");
  table.real("link.burst_length", RNIC_FIELD(link.burst_length), "10")
      .range(1, 1e9)
      .in("packets")
      .assumed("free choice of the user")
      .means("mean length of a burst");
  table.real("link.burst_loss", RNIC_FIELD(link.burst_loss), "1")
      .range(0, 1)
      .assumed("Gilbert's model: the bad state loses everything that Elliott's may spare")
      .means("probability that a packet in a burst is lost");
  table.time("link.down_at", RNIC_FIELD(link.down_at), "0")
      .range(0, kHour)
      .assumed("free choice of the user")
      .means("simulated time at which a cable goes down for link.down_time");
  table.time("link.down_time", RNIC_FIELD(link.down_time), "0")
      .range(0, kHour)
      .assumed("a healthy cable; 0: it never goes down")
      .means(
          "how long the cable is down: ports go on sending, and everything is lost, on InfiniBand "
          "and on Ethernet");
  table.count("link.down_cable", RNIC_FIELD(link.down_cable), "0")
      .range(0, 63)
      .assumed("free choice of the user")
      .means("the cable that goes down: the number of its first host, 0 when there is one cable");
  add_fault_targets(table);
}

void add_switch(ParameterTable& table) {
  table.time("switch.latency", RNIC_FIELD(network_switch.latency), "150ns")
      .range(0, kMillisecond)
      .assumed(
          "about 270 ns measured for a hop, less the hop's two PHYs and cable; Kalia et al. "
          "(ATC 2016) use 300 ns")
      .means("forwarding latency, last bit in to first bit out of an idle port");
  table.real("switch.corrupt_rate", RNIC_FIELD(network_switch.corrupt_rate), "0")
      .range(0, 1)
      .assumed("healthy memory: soft errors are an experiment")
      .means("probability that a bit of a frame flips in a switch, unseen by the link's CRC");
  table.bytes("switch.buffer", RNIC_FIELD(network_switch.buffer), "auto")
      .range(65536, 64 * kGiB)
      .or_auto()
      .datasheet(
          "auto: the 16 MB shared buffer of a 32-port 100 Gb/s switch (NVIDIA Spectrum), and more "
          "where pauses need it to lose nothing: for each priority in use of each port "
          "switch.pfc_xoff and the headroom of its cable (IEEE 802.1Q annex N)")
      .means("packet buffer shared by all ports; less than pauses need loses frames");
  table.bytes("switch.pfc_xoff", RNIC_FIELD(network_switch.pfc_xoff), "auto")
      .range(1024, 4 * kGiB)
      .or_auto()
      .assumed(
          "auto: 128 KiB, the headroom of a short 100 Gb/s cable many times over; over long or "
          "fast cables 32 KiB above what automatic switch.pfc_xon needs, if switch.buffer has "
          "room")
      .means("fill of an ingress priority at which the switch pauses its sender");
  table.bytes("switch.pfc_xon", RNIC_FIELD(network_switch.pfc_xon), "auto")
      .range(0, 4 * kGiB)
      .or_auto()
      .assumed(
          "auto: 96 KiB, or as much as leaves until frames come after the end of a pause (IEEE "
          "802.1Q annex N: as much as comes after its begin), so that no port runs dry; below "
          "switch.pfc_xoff by a few large packets, so that pauses do not flutter")
      .means("fill of an ingress priority at which the sender may go on");
  table.bytes("switch.ecn_kmin", RNIC_FIELD(network_switch.ecn_kmin), "5000")
      .range(0, 4 * kGiB)
      .datasheet(
          "5 KB at 40 Gb/s (Zhu et al., SIGCOMM 2015); HPCC's authors use 400 KB at 100 Gb/s")
      .means("egress queue of a priority up to which ECN-capable packets are not marked");
  table.bytes("switch.ecn_kmax", RNIC_FIELD(network_switch.ecn_kmax), "200000")
      .range(0, 4 * kGiB)
      .datasheet("200 KB (Zhu et al., SIGCOMM 2015); HPCC's authors use 1.6 MB at 100 Gb/s")
      .means("egress queue of a priority beyond which all of them are marked");
  table.real("switch.ecn_pmax", RNIC_FIELD(network_switch.ecn_pmax), "0.01")
      .range(0, 1)
      .datasheet("1 % (Zhu et al., SIGCOMM 2015); HPCC's authors use 20 %")
      .means("probability of a mark at switch.ecn_kmax, to which it rises from switch.ecn_kmin");
}

}  // namespace

void add_network_parameters(ParameterTable& table) {
  add_fabric(table);
  add_link(table);
  add_paths(table);
  add_faults(table);
  add_switch(table);
}

}  // namespace rnic::config

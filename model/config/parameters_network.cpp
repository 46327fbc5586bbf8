// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_table.h"

namespace rnic::config {
namespace {

constexpr double kMillisecond = 1e6;  // ns
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
}

void add_link(ParameterTable& table) {
  table.rate("link.rate", RNIC_FIELD(link.rate), "100Gbps")
      .range(1, 1600)
      .spec("InfiniBand EDR 4x and IEEE 802.3 100GBASE: 100 Gb/s after line coding")
      .means("data rate, after line coding");
  table.time("link.delay", RNIC_FIELD(link.delay), "10ns")
      .range(0, kMillisecond)
      .assumed("2 m of copper at about 5 ns/m")
      .means("propagation delay of one cable");
  table
      .choice<FlowControl>("link.flow_control", RNIC_CHOICE(link.flow_control), "auto",
                           {{"none", FlowControl::kNone},
                            {"pfc", FlowControl::kPfc},
                            {"credit", FlowControl::kCredit}})
      .or_auto()
      .spec("IBTA vol. 1, 7.9 (credits); IEEE 802.1Q clause 36 (PFC), which RoCE deployments need")
      .means("auto: credit for ib, pfc for RoCE, none for iwarp");
  table.count("link.data_vls", RNIC_FIELD(link.data_vls), "1")
      .one_of({1, 2, 4, 8, 15})
      .spec("IBTA vol. 1, 7.6: 1, 2, 4, 8 or 15 data VLs; one is the least a port may have")
      .means("InfiniBand data virtual lanes (priorities on Ethernet are always 8)");
  table.bytes("link.credit_update", RNIC_FIELD(link.credit_update), "8KiB")
      .range(64, 16777216)
      .assumed("a few updates per receive buffer: far more often than credits run out")
      .means("InfiniBand: freed bytes of a VL that make the port send a credit update");
  table.time("link.phy_latency", RNIC_FIELD(link.phy_latency), "50ns")
      .range(0, kMillisecond)
      .assumed("about 100 ns for both ends: what RS(528,514) FEC at 100 Gb/s is known to add")
      .means("PCS/PMA and FEC latency of one end of a cable, each direction");
}

void add_faults(ParameterTable& table) {
  table.real("link.loss_rate", RNIC_FIELD(link.loss_rate), "0")
      .range(0, 1)
      .assumed("a healthy cable: losses are an experiment")
      .means("probability that a data packet is lost on a cable");
  table.real("link.corrupt_rate", RNIC_FIELD(link.corrupt_rate), "0")
      .range(0, 1)
      .assumed("a healthy cable: bit errors are an experiment")
      .means("probability that a data packet gets a flipped bit on a cable");
  table.list("link.drop_list", RNIC_FIELD(link.drop_list), "none")
      .range(1, 1e15)
      .assumed("free choice of the user")
      .means("data packets to drop, counted from 1 in sending order, as in 5,17");
}

void add_switch(ParameterTable& table) {
  table.time("switch.latency", RNIC_FIELD(network_switch.latency), "150ns")
      .range(0, kMillisecond)
      .assumed(
          "about 270 ns measured for a hop, less the hop's two PHYs and cable; Kalia et al. "
          "(ATC 2016) use 300 ns")
      .means("forwarding latency, last bit in to first bit out of an idle port");
  table.bytes("switch.buffer", RNIC_FIELD(network_switch.buffer), "16MiB")
      .range(65536, 4 * kGiB)
      .datasheet("16 MB shared buffer of a 32-port 100 Gb/s switch (NVIDIA Spectrum)")
      .means("packet buffer shared by all ports");
  table.bytes("switch.pfc_xoff", RNIC_FIELD(network_switch.pfc_xoff), "128KiB")
      .range(1024, 4 * kGiB)
      .assumed("leaves the headroom of a 100 Gb/s cable many times over")
      .means("fill of an ingress priority at which the switch pauses its sender");
  table.bytes("switch.pfc_xon", RNIC_FIELD(network_switch.pfc_xon), "96KiB")
      .range(0, 4 * kGiB)
      .assumed("a few large packets below switch.pfc_xoff, so that pauses do not flutter")
      .means("fill of an ingress priority at which the sender may go on");
}

}  // namespace

void add_network_parameters(ParameterTable& table) {
  add_fabric(table);
  add_link(table);
  add_faults(table);
  add_switch(table);
}

}  // namespace rnic::config

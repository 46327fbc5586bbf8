// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_table.h"
#include "protocol/tlp.h"

namespace rnic::config {
namespace {

constexpr double kMillisecond = 1e6;  // ns
constexpr double kSecond = 1e9;       // ns

constexpr const char* kPcieBench =
    "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018";

void add_link(ParameterTable& table) {
  table
      .choice<PcieDetail>("pcie.detail", RNIC_CHOICE(pcie.detail), "auto",
                          {{"fast", PcieDetail::kFast}, {"tlp", PcieDetail::kTlp}})
      .or_auto()
      .assumed(
          "auto: fast, which agrees with tlp within 1 % in throughput and 2 % in latency; tlp "
          "where it does not: both directions contend for memory, the slot, tags or walks, "
          "posted credits are for less than a round trip, or the slot has less than 16 Gb/s")
      .means(
          "fast: bursts by arithmetic; tlp: every TLP an event, six to eight times slower, and "
          "always so while non-posted credits are finite");
  table.count("pcie.gen", RNIC_FIELD(pcie.gen), "4")
      .range(1, 6)
      .spec("PCI Express Base 4.0: 16 GT/s a lane, 128b/130b")
      .means("PCIe generation; 6: FLIT mode");
  table.count("pcie.lanes", RNIC_FIELD(pcie.lanes), "16")
      .one_of({1, 2, 4, 8, 16})
      .spec("PCI Express Base 4.0; x16 is the slot of 100 Gb/s adapters")
      .means("PCIe lanes");
  table.time("pcie.latency", RNIC_FIELD(pcie.latency), "150ns")
      .range(0, kMillisecond)
      .fitted(
          "with memory.read_latency a 64 B DMA read takes about 450 ns; 413..520 ns measured by " +
          std::string(kPcieBench))
      .means("one way through PHY, data-link and transaction layers of both ends");
  table.real("pcie.dllp_overhead", RNIC_FIELD(pcie.dllp_overhead), "auto")
      .range(0, 0.9)
      .or_word("auto", protocol::kDllpsAsPublished)
      .or_word("symbols", protocol::kDllpsBySymbols)
      .spec(
          "PCI Express Base, Ack latency limits and SKP interval; 57.88 of 62.96 Gb/s are left on "
          "Gen3 x8, as published by " +
          std::string(kPcieBench))
      .means(
          "share of raw bandwidth taken by DLLPs and SKP sets, from gen, lanes and mps. auto: a "
          "limit "
          "of N symbol times is N bytes of the link, as published, 10 % on x16; symbols: N bytes "
          "of "
          "each lane, as the specification has it, 1 %");
  table.count("pcie.switches", RNIC_FIELD(pcie.switches), "0")
      .range(0, 16)
      .assumed("a slot of the root complex")
      .means("PCIe switches between device and root complex");
  table.time("pcie.switch_latency", RNIC_FIELD(pcie.switch_latency), "110ns")
      .range(0, kMillisecond)
      .datasheet("Broadcom PEX 88000 and Microchip Switchtec: 100 to 115 ns, cut-through")
      .means("each switch, one way");
  table.count("pcie.retimers", RNIC_FIELD(pcie.retimers), "0")
      .range(0, 4)
      .spec("PCI Express Base 4.0, 4.3: at most two between two ports")
      .means("retimers between device and root complex");
  table.time("pcie.retimer_latency", RNIC_FIELD(pcie.retimer_latency), "20ns")
      .range(0, kMillisecond)
      .assumed("some tens of symbol times of store and forward; vendors state 10 to 60 ns")
      .means("each retimer, one way");
  table.real("pcie.bit_error_rate", RNIC_FIELD(pcie.bit_error_rate), "0")
      .range(0, 0.01)
      .assumed("a healthy slot; PCI Express Base allows 1e-12")
      .means("probability that a bit is damaged and its TLP is sent again (LCRC, Nak, replay)");
}

void add_transactions(ParameterTable& table) {
  table.bytes("pcie.mps", RNIC_FIELD(pcie.mps), "256")
      .one_of({128, 256, 512, 1024, 2048, 4096})
      .measured(std::string(kPcieBench) + ": what servers negotiate")
      .means("Max_Payload_Size of writes and completions");
  table.bytes("pcie.mrrs", RNIC_FIELD(pcie.mrrs), "512")
      .one_of({128, 256, 512, 1024, 2048, 4096})
      .measured(std::string(kPcieBench) + ": what servers set")
      .means("Max_Read_Request_Size");
  table.bytes("pcie.rcb", RNIC_FIELD(pcie.rcb), "64")
      .one_of({64, 128})
      .spec("PCI Express Base, 2.3.1.1: 64 or 128 B for a root complex")
      .means("Read Completion Boundary");
  table.bytes("pcie.completion_size", RNIC_FIELD(pcie.completion_size), "mps")
      .range(64, 4096)
      .or_word("mps", 0)
      .assumed("as large as allowed; some root complexes answer with one cache line each")
      .means("largest completion of the root complex, at most pcie.mps");
  table.flag("pcie.short_headers", RNIC_FIELD(pcie.short_headers), "false")
      .assumed("buffers lie anywhere, so that a device has 64-bit addresses")
      .means("requests below 4 GiB have the 12 B header (3 DW); else all have 16 B");
  table.flag("pcie.ecrc", RNIC_FIELD(pcie.ecrc), "false")
      .assumed("off in servers")
      .means("each TLP carries 4 B of end-to-end CRC");
  table.count("pcie.read_tags", RNIC_FIELD(pcie.read_tags), "256")
      .range(1, 65536)
      .spec("PCI Express Base, 2.2.6.2: 256 with extended tags")
      .means("DMA read requests outstanding at most");
  table.flag("pcie.relaxed_ordering", RNIC_FIELD(pcie.relaxed_ordering), "true")
      .assumed("current drivers set it for payload")
      .means("payload writes may pass earlier ones");
  table.time("pcie.ordering_time", RNIC_FIELD(pcie.ordering_time), "0ns")
      .range(0, kMillisecond)
      .assumed("writes are ordered as fast as the link brings them; some platforms differ")
      .means("root complex: a strictly ordered write TLP until it is ordered");
  table.count("pcie.ordering_overlap", RNIC_FIELD(pcie.ordering_overlap), "8")
      .range(1, 1024)
      .assumed("depth of a small queue")
      .means("strictly ordered write TLPs on their way to the ordering point at once");
  table.time("pcie.relaxed_time", RNIC_FIELD(pcie.relaxed_time), "0ns")
      .range(0, kMillisecond)
      .assumed("relaxed ordering costs nothing; some platforms lose write combining")
      .means("root complex: a relaxed write TLP, one after another");
  table.flag("pcie.id_based_ordering", RNIC_FIELD(pcie.id_based_ordering), "false")
      .assumed("drivers leave it off")
      .means("TLPs carry IDO: they may pass those of other requesters");
}

void add_ats(ParameterTable& table) {
  table.flag("pcie.ats", RNIC_FIELD(pcie.atc.enabled), "false")
      .assumed("off in drivers unless an IOMMU translates and the platform trusts the device")
      .means(
          "the device asks the IOMMU for translations (ATS) and keeps them; needs iommu.enabled");
  table.count("pcie.atc.entries", RNIC_FIELD(pcie.atc.entries), "1024")
      .range(1, 1 << 20)
      .in("pages")
      .assumed("some KiB of SRAM")
      .means("translations that the device caches, one for each page of iommu.page_size");
  table.count("pcie.atc.ways", RNIC_FIELD(pcie.atc.ways), "8")
      .range(1, 1024)
      .in("ways")
      .assumed("as the device's other caches")
      .means("associativity of that cache");
  table.time("pcie.atc.latency", RNIC_FIELD(pcie.atc.latency), "5ns")
      .range(0, kMillisecond)
      .assumed("a few cycles")
      .means("a look-up in it");
  table.time("pcie.register_read_time", RNIC_FIELD(pcie.register_read_time), "50ns")
      .range(0, kMillisecond)
      .assumed("a slow bus of configuration registers inside the device")
      .means("device: a read of one of its registers, request in to data out");
}

/// One flow-control limit; 0 reads `infinite`.
void add_credit(ParameterTable& table, const std::string& key, Field field, double most,
                const std::string& source, const std::string& meaning) {
  table.count(key, field, "infinite")
      .range(1, most)
      .or_word("infinite", 0)
      .assumed(source)
      .means(meaning);
}

/// What a root complex can buffer of posted writes, until memory has taken them.
void add_posted_credit(ParameterTable& table, const std::string& key, Field field, double most,
                       const std::string& what, const std::string& rule) {
  table.count(key, field, "auto")
      .range(1, most)
      .or_word("infinite", 0)
      .or_auto()
      .assumed(
          "root complexes keep their link busy; 93 cache lines, one round trip, were seen on "
          "Gen3 x16 of Cascade Lake (Agarwal et al., Host Congestion Control, SIGCOMM 2023)")
      .means("posted " + what +
             " the root complex can buffer, until memory has taken the writes; "
             "auto: " +
             rule);
}

void add_credits(ParameterTable& table) {
  constexpr double kMostHeaders = 2047;  // half of the numbers of an 8-bit counter, scaled by 16
  constexpr double kMostData = 32767;    // likewise of 12 bits
  const std::string root = "buffers of root complexes are deep enough for their links";
  const std::string end = "a device must sink completions; its registers take what comes";
  const std::string by_root = " the root complex can buffer";
  const std::string by_device = " the device can buffer";
  const std::string header = " headers";
  const std::string data = " data, in units of 16 B,";
  add_posted_credit(table, "pcie.root_credits.posted_headers",
                    RNIC_FIELD(pcie.root_credits.posted_headers), kMostHeaders, "headers",
                    "one for each 64 B of pcie.root_credits.posted_data's automatic value");
  add_posted_credit(table, "pcie.root_credits.posted_data",
                    RNIC_FIELD(pcie.root_credits.posted_data), kMostData, "data, in units of 16 B,",
                    "twice what the link carries in a write's round trip to memory, 12 KiB at "
                    "least");
  add_credit(table, "pcie.root_credits.nonposted_headers",
             RNIC_FIELD(pcie.root_credits.nonposted_headers), kMostHeaders, root,
             "non-posted" + header + by_root);
  add_credit(table, "pcie.root_credits.nonposted_data",
             RNIC_FIELD(pcie.root_credits.nonposted_data), kMostData, root,
             "non-posted" + data + by_root);
  add_credit(table, "pcie.root_credits.completion_headers",
             RNIC_FIELD(pcie.root_credits.completion_headers), kMostHeaders, root,
             "completion" + header + by_root);
  add_credit(table, "pcie.root_credits.completion_data",
             RNIC_FIELD(pcie.root_credits.completion_data), kMostData, root,
             "completion" + data + by_root);
  add_credit(table, "pcie.device_credits.posted_headers",
             RNIC_FIELD(pcie.device_credits.posted_headers), kMostHeaders, end,
             "posted" + header + by_device);
  add_credit(table, "pcie.device_credits.posted_data", RNIC_FIELD(pcie.device_credits.posted_data),
             kMostData, end, "posted" + data + by_device);
  add_credit(table, "pcie.device_credits.nonposted_headers",
             RNIC_FIELD(pcie.device_credits.nonposted_headers), kMostHeaders, end,
             "non-posted" + header + by_device);
  add_credit(table, "pcie.device_credits.nonposted_data",
             RNIC_FIELD(pcie.device_credits.nonposted_data), kMostData, end,
             "non-posted" + data + by_device);
  add_credit(table, "pcie.device_credits.completion_headers",
             RNIC_FIELD(pcie.device_credits.completion_headers), kMostHeaders, end,
             "completion" + header + by_device);
  add_credit(table, "pcie.device_credits.completion_data",
             RNIC_FIELD(pcie.device_credits.completion_data), kMostData, end,
             "completion" + data + by_device);
  table.time("pcie.update_fc_latency", RNIC_FIELD(pcie.update_fc_latency), "0ns")
      .range(0, kMillisecond)
      .assumed("part of pcie.latency, which an UpdateFC takes besides")
      .means("from a freed receive buffer to its UpdateFC on the wire");
  table.time("pcie.update_fc_interval", RNIC_FIELD(pcie.update_fc_interval), "0ns")
      .range(0, kMillisecond)
      .spec("PCI Express Base, 2.6.1.2: at the latest every 30 us; 0: as soon as a buffer is free")
      .means("UpdateFCs are collected and sent at multiples of this time");
}

void add_faults(ParameterTable& table) {
  table.time("pcie.completion_timeout", RNIC_FIELD(pcie.completion_timeout), "10ms")
      .range(1, 64 * kSecond)
      .spec("PCI Express Base, 2.8: 50 us to 50 ms by default, 10 ms at least recommended")
      .means("a read whose completion has not come fails after this time");
  table
      .word("pcie.fault.purpose", RNIC_FIELD(pcie.fault.purpose), "any",
            {"any", "wqe", "rq_wqe", "doorbell_record", "qpc", "mpt", "mtt", "payload", "command",
             "atomic", "cqc", "translation"})
      .assumed("free choice of the user")
      .means("which read requests pcie.fault.* mean and count; any: all but the driver's commands");
  table.list("pcie.fault.lost", RNIC_FIELD(pcie.fault.lost_list), "none")
      .range(1, 1e15)
      .assumed("free choice of the user")
      .means("read requests whose completions are lost, counted from 1, as in 5,17");
  table.list("pcie.fault.poisoned", RNIC_FIELD(pcie.fault.poisoned_list), "none")
      .range(1, 1e15)
      .assumed("free choice of the user")
      .means("read requests whose completions arrive poisoned, counted from 1");
  table.real("pcie.fault.loss_rate", RNIC_FIELD(pcie.fault.loss_rate), "0")
      .range(0, 1)
      .assumed("a healthy host: lost completions are an experiment")
      .means("probability that a read request's completions are lost");
  table.real("pcie.fault.poison_rate", RNIC_FIELD(pcie.fault.poison_rate), "0")
      .range(0, 1)
      .assumed("a healthy host: poisoned data are an experiment")
      .means("probability that a read request's completions arrive poisoned");
}

}  // namespace

void add_pcie_parameters(ParameterTable& table) {
  add_link(table);
  add_transactions(table);
  add_ats(table);
  add_credits(table);
  add_faults(table);
}

}  // namespace rnic::config

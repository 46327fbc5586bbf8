// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_table.h"

namespace rnic::config {
namespace {

constexpr const char* kPipelined =
    "engineering estimate: the stages of a small WRITE add up to about 0.8 us one way, as "
    "published for 100 Gb/s adapters back to back";

/// Latency and interval of a pipelined unit.
template <StageConfig NicConfig::*Stage>
void add_stage(ParameterTable& table, const std::string& key, const std::string& latency,
               const std::string& interval, const std::string& what) {
  table
      .count(
          key + ".latency", [](Config & c) -> auto& { return (c.nic.*Stage).latency; }, latency)
      .range(0, 100000)
      .in("cycles")
      .fitted(kPipelined)
      .means(what + ": from request to result");
  table
      .count(
          key + ".interval", [](Config & c) -> auto& { return (c.nic.*Stage).interval; }, interval)
      .range(0, 100000)
      .in("cycles")
      .assumed("150 to 250 M operations/s: data-sheet message rates of 100 Gb/s adapters")
      .means(what + ": from one start to the next");
}

void add_work_queue(ParameterTable& table) {
  table.count("nic.wqe_prefetch", RNIC_FIELD(nic.wqe_prefetch), "8")
      .range(1, 256)
      .in("WQEs")
      .assumed("512 B, one read request of the usual Max_Read_Request_Size")
      .means("WQEs fetched by one DMA read at most");
  table.count("nic.wqe_buffer", RNIC_FIELD(nic.wqe_buffer), "auto")
      .range(1, 4096)
      .in("WQEs")
      .or_auto()
      .assumed("two fetches, so that the next is under way while one is consumed")
      .means(
          "WQEs of a QP that are fetched and not sent, or on their way. One fetch's room is that "
          "of "
          "the WQEs in work, so nic.wqe_buffer / nic.wqe_prefetch - 1 fetches, at least one, are "
          "under way at a time; auto: twice nic.wqe_prefetch");
  table
      .choice<SqPolicy>("nic.sq_scheduler", RNIC_CHOICE(nic.sq_scheduler), "round_robin",
                        {{"round_robin", SqPolicy::kRoundRobin},
                         {"weighted", SqPolicy::kWeighted},
                         {"strict", SqPolicy::kStrict}})
      .assumed("equal QPs are served equally by every adapter measured")
      .means(
          "order in which ready send queues are served: a packet each in turn; as many in a row as "
          "nic.sq_weights has for the SL; the SL with the largest of them first");
  table.list("nic.sq_weights", RNIC_FIELD(nic.sq_weights), "1")
      .range(1, 255)
      .in_order()
      .assumed("free choice of the user")
      .means(
          "weighted: packets in a row, strict: rank, of SL (Ethernet: priority) 0, 1, ...; the "
          "last one also of all that follow");
  table.flag("nic.blueflame", RNIC_FIELD(nic.blueflame), "true")
      .datasheet("mlx5 (rdma-core, providers/mlx5/qp.c): a single WQE is written to the device")
      .means("whether a lone small WQE is written by MMIO instead of being fetched");
  table
      .choice<BlueFlameOps>(
          "nic.blueflame_ops", RNIC_CHOICE(nic.blueflame_ops), "all",
          {{"all", BlueFlameOps::kAll}, {"inline_and_reads", BlueFlameOps::kInlineAndReads}})
      .datasheet("mlx5 (rdma-core, providers/mlx5/qp.c): whatever the operation")
      .means(
          "which lone WQEs nic.blueflame is for: all; those without payload to be fetched (inline "
          "data, READs, WRITEs of nothing), while others are rung for and fetched");
  table.count("nic.blueflame_blocks", RNIC_FIELD(nic.blueflame_blocks), "4")
      .range(1, 16)
      .in("blocks")
      .datasheet("mlx5: a BlueFlame register has 256 B")
      .means("largest WQE that is written by MMIO, in blocks of 64 B; longer ones are fetched");
  table.bytes("nic.max_inline", RNIC_FIELD(nic.max_inline), "220")
      .range(0, 960)
      .measured("perftest's default on mlx5: WRITE latency steps up beyond 220 B")
      .means("largest inline payload the device accepts");
  table.count("nic.max_sge", RNIC_FIELD(nic.max_sge), "16")
      .range(1, 30)
      .assumed("mlx5 advertises 30; 16 suits common applications")
      .means("scatter/gather entries of a work request at most");
  table.count("nic.max_mr", RNIC_FIELD(nic.max_mr), "524286")
      .range(1, (1 << 19) - 2)
      .in("MRs")
      .datasheet("mlx4's default profile: 2^19 MPT entries")
      .means("memory regions at a time; registering more fails with ENOMEM");
  table.flag("nic.flush_late_sends", RNIC_FIELD(nic.flush_late_sends), "true")
      .spec(
          "IBTA vol. 1, 10.8: work posted in the error state completes with a flush error; X722 "
          "(iWARP) never completes a marker posted so (ceph/ceph#25447, spdk/spdk#298)")
      .means("send requests posted to a queue pair in ERR complete, flushed; false: never");
  table.flag("nic.empty_recv", RNIC_FIELD(nic.empty_recv), "true")
      .assumed("mlx5's driver takes them; some devices' refuse num_sge=0")
      .means("whether ibv_post_recv takes RECVs without a buffer; else EINVAL");
  table.count("nic.max_rd_atomic", RNIC_FIELD(nic.max_rd_atomic), "16")
      .range(1, 255)
      .datasheet("what mlx5 devices advertise (ibv_devinfo -v)")
      .means("device limit of transport.max_rd_atomic and max_dest_rd_atomic");
  table
      .choice("nic.key_policy", RNIC_CHOICE(nic.key_policy), "shared",
              std::vector<std::pair<const char*, KeyPolicy>>{{"shared", KeyPolicy::kShared},
                                                             {"distinct", KeyPolicy::kDistinct}})
      .datasheet("mlx5: one key; the InfiniBand specification lets them differ")
      .means("whether the local and the remote key of a region are the same value");
  table.time("nic.interrupt_moderation", RNIC_FIELD(nic.interrupt_moderation), "0ns")
      .range(0, 1e9)
      .assumed("completion queues have a moderation of their own")
      .means("least time between two interrupts of one vector");
  table.time("nic.uc_gap_time", RNIC_FIELD(nic.uc_gap_time), "0ns")
      .range(0, 1e9)
      .assumed("0: as fast as any packet; ConnectX-5 was seen to take 20 us, once for each gap")
      .means("UC: time that a receiver takes more for the first packet behind a gap of PSNs");
  table.time("nic.command_latency", RNIC_FIELD(nic.command_latency), "10us")
      .range(0, 1e9)
      .assumed("firmware runs on a small embedded core; connecting a QP takes milliseconds in all")
      .means("firmware time of one command (create, modify, register)");
}

void add_stages(ParameterTable& table) {
  add_stage<&NicConfig::doorbell>(table, "nic.doorbell", "10", "2", "doorbell decode");
  add_stage<&NicConfig::scheduler>(table, "nic.scheduler", "10", "2", "send queue arbitration");
  table.count("nic.scheduler_look_ahead", RNIC_FIELD(nic.scheduler_look_ahead), "4")
      .range(0, 1024)
      .in("picks")
      .assumed("a short output queue of the arbiter")
      .means(
          "packets picked ahead of the scheduler's own pace at most; a late rival waits as long");
  add_stage<&NicConfig::qpc_lookup>(table, "nic.qpc_lookup", "5", "2", "QP context cache lookup");
  add_stage<&NicConfig::wqe_decode>(table, "nic.wqe_decode", "10", "2", "WQE decode");
  add_stage<&NicConfig::translation>(table, "nic.translation", "10", "2",
                                     "MPT and MTT cache lookup and access checks");
  table
      .choice<TranslationOrder>("nic.translation_order", RNIC_CHOICE(nic.translation_order), "qp",
                                {{"strict", TranslationOrder::kStrict},
                                 {"qp", TranslationOrder::kQp},
                                 {"free", TranslationOrder::kFree}})
      .assumed("a QP's packets stay in order, other QPs need not wait for its misses")
      .means(
          "order of answers: as asked; in order within each half of a QP; as soon as known, and "
          "what a QP's packets behind a miss will need is looked up meanwhile");
  table.count("nic.translation_page_interval", RNIC_FIELD(nic.translation_page_interval), "0")
      .range(0, 100000)
      .in("cycles")
      .assumed("neighbouring entries of a line are read together")
      .means("pipeline time for each further page of a request that crosses pages");
  table.count("nic.translation_l1_latency", RNIC_FIELD(nic.translation_l1_latency), "4")
      .range(0, 100000)
      .in("cycles")
      .assumed("a larger on-chip memory is some cycles further away")
      .means("how much later a hit of the second level is, where a first one exists");
  add_stage<&NicConfig::dma>(table, "nic.dma", "10", "2", "DMA engine, per request");
  add_stage<&NicConfig::packetizer>(table, "nic.packetizer", "20", "3",
                                    "headers, PSN and checksums of one packet");
  add_stage<&NicConfig::rx_parse>(table, "nic.rx_parse", "20", "3",
                                  "parsing and checks of one received packet");
  add_stage<&NicConfig::responder>(table, "nic.responder", "10", "2",
                                   "responder state machine, per packet");
  add_stage<&NicConfig::completion>(table, "nic.completion", "10", "2", "CQE formation");
  add_stage<&NicConfig::tcp_tx>(table, "nic.tcp_tx", "60", "3",
                                "iWARP: TCP, MPA and DDP of one segment to send");
  add_stage<&NicConfig::tcp_rx>(table, "nic.tcp_rx", "60", "3",
                                "iWARP: TCP, MPA and DDP of one received segment");
}

void add_atomics(ParameterTable& table) {
  table.count("nic.atomic.latency", RNIC_FIELD(nic.atomic.latency), "10")
      .range(0, 100000)
      .in("cycles")
      .assumed("as the other stages; the read and write of host memory come on top")
      .means("atomic unit: from request to its read of host memory");
  table.count("nic.atomic.interval", RNIC_FIELD(nic.atomic.interval), "10")
      .range(0, 100000)
      .in("cycles")
      .measured("rlibv2 (wxdwfc) on 100 Gb/s adapters: 48 M/s over many addresses at most")
      .means("atomic unit: from one start to the next");
  table.count("nic.ports", RNIC_FIELD(nic.ports), "1")
      .range(1, 2)
      .in("ports")
      .assumed("dual-port adapters are experiments on their slot")
      .means(
          "ports of an adapter, each a device that shares the slot; those of host h belong to "
          "host h + fabric.hosts, which does as host h");
  table.count("nic.functions", RNIC_FIELD(nic.functions), "1")
      .range(1, 2)
      .in("functions")
      .assumed("an adapter has one PCIe link")
      .means(
          "devices that share a port, each behind a PCIe link of its own; the second ones belong "
          "to host h + fabric.hosts, which does as host h");
  table.count("nic.second_function_lanes", RNIC_FIELD(nic.second_function_lanes), "pcie.lanes")
      .one_of({1, 2, 4, 8, 16})
      .or_word("pcie.lanes", 0)
      .assumed("both links alike")
      .means("PCIe lanes of the second function");
  table.flag("nic.pcie_atomics", RNIC_FIELD(nic.pcie_atomics), "false")
      .assumed("adapters report IBV_ATOMIC_HCA unless PCIe AtomicOps are enabled all the way")
      .means(
          "atomics are AtomicOps that the root complex carries out, atomic with the CPU's own "
          "(IBV_ATOMIC_GLOB); else a read and a write of the device");
  table.bytes("nic.device_memory", RNIC_FIELD(nic.device_memory), "0")
      .range(0, 1U << 30)
      .assumed("no more than what a workload puts there; ConnectX-5 offers 128 KiB (ibv_alloc_dm)")
      .means("memory on the device, which its units reach without crossing PCIe; 0: none");
  table.time("nic.device_memory_latency", RNIC_FIELD(nic.device_memory_latency), "30ns")
      .range(0, 1e6)
      .assumed("on-chip SRAM behind an interconnect; no vendor publishes it")
      .means("an access to the memory on the device");
  table.rate("nic.device_memory_rate", RNIC_FIELD(nic.device_memory_rate), "256Gbps")
      .range(1, 1e5)
      .assumed("32 B a cycle at 1 GHz; no vendor publishes it")
      .means("data that the memory on the device takes and gives");
  table.time("nic.loopback_latency", RNIC_FIELD(nic.loopback_latency), "100ns")
      .range(0, 1e6)
      .assumed("from transmit to receive pipeline, without PHYs and cable")
      .means("a frame of a port to itself");
  table.rate("nic.loopback_rate", RNIC_FIELD(nic.loopback_rate), "400Gbps")
      .range(1, 10000)
      .assumed("an internal path that outruns PCIe")
      .means("frames of a port to itself: headers and payload, without preamble and gap");
  table.flag("nic.atomics_in_turn", RNIC_FIELD(nic.atomics_in_turn), "false")
      .assumed("overlap costs nothing; mlx5: some 2.1 M/s a QP, whatever the addresses")
      .means("whether an atomic of a QP waits for the one before it; else those of a QP overlap");
  table.time("nic.atomic_response_time", RNIC_FIELD(nic.atomic_response_time), "0ns")
      .range(0, 1e6)
      .assumed(
          "the old value is at hand when the new one leaves; ConnectX-3 takes 0.35 us longer "
          "for an atomic than for a READ, but locks no longer")
      .means("from the write of an atomic's result, which frees its lock, to the response");
  table.time("nic.read_response_time", RNIC_FIELD(nic.read_response_time), "0ns")
      .range(0, 1e6)
      .assumed("0: what the stages take; ConnectX-3 takes a little longer")
      .means("from the check of a READ at the responder to the choice of its first response");
  table.count("nic.atomic_buckets", RNIC_FIELD(nic.atomic_buckets), "512")
      .range(1, 1 << 20)
      .in("locks")
      .measured("Connect-IB tells addresses apart by their low 12 bits (Kalia, USENIX ATC 2016)")
      .means(
          "8-byte words that atomics of the responder can be under way on at a time; word "
          "addresses that are equal modulo this wait for each other");
}

void add_unacknowledged(ParameterTable& table) {
  table
      .choice<LongMessage>("nic.long_message", RNIC_CHOICE(nic.long_message), "drop",
                           {{"drop", LongMessage::kDrop}, {"complete", LongMessage::kComplete}})
      .spec("IBTA vol. 1, 9.8.3: silently dropped; some adapters complete the RECV with an error")
      .means("UC and UD: fate of a message longer than its RECV (complete: local_length_error)");
  table.flag("nic.write_imm_needs_handle", RNIC_FIELD(nic.write_imm_needs_handle), "false")
      .spec("IBTA: no such rule; EFA's SRD refuses with a remote operation error (rdma-core)")
      .means(
          "a WRITE with immediate is refused when the responder has no address handle for "
          "whom it comes from");
  table.flag("nic.write_imm_unsolicited", RNIC_FIELD(nic.write_imm_unsolicited), "false")
      .spec("IBTA vol. 1, 9.4.3: takes a RECV; EFA has a mode without (EFADV_QP_FLAGS_UNSOLICITED)")
      .means("a WRITE with immediate completes at the responder without taking a RECV");
}

}  // namespace

void add_nic_parameters(ParameterTable& table) {
  table.frequency("nic.clock", RNIC_FIELD(nic.clock_hz), "0.5GHz")
      .range(0.01, 10)
      .assumed("usual for network ASICs of that generation; vendors do not tell")
      .means("clock of the NIC's pipelines");
  add_cache_parameters(table);
  add_work_queue(table);
  table.count("nic.tx_slots", RNIC_FIELD(nic.tx_slots), "128")
      .range(1, 4096)
      .in("packets")
      .assumed(
          "0.8 us through translation and a payload fetch at the 160 M packets/s that the stages "
          "take: Little's law; ConnectX presets fit 128 to 192")
      .means("packets between scheduler and wire");
  table.bytes("nic.tx_buffer", RNIC_FIELD(nic.tx_buffer), "128KiB")
      .range(64, 1 << 30)
      .or_word("unlimited", 0)
      .assumed(
          "32 packets of 4 KiB: 2.6 us of 400 Gb/s, more than a payload fetch takes; more only "
          "makes "
          "others wait longer behind a large message")
      .means("payload of those packets, on each lane, once which no further one is picked");
  table.bytes("nic.fetch_granule", RNIC_FIELD(nic.fetch_granule), "packet")
      .range(64, 1 << 20)
      .or_word("packet", 0)
      .measured("latency bends at the MTU on ConnectX-3 (packet), at 4 KiB whatever the MTU later")
      .means("bytes of a message that are in the device before the first of them is sent");
  table.bytes("nic.forward_granule", RNIC_FIELD(nic.forward_granule), "packet")
      .range(64, 1 << 20)
      .or_word("packet", 0)
      .measured(
          "latency of 1 KiB to 4 KiB hardly depends on the MTU on ConnectX-4: 4 KiB there; its "
          "slope "
          "on ConnectX-3 is below three times the wire's: less than a packet")
      .means(
          "bytes of a message that have arrived before the first of them is written to memory: "
          "less "
          "than a packet (cut-through), a packet, or several");
  table.real("nic.message_rate", RNIC_FIELD(nic.message_rate), "0")
      .range(0, 1e5)
      .in("M/s")
      .assumed("0: what the stages take; data sheets state 75 (ConnectX-5 Lx class) to 330 M/s")
      .means(
          "messages of any operation that the send side starts, and requests that the receive side "
          "executes, a second; 0: no limit of its own");
  table.rate("nic.qp_rate", RNIC_FIELD(nic.qp_rate), "unlimited")
      .range(0.001, 100000)
      .or_word("unlimited", 0)
      .assumed("one QP reaches 92 % of 400 Gb/s, half of a bonded pair: limits of larger devices")
      .means("payload that the requests of one QP may move");
  table.time("nic.qp_message_time", RNIC_FIELD(nic.qp_message_time), "0ns")
      .range(0, 1e6)
      .assumed(
          "0: a send queue goes from one message to the next without a gap; ConnectX-6 takes some "
          "0.12 us")
      .means("besides its data (nic.qp_rate), time that a request keeps its QP from the next one");
  table.rate("nic.mpa_crc_rate", RNIC_FIELD(nic.mpa_crc_rate), "unlimited")
      .range(0.001, 100000)
      .or_word("unlimited", 0)
      .assumed("computed in passing; one core of software at 3.5 GB/s: 28Gbps")
      .means("iWARP with tcp.mpa_crc: FPDU bytes that are checked, in each direction");
  table.rate("nic.read_engine_rate", RNIC_FIELD(nic.read_engine_rate), "unlimited")
      .range(0.001, 100000)
      .or_word("unlimited", 0)
      .assumed("one QP's READs reach 329 of 400 Gb/s on ConnectX-7 whatever the window")
      .means("READ data that the responder of one QP may send");
  table.time("nic.read_engine_time", RNIC_FIELD(nic.read_engine_time), "0ns")
      .range(0, 1e6)
      .assumed(
          "0: the engine goes from one READ to the next without a gap; ConnectX-3 takes 0.1 us")
      .means("besides its data, time that a READ keeps the engine of nic.read_engine_rate");
  table.bytes("nic.read_segment", RNIC_FIELD(nic.read_segment), "whole")
      .range(256, 1 << 30)
      .or_word("whole", 0)
      .assumed(
          "IBTA vol. 1, 9.7.5.1.2 lets a requester ask for parts of a READ; ConnectX-7's 4 MiB "
          "READs "
          "at 80 to 88 % of the line are explained so (novitalabs/pegaflow#291)")
      .means(
          "InfiniBand, RoCE: data that one READ request asks for at most, in whole packets of the "
          "MTU; a longer READ is several requests, each of which takes a slot of "
          "transport.max_rd_atomic");
  table.time("nic.sge_time", RNIC_FIELD(nic.sge_time), "0ns")
      .range(0, 1e6)
      .assumed(
          "0: pieces cost their DMA reads only; devices differ: 4 KiB in 8 pieces lost 7 % "
          "(ConnectX-6 Dx) to 23 % (spdk/spdk#2418)")
      .means(
          "time that each scatter/gather entry of a packet behind its first keeps the unit that "
          "gathers payload");
  table.bytes("nic.rx_buffer", RNIC_FIELD(nic.rx_buffer), "auto")
      .range(1024, 1099511627776)
      .or_auto()
      .assumed("20 us of line rate at 100 Gb/s: rides out PCIe back-pressure, allows PFC headroom")
      .means(
          "receive buffer of each virtual lane or priority; auto: 256 KiB, or twice what pauses "
          "need "
          "over the cable (its rate, its delay, link.pfc_*) if that is more");
  add_stages(table);
  add_atomics(table);
  add_unacknowledged(table);
}

}  // namespace rnic::config

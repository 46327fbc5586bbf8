// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_table.h"

namespace rnic::config {
namespace {

constexpr const char* kPipelined =
    "engineering estimate: the stages of a small WRITE add up to about 0.8 us one way, as "
    "published for 100 Gb/s adapters back to back";

/// The three keys of a cache; `evidence` and `why` are set by the caller on what is returned.
template <CacheConfig NicConfig::*Cache>
void add_cache(ParameterTable& table, const std::string& key, const std::string& entries,
               const std::string& entry, const std::string& why) {
  table
      .count(
          key + ".entries", [](Config & c) -> auto& { return (c.nic.*Cache).entries; }, entries)
      .range(1, 1 << 24)
      .in("entries")
      .assumed(why)
      .means("capacity; an entry is " + entry);
  table
      .count(
          key + ".ways", [](Config & c) -> auto& { return (c.nic.*Cache).ways; }, "8")
      .range(1, 1 << 24)
      .in("ways")
      .assumed("usual associativity of on-chip memories of this size; must divide the entries")
      .means("associativity; as many as entries: fully associative");
  table
      .choice<Replacement>(key + ".replacement",
                           [](Config& c, int value) {
                             (c.nic.*Cache).replacement = static_cast<Replacement>(value);
                           },
                           "lru",
                           {{"lru", Replacement::kLru},
                            {"random", Replacement::kRandom},
                            {"tree_plru", Replacement::kTreePlru}})
      .assumed("vendors do not tell; LRU is the reference of the literature")
      .means("replacement within a set");
}

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

void add_caches(ParameterTable& table) {
  add_cache<&NicConfig::qpc_cache>(
      table, "nic.qpc_cache", "4096", "one QP context (256 B in host memory)",
      "between some 250 (ConnectX-3) and 5,600 (ConnectX-5) contexts in published measurements");
  add_cache<&NicConfig::mpt_cache>(
      table, "nic.mpt_cache", "2048", "one memory region or window",
      "above the 100 to 500 keys inferred for ConnectX-3 (LITE, SOSP 2017), as later chips have");
  add_cache<&NicConfig::mtt_cache>(
      table, "nic.mtt_cache", "4096", "one 64 B line of eight page translations",
      "128 MiB of 4 KiB pages; ConnectX-3 covers 8 to 16 MiB (FaRM, NSDI 2014)");
  table.count("nic.context_misses", RNIC_FIELD(nic.context_misses), "16")
      .range(1, 4096)
      .assumed("at least 12 inferred for Connect-IB from its gentle decline with many QPs")
      .means("context fetches (QPC, MPT, MTT) under way at a time");
}

void add_work_queue(ParameterTable& table) {
  table.count("nic.wqe_prefetch", RNIC_FIELD(nic.wqe_prefetch), "8")
      .range(1, 256)
      .in("WQEs")
      .assumed("512 B, one read request of the usual Max_Read_Request_Size")
      .means("WQEs fetched by one DMA read at most");
  table.count("nic.wqe_cache", RNIC_FIELD(nic.wqe_cache), "auto")
      .range(1, 4096)
      .in("WQEs")
      .or_auto()
      .assumed("two fetches, so that the next is under way while one is consumed")
      .means("fetched WQEs buffered for each QP; auto: twice nic.wqe_prefetch");
  table
      .choice<SqPolicy>("nic.sq_scheduler", RNIC_CHOICE(nic.sq_scheduler), "round_robin",
                        {{"round_robin", SqPolicy::kRoundRobin}})
      .assumed("equal QPs are served equally by every adapter measured")
      .means("order in which ready send queues are served");
  table.flag("nic.blueflame", RNIC_FIELD(nic.blueflame), "true")
      .datasheet("mlx5 (rdma-core, providers/mlx5/qp.c): a single WQE is written to the device")
      .means("whether a lone small WQE is written by MMIO instead of being fetched");
  table.bytes("nic.max_inline", RNIC_FIELD(nic.max_inline), "220")
      .range(0, 960)
      .measured("perftest's default on mlx5: WRITE latency steps up beyond 220 B")
      .means("largest inline payload the device accepts");
  table.count("nic.max_sge", RNIC_FIELD(nic.max_sge), "16")
      .range(1, 30)
      .assumed("mlx5 advertises 30; 16 suits common applications")
      .means("scatter/gather entries of a work request at most");
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
  table.time("nic.command_latency", RNIC_FIELD(nic.command_latency), "10us")
      .range(0, 1e9)
      .assumed("firmware runs on a small embedded core; connecting a QP takes milliseconds in all")
      .means("firmware time of one command (create, modify, register)");
}

void add_stages(ParameterTable& table) {
  add_stage<&NicConfig::doorbell>(table, "nic.doorbell", "10", "2", "doorbell decode");
  add_stage<&NicConfig::scheduler>(table, "nic.scheduler", "10", "2", "send queue arbitration");
  add_stage<&NicConfig::qpc_lookup>(table, "nic.qpc_lookup", "5", "2", "QP context cache lookup");
  add_stage<&NicConfig::wqe_decode>(table, "nic.wqe_decode", "10", "2", "WQE decode");
  add_stage<&NicConfig::translation>(table, "nic.translation", "10", "2",
                                     "MPT and MTT cache lookup and access checks");
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
}

}  // namespace

void add_nic_parameters(ParameterTable& table) {
  table.frequency("nic.clock", RNIC_FIELD(nic.clock_hz), "0.5GHz")
      .range(0.01, 10)
      .assumed("usual for network ASICs of that generation; vendors do not tell")
      .means("clock of the NIC's pipelines");
  add_caches(table);
  add_work_queue(table);
  table.count("nic.tx_slots", RNIC_FIELD(nic.tx_slots), "32")
      .range(1, 4096)
      .in("packets")
      .assumed("covers the round trip of a payload fetch at 100 Gb/s from 256 B packets on")
      .means("packets between scheduler and wire");
  table.bytes("nic.rx_buffer", RNIC_FIELD(nic.rx_buffer), "256KiB")
      .range(1024, 1073741824)
      .assumed("20 us of line rate at 100 Gb/s: rides out PCIe back-pressure, allows PFC headroom")
      .means("receive buffer of each virtual lane or priority");
  add_stages(table);
  add_atomics(table);
  add_unacknowledged(table);
}

}  // namespace rnic::config

// SPDX-License-Identifier: Apache-2.0
// The NIC's caches of what lies in host memory: contexts, keys, translations, work requests.
#include "config/parameter_table.h"

namespace rnic::config {
namespace {

constexpr const char* kVendors = "vendors do not tell; LRU is the reference of the literature";

/// What a cache is like unless the user says otherwise.
struct CacheDefaults {
  const char* entries;
  const char* ways;
  const char* entry;     ///< "capacity; an entry is ..."
  const char* evidence;  ///< of the capacity
  bool may_be_unlimited;
};

template <CacheConfig NicConfig::*Cache>
void add_cache(ParameterTable& table, const std::string& key, const CacheDefaults& defaults) {
  Parameter& entries =
      table
          .count(
              key + ".entries", [](Config & c) -> auto& { return (c.nic.*Cache).entries; },
              defaults.entries)
          .range(1, 1 << 24)
          .in("entries")
          .assumed(defaults.evidence)
          .means(std::string("capacity; an entry is ") + defaults.entry);
  if (defaults.may_be_unlimited) entries.or_word("unlimited", 0);
  table
      .count(
          key + ".ways", [](Config & c) -> auto& { return (c.nic.*Cache).ways; }, defaults.ways)
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
      .assumed(kVendors)
      .means("replacement within a set");
  table
      .count(
          key + ".misses", [](Config & c) -> auto& { return (c.nic.*Cache).misses; }, "unlimited")
      .range(1, 4096)
      .or_word("unlimited", 0)
      .assumed("nic.context_misses limits all caches together")
      .means("fetches of this cache under way at a time (miss-status registers)");
}

/// Whether requester and responder have half of the cache each.
template <CacheConfig NicConfig::*Cache>
void add_split(ParameterTable& table, const std::string& key) {
  table
      .flag(
          key + ".split", [](Config & c) -> auto& { return (c.nic.*Cache).split; }, "false")
      .assumed("one memory for both is the usual economy; published curves fit either")
      .means("half of the cache each for requester and responder instead of one for both");
}

/// A small first level in front.
template <CacheConfig NicConfig::*Cache>
void add_first_level(ParameterTable& table, const std::string& key) {
  table
      .count(
          key + ".l0_entries", [](Config & c) -> auto& { return (c.nic.*Cache).l0_entries; },
          "none")
      .range(1, 1 << 20)
      .or_word("none", 0)
      .in("entries")
      .assumed("mlx5 counts Level-0 and Level-1 hits, sizes are not told; none keeps one level")
      .means("capacity of a first level in front of the cache");
  table
      .count(
          key + ".l0_ways", [](Config & c) -> auto& { return (c.nic.*Cache).l0_ways; }, "4")
      .range(1, 1 << 20)
      .in("ways")
      .assumed("small memories are searched at once; must divide the first level's entries")
      .means("associativity of the first level");
}

void add_context(ParameterTable& table) {
  add_cache<&NicConfig::qpc_cache>(
      table, "nic.qpc_cache",
      {"4096", "8", "one QP context (256 B in host memory)",
       "between some 250 (ConnectX-3) and 5,600 (ConnectX-5) contexts in published measurements",
       false});
  add_split<&NicConfig::qpc_cache>(table, "nic.qpc_cache");
  add_cache<&NicConfig::qpc_dual_cache>(
      table, "nic.qpc_dual_cache",
      {"unlimited", "8",
       "what a QP that both sends and receives needs besides its context, with "
       "nic.qpc_layout=by_role",
       "off; ConnectX-7 loses rate beyond some 1,350 such QPs, but none with 32,768 that only send",
       true});
  table.flag("nic.answers_need_context", RNIC_FIELD(nic.answers_need_context), "true")
      .assumed("ConnectX-3: a READ over cold QPs costs two context fetches in a row, not three")
      .means(
          "whether ACKs, READ data and results of atomics look for their QP's context when they "
          "are "
          "sent and received; else what they need has stayed on chip since the request");
  table.count("nic.qpc_cache.fetch", RNIC_FIELD(nic.qpc_fetch), "256")
      .one_of({64, 128, 256})
      .in("B")
      .assumed(
          "a context is read whole; Connect-IB keeps 60 % of its rate over 1,400 QPs, when whole "
          "ones "
          "would fill PCIe")
      .means("bytes of a context that a miss reads");
  table.flag("nic.qpc_cache.write_back", RNIC_FIELD(nic.qpc_write_back), "true")
      .assumed("a used context has moved PSNs and counters, which memory must learn")
      .means("whether a used context that must give way is written to host memory");
  table.flag("nic.qpc_cache.prefetch", RNIC_FIELD(nic.qpc_prefetch), "false")
      .assumed("not known of any device; an experiment")
      .means("whether a doorbell fetches the QP's context before the scheduler asks for it");
  table
      .choice<QpcLayout>("nic.qpc_layout", RNIC_CHOICE(nic.qpc_layout), "unified",
                         {{"unified", QpcLayout::kUnified}, {"by_role", QpcLayout::kByRole}})
      .assumed("ConnectX-7 loses much more with QPs that both send and receive: by_role")
      .means("entries of a QP in the context cache: one, or one for each of its halves in use");
  table.count("nic.qpc_dual_entries", RNIC_FIELD(nic.qpc_dual_entries), "0")
      .range(0, 15)
      .in("entries")
      .assumed("ConnectX-7 sends on 32,768 QPs at full rate, but sends and receives on some 1,350")
      .means("further entries of each half of a QP that uses both, with nic.qpc_layout=by_role");
  table.count("nic.qpc_read_entries", RNIC_FIELD(nic.qpc_read_entries), "0")
      .range(0, 16)
      .in("entries")
      .assumed("ConnectX-6 loses READ rate from 64 QPs on, WRITE rate from thousands: above 0")
      .means("further entries for outstanding READs and atomics, in each half of a QP");
  add_cache<&NicConfig::cqc_cache>(table, "nic.cqc_cache",
                                   {"1024", "8", "one completion queue context (64 B)",
                                    "a CQ for each core of many processes", false});
}

void add_translation(ParameterTable& table) {
  add_cache<&NicConfig::mpt_cache>(
      table, "nic.mpt_cache",
      {"2048", "8", "one memory region or window",
       "above the 100 to 500 keys inferred for ConnectX-3 (LITE, SOSP 2017), as later chips have",
       false});
  add_split<&NicConfig::mpt_cache>(table, "nic.mpt_cache");
  add_first_level<&NicConfig::mpt_cache>(table, "nic.mpt_cache");
  add_cache<&NicConfig::mtt_cache>(
      table, "nic.mtt_cache",
      {"4096", "8", "one line of nic.mtt_cache.line page translations",
       "128 MiB of 4 KiB pages; ConnectX-3 covers 8 to 16 MiB (FaRM, NSDI 2014)", false});
  add_split<&NicConfig::mtt_cache>(table, "nic.mtt_cache");
  add_first_level<&NicConfig::mtt_cache>(table, "nic.mtt_cache");
  table.count("nic.mtt_cache.line", RNIC_FIELD(nic.mtt_line), "8")
      .one_of({1, 2, 4, 8})
      .in("translations")
      .assumed("64 B, what the least PCIe read brings")
      .means("page translations in a line, 8 B each, fetched together");
  table
      .count(
          "nic.mtt_cache.prefetch", [](Config & c) -> auto& { return c.nic.mtt_cache.prefetch; },
          "0")
      .range(0, 64)
      .in("lines")
      .assumed("not known of any device; an experiment")
      .means("lines of the region that are fetched ahead with one that is missing");
  table.flag("nic.dereg_flushes_mtt", RNIC_FIELD(nic.dereg_flushes_mtt), "false")
      .assumed(
          "only what is deregistered goes; on ConnectX-5 storms of deregistrations raised MTT "
          "misses "
          "from 17 to 49 % (Kong et al., Husky, NSDI 2023)")
      .means("whether the end of a region empties the whole MTT cache");
  table.count("nic.mtt_reach", RNIC_FIELD(nic.mtt_reach), "unlimited")
      .range(1, 1e15)
      .in("translations")
      .or_word("unlimited", 18446744073709551616.0)
      .assumed(
          "ConnectX-3 gets slower again beyond 4 GiB of 4 KiB pages (FaRM, NSDI 2014): 1048576; "
          "the "
          "tables themselves are flat")
      .means("translations of a region found by one read; a larger one needs a directory first");
  table.count("nic.mtt_fanout", RNIC_FIELD(nic.mtt_fanout), "512")
      .range(2, 1 << 20)
      .in("entries")
      .assumed("a page of 8 B entries")
      .means("factor by which each further level of directories extends nic.mtt_reach");
  table.count("nic.context_misses", RNIC_FIELD(nic.context_misses), "16")
      .range(1, 4096)
      .assumed("at least 12 inferred for Connect-IB from its gentle decline with many QPs")
      .means("context fetches (QPC, CQC, MPT, MTT) under way at a time");
}

void add_work_requests(ParameterTable& table) {
  add_cache<&NicConfig::wqe_cache>(
      table, "nic.wqe_cache",
      {"unlimited", "8", "the WQE of one READ or atomic that waits for its answer",
       "about 128 inferred for ConnectX-3, 400 for Connect-IB (DrTM+H, OSDI 2018; ATC 2016)",
       true});
  table
      .count(
          "nic.wqe_cache.refetch", [](Config & c) -> auto& { return c.nic.wqe_cache.refetch; },
          "wqe")
      .one_of({64, 128, 256, 512, 1024})
      .or_word("wqe", 0)
      .in("B")
      .assumed(
          "only what is needed is read again; ConnectX-3 reads 7.5 lines of 64 B for each READ "
          "once its "
          "WQEs do not fit (Kalia et al., ATC 2016)")
      .means("aligned piece of a send ring that is read for a WQE that fell out; wqe: it alone");
  add_cache<&NicConfig::rq_wqe_cache>(table, "nic.rq_wqe_cache",
                                      {"unlimited", "8", "one RECV WQE that was fetched ahead",
                                       "mlx5 has a receive WQE cache of a size not told", true});
}

}  // namespace

void add_cache_parameters(ParameterTable& table) {
  add_context(table);
  add_translation(table);
  add_work_requests(table);
}

}  // namespace rnic::config

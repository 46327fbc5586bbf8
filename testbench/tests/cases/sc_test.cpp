// SPDX-License-Identifier: Apache-2.0
// On-NIC caches, scalability, object limits. Caches are scaled down, fully associative.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "support/program.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

double rate_of(const ProgramRun& run) { return run.number("/message_rate_mops"); }
double gbps_of(const ProgramRun& run) { return run.number("/throughput_gbps"); }

/// Look-ups without a read of memory in a cache of `host`, of all, 0 to 1.
double hit_rate(const ProgramRun& run, const std::string& cache,
                const std::string& host = "host0") {
  for (const auto& row : run.result["caches"]) {
    if (row["name"] != host + ".nic." + cache) continue;
    const double hits = row["hits"].get<double>() + row["joined"].get<double>();
    const double misses = row["misses"];
    return hits / std::max(1.0, hits + misses);
  }
  ADD_FAILURE() << "no cache " << cache;
  return 0;
}

/// A cache of `entries`, searched as a whole.
Settings cache(const std::string& name, int entries) {
  return {{"nic." + name + ".entries", std::to_string(entries)},
          {"nic." + name + ".ways", std::to_string(entries)}};
}

std::string limiter(const ProgramRun& run) { return run.result["bottleneck"]["unit"]; }

const Settings kStream{{"workload.pattern", "bandwidth"}, {"sim.payload", "none"}};

/// READs in sequence on 100 Gb/s into `regions` of `size`, on a device that needs a directory
/// beyond 4 GiB of 4 KiB pages and fetches two translations at a time.
Settings into_regions(const char* regions, const char* size, const char* page) {
  return with(kStream, {{"transport.protocol", "rocev2"},
                        {"link.rate", "100Gbps"},
                        {"workload.op", "read"},
                        {"workload.msg_size", "64KiB"},
                        {"workload.depth", "16"},
                        {"workload.iterations", "600"},
                        {"sim.warmup", "100"},
                        {"nic.mtt_cache.line", "2"},
                        {"nic.mtt_reach", "1048576"},
                        {"workload.mrs", regions},
                        {"workload.mr_size", size},
                        {"memory.page_size", page}});
}

TEST(CaseSC, SC01_OneLargeRegionAgainstTwoSmallerOnes) {
  // A line of two translations is missing every 8 KiB and costs one serial read of memory, or two:
  // 8 KiB in t against t + 0.45 us.
  for (const char* iommu : {"false", "true"}) {
    SCOPED_TRACE(iommu);
    const auto run = [iommu](const char* regions, const char* size, const char* page) {
      return run_well(with(into_regions(regions, size, page), {{"iommu.enabled", iommu}}));
    };
    const ProgramRun one = run("1", "6656MiB", "4KiB");
    const ProgramRun two = run("2", "3584MiB", "4KiB");
    EXPECT_GE(gbps_of(one) / gbps_of(two), 0.6);
    EXPECT_LE(gbps_of(one) / gbps_of(two), 0.7);
    EXPECT_EQ(limiter(one), "host0.nic.translation");
    EXPECT_NE(one.result["bottleneck"]["why"].get<std::string>().find("mtt_cache"),
              std::string::npos);
    // Regions of 1 and 3.5 GiB are alike.
    EXPECT_NEAR(gbps_of(run("1", "1GiB", "4KiB")), gbps_of(two), 0.01 * gbps_of(two));
    EXPECT_NEAR(gbps_of(run("1", "3584MiB", "4KiB")), gbps_of(two), 0.01 * gbps_of(two));
    EXPECT_NEAR(gbps_of(run("1", "6656MiB", "2MiB")), gbps_of(run("2", "3584MiB", "2MiB")),
                0.01 * gbps_of(two));
    EXPECT_NEAR(gbps_of(run("1", "6656MiB", "2MiB")), 98, 1);
  }
}

TEST(CaseSC, SC03_ARegionForEachBuffer) {
  // 64 B SENDs of eight threads, one call at a time each as in RPC: a miss at each end is part of
  // the call. A region for each buffer of each thread at both ends; 512 keys on chip.
  const auto run = [](int regions) {
    return run_well(with(kStream, {{"workload.op", "send"},
                                   {"workload.msg_size", "64"},
                                   {"workload.threads", "8"},
                                   {"workload.qps", "8"},
                                   {"workload.outstanding", "1"},
                                   {"workload.mrs", std::to_string(regions)},
                                   {"workload.mr_size", "64"},
                                   {"workload.iterations", "1500"},
                                   {"sim.warmup", "400"},
                                   {"nic.mpt_cache.entries", "512"}}));
  };
  const ProgramRun one = run(1);
  const ProgramRun fits = run(40);   // 320
  const ProgramRun many = run(128);  // 1024
  EXPECT_NEAR(rate_of(fits), rate_of(one), 0.02 * rate_of(one));
  EXPECT_GE(rate_of(one) / rate_of(many), 1.3);
  EXPECT_LE(rate_of(one) / rate_of(many), 1.7);
  EXPECT_GT(hit_rate(fits, "mpt_cache"), 0.99);
  EXPECT_LT(hit_rate(many, "mpt_cache"), 0.05);
}

TEST(CaseSC, SC03_BuffersAtRandomAtBothEnds) {
  // As above with several calls at a time, to buffers in random order: the RECVs' buffers, too. Of
  // 1,024 regions 512 keys hold half, at either end.
  const auto run = [](const char* regions, const char* access) {
    return run_well(with(kStream, {{"workload.op", "send"},
                                   {"workload.msg_size", "64"},
                                   {"workload.threads", "8"},
                                   {"workload.qps", "8"},
                                   {"workload.depth", "8"},
                                   {"workload.mrs", regions},
                                   {"workload.mr_size", "64"},
                                   {"workload.access", access},
                                   {"workload.iterations", "12000"},
                                   {"sim.warmup", "4000"},
                                   {"nic.context_misses", "4"},
                                   {"nic.mpt_cache.entries", "512"}}));
  };
  const ProgramRun many = run("128", "random");
  for (const char* host : {"host0", "host1"}) {
    EXPECT_NEAR(hit_rate(many, "mpt_cache", host), 0.5, 0.06) << host;
  }
  EXPECT_GT(rate_of(run("1", "random")), 1.3 * rate_of(many));
  // A popular few fit: most of the look-ups hit.
  const ProgramRun popular = run("128", "zipf");
  for (const char* host : {"host0", "host1"}) {
    EXPECT_GT(hit_rate(popular, "mpt_cache", host), 0.7) << host;
  }
}

TEST(CaseSC, SC03_RandomBuffersHoldWhatWasSent) {
  for (const char* op : {"send", "send_imm", "write_imm"}) {
    for (const char* access : {"random", "zipf"}) {
      for (const char* both : {"false", "true"}) {
        run_well({{"workload.op", op},
                  {"workload.pattern", "bandwidth"},
                  {"workload.msg_size", "1000"},
                  {"workload.mr_size", "256KiB"},
                  {"workload.access", access},
                  {"workload.qps", "3"},
                  {"workload.bidirectional", both},
                  {"workload.iterations", "600"}});
      }
    }
  }
}

TEST(CaseSC, SC04_ManyQueuePairs) {
  // A cache of 64 contexts, two fetches of about 0.4 us at a time: 5 M/s in all. Two threads post
  // 11.6 M/s on queue pairs drawn at random. With nine times as many queue pairs as entries a
  // message's WQE misses nearly always, and its acknowledgement rarely: half of the peak.
  const Settings base =
      with(with(kStream, cache("qpc_cache", 64)), {{"nic.context_misses", "2"},
                                                   {"workload.threads", "2"},
                                                   {"workload.qp_order", "random"},
                                                   {"workload.outstanding", "64"},
                                                   {"workload.signal_every", "1"},
                                                   {"workload.inline_max", "64"},
                                                   {"sim.warmup", "2000"},
                                                   {"workload.iterations", "6000"}});
  const auto run = [&base](const char* qps, const Settings& more = {}) {
    return run_well(with(with(base, {{"workload.qps", qps}}), more));
  };
  const double peak = rate_of(run("16"));
  EXPECT_NEAR(rate_of(run("60")), peak, 0.02 * peak);
  double before = peak;
  for (const char* qps : {"96", "288", "580"}) {
    const ProgramRun many = run(qps);
    EXPECT_LT(rate_of(many), before * 1.01) << qps;
    before = rate_of(many);
    if (std::string(qps) != "96") {
      EXPECT_EQ(limiter(many), "host0.nic.qpc_cache") << qps;
    }
  }
  EXPECT_GE(before / peak, 0.35);
  EXPECT_LE(before / peak, 0.6);
  // Fetches bound the rate: half as many at a time, half the rate.
  EXPECT_NEAR(rate_of(run("580", {{"nic.context_misses", "1"}})), before / 2, 0.06 * before);
  // A message of 64 KiB keeps the wire busy for 13 fetches.
  const Settings large{{"workload.msg_size", "64KiB"},
                       {"workload.iterations", "2000"},
                       {"sim.warmup", "600"},
                       {"workload.inline_max", "0"}};
  EXPECT_NEAR(gbps_of(run("192", large)), gbps_of(run("16", large)), 0.02 * 98);
}

TEST(CaseSC, SC04_AsManyContextsAsTheStudyHad) {
  // 450 contexts. At 4,096 queue pairs 0.89 of the messages miss; two fetches at a time of some
  // 0.45 us: 2 / (0.89 x 0.45 us) = 5.0 M/s of 11.6, or a little less for write-backs.
  const auto run = [](const char* qps) {
    return run_well(
        with(with(kStream, cache("qpc_cache", 450)), {{"nic.context_misses", "2"},
                                                      {"workload.threads", "2"},
                                                      {"workload.qp_order", "random"},
                                                      {"workload.outstanding", "64"},
                                                      {"workload.signal_every", "1"},
                                                      {"workload.inline_max", "64"},
                                                      {"workload.mr_per_qp", "false"},
                                                      {"workload.qps", qps},
                                                      {"sim.warmup", "6000"},
                                                      {"workload.iterations", "14000"}}));
  };
  const double peak = rate_of(run("16"));
  EXPECT_NEAR(rate_of(run("448")), peak, 0.02 * peak);
  double before = peak;
  for (const char* qps : {"1024", "4096", "8192"}) {
    const ProgramRun many = run(qps);
    EXPECT_LT(rate_of(many), before) << qps;
    before = rate_of(many);
    EXPECT_EQ(limiter(many), "host0.nic.qpc_cache") << qps;
    if (std::string(qps) == "4096") {
      EXPECT_GE(before / peak, 0.4);
      EXPECT_LE(before / peak, 0.6);
    }
  }
}

/// 64 B WRITEs, one at a time, each to one of `peers` at random: over a reliable connection to
/// each, or over one queue pair that connects anew. 32 contexts on chip.
ProgramRun to_peers(int peers, bool dynamic, const Settings& more = {}) {
  const std::string count = std::to_string(peers);
  const Settings how = dynamic ? Settings{{"workload.qps", "1"}, {"dc.targets", count}}
                               : Settings{{"workload.qps", count}, {"workload.qp_order", "random"}};
  return run_well(
      with(with(with(with(kStream, cache("qpc_cache", 32)), {{"workload.inline_max", "64"},
                                                             {"workload.outstanding", "1"},
                                                             {"workload.mr_per_qp", "false"},
                                                             {"workload.iterations", "4000"},
                                                             {"dc.connect_time", "700ns"}}),
                how),
           more));
}

TEST(CaseSC, SC06_DynamicConnectionsPayOffBeyondSomePeers) {
  const auto latency = [](int peers, bool dynamic, const Settings& more = {}) {
    return to_peers(peers, dynamic, more).number("/latency_ns/mean");
  };
  // Few peers: all contexts fit. A message in `peers` stays with the peer of the last.
  const double connected = latency(16, false);
  const double once = latency(16, true);
  EXPECT_NEAR(once - connected, 700 * 15.0 / 16, 15);
  // Flat in the number of peers.
  EXPECT_NEAR(latency(512, true) - connected, 700 * 511.0 / 512, 15);
  // Reliable connections miss contexts more and more, at both ends: two PCIe reads of about 450 ns.
  double before = connected;
  for (const int peers : {64, 128, 512}) {
    const double now = latency(peers, false);
    EXPECT_GT(now, before) << peers;
    EXPECT_NEAR(now - connected, 2 * 480 * (1 - 32.0 / peers), 80) << peers;
    before = now;
  }
  // They cross where 960 ns x (1 - 32 / n) = 700 ns: at 118 peers; with a cheaper miss further on.
  EXPECT_LT(latency(64, false), latency(64, true));
  EXPECT_GT(latency(256, false), latency(256, true));
  const Settings cheap{{"memory.read_latency", "50ns"}, {"pcie.latency", "120ns"}};
  EXPECT_LT(latency(256, false, cheap), latency(256, true, cheap));
}

TEST(CaseSC, SC06_EachChangeOfPeerIsAConnection) {
  // The device draws peers from a stream of its own: as many connections as neighbours differ.
  constexpr int kMessages = 1000;
  constexpr std::uint64_t kPeers = 5;
  const ProgramRun run =
      run_well(with(kStream, {{"dc.targets", std::to_string(kPeers)},
                              {"workload.msg_size", "32"},
                              {"workload.op", "read"},
                              {"workload.depth", "16"},
                              {"sim.warmup", "0"},
                              {"workload.iterations", std::to_string(kMessages)}}));
  Rng draws(1, "host0.nic.connections");
  std::uint64_t changes = 0;
  std::uint64_t last = kPeers;
  for (int i = 0; i < kMessages; ++i) {
    const std::uint64_t peer = draws.below(kPeers);
    changes += peer != last ? 1U : 0U;
    last = peer;
  }
  EXPECT_EQ(run.counter("dc_connects"), changes);
  EXPECT_EQ(limiter(run), "host0.nic.qp_engine");
}

TEST(CaseSC, SC06_MoreInitiatorsHideConnectionsUpToTheDevicesLimit) {
  // Each of a thread's queue pairs connects while others send; the device makes one in 55 ns.
  const auto rate = [](const char* qps) {
    return rate_of(run_well(with(kStream, {{"dc.targets", "5"},
                                           {"dc.connect_interval", "55ns"},
                                           {"workload.op", "read"},
                                           {"workload.msg_size", "32"},
                                           {"workload.threads", "8"},
                                           {"workload.qps", qps},
                                           {"workload.depth", "16"},
                                           {"workload.iterations", "24000"},
                                           {"sim.warmup", "2000"}})));
  };
  const double one = rate("8");
  const double four = rate("32");
  EXPECT_GT(four, 1.8 * one);
  // Four in five messages change the peer: 1 / (0.8 x 55 ns).
  EXPECT_LE(four, 1.02 * 1e3 / (0.8 * 55));
  EXPECT_NEAR(rate("64"), 1e3 / (0.8 * 55), 0.05 * 1e3 / (0.8 * 55));
}

/// Small READs over `qps` queue pairs with `window` each, on a device that holds 128 WQEs and 64
/// contexts; or with so many outstanding in all.
ProgramRun reads(int qps, int window, int total = 0) {
  Settings settings = with(with(with(kStream, cache("wqe_cache", 128)), cache("qpc_cache", 64)),
                           {{"workload.op", "read"},
                            {"workload.threads", "4"},
                            {"workload.qps", std::to_string(qps)},
                            {"workload.depth", std::to_string(window)},
                            {"transport.max_rd_atomic", std::to_string(std::min(window, 32))},
                            {"nic.max_rd_atomic", "32"},
                            {"nic.context_misses", "2"},
                            {"nic.tx_slots", "32"},
                            {"nic.wqe_cache.misses", "2"},
                            {"link.delay", "4us"},
                            {"link.flow_control", "none"},
                            {"transport.protocol", "rocev2"},
                            {"sim.warmup", "2000"},
                            {"workload.iterations", "8000"}});
  if (total > 0) settings.emplace_back("workload.outstanding", std::to_string(total / 4));
  return run_well(settings);
}

TEST(CaseSC, SC08_TwoKneesWithTheirOwnCounters) {
  const ProgramRun small = reads(16, 1);
  const ProgramRun wide = reads(16, 4);    // 64 WQEs: both fit
  const ProgramRun deep = reads(16, 32);   // 512 WQEs in 16 contexts
  const ProgramRun broad = reads(256, 1);  // 256 WQEs in 256 contexts
  EXPECT_GT(rate_of(wide), 2 * rate_of(small));
  EXPECT_GT(hit_rate(wide, "wqe_cache"), 0.99);
  EXPECT_GT(hit_rate(wide, "qpc_cache"), 0.99);
  EXPECT_LT(hit_rate(deep, "wqe_cache"), 0.5);
  EXPECT_GT(hit_rate(deep, "qpc_cache"), 0.99);
  EXPECT_LT(hit_rate(broad, "qpc_cache"), 0.7);
  // A cap on what is outstanding in all removes the first knee only.
  const ProgramRun capped = reads(256, 1, 64);
  EXPECT_GT(hit_rate(capped, "wqe_cache"), 0.99);
  EXPECT_LT(hit_rate(capped, "qpc_cache"), 0.7);
}

TEST(CaseSC, SC09_TheRateOfReadsHasABestDepth) {
  // 64 WQEs fit; beyond, each answer fetches its WQE again, two at a time.
  std::vector<double> rates;
  for (const int window : {1, 4, 8, 32}) rates.push_back(rate_of(reads(16, window)));
  EXPECT_LT(rates[0], rates[1]);
  EXPECT_LT(rates[1], rates[2]);
  EXPECT_LT(rates[3], rates[2]);  // falls at the largest depth
}

TEST(CaseSC, SC09_SharedDoorbellRegistersStopScaling) {
  const auto rate = [](const char* threads, const char* registers) {
    return rate_of(run_well(with(kStream, {{"workload.threads", threads},
                                           {"workload.qps", threads},
                                           {"workload.msg_size", "8"},
                                           {"workload.depth", "8"},
                                           {"cpu.doorbell_registers", registers},
                                           {"workload.iterations", "16000"}})));
  };
  // A register is held for about 100 ns a message: two of them take 20 M/s.
  EXPECT_NEAR(rate("2", "2"), rate("2", "unlimited"), 0.05 * rate("2", "unlimited"));
  const double shared4 = rate("4", "2");
  const double shared8 = rate("8", "2");
  EXPECT_LT(shared8, 1.05 * shared4);
  EXPECT_LT(shared8, 20);
  EXPECT_GT(rate("8", "unlimited"), 1.7 * rate("4", "unlimited"));
  EXPECT_GT(rate("8", "unlimited"), 1.5 * shared8);
}

TEST(CaseSC, SC11_TheTableOfRegionsIsFull) {
  VerbsRig rig({{"nic.max_mr", "100"}, {"transport.protocol", "rocev2"}});
  rig.run([&rig] {
    rig.connect();
    std::vector<RigBuffer> buffers;
    const RigBuffer target = rig.b.buffer(4096);
    for (int i = 0; i < 100; ++i) buffers.push_back(rig.a.buffer(i % 2 == 0 ? 4096 : 65536));
    const std::uint64_t address = rig.a.space().map(4096);
    EXPECT_EQ(rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, address, 4096, kAllAccess).status,
              host::Status::kEnomem);
    // Those that exist go on working, and one that goes makes room.
    for (const RigBuffer& buffer : {buffers.front(), buffers.back()}) {
      EXPECT_EQ(rig.a.post(host::verbs::WrOpcode::kRdmaWrite, buffer.address, buffer.region.lkey,
                           64, target.address, target.region.rkey),
                host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    }
    EXPECT_EQ(rig.a.verbs().dereg_mr(rig.a.core, buffers.front().region), host::Status::kOk);
    EXPECT_EQ(rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, address, 4096, kAllAccess).status,
              host::Status::kOk);
  });
}

}  // namespace
}  // namespace rnic::testbench

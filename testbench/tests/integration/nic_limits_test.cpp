// SPDX-License-Identifier: Apache-2.0
// What measurements of real NICs show, in small: bounds by formula, knees, order and ratio.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/program.h"

namespace rnic::testbench {
namespace {

double rate_of(const ProgramRun& run) { return run.number("/message_rate_mops"); }
double p50(const ProgramRun& run) { return run.number("/latency_ns/p50"); }
std::string limiter(const ProgramRun& run) { return run.result["bottleneck"]["unit"]; }

double latency(const Settings& settings) {
  return p50(run_well(with({{"workload.iterations", "40"}, {"sim.payload", "none"}}, settings)));
}

ProgramRun stream(const Settings& settings) {
  return run_well(with({{"workload.pattern", "bandwidth"}, {"sim.payload", "none"}}, settings));
}

TEST(NicLimitsTest, TheSlowestInitiationIntervalBoundsTheRate) {
  // One unit after the other takes 60 cycles of 2 ns for each message: 8.33 M/s, while four threads
  // could post 25 M/s.
  // Scheduler, packetizer and parser of the peer have as much to do, with an ACK for each.
  const std::vector<std::pair<std::string, std::string>> units{
      {"doorbell", "host0.nic.doorbell"},      {"scheduler", "nic.sq_scheduler"},
      {"wqe_decode", "host0.nic.wqe_fetcher"}, {"translation", "nic.translation"},
      {"packetizer", "nic.packetizer"},        {"rx_parse", "nic.rx_pipeline"},
      {"responder", "host1.nic.responder"},    {"completion", "host0.nic.completion"}};
  for (const auto& [key, unit] : units) {
    const ProgramRun run = stream({{"nic." + key + ".interval", "60"},
                                   {"workload.threads", "4"},
                                   {"workload.qps", "4"},
                                   {"workload.depth", "64"},
                                   {"workload.signal_every", "1"},
                                   {"workload.iterations", "3000"},
                                   {"sim.warmup", "1000"}});
    EXPECT_LE(rate_of(run), 8.34 * 1.005) << key;
    EXPECT_GE(rate_of(run), 8.33 * 0.95) << key;
    EXPECT_NE(limiter(run).find(unit), std::string::npos) << key << " but " << limiter(run);
  }
}

TEST(NicLimitsTest, ReadsAreBoundedByTheirWindow) {
  // Outstanding x size / round trip, until the responder's wire is full. The round trip is that of
  // the device: from the choice of the READ to its last byte, without what the CPU does before and
  // after and without the CQE. Whether the READ's slot is free when its last byte arrives or when
  // it is in memory lies between the two bounds.
  const Settings base{
      {"workload.op", "read"},       {"workload.msg_size", "4KiB"},    {"link.delay", "2us"},
      {"link.flow_control", "none"}, {"transport.protocol", "rocev2"}, {"workload.depth", "64"},
      {"workload.iterations", "800"}};
  const ProgramRun single = run_well({{"workload.op", "read"},
                                      {"workload.msg_size", "4KiB"},
                                      {"link.delay", "2us"},
                                      {"link.flow_control", "none"},
                                      {"transport.protocol", "rocev2"},
                                      {"workload.iterations", "40"}});
  const double longest = single.number("/latency_ns/mean") - single.stage("post") -
                         single.stage("doorbell") - single.stage("completion") -
                         single.stage("poll");
  const double shortest = longest - single.stage("placement");
  EXPECT_GT(shortest, 2 * 2000 + 2 * 450);  // the wire twice, and a read of memory, at least
  const double line = 100.0 * 4096 / 4178;
  for (const int window : {1, 2, 4, 8, 16, 32}) {
    const ProgramRun run = stream(with(
        base, {{"transport.max_rd_atomic", std::to_string(window)}, {"nic.max_rd_atomic", "32"}}));
    const double gbps = run.number("/throughput_gbps");
    EXPECT_GE(gbps, 0.99 * std::min(line, window * 4096 * 8 / longest)) << window;
    EXPECT_LE(gbps, 1.01 * std::min(line, window * 4096 * 8 / shortest)) << window;
    // 16 fill the wire to 94 %: either may be named.
    if (window != 16) {
      EXPECT_EQ(limiter(run), window < 16 ? "transport.max_rd_atomic" : "host1.nic.port") << window;
    }
  }
}

TEST(NicLimitsTest, AReadKeepsTheEngineOfItsQueuePairBesidesItsData) {
  // 1 KiB at 32 Gb/s and 99 ns: a READ each 256 + 99 ns. 4 KiB in packets of 1 KiB: 1024 + 99 ns.
  // Two queue pairs have two engines. WRITEs do not use them.
  const Settings base{{"workload.op", "read"},          {"transport.protocol", "rocev2"},
                      {"transport.mtu", "1024"},        {"nic.read_engine_rate", "32Gbps"},
                      {"nic.read_engine_time", "99ns"}, {"workload.depth", "64"},
                      {"workload.iterations", "2000"},  {"sim.warmup", "500"}};
  const auto rate = [&base](const Settings& settings) {
    return rate_of(stream(with(base, settings)));
  };
  EXPECT_NEAR(rate({{"workload.msg_size", "1KiB"}}), 1e3 / (256 + 99), 0.01 * 2.82);
  EXPECT_NEAR(rate({{"workload.msg_size", "4KiB"}}), 1e3 / (1024 + 99), 0.01 * 0.89);
  EXPECT_NEAR(rate({{"workload.msg_size", "4KiB"}, {"workload.qps", "2"}}), 2e3 / (1024 + 99),
              0.02 * 1.78);
  EXPECT_GT(rate({{"workload.msg_size", "4KiB"}, {"workload.op", "write"}}), 2.5);
  EXPECT_EQ(limiter(stream(with(base, {{"workload.msg_size", "1KiB"}}))), "host1.nic.qp_engine");
}

TEST(NicLimitsTest, AMessageKeepsItsQueuePairBesidesItsData) {
  // 1 KiB at 64 Gb/s and 99 ns: 128 + 99 ns. 4 KiB in packets of 1 KiB: 512 + 99. Without a limit
  // for the data, 399 ns. Two queue pairs have two engines.
  const Settings base{{"transport.protocol", "rocev2"}, {"transport.mtu", "1024"},
                      {"nic.qp_rate", "64Gbps"},        {"nic.qp_message_time", "99ns"},
                      {"workload.depth", "64"},         {"workload.post_batch", "16"},
                      {"workload.iterations", "2000"},  {"sim.warmup", "500"}};
  const auto rate = [&base](const Settings& settings) {
    return rate_of(stream(with(base, settings)));
  };
  for (const char* op : {"write", "send"}) {
    const Settings of{{"workload.op", op}};
    EXPECT_NEAR(rate(with(of, {{"workload.msg_size", "1KiB"}})), 1e3 / 227, 0.01 * 1e3 / 227);
    EXPECT_NEAR(rate(with(of, {{"workload.msg_size", "4KiB"}})), 1e3 / 611, 0.01 * 1e3 / 611);
    EXPECT_NEAR(rate(with(of, {{"workload.msg_size", "1KiB"}, {"workload.qps", "2"}})), 2e3 / 227,
                0.02 * 2e3 / 227);
  }
  const Settings small{
      {"workload.msg_size", "8B"}, {"nic.qp_rate", "unlimited"}, {"nic.qp_message_time", "399ns"}};
  EXPECT_NEAR(rate(small), 1e3 / 399, 0.01 * 1e3 / 399);
  EXPECT_EQ(limiter(stream(with(base, small))), "host0.nic.qp_engine");
}

TEST(NicLimitsTest, AReadsAnswerMayTakeLonger) {
  const Settings read{{"workload.op", "read"}};
  const double added = latency(with(read, {{"nic.read_response_time", "120ns"}})) - latency(read);
  EXPECT_NEAR(added, 120, 2);
  const Settings write{{"workload.op", "write"}};
  EXPECT_EQ(latency(with(write, {{"nic.read_response_time", "120ns"}})), latency(write));
}

TEST(NicLimitsTest, AnswersThatNeedNoContextSpareAFetch) {
  // 48 queue pairs in turn on 16 entries, one READ at a time, one fetch at a time: a READ waits for
  // the context at its requester, at the responder, and where the answer comes in - the last one
  // was used for the READ itself and is still there, unless 16 others have been used since. With
  // eight READs in flight on random queue pairs it often is not.
  const auto rate = [](const char* needed) {
    return rate_of(stream({{"workload.op", "read"},
                           {"workload.msg_size", "8"},
                           {"nic.answers_need_context", needed},
                           {"nic.qpc_cache.entries", "16"},
                           {"nic.qpc_cache.ways", "16"},
                           {"nic.context_misses", "1"},
                           {"workload.qps", "48"},
                           {"workload.qp_order", "random"},
                           {"workload.bidirectional", "true"},
                           {"workload.threads", "4"},
                           {"workload.outstanding", "8"},
                           {"workload.iterations", "1500"},
                           {"sim.warmup", "400"}}));
  };
  EXPECT_GT(rate("false"), 1.2 * rate("true"));
}

TEST(NicLimitsTest, WhoWaitsForAllOfABatchSendsItOnceARoundTrip) {
  // 16 READs and then all their answers: one by one they take 16 posts of 135 ns and what is left
  // of a READ behind its post, and at most one further post's time until the program has found and
  // digested the CQE. As a list, the posts but one save 25 of 40 ns and their doorbells; the device
  // reads the WQEs of a list from memory first, eight at a time: twice 0.45 us of PCIe and up to
  // 0.1 us of its pipelines.
  const Settings base{{"workload.op", "read"},         {"workload.msg_size", "8"},
                      {"workload.depth", "16"},        {"workload.post_batch", "16"},
                      {"workload.signal_every", "16"}, {"workload.iterations", "1600"},
                      {"cpu.post_cost", "40ns"},       {"cpu.doorbell_cost", "95ns"},
                      {"cpu.list_saving", "25ns"},     {"sim.warmup", "160"}};
  const double one = latency({{"workload.op", "read"},
                              {"workload.msg_size", "8"},
                              {"cpu.post_cost", "40ns"},
                              {"cpu.doorbell_cost", "95ns"}});
  const auto period = [&base](const Settings& settings) {
    return 16e3 / rate_of(stream(with(base, settings)));
  };
  const double singly = period({{"workload.batch_as_list", "false"}});
  EXPECT_GT(singly, one + 15 * 135);
  EXPECT_LT(singly, one + 16 * 135);
  const double list = period({});
  const double saved = one + 15 * 15;
  EXPECT_GT(list, saved + 2 * 450);
  EXPECT_LT(list, saved + 2 * 550 + 135);
  EXPECT_NEAR(period({{"cpu.list_saving", "0ns"}}) - list, 15 * 25, 30);
}

TEST(NicLimitsTest, ThreadsThatShareAQueuePairPayForItsLock) {
  // A post takes 135 ns of its own; the lock comes from another core in 60 ns, and 8 ns later for
  // each thread beyond two.
  const auto period = [](const char* sharers) {
    return 1e3 / rate_of(stream({{"cpu.post_cost", "40ns"},
                                 {"cpu.doorbell_cost", "95ns"},
                                 {"cpu.lock_wait", "60ns"},
                                 {"cpu.lock_crowd", "8ns"},
                                 {"workload.msg_size", "8"},
                                 {"workload.qp_sharers", sharers},
                                 {"workload.iterations", "4000"},
                                 {"sim.warmup", "500"}}));
  };
  const double alone = period("1");
  EXPECT_NEAR(period("2") - alone, 60, 1);
  EXPECT_NEAR(period("3") - alone, 68, 1);
  EXPECT_NEAR(period("9") - alone, 116, 1);
}

// Latency
// --------------------------------------------------------------------------------------------

TEST(NicLimitsTest, InlineEndsWithAStep) {
  // Beyond the limit the payload is read over PCIe: one round trip, 300 ns of link and 150 ns of
  // memory. A READ has no such step.
  const auto of = [](const char* op, const char* size) {
    return latency({{"workload.op", op}, {"workload.msg_size", size}});
  };
  const double step = of("write", "221") - of("write", "220");
  EXPECT_GT(step, 440);
  EXPECT_LT(step, 600);
  EXPECT_LT(of("write", "220") - of("write", "120"), 60);
  EXPECT_LT(of("read", "256") - of("read", "128"), 60);
}

TEST(NicLimitsTest, TwoSlopesBendAtTheGranule) {
  // Up to the granule a byte is fetched, sent and delivered one after the other; beyond, these
  // overlap and the wire's rate is what is left.
  const double wire = 8.0 / 100;  // ns a byte
  const auto slope = [](const Settings& settings, const char* from, const char* to) {
    const auto at = [&settings](const char* size) {
      return latency(with(settings, {{"workload.msg_size", size}}));
    };
    return (at(to) - at(from)) / (std::stod(to) - std::stod(from));
  };
  const Settings by_packet{{"transport.mtu", "2048"}};
  EXPECT_GT(slope(by_packet, "512", "2048"), 1.8 * wire);
  EXPECT_LT(slope(by_packet, "2048", "8192"), 1.6 * wire);
  EXPECT_NEAR(slope(by_packet, "16384", "65536"), wire, 0.07 * wire);
  // A granule of 4 KiB: where the bend is does not depend on the MTU.
  const Settings by_granule{{"transport.mtu", "1024"}, {"nic.fetch_granule", "4KiB"}};
  EXPECT_GT(slope(by_granule, "1024", "4096"), 1.4 * wire);
  EXPECT_NEAR(slope(by_granule, "16384", "65536"), wire, 0.07 * wire);
  const auto at_4k = [](const char* mtu, const char* granule) {
    return latency(
        {{"workload.msg_size", "4096"}, {"transport.mtu", mtu}, {"nic.fetch_granule", granule}});
  };
  EXPECT_LT(at_4k("4096", "4KiB") - at_4k("1024", "4KiB"),
            0.6 * (at_4k("4096", "packet") - at_4k("1024", "packet")));
}

TEST(NicLimitsTest, TheReceiverPassesOnGranulesOfAPacket) {
  // A message in one packet of P = 4,096 B: fetch, wire and placement one after the other. A
  // receiver that passes on g bytes at a time writes them while the rest comes in, so that P - g
  // bytes of the faster of both ways are saved. PCIe: 16 GT/s x lanes x 128/130 (8 GT/s in
  // generation 3), no DLLPs, 256 of 280 B; the wire: 100 Gb/s.
  const auto at = [](const char* granule, const char* gen, const char* lanes) {
    return latency({{"workload.msg_size", "4096"},
                    {"transport.mtu", "4096"},
                    {"pcie.gen", gen},
                    {"pcie.lanes", lanes},
                    {"pcie.dllp_overhead", "0"},
                    {"nic.forward_granule", granule}});
  };
  const double fast_pcie = 8 / (16.0 * 16 * 128 / 130 * 256 / 280);  // ns a byte: 230 Gb/s
  EXPECT_NEAR(at("packet", "4", "16") - at("256", "4", "16"), (4096 - 256) * fast_pcie, 2.1);
  EXPECT_NEAR(at("packet", "4", "16") - at("1KiB", "4", "16"), (4096 - 1024) * fast_pcie, 2.1);
  const double wire = 8.0 / 100;  // PCIe 3.0 x8 has 57.6 Gb/s
  EXPECT_NEAR(at("packet", "3", "8") - at("1KiB", "3", "8"), (4096 - 1024) * wire, 2.1);
  EXPECT_EQ(at("packet", "4", "16"), at("4096", "4", "16"));
}

TEST(NicLimitsTest, TheReceiverWaitsForAGranuleOfSeveralPackets) {
  // Granules of 4 KiB at both ends: what the MTU changes is 26 B of headers a packet (InfiniBand,
  // LRH, BTH, ICRC and VCRC), 2.1 ns each; the first has a RETH at any MTU. Times are multiples of
  // the clock's 2 ns.
  const auto at = [](const std::string& op, const char* size, const char* mtu,
                     const char* granule) {
    return latency({{"workload.op", op},
                    {"workload.msg_size", size},
                    {"transport.mtu", mtu},
                    {"nic.fetch_granule", "4KiB"},
                    {"nic.forward_granule", granule}});
  };
  const double header = 26 * 0.08;
  for (const std::string op : {"write", "send", "read"}) {
    SCOPED_TRACE(op);
    EXPECT_NEAR(at(op, "1024", "256", "4KiB") - at(op, "1024", "4096", "4KiB"), 3 * header, 4);
    const double spread = at(op, "4096", "256", "4KiB") - at(op, "4096", "4096", "4KiB");
    EXPECT_LE(spread, 15 * header + 4);
    // A SEND's first packet looks for its RECV while the others come.
    EXPECT_GE(spread, op == "send" ? 0 : 15 * header - 4);
    // Packet by packet, all but the last are written before that one is there.
    EXPECT_LT(at(op, "4096", "256", "packet"), at(op, "4096", "256", "4KiB") - 100);
  }
  // Granules follow each other: 64 KiB take one placement of 4 KiB more, however many there are.
  EXPECT_NEAR(at("write", "65536", "1024", "4KiB") - at("write", "65536", "1024", "packet"),
              at("write", "4096", "1024", "4KiB") - at("write", "4096", "1024", "packet"), 6);
}

TEST(NicLimitsTest, ForwardedGranulesArriveIntactAtFullRate) {
  // Also where the granules of all queue pairs do not fit (half of nic.rx_buffer), with losses, and
  // with buffers of several pieces.
  for (const char* protocol : {"ib", "rocev2", "iwarp"}) {
    for (const char* granule : {"256", "16KiB"}) {
      SCOPED_TRACE(std::string(protocol) + " " + granule);
      const ProgramRun run = run_well({{"workload.pattern", "bandwidth"},
                                       {"transport.protocol", protocol},
                                       {"nic.forward_granule", granule},
                                       {"nic.rx_buffer", "128KiB"},
                                       {"transport.mtu", "1024"},
                                       {"workload.qps", "40"},
                                       {"workload.depth", "8"},
                                       {"workload.msg_size", "64KiB"},
                                       {"workload.iterations", "160"}});
      EXPECT_GT(run.number("/throughput_gbps"), 85);
    }
    run_well({{"workload.pattern", "bandwidth"},
              {"transport.protocol", protocol},
              {"nic.forward_granule", "16KiB"},
              {"transport.mtu", "1024"},
              {"link.loss_rate", "2e-3"},
              {"workload.msg_size", "64KiB"},
              {"workload.iterations", "60"}});
  }
}

TEST(NicLimitsTest, AGranuleDoesNotLimitThroughput) {
  for (const char* qps : {"1", "40"}) {
    const ProgramRun run = stream({{"nic.fetch_granule", "16KiB"},
                                   {"transport.mtu", "1024"},
                                   {"nic.tx_slots", "64"},
                                   {"workload.qps", qps},
                                   {"workload.depth", "8"},
                                   {"workload.msg_size", "64KiB"},
                                   {"workload.iterations", "160"}});
    EXPECT_GT(run.number("/throughput_gbps"), 90) << qps;
  }
}

TEST(NicLimitsTest, LatencyRisesInStepsWithTheNumberOfRegions) {
  // A first level of 4 keys, a second of 16: regions in turn hit in the first, in the second, or in
  // memory (LRU).
  const auto at = [](const char* regions) {
    return latency({{"workload.mrs", regions},
                    {"workload.mr_size", "4096"},
                    {"workload.inline_max", "0"},
                    {"workload.msg_size", "4096"},
                    {"nic.translation_l1_latency", "20"},
                    {"nic.mpt_cache.l0_entries", "4"},
                    {"nic.mpt_cache.entries", "16"},
                    {"nic.mpt_cache.ways", "16"}});
  };
  // Each end uses a region for what it sends and one for what it receives.
  const double near = at("2");
  const double second = at("7");
  const double memory = at("9");
  EXPECT_NEAR(second - near, 80, 1);  // 20 cycles of 2 ns at each end of the path
  EXPECT_GT(memory - second, 700);    // a read at each end instead
  EXPECT_NEAR(at("8"), second, 1);
  EXPECT_NEAR(at("12"), memory, 10);
}

// Rates
// --------------------------------------------------------------------------------------------

TEST(NicLimitsTest, FourLimitsOfOneDevice) {
  // 32 B a cache line of BlueFlame at 20 ns, PCIe 3.0 x8, a packet every 20 ns, 25 Gb/s.
  const Settings device{{"pcie.gen", "3"},
                        {"pcie.lanes", "8"},
                        {"nic.packetizer.interval", "10"},
                        {"link.rate", "40Gbps"},
                        {"workload.threads", "4"},
                        {"workload.qps", "16"},
                        {"workload.depth", "64"},
                        {"nic.wqe_prefetch", "16"},
                        {"nic.wqe_buffer", "64"},
                        {"workload.iterations", "8000"},
                        {"sim.warmup", "4000"}};
  const Settings lists{{"workload.post_batch", "16"}, {"workload.signal_every", "32"}};
  // Stores to the device's registers.
  const ProgramRun mmio =
      stream(with(device, {{"workload.msg_size", "8"}, {"cpu.blueflame_cost_per_64b", "60ns"}}));
  EXPECT_EQ(limiter(mmio), "host0.cpu");
  // The device's own pipeline: nothing to fetch but the WQEs.
  const ProgramRun pipeline = stream(with(with(device, lists), {{"workload.msg_size", "0"}}));
  EXPECT_EQ(limiter(pipeline), "host0.nic.packetizer");
  EXPECT_NEAR(rate_of(pipeline), 50, 1);
  // The wire: READ data.
  const ProgramRun wire =
      stream(with(with(device, lists), {{"workload.op", "read"}, {"workload.msg_size", "128"}}));
  EXPECT_EQ(limiter(wire), "host1.nic.port");
  // PCIe towards the device: WQEs and payload, with a link that is no limit.
  const ProgramRun dma =
      stream(with(with(device, lists),
                  {{"workload.msg_size", "128"}, {"link.rate", "200Gbps"}, {"pcie.lanes", "4"}}));
  EXPECT_EQ(limiter(dma), "host0.pcie.to_device");
  EXPECT_LT(rate_of(mmio), rate_of(pipeline));
}

TEST(NicLimitsTest, ContextsCostByRole) {
  // 48 queue pairs in turn on 64 entries, one message at a time each way. One entry each, or one
  // for each half in use: only who both sends and receives notices, by a read at each end.
  const auto rate = [](const char* layout, const char* both) {
    return rate_of(stream({{"nic.qpc_layout", layout},
                           {"nic.qpc_cache.entries", "64"},
                           {"nic.qpc_cache.ways", "64"},
                           {"nic.context_misses", "2"},
                           {"workload.qps", "48"},
                           {"workload.outstanding", "1"},
                           {"workload.inline_max", "64"},
                           {"workload.bidirectional", both},
                           {"workload.iterations", "4000"},
                           {"sim.warmup", "1000"}}));
  };
  EXPECT_NEAR(rate("by_role", "false"), rate("unified", "false"), 0.01 * rate("unified", "false"));
  EXPECT_LT(rate("by_role", "true"), 0.75 * rate("unified", "true"));
}

TEST(NicLimitsTest, ReadsFallOutOfTheContextsBeforeWrites) {
  // 40 queue pairs in turn on 64 entries: a READ needs two of each.
  const auto rate = [](const char* op, const char* entries) {
    return rate_of(stream({{"workload.op", op},
                           {"nic.qpc_read_entries", entries},
                           {"nic.qpc_cache.entries", "64"},
                           {"nic.qpc_cache.ways", "64"},
                           {"nic.context_misses", "1"},
                           {"workload.qps", "40"},
                           {"workload.outstanding", "1"},
                           {"workload.iterations", "4000"},
                           {"sim.warmup", "1000"}}));
  };
  EXPECT_NEAR(rate("write", "1"), rate("write", "0"), 0.01 * rate("write", "0"));
  EXPECT_LT(rate("read", "1"), 0.75 * rate("read", "0"));
}

TEST(NicLimitsTest, CachelinesOfAWorkRequest) {
  // 36 B of headers leave 28 B for inline data in the first line; each line costs the core 40 ns.
  // Equal rates within a line, a step to the next.
  const auto rate = [](const char* size) {
    return rate_of(stream({{"workload.msg_size", size},
                           {"workload.inline_max", "220"},
                           {"cpu.blueflame_cost_per_64b", "40ns"},
                           {"cpu.inline_cost_per_64b", "0ns"},
                           {"workload.iterations", "2000"}}));
  };
  EXPECT_NEAR(rate("8"), rate("28"), 0.01 * rate("8"));
  EXPECT_LT(rate("29"), 0.9 * rate("28"));
  EXPECT_NEAR(rate("29"), rate("92"), 0.01 * rate("29"));
  EXPECT_LT(rate("93"), 0.9 * rate("92"));
  EXPECT_NEAR(rate("93"), rate("156"), 0.01 * rate("93"));
  EXPECT_LT(rate("157"), 0.92 * rate("156"));
}

TEST(NicLimitsTest, DeeperPrefetchFeedsAQueuePair) {
  // Fetches follow each other, one round trip each: WQEs a fetch / some 600 ns.
  double before = 0;
  for (const char* depth : {"1", "2", "4", "8"}) {
    const ProgramRun run = stream({{"nic.wqe_prefetch", depth},
                                   {"nic.blueflame", "false"},
                                   {"workload.post_batch", "32"},
                                   {"workload.depth", "256"},
                                   {"workload.msg_size", "8"},
                                   {"workload.iterations", "2048"}});
    if (before > 0) {
      EXPECT_GT(rate_of(run), 1.6 * before) << depth;
      EXPECT_LT(rate_of(run), 2.1 * before) << depth;
    }
    before = rate_of(run);
  }
}

/// A data sheet's figure counts messages, whatever they do.
TEST(NicLimits, MessageRateOfEveryOperation) {
  for (const char* op : {"write", "read", "send", "write_imm"}) {
    for (const char* cap : {"10", "75"}) {
      SCOPED_TRACE(std::string(op) + " " + cap);
      const ProgramRun run = run_well({{"workload.op", op},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.msg_size", "8B"},
                                       {"workload.iterations", "4000"},
                                       {"workload.qps", "64"},
                                       {"workload.threads", "16"},
                                       {"workload.depth", "64"},
                                       {"workload.post_batch", "16"},
                                       {"workload.recv_batch", "16"},
                                       {"workload.signal_every", "16"},
                                       {"nic.message_rate", cap},
                                       {"sim.payload", "none"}});
      const double expected = std::stod(cap);
      EXPECT_LE(run.number("/message_rate_mops"), 1.001 * expected);
      EXPECT_GE(run.number("/message_rate_mops"), 0.97 * expected);
      const auto unit = run.result["bottleneck"]["unit"].get<std::string>();
      EXPECT_TRUE(unit == "host0.nic.sq_scheduler" || unit == "host1.nic.responder") << unit;
    }
  }
}

/// Each way as many, where each NIC sends an ACK, too, for each message it is sent: of what a
/// scheduler of 2 cycles of 2 ns spends on a message's 13.3 ns, the ACK takes 4 that nothing else
/// would.
TEST(NicLimits, AcknowledgementsAreNoMessages) {
  for (const char* op : {"write", "read", "send"}) {
    for (const char* cap : {"10", "20", "75"}) {
      // Each way a request and a response of a READ are more than the packetizer takes.
      if (std::string(op) == "read" && std::string(cap) == "75") continue;
      SCOPED_TRACE(std::string(op) + " " + cap);
      const ProgramRun run = run_well({{"workload.op", op},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.msg_size", "8B"},
                                       {"workload.iterations", "4000"},
                                       {"workload.qps", "16"},
                                       {"workload.threads", "16"},
                                       {"workload.depth", "128"},
                                       {"workload.post_batch", "16"},
                                       {"workload.bidirectional", "true"},
                                       {"transport.ack_every", "1"},
                                       {"nic.message_rate", cap},
                                       {"sim.payload", "none"}});
      const double expected = 2 * std::stod(cap);
      EXPECT_LE(run.number("/message_rate_mops"), 1.002 * expected);
      EXPECT_GE(run.number("/message_rate_mops"), 0.97 * expected);
    }
  }
}

/// Packets of one message count once.
TEST(NicLimits, MessageRateDoesNotBoundPackets) {
  const ProgramRun run = run_well({{"workload.op", "write"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.msg_size", "64KiB"},
                                   {"workload.iterations", "300"},
                                   {"nic.message_rate", "0.5"},
                                   {"sim.payload", "none"}});
  EXPECT_GT(run.number("/throughput_gbps"), 95);  // 0.19 M/s
}

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
// Message rate: doorbells, inline, registers, queue pairs and their engines.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/program.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::QpInitAttr;
using host::verbs::SendFlags;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::WcStatus;

double rate_of(const ProgramRun& run) { return run.number("/message_rate_mops"); }
double gbps_of(const ProgramRun& run) { return run.number("/throughput_gbps"); }
std::string limiter(const ProgramRun& run) { return run.result["bottleneck"]["unit"]; }

const Settings kStream{{"workload.pattern", "bandwidth"}, {"sim.payload", "none"}};

TEST(CaseMR, MR01_PostingStyles) {
  // Twelve threads with a QP each, on a device and cores as they come (generic): one READ at a
  // time; a few; a doorbell for each of many; lists of 16 with one CQE.
  for (const char* size : {"8", "64"}) {
    SCOPED_TRACE(size);
    const Settings base = with(kStream, {{"workload.op", "read"},
                                         {"workload.msg_size", size},
                                         {"workload.threads", "12"},
                                         {"workload.qps", "12"},
                                         {"workload.iterations", "1500"},
                                         {"workload.signal_every", "1"}});
    const ProgramRun one = run_well(with(base, {{"workload.depth", "1"}}));
    const ProgramRun few = run_well(with(base, {{"workload.depth", "8"}}));
    const ProgramRun many = run_well(with(base, {{"workload.depth", "32"}}));
    const ProgramRun lists = run_well(with(base, {{"workload.depth", "64"},
                                                  {"workload.post_batch", "16"},
                                                  {"workload.signal_every", "16"}}));
    // Closed loop: 12 threads, one round trip a message.
    EXPECT_NEAR(rate_of(one), 12e3 / one.number("/latency_ns/mean"), 0.10 * rate_of(one));
    EXPECT_EQ(limiter(one), "workload.depth");
    EXPECT_LT(rate_of(one), rate_of(few));
    EXPECT_LT(rate_of(few), rate_of(many));
    EXPECT_LT(rate_of(many), rate_of(lists));
    EXPECT_EQ(limiter(many), "host0.cpu");
    EXPECT_GE(rate_of(lists) / rate_of(many), 1.3);
    EXPECT_LE(rate_of(lists) / rate_of(many), 1.7);
    EXPECT_GT(rate_of(lists) / rate_of(one), 10);
  }
}

TEST(CaseMR, MR03_AFixedCostForEachWorkRequest) {
  // 40 ns to build, 320 ns for the doorbell, 6 ns for the 64 B it carries: 366 ns, and the share of
  // polling. Sizes far below what 100 Gb/s could carry in that time (4.6 KB).
  const Settings base = with(kStream, {{"cpu.doorbell_cost", "320ns"},
                                       {"workload.iterations", "2000"},
                                       {"workload.inline_max", "0"}});
  const auto run = [&base](const char* op, const std::string& size) {
    return run_well(with(base, {{"workload.op", op}, {"workload.msg_size", size}}));
  };
  const double write = rate_of(run("write", "2"));
  EXPECT_GT(write, 2.5);
  EXPECT_LT(write, 1e3 / 366);
  for (const char* size : {"4", "8", "32", "64", "128", "1024", "4096"}) {
    for (const char* op : {"write", "read"}) {
      const ProgramRun measured = run(op, size);
      EXPECT_NEAR(rate_of(measured), write, 0.02 * write) << op << size;
      EXPECT_NEAR(gbps_of(measured), write * std::stod(size) * 8e-3, 0.02 * gbps_of(measured));
      EXPECT_EQ(limiter(measured), "host0.cpu") << op << size;
    }
  }
}

TEST(CaseMR, MR04_ListsOfWorkRequests) {
  constexpr int kMessages = 32768;
  const Settings base = with(kStream, {{"workload.msg_size", "8"},
                                       {"workload.depth", "512"},
                                       {"workload.iterations", std::to_string(kMessages)},
                                       {"sim.warmup", "0"},
                                       {"nic.blueflame", "false"}});
  std::vector<double> rates;
  std::string last;
  for (const int list : {1, 4, 16, 32, 128}) {
    const ProgramRun run = run_well(with(base, {{"workload.post_batch", std::to_string(list)},
                                                {"workload.signal_every", std::to_string(list)}}));
    rates.push_back(rate_of(run));
    last = limiter(run);
    if (list == 1) {
      EXPECT_EQ(last, "host0.cpu");
    }
    EXPECT_EQ(run.counter("doorbells"), static_cast<std::uint64_t>(kMessages / list));
    EXPECT_EQ(run.counter("cqes"), static_cast<std::uint64_t>(kMessages / list));
    if (rates.size() > 1) {
      EXPECT_GE(rates.back(), 0.99 * rates[rates.size() - 2]) << list;
    }
  }
  EXPECT_GE(rates.back() / rates.front(), 1.4);
  EXPECT_LE(rates.back() / rates.front(), 3.0);
  // What one QP can do: its WQEs are fetched nic.wqe_prefetch at a time.
  EXPECT_EQ(last, "host0.nic.wqe_fetcher");
  EXPECT_NEAR(rates.back(), rates[2], 0.01 * rates.back());
  // The CQE frequency is separate.
  const ProgramRun separate =
      run_well(with(base, {{"workload.post_batch", "32"}, {"workload.signal_every", "64"}}));
  EXPECT_EQ(separate.counter("doorbells"), static_cast<std::uint64_t>(kMessages / 32));
  EXPECT_EQ(separate.counter("cqes"), static_cast<std::uint64_t>(kMessages / 64));
}

TEST(CaseMR, MR06_InlineShortensLatencyAndCostsRate) {
  // Filling a cache line of the BlueFlame register takes 30 ns; without inline each message needs a
  // payload read over PCIe, of which two may be under way.
  const auto measure = [](const char* pattern, const char* size, const char* inline_max) {
    return run_well({{"workload.pattern", pattern},
                     {"workload.msg_size", size},
                     {"workload.inline_max", inline_max},
                     {"nic.max_inline", "256"},
                     {"cpu.blueflame_cost_per_64b", "30ns"},
                     {"pcie.read_tags", "2"},
                     {"workload.iterations", "1000"}});
  };
  for (const char* size : {"64", "192"}) {
    EXPECT_LT(measure("latency", size, "256").number("/latency_ns/p50"),
              measure("latency", size, "0").number("/latency_ns/p50"));
  }
  // One cache line with the data in it saves the read; four cost more than it.
  EXPECT_GT(rate_of(measure("bandwidth", "16", "256")), rate_of(measure("bandwidth", "16", "0")));
  EXPECT_LT(rate_of(measure("bandwidth", "192", "256")), rate_of(measure("bandwidth", "192", "0")));
}

TEST(CaseMR, MR06_LatencyFallsUpToTheLimit) {
  for (const int limit : {64, 256, 512}) {
    for (const int size : {64, 128, 256, 512}) {
      const auto latency = [size](int inline_max) {
        return run_well({{"nic.max_inline", "512"},
                         {"nic.blueflame_blocks", "9"},
                         {"workload.msg_size", std::to_string(size)},
                         {"workload.inline_max", std::to_string(inline_max)},
                         {"workload.iterations", "100"}})
            .number("/latency_ns/p50");
      };
      if (size <= limit) {
        EXPECT_LT(latency(limit), latency(0)) << limit << ' ' << size;
      } else {
        EXPECT_EQ(latency(limit), latency(0)) << limit << ' ' << size;
      }
    }
  }
}

TEST(CaseMR, MR06_TheRateCrossesOver) {
  // Eight cores keep a Gen3 x8 slot towards the device full. A WRITE without inline takes the WQE
  // and a completion for its payload; with inline the data in the WQE, in steps of 64 B, of which
  // the CPU stores each in a TLP of its own.
  const auto rate = [](int size, const char* inline_max, const Settings& more) {
    const ProgramRun run = run_well(with(with(kStream, {{"pcie.gen", "3"},
                                                        {"pcie.lanes", "8"},
                                                        {"nic.max_inline", "512"},
                                                        {"workload.threads", "8"},
                                                        {"workload.qps", "8"},
                                                        {"workload.msg_size", std::to_string(size)},
                                                        {"workload.inline_max", inline_max},
                                                        {"workload.iterations", "4000"}}),
                                         more));
    EXPECT_EQ(limiter(run), "host0.pcie.to_device") << size << ' ' << inline_max;
    return rate_of(run);
  };
  const Settings lists{{"workload.post_batch", "16"}, {"nic.blueflame", "false"}};
  EXPECT_GT(rate(16, "512", lists), rate(16, "0", lists));
  const Settings stores{{"nic.blueflame_blocks", "9"}};
  for (const int size : {128, 256, 512}) {
    EXPECT_LT(rate(size, "512", stores), 0.95 * rate(size, "0", stores)) << size;
  }
}

TEST(CaseMR, MR07_MoreInlineThanTheDeviceOrTheQueueTakes) {
  VerbsRig rig(Settings{{"nic.max_inline", "512"}});
  rig.run([&rig] {
    rig.connect();
    QpInitAttr attr;
    attr.max_inline_data = 828;
    EXPECT_EQ(rig.a.verbs().create_qp(rig.a.core, rig.a.pd, *rig.a.send_cq, *rig.a.recv_cq, attr),
              nullptr);
    attr.max_inline_data = 128;
    rig.use_new_qps(attr);
    const RigBuffer source = rig.a.buffer(4096);
    const RigBuffer target = rig.b.buffer(4096);
    const protocol::Sge sge{source.address, 129, source.region.lkey};
    host::verbs::SendWr wr;
    wr.opcode = WrOpcode::kRdmaWrite;
    wr.flags = SendFlags::kSignaled | SendFlags::kInline;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.remote_addr = target.address;
    wr.rkey = target.region.rkey;
    const std::uint64_t sent = rig.a.port().sent().data_packets;
    EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), Status::kEinval);
    rig.settle();
    EXPECT_EQ(rig.a.port().sent().data_packets, sent);
    Wc wc;
    EXPECT_EQ(rig.a.verbs().poll_cq(rig.a.core, *rig.a.send_cq, 1, &wc), 0U);
  });
}

/// WRITEs of `bytes` inline by two threads with a queue pair each: 36 B of WQE come before the
/// data.
Settings two_pushers(int bytes, const Settings& more) {
  return with({{"workload.pattern", "bandwidth"},
               {"workload.threads", "2"},
               {"workload.qps", "2"},
               {"workload.msg_size", std::to_string(bytes)},
               {"workload.inline_max", "256"},
               {"nic.max_inline", "256"},
               {"workload.mr_size", "256KiB"},  // a place for each message, written once
               {"workload.iterations", "400"}},
              more);
}

TEST(CaseMR, MR09_BlocksOfASharedRegisterMixWithoutALock) {
  const Settings shared{{"cpu.doorbell_registers", "1"}, {"cpu.doorbell_lock", "false"}};
  // Blocks of 64 B: 28 B fit the first, 92, 156 and 220 B two, three and four. A register takes
  // four; with five a doorbell of 8 B is all that is stored.
  for (const int bytes : {1, 28, 29, 92, 156, 220, 221, 256}) {
    SCOPED_TRACE(bytes);
    const bool hazard = bytes > 28 && bytes <= 220;
    const ProgramRun run = run_program(two_pushers(bytes, shared));
    EXPECT_EQ(run.status, hazard ? 3 : 0) << run.error;
    if (hazard) {
      EXPECT_NE(run.error.find("payload"), std::string::npos) << run.error;
    }
    const ProgramRun counted =
        run_well(with(two_pushers(bytes, shared), {{"sim.payload", "none"}}));
    EXPECT_EQ(counted.counter("blueflames_interleaved") > 0, hazard);
    EXPECT_EQ(counted.counter("blueflames") > 0, bytes <= 220);
    // A lock, or registers of their own, and all is well.
    run_well(two_pushers(bytes, {{"cpu.doorbell_registers", "1"}}));
    const ProgramRun own = run_well(two_pushers(bytes, {{"cpu.doorbell_lock", "false"}}));
    EXPECT_EQ(own.counter("blueflames_interleaved"), 0U);
  }
}

TEST(CaseMR, MR09_TheLockCostsRate) {
  const auto rate = [](const Settings& more) {
    return rate_of(run_well(with(two_pushers(92, more), {{"workload.iterations", "4000"}})));
  };
  const double own = rate({});
  const double locked = rate({{"cpu.doorbell_registers", "1"}});
  EXPECT_LT(locked, 0.9 * own);
  EXPECT_NEAR(rate({{"cpu.doorbell_lock", "false"}}), own, 0.01 * own);
}

TEST(CaseMR, MR10_QueuePairsShareWhatTheirEnginesLeave) {
  // An engine of 194 Gb/s a QP, half of a 400 Gb/s pair of ports.
  const Settings base = with(kStream, {{"transport.protocol", "rocev2"},
                                       {"link.rate", "400Gbps"},
                                       {"pcie.gen", "5"},
                                       {"pcie.mps", "512"},
                                       {"nic.qp_rate", "194Gbps"},
                                       {"workload.msg_size", "64KiB"},
                                       {"workload.depth", "32"},
                                       {"workload.iterations", "640"}});
  const double line = 400.0 * 4096 / 4178;
  for (const int qps : {1, 2, 4, 8, 16}) {
    // A thread for each, whose share the result tells.
    const std::string count = std::to_string(qps);
    const ProgramRun run =
        run_well(with(base, {{"workload.qps", count}, {"workload.threads", count}}));
    const double expected = std::min(qps * 194.0, line);
    EXPECT_NEAR(gbps_of(run), expected, 0.002 * expected) << qps;
    double sum = 0;
    double squares = 0;
    for (int i = 0; qps > 1 && i < qps; ++i) {
      const double share =
          run.number(("/flows/0/threads/" + std::to_string(i) + "/throughput_gbps").c_str());
      EXPECT_NEAR(share, expected / qps, 0.01 * share) << qps;
      sum += share;
      squares += share * share;
    }
    if (qps > 1) {
      EXPECT_GT(sum * sum / (qps * squares), 0.99) << "Jain's index of " << qps;
    }
    if (qps <= 2) {
      EXPECT_EQ(limiter(run), "host0.nic.qp_engine");
    }
    if (qps >= 4) {
      EXPECT_EQ(limiter(run), "host0.nic.port") << qps;
    }
  }
}

TEST(CaseMR, MR12_TheCeilingOfEightQueuePairs) {
  const double ceiling = 400.0 * 4096 / 4178;
  // The warm-up covers what the first fetches of contexts and translations held up: twice what is
  // in flight.
  const std::vector<std::pair<std::string, std::string>> sizes{
      {"16KiB", "4096"}, {"128KiB", "1024"}, {"1MiB", "256"}};
  for (const auto& [size, messages] : sizes) {
    const ProgramRun run = run_well(with(kStream, {{"transport.protocol", "rocev2"},
                                                   {"link.rate", "400Gbps"},
                                                   {"pcie.gen", "5"},
                                                   {"pcie.mps", "512"},
                                                   {"workload.qps", "8"},
                                                   {"workload.depth", "16"},
                                                   {"workload.msg_size", size},
                                                   {"sim.warmup", "256"},
                                                   {"workload.iterations", messages}}));
    EXPECT_EQ(limiter(run), "host0.nic.port");
    EXPECT_NEAR(gbps_of(run), ceiling, 0.003 * ceiling) << size;
  }
}

TEST(CaseMR, MR12_AGapBetweenStepsBoundsThroughput) {
  // One chunk in flight; software takes 11 us a step, during which the chunk moves.
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"link.rate", "400Gbps"},
                {"pcie.gen", "5"},
                {"pcie.mps", "512"},
                {"sim.payload", "none"}});
  rig.run([&rig] {
    rig.connect();
    const RigBuffer source = rig.a.buffer(1 << 20);
    const RigBuffer target = rig.b.buffer(1 << 20);
    const auto gbps_with = [&](std::uint32_t chunk) {
      constexpr int kSteps = 20;
      rig.a.core.sync();
      const Time start = sim_now();
      for (int i = 0; i < kSteps; ++i) {
        const Time step = rig.a.core.now();
        EXPECT_EQ(rig.a.post(WrOpcode::kRdmaWrite, source.address, source.region.lkey, chunk,
                             target.address, target.region.rkey),
                  Status::kOk);
        EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
        const Time took = rig.a.core.now() - step;
        if (took < microseconds(11)) rig.a.core.spend(microseconds(11) - took);
      }
      rig.a.core.sync();
      return kSteps * 8.0 * chunk / static_cast<double>((sim_now() - start).count()) * 1e3;
    };
    EXPECT_NEAR(gbps_with(32768), 32768 * 8 / 11e3, 0.01 * 24);
    EXPECT_NEAR(gbps_with(131072), 131072 * 8 / 11e3, 0.01 * 95);
    const double largest = gbps_with(1 << 20);  // 763 Gb/s if the gap were all
    EXPECT_LT(largest, 400.0 * 4096 / 4178);
    EXPECT_GT(largest, 300);
  });
}

}  // namespace
}  // namespace rnic::testbench

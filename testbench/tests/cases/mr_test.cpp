// SPDX-License-Identifier: Apache-2.0
// Message rate: doorbells, inline, scatter/gather entries, scheduling of queue pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

/// A further queue pair in INIT.
host::verbs::QueuePair* make_qp(RigSide& side, const QpInitAttr& attr) {
  auto* qp = side.verbs().create_qp(side.core, side.pd, *side.send_cq, *side.recv_cq, attr);
  if (qp == nullptr) return nullptr;
  host::verbs::QpAttr init;
  init.qp_state = protocol::QpState::kInit;
  init.access_flags = protocol::kAccessRemoteMask;
  using Mask = protocol::QpAttrMask;
  EXPECT_EQ(
      side.verbs().modify_qp(side.core, *qp, init,
                             Mask::kState | Mask::kPkeyIndex | Mask::kPort | Mask::kAccessFlags),
      Status::kOk);
  return qp;
}

/// Gives both sides a further connected queue pair, which is theirs from then on.
void use_new_qps(VerbsRig& rig, const QpInitAttr& attr) {
  rig.a.qp = make_qp(rig.a, attr);
  rig.b.qp = make_qp(rig.b, attr);
  rig.a.connect(rig.b.qp->qpn, path_between(0, 1), rig.config().transport);
  rig.b.connect(rig.a.qp->qpn, path_between(1, 0), rig.config().transport);
  rig.settle();
}

TEST(CaseMR, MR07_MoreInlineThanTheDeviceOrTheQueueTakes) {
  VerbsRig rig(Settings{{"nic.max_inline", "512"}});
  rig.run([&rig] {
    rig.connect();
    QpInitAttr attr;
    attr.max_inline_data = 828;
    EXPECT_EQ(make_qp(rig.a, attr), nullptr);
    attr.max_inline_data = 128;
    use_new_qps(rig, attr);
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

TEST(CaseMR, MR13_SeveralEntriesCostRate) {
  // The DMA engine starts a read every 46 ns: eight entries keep it busy for 368 ns, the wire for
  // 4178 B x 8 / 100 Gb/s = 334 ns.
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"nic.dma.interval", "23"},
                {"nic.wqe_prefetch", "32"},
                {"sim.payload", "none"}});
  rig.run([&rig] {
    rig.connect();
    QpInitAttr attr;
    attr.max_send_wr = 128;
    attr.max_send_sge = 8;
    use_new_qps(rig, attr);
    const RigBuffer source = rig.a.buffer(4096);
    const RigBuffer target = rig.b.buffer(4096);
    std::vector<std::uint64_t> wire;
    const auto rate_with = [&](std::uint32_t entries) {
      constexpr std::uint32_t kCount = 96;
      std::vector<protocol::Sge> sges;
      for (std::uint32_t i = 0; i < entries; ++i) {
        sges.push_back({source.address + i * (4096 / entries), 4096 / entries, source.region.lkey});
      }
      std::vector<host::verbs::SendWr> wrs(kCount);
      for (auto& wr : wrs) {
        wr.opcode = WrOpcode::kRdmaWrite;
        wr.sg_list = sges.data();
        wr.num_sge = entries;
        wr.remote_addr = target.address;
        wr.rkey = target.region.rkey;
      }
      wrs.back().flags = SendFlags::kSignaled;
      rig.settle();
      const std::uint64_t before = rig.a.port().sent().wire_bytes;
      const Time start = sim_now();
      EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, wrs.data(), kCount), Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
      const Time took = sim_now() - start;
      rig.settle();
      wire.push_back(rig.a.port().sent().wire_bytes - before);
      return kCount * 1e6 / static_cast<double>(took.count());
    };
    rate_with(1);  // fills the caches
    wire.clear();
    const double one = rate_with(1);
    const double two = rate_with(2);
    const double eight = rate_with(8);
    EXPECT_LE(two, one * 1.001);
    EXPECT_LT(eight, two);
    EXPECT_LE(eight / one, 0.95);
    EXPECT_GE(eight / one, 0.75);
    EXPECT_EQ(wire[0], wire[1]);
    EXPECT_EQ(wire[0], wire[2]);
  });
}

TEST(CaseMR, MR13_EntriesOfAWorkload) {
  // As above from the command line: READs of payload are issued every 46 ns, and the wire carries a
  // packet of 4178 B in 334 ns.
  const auto run = [](const char* entries) {
    return run_well(with(kStream, {{"transport.protocol", "rocev2"},
                                   {"workload.msg_size", "4096"},
                                   {"workload.sges", entries},
                                   {"nic.dma.interval", "23"},
                                   {"nic.wqe_prefetch", "32"},
                                   {"workload.post_batch", "4"},
                                   {"workload.iterations", "3000"}}));
  };
  const ProgramRun one = run("1");
  double before = rate_of(one);
  for (const char* entries : {"2", "4", "8", "16"}) {
    const ProgramRun many = run(entries);
    EXPECT_LE(rate_of(many), 1.002 * before) << entries;
    before = rate_of(many);
    // But for a packet or two at the ends of the window.
    EXPECT_NEAR(many.link_sum("payload_bytes"), one.link_sum("payload_bytes"), 4 * 4096) << entries;
  }
  const double loss = 1 - rate_of(run("8")) / rate_of(one);
  EXPECT_GE(loss, 0.05);
  EXPECT_LE(loss, 0.25);
  // Bytes arrive whatever the pieces: also of sizes that they do not divide, and by READ.
  for (const char* op : {"write", "send", "read"}) {
    run_well({{"workload.pattern", "bandwidth"},
              {"workload.op", op},
              {"workload.msg_size", "1001"},
              {"workload.sges", "7"},
              {"workload.alignment", "1"},
              {"workload.offset", "13"},
              {"workload.iterations", "300"}});
  }
}

TEST(CaseMR, MR13_ACostOfTheDeviceForEachEntry) {
  // 4178 B take 334 ns on the wire; seven further pieces of 55 ns take 385 ns: 13 % less.
  const auto run = [](const char* entries) {
    return run_well(with(kStream, {{"transport.protocol", "rocev2"},
                                   {"workload.msg_size", "4096"},
                                   {"workload.sges", entries},
                                   {"nic.sge_time", "55ns"},
                                   {"workload.post_batch", "8"},
                                   {"workload.iterations", "3000"}}));
  };
  const auto wqe_bytes = [](const ProgramRun& of) {
    return of.number("/pcie/0/to_device/by_purpose/wqe/payload_bytes");
  };
  const ProgramRun one = run("1");
  EXPECT_EQ(limiter(one), "host0.nic.port");
  EXPECT_NEAR(rate_of(one), 1e3 / 334.24, 0.005 * rate_of(one));
  for (const int entries : {2, 4, 8, 12, 16}) {
    const ProgramRun many = run(std::to_string(entries).c_str());
    // WQEs of 32 B and 16 B an entry, in blocks of 64 B.
    const double blocks = std::ceil((32 + 16.0 * entries) / 64);
    EXPECT_NEAR(wqe_bytes(many) / wqe_bytes(one), blocks, 0.03 * blocks) << entries;
    const double needed = std::max(334.24, (entries - 1) * 55.0);
    EXPECT_NEAR(rate_of(many), 1e3 / needed, 0.02 * rate_of(many)) << entries;
    if (entries >= 8) {
      EXPECT_EQ(limiter(many), "host0.nic.payload_gather") << entries;
    }
  }
  const double loss = 1 - rate_of(run("8")) / rate_of(one);
  EXPECT_GE(loss, 0.05);
  EXPECT_LE(loss, 0.25);
}

TEST(CaseMR, MR14_AnEventOfTenOperations) {
  // The device forms a packet every 10 cycles of 0.75 GHz: 75 M/s. Ten WRs and one CQE an event.
  // Reading a payload takes some 450 ns, in which 34 packets could be formed: more places than
  // that.
  const auto with_size = [](const char* size) {
    return run_well(with(kStream, {{"nic.clock", "0.75GHz"},
                                   {"nic.packetizer.interval", "10"},
                                   {"nic.tx_slots", "64"},
                                   {"workload.threads", "8"},
                                   {"workload.qps", "16"},
                                   {"workload.msg_size", size},
                                   {"workload.depth", "120"},
                                   {"workload.post_batch", "10"},
                                   {"workload.signal_every", "10"},
                                   {"nic.wqe_prefetch", "16"},
                                   {"nic.wqe_buffer", "64"},
                                   {"sim.warmup", "4000"},
                                   {"workload.iterations", "24000"}}));
  };
  const ProgramRun run = with_size("16");
  EXPECT_NEAR(rate_of(run) / 10, 7.5, 0.15);
  EXPECT_EQ(limiter(run), "host0.nic.packetizer");
  // Four events of 16 B in one operation: as many operations, four times the events. Sixteen are
  // bound by the wire: 75 M/s of 256 B alone are 154 Gb/s.
  const ProgramRun four = with_size("64");
  EXPECT_NEAR(4 * rate_of(four) / 10, 30, 0.6);
  EXPECT_EQ(limiter(four), "host0.nic.packetizer");
  EXPECT_EQ(limiter(with_size("256")), "host0.nic.port");
}

/// Two connected pairs of queue pairs, both in use: contexts, keys and translations are on chip.
struct TwoPairs {
  TwoPairs(VerbsRig& on, std::uint32_t large)
      : rig(on), large_a(on.a.buffer(large)), large_b(on.b.buffer(large)) {
    first_a = rig.a.qp;
    first_b = rig.b.qp;
    use_new_qps(rig, QpInitAttr{});
    second_a = rig.a.qp;
    second_b = rig.b.qp;
    for (const bool first : {true, false}) {
      use(first);
      send(rig.a, rig.b);
      send(rig.b, rig.a);
      all_sent(rig.a, 1);
      all_sent(rig.b, 1);
    }
  }

  void use(bool first) {
    rig.a.qp = first ? first_a : second_a;
    rig.b.qp = first ? first_b : second_b;
  }

  /// 64 B, to the RECV that waits for them; how long until its CQE is seen.
  Time send(RigSide& from, RigSide& to) {
    EXPECT_EQ(to.post_recv(small_of(to).address, small_of(to).region.lkey, 64), Status::kOk);
    rig.settle();
    const Time start = sim_now();
    const RigBuffer& source = small_of(from);
    EXPECT_EQ(from.post(WrOpcode::kSend, source.address, source.region.lkey, 64), Status::kOk);
    EXPECT_EQ(to.await_recv().status, WcStatus::kSuccess);
    return sim_now() - start;
  }

  void write(RigSide& from, std::uint32_t bytes) {
    const bool to_b = &from == &rig.a;
    const RigBuffer& source = to_b ? large_a : large_b;
    const RigBuffer& target = to_b ? large_b : large_a;
    EXPECT_EQ(from.post(WrOpcode::kRdmaWrite, source.address, source.region.lkey, bytes,
                        target.address, target.region.rkey),
              Status::kOk);
  }

  static void all_sent(RigSide& side, int requests) {
    for (int i = 0; i < requests; ++i) EXPECT_EQ(side.await_send().status, WcStatus::kSuccess);
  }

  const RigBuffer& small_of(const RigSide& side) const {
    return &side == &rig.a ? small_a : small_b;
  }

  VerbsRig& rig;
  RigBuffer large_a;
  RigBuffer large_b;
  RigBuffer small_a = rig.a.buffer(4096);
  RigBuffer small_b = rig.b.buffer(4096);
  host::verbs::QueuePair* first_a;
  host::verbs::QueuePair* first_b;
  host::verbs::QueuePair* second_a;
  host::verbs::QueuePair* second_b;
};

constexpr std::uint32_t kLarge = 64 << 20;

/// S / BW of 64 MiB at 100 Gb/s: 67,108,864 B x 8 / 98.04 Gb/s = 5.476 ms.
const Time kLargeTime = from_ns(kLarge * 8 / (100.0 * 4096 / 4178));

TEST(CaseMR, MR16_ASmallSendBehindALargeWrite) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"sim.payload", "none"}});
  rig.run([&rig] {
    rig.connect();
    TwoPairs pairs(rig, kLarge);
    const auto send_while = [&](std::uint32_t bytes, bool same) {
      pairs.use(true);
      const Time begun = sim_now();
      pairs.write(rig.a, bytes);
      rig.settle(microseconds(100));  // past its start, in which all packets wait for PCIe
      pairs.use(same);
      const Time took = pairs.send(rig.a, rig.b);
      const Time since_write = sim_now() - begun;
      TwoPairs::all_sent(rig.a, 2);
      return std::pair(took, since_write);
    };
    // In the same queue what is left of the WRITE: S / BW, less what has passed.
    const auto [behind, since_write] = send_while(kLarge, true);
    EXPECT_NEAR(to_ns(since_write), to_ns(kLargeTime), 0.005 * to_ns(kLargeTime));
    EXPECT_GT(behind, kLargeTime - microseconds(130));
    // On its own: what it takes alone, behind a WRITE of one packet that is over, and the packets
    // of the WRITE that are in the pipeline already, 32 of 334 ns and one on the wire. Each of its
    // six transactions on PCIe (doorbell, payload, RECV's index, RECV, payload, CQE) may wait for
    // one packet of the WRITE, too.
    const Time alone = send_while(64, false).first;
    EXPECT_LT(alone, microseconds(3));
    const Time beside = send_while(kLarge, false).first;
    EXPECT_GT(beside - alone, nanoseconds(31 * 334));
    EXPECT_LT(beside - alone, nanoseconds((33 + 6) * 334));
  });
}

/// Both hosts have 64 MiB for each other, and each WRITE waits for the peer's word that it may
/// come. `same`: that word goes through the queue of the WRITE.
Time exchange(bool same) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"sim.payload", "none"}});
  Time took{0};
  rig.run([&] {
    rig.connect();
    TwoPairs pairs(rig, kLarge);
    pairs.use(true);
    const Time start = sim_now();
    pairs.write(rig.a, kLarge);
    rig.settle(microseconds(5));
    pairs.use(same);
    pairs.send(rig.a, rig.b);
    pairs.use(true);
    pairs.write(rig.b, kLarge);
    TwoPairs::all_sent(rig.b, 1);
    TwoPairs::all_sent(rig.a, 2);
    took = sim_now() - start;
  });
  return took;
}

TEST(CaseMR, MR16_BothDirectionsOverTheSameQueuePairTakeTwice) {
  EXPECT_NEAR(to_ns(exchange(true)), 2 * to_ns(kLargeTime), 0.02 * to_ns(kLargeTime));
}

TEST(CaseMR, MR16_BothDirectionsOverlapWithTwoQueuePairs) {
  EXPECT_NEAR(to_ns(exchange(false)), to_ns(kLargeTime), 0.03 * to_ns(kLargeTime));
}

}  // namespace
}  // namespace rnic::testbench

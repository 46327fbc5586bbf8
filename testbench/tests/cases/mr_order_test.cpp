// SPDX-License-Identifier: Apache-2.0
// Message rate: scatter/gather entries, events of several operations, who waits behind whom.
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
using host::verbs::WrOpcode;
using protocol::WcStatus;

double rate_of(const ProgramRun& run) { return run.number("/message_rate_mops"); }
std::string limiter(const ProgramRun& run) { return run.result["bottleneck"]["unit"]; }

const Settings kStream{{"workload.pattern", "bandwidth"}, {"sim.payload", "none"}};

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
    rig.use_new_qps(attr);
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
    rig.use_new_qps(QpInitAttr{});
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

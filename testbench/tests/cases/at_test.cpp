// SPDX-License-Identifier: Apache-2.0
// Public cases of theme AT: atomics.
#include <gtest/gtest.h>

#include "protocol/atomic.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::QpState;

constexpr protocol::AccessFlags kAtomicAccess = kAllAccess | protocol::kAccessRemoteAtomic;

// AT-01 --------------------------------------------------------------------------------------

/// Rate of `clients` hosts with twelve threads each towards one server. Five messages in flight a
/// thread make one client ask for about half of what the server's atomic unit can do.
double rate_of(const std::string& op, int clients, const std::string& depth) {
  const ProgramRun run = run_well({{"workload.op", op},
                                   {"workload.msg_size", "8"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.threads", "12"},
                                   {"workload.qps", "12"},
                                   {"workload.depth", depth},
                                   {"nic.tx_slots", "128"},
                                   {"workload.mr_size", "1MiB"},
                                   {"workload.access", "random"},
                                   {"workload.traffic", "incast"},
                                   {"fabric.topology", "single_switch"},
                                   {"fabric.hosts", std::to_string(clients + 1)},
                                   {"workload.iterations", "1500"},
                                   {"sim.warmup", "100"}});
  return run.status == 0 ? run.number("/message_rate_mops") : 0;
}

TEST(CaseAT, AT01_CapsOfAtomicsAndReads) {
  const double one = rate_of("atomic_cas", 1, "5");
  const double two = rate_of("atomic_cas", 2, "5");
  const double three = rate_of("atomic_cas", 3, "5");
  EXPECT_GT(two, 1.6 * one);
  EXPECT_LT(three, 1.2 * two);
  EXPECT_NEAR(three, 48, 4);  // one start every 10 cycles of 2 ns: 50 M/s at most
  const double reads = rate_of("read", 3, "16");
  EXPECT_GT(three / reads, 0.3);
  EXPECT_LT(three / reads, 0.4);
}

// AT-03 --------------------------------------------------------------------------------------

/// Fetch-and-adds of several clients, each a queue pair with its own target.
struct Clients {
  explicit Clients(VerbsRig& on, std::uint32_t count, std::uint32_t each)
      : rig(on), operations(each) {
    for (std::uint32_t i = 0; i < count; ++i) {
      host::verbs::QpInitAttr attr = RigSide::qp_attr();
      attr.max_send_wr = 256;
      auto* mine = rig.a.make_qp(attr);
      auto* theirs = rig.b.make_qp(attr);
      rig.a.connect(*mine, theirs->qpn, path_between(0, 1), rig.config().transport);
      rig.b.connect(*theirs, mine->qpn, path_between(1, 0), rig.config().transport);
      qps.push_back(mine);
    }
    result = rig.a.buffer(4096);
    target = rig.b.buffer(1 << 20, kAtomicAccess);
  }

  /// Simulated time that all take together, client i on offsets `i * apart + k * step`.
  Time run(std::uint64_t apart, std::uint64_t step) {
    rig.settle();
    const Time start = rig.a.core.now();
    std::vector<protocol::Sge> sges(operations, {result.address, 8, result.region.lkey});
    for (std::size_t i = 0; i < qps.size(); ++i) {
      std::vector<SendWr> wrs(operations);
      for (std::uint32_t k = 0; k < operations; ++k) {
        wrs[k].opcode = WrOpcode::kAtomicFetchAndAdd;
        wrs[k].flags = k + 1 == operations ? SendFlags::kSignaled : 0;
        wrs[k].sg_list = &sges[k];
        wrs[k].num_sge = 1;
        wrs[k].remote_addr = target.address + i * apart + k * step;
        wrs[k].rkey = target.region.rkey;
        wrs[k].compare_add = i + 1;
      }
      EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *qps[i], wrs.data(), operations),
                host::Status::kOk);
    }
    for (std::size_t i = 0; i < qps.size(); ++i) {
      EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    }
    return sim_now() - start;
  }

  std::uint64_t word(std::uint64_t offset) {
    return protocol::load_operand(rig.b.bytes_at(target.address + offset, 8).data());
  }

  VerbsRig& rig;
  std::uint32_t operations;
  std::vector<host::verbs::QueuePair*> qps;
  RigBuffer result;
  RigBuffer target;
};

TEST(CaseAT, AT03_OneWordOneBucketManyWords) {
  constexpr std::uint32_t kEach = 128;
  VerbsRig rig(
      {{"transport.protocol", "rocev2"}, {"pcie.latency", "60ns"}, {"cpu.post_cost", "1ns"}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    Clients one(rig, 1, kEach);
    Clients four(rig, 4, kEach);
    const double alone = to_us(one.run(0, 0)) / kEach;
    const double together = to_us(four.run(0, 0)) / (4 * kEach);
    // One at a time, each a read of host memory over PCIe: two ways of 60 ns, the memory, the
    // engine. Whoever asks.
    EXPECT_GT(alone, 0.30);
    EXPECT_LT(alone, 0.50);
    EXPECT_NEAR(together, alone, alone * 0.06);
    EXPECT_EQ(one.word(0), kEach);
    EXPECT_EQ(four.word(0), kEach * (1 + 2 + 3 + 4));
    // 512 buckets of 8 bytes: every 4096 bytes the same one.
    const double bucket = to_us(four.run(4096, 0)) / (4 * kEach);
    EXPECT_NEAR(bucket, together, together * 0.06);
    const double distinct = to_us(four.run(1024, 8)) / (4 * kEach);
    EXPECT_LT(distinct, together / 8);
    EXPECT_EQ(four.word(1024), 2U);
  });
}

/// One client adding to one word, of host memory or of memory on the device.
double one_word_us(const char* device_memory) {
  constexpr std::uint32_t kEach = 128;
  double each = 0;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"pcie.latency", "60ns"},
                {"cpu.post_cost", "1ns"},
                {"nic.device_memory", device_memory}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    Clients clients(rig, 4, kEach);
    if (rig.b.node.host.device_memory() != 0) {
      clients.target.address = rig.b.node.host.map_device_memory(4096);
      const auto made =
          rig.b.verbs().reg_mr(rig.b.core, rig.b.pd, clients.target.address, 4096, kAtomicAccess);
      ASSERT_EQ(made.status, host::Status::kOk);
      clients.target.region = made.region;
    }
    each = to_us(clients.run(0, 0)) / (4 * kEach);
    EXPECT_EQ(clients.word(0), kEach * (1 + 2 + 3 + 4));
  });
  return each;
}

TEST(CaseAT, AT03_AWordInHostMemory) {
  EXPECT_GT(one_word_us("0"), 0.30);  // as above: a round trip of PCIe
}

TEST(CaseAT, AT03_AWordOnTheDevice) {
  // The lock is held for two accesses of 30 ns instead of a round trip of PCIe, at least three
  // times as long.
  EXPECT_LT(one_word_us("64KiB"), 0.30 / 3);
}

// AT-04 --------------------------------------------------------------------------------------

double rate_with(const std::string& op, const std::string& window) {
  const ProgramRun run = run_well({{"workload.op", op},
                                   {"workload.msg_size", "8"},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.depth", "64"},
                                   {"transport.max_rd_atomic", window},
                                   {"link.delay", "2us"},
                                   {"workload.iterations", "1000"}});
  return run.status == 0 ? run.number("/message_rate_mops") : 0;
}

TEST(CaseAT, AT04_RateIsTheWindowOverTheRoundTrip) {
  const double one = rate_with("atomic_fadd", "1");
  const double sixteen = rate_with("atomic_fadd", "16");
  EXPECT_NEAR(sixteen / one, 16, 1.6);
}

TEST(CaseAT, AT04_ReadsAndAtomicsShareTheWindow) {
  // Alternating, four in flight: as fast as four of one kind.
  VerbsRig rig({{"transport.max_rd_atomic", "4"}, {"link.delay", "2us"}, {"cpu.post_cost", "1ns"}});
  rig.run([&] {
    rig.connect();
    RigBuffer mine = rig.a.buffer(4096);
    RigBuffer target = rig.b.buffer(4096, kAtomicAccess);
    std::vector<protocol::Sge> sges(24);
    std::vector<SendWr> wrs(24);
    for (std::uint32_t i = 0; i < 24; ++i) {
      sges[i] = {mine.address + 8 * i, 8, mine.region.lkey};
      wrs[i].opcode = i % 2 == 0 ? WrOpcode::kRdmaRead : WrOpcode::kAtomicFetchAndAdd;
      wrs[i].flags = i == 23 ? SendFlags::kSignaled : 0;
      wrs[i].sg_list = &sges[i];
      wrs[i].num_sge = 1;
      wrs[i].remote_addr = target.address + 8 * i;
      wrs[i].rkey = target.region.rkey;
      wrs[i].compare_add = 1;
    }
    rig.settle();  // the registrations' time is over
    const Time start = sim_now();
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, wrs.data(), 24), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    const double took = to_us(sim_now() - start);
    // Six rounds of two ways of 2 us and less than 2.5 us in the hosts; with four of each kind in
    // flight it would be three.
    EXPECT_GT(took, 6 * 4.0);
    EXPECT_LT(took, 6 * 6.5);
  });
}

// AT-06 --------------------------------------------------------------------------------------

TEST(CaseAT, AT06_ALostAnswerIsRepeatedNotExecutedAgain) {
  // One at a time, so that data packets alternate: the 6th is the answer to the third request. The
  // program fails when a word is not what one execution of each operation leaves.
  for (const std::string op : {"atomic_cas", "atomic_fadd"}) {
    const ProgramRun run = run_well({{"workload.op", op},
                                     {"workload.pattern", "latency"},
                                     {"workload.iterations", "20"},
                                     {"sim.warmup", "0"},
                                     {"link.drop_list", "6"}});
    ASSERT_EQ(run.status, 0);
    EXPECT_EQ(run.counter("rx_atomic_requests"), 20U);
    EXPECT_EQ(run.counter("duplicate_request"), 1U);
    EXPECT_EQ(run.counter("local_ack_timeout_err"), 1U);
    EXPECT_EQ(run.number("/completions/success"), 20);
  }
}

TEST(CaseAT, AT06_APostAgainAfterResetAddsTwice) {
  VerbsRig rig(Settings{{"link.delay", "2us"}});
  rig.run([&] {
    rig.connect();
    RigBuffer mine = rig.a.buffer(4096);
    RigBuffer target = rig.b.buffer(4096, kAtomicAccess);
    const protocol::Sge sge{mine.address, 8, mine.region.lkey};
    SendWr wr;
    wr.opcode = WrOpcode::kAtomicFetchAndAdd;
    wr.flags = SendFlags::kSignaled;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.remote_addr = target.address;
    wr.rkey = target.region.rkey;
    wr.compare_add = 5;
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
    const auto word = [&] {
      return protocol::load_operand(rig.b.bytes_at(target.address, 8).data());
    };
    while (word() == 0) rig.settle(nanoseconds(100));  // executed; the answer is on the cable
    host::verbs::QpAttr reset;
    reset.qp_state = QpState::kReset;
    for (RigSide* side : {&rig.a, &rig.b}) {
      ASSERT_EQ(side->verbs().modify_qp(side->core, *side->qp, reset, protocol::QpAttrMask::kState),
                host::Status::kOk);
      side->to_init(*side->qp);
    }
    rig.settle();
    rig.a.connect(rig.b.qp->qpn, path_between(0, 1), rig.config().transport);
    rig.b.connect(rig.a.qp->qpn, path_between(1, 0), rig.config().transport);
    rig.settle();
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    EXPECT_EQ(word(), 10U);
    EXPECT_EQ(protocol::load_operand(rig.a.bytes_at(mine.address, 8).data()), 5U);
  });
}

}  // namespace
}  // namespace rnic::testbench

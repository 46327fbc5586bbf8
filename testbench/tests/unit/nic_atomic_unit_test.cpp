// SPDX-License-Identifier: Apache-2.0
// AtomicUnit: an operation enters the pipeline every 2 ns and leaves it 4 ns later; memory answers
// a read after 100 ns.
#include <gtest/gtest.h>

#include <vector>

#include "nic/atomic_unit.h"
#include "protocol/atomic.h"
#include "protocol/opcode.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

config::NicConfig atomic_config() {
  config::NicConfig config = nic_config();
  config.atomic = {4, 2};
  config.atomic_buckets = 8;
  return config;
}

struct FakeAtomicClient : nic::AtomicClient {
  struct Answer {
    std::uint32_t qpn;
    std::uint32_t psn;
    std::uint64_t original;
    Time at;
  };
  void atomic_failed(nic::QpContext& /*qp*/, const transport::RxPlan& /*plan*/,
                     Time /*t*/) override {
    ++failed;
  }
  int failed = 0;
  void atomic_done(nic::QpContext& qp, const transport::RxPlan& plan,
                   stats::MessageTrace* /*trace*/, Time t) override {
    answers.push_back({qp.qpn, plan.psn, plan.original, t});
  }
  std::vector<Answer> answers;
};

struct AtomicRig {
  explicit AtomicRig(const config::NicConfig& config = atomic_config()) : unit("unit", config) {
    unit.dma.bind(dma);
    unit.client.bind(client);
    qp.qpn = 7;
  }

  void fetch_add(std::uint64_t address, std::uint64_t add) {
    transport::RxPlan plan;
    plan.opcode = static_cast<std::uint8_t>(protocol::BthOpcode::kFetchAdd);
    plan.swap_or_add = add;
    plan.psn = ++psn;
    unit.execute(qp, plan, nullptr, address, sim_now());
  }
  void compare_swap(std::uint64_t address, std::uint64_t compare, std::uint64_t swap) {
    transport::RxPlan plan;
    plan.opcode = static_cast<std::uint8_t>(protocol::BthOpcode::kCompareSwap);
    plan.swap_or_add = swap;
    plan.compare = compare;
    plan.psn = ++psn;
    unit.execute(qp, plan, nullptr, address, sim_now());
  }
  std::uint64_t word(std::uint64_t address) const {
    return protocol::load_operand(&dma.memory[address]);
  }

  FakeDma dma;
  FakeAtomicClient client;
  nic::AtomicUnit unit;
  nic::QpContext qp;
  std::uint32_t psn = 0;
};

TEST(AtomicUnit, OneWordIsReadAndWrittenByOneAtATime) {
  AtomicRig rig;
  for (int i = 0; i < 3; ++i) rig.fetch_add(0x100, 5);
  EXPECT_EQ(rig.dma.reads.size(), 1U);
  sc_core::sc_start();
  EXPECT_EQ(rig.word(0x100), 15U);
  ASSERT_EQ(rig.client.answers.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.client.answers[i].psn, i + 1);
    EXPECT_EQ(rig.client.answers[i].original, 5U * i);
    // 4 ns of pipeline, then one round trip after the other.
    EXPECT_EQ(rig.client.answers[i].at, nanoseconds(4 + 100 * (i + 1)));
  }
  EXPECT_EQ(rig.unit.busiest_bucket(sim_now()).busy(), nanoseconds(300));
}

TEST(AtomicUnit, WordsOfOneBucketWaitForEachOtherTheRestOverlaps) {
  AtomicRig rig;
  rig.fetch_add(0x00, 1);
  rig.fetch_add(0x40, 1);  // 8 words on: the same of 8 buckets
  rig.fetch_add(0x08, 1);
  sc_core::sc_start();
  ASSERT_EQ(rig.client.answers.size(), 3U);
  EXPECT_EQ(rig.client.answers[0].at, nanoseconds(104));
  EXPECT_EQ(rig.client.answers[1].psn, 3U);
  EXPECT_EQ(rig.client.answers[1].at, nanoseconds(108));  // entered 4 ns after the first
  EXPECT_EQ(rig.client.answers[2].at, nanoseconds(204));
}

TEST(AtomicUnit, AnAnswerMayComeLaterThanTheLockIsFree) {
  config::NicConfig config = atomic_config();
  config.atomic_response_time = nanoseconds(350);
  AtomicRig rig(config);
  for (int i = 0; i < 3; ++i) rig.fetch_add(0x100, 5);
  sc_core::sc_start();
  ASSERT_EQ(rig.client.answers.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    // The lock goes from one to the next every 100 ns as ever; each answer is 350 ns behind.
    EXPECT_EQ(rig.client.answers[i].psn, i + 1);
    EXPECT_EQ(rig.client.answers[i].at, nanoseconds(4 + 100 * (i + 1) + 350));
  }
  EXPECT_EQ(rig.unit.busiest_bucket(sim_now()).busy(), nanoseconds(300));
}

TEST(AtomicUnit, CompareAndSwapWritesOnlyWhatItExpected) {
  AtomicRig rig;
  protocol::store_operand(&rig.dma.memory[0x200], 0x1122334455667788);
  rig.compare_swap(0x200, 1, 2);
  rig.compare_swap(0x200, 0x1122334455667788, 0xFFEEDDCCBBAA9988);
  sc_core::sc_start();
  ASSERT_EQ(rig.client.answers.size(), 2U);
  EXPECT_EQ(rig.client.answers[0].original, 0x1122334455667788U);
  EXPECT_EQ(rig.client.answers[1].original, 0x1122334455667788U);
  EXPECT_EQ(rig.word(0x200), 0xFFEEDDCCBBAA9988U);
  EXPECT_EQ(rig.dma.memory[0x200], 0x88);  // as a little-endian CPU stores it
}

TEST(AtomicUnit, AFetchAddWrapsAround) {
  AtomicRig rig;
  protocol::store_operand(&rig.dma.memory[0x200], ~std::uint64_t{0});
  rig.fetch_add(0x200, 2);
  sc_core::sc_start();
  EXPECT_EQ(rig.word(0x200), 1U);
}

}  // namespace
}  // namespace rnic::testbench

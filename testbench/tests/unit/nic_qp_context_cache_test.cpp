// SPDX-License-Identifier: Apache-2.0
// Lookup 3 ns, a DMA read 100 ns, contexts of 256 B from 0x1000 on.
#include <gtest/gtest.h>

#include <vector>

#include "nic/qp_context_cache.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

using nic::ContextRole;

config::NicConfig cache_config(std::uint32_t entries) {
  config::NicConfig config = nic_config();
  config.qpc_lookup = {3, 1};
  config.qpc_cache = {entries, entries, config::Replacement::kLru};
  return config;
}

struct Wait : nic::Waiter {
  void resume(Time now) override { resumed.push_back(now); }
  std::vector<Time> resumed;
};

struct Rig {
  explicit Rig(std::uint32_t entries, std::uint32_t misses = 16)
      : budget(misses), unit("unit", cache_config(entries), 1, 0x1000, budget) {
    unit.dma.bind(dma);
  }

  /// True when it was a hit; then `t` is when the context may be used.
  bool ask(nic::QpContext& qp, Time& t, Wait& wait, bool again = false) {
    return unit.acquire(qp, ContextRole::kRequester, t, &wait, again);
  }

  FakeDma dma{nanoseconds(100), 1U << 18};
  nic::MissBudget budget;
  nic::QpContextCache unit;
};

nic::QpContext& number(nic::QpContext& qp, std::uint32_t qpn) {
  qp.qpn = qpn;
  return qp;
}

TEST(QpContextCache, AMissReads256BytesAndAHitTakesTheLookup) {
  Rig rig(4);
  nic::QpContext qp;
  number(qp, 7);
  Wait wait;
  Time t = kTimeZero;
  EXPECT_FALSE(rig.ask(qp, t, wait));
  sc_core::sc_start();
  ASSERT_EQ(rig.dma.reads.size(), 1U);
  EXPECT_EQ(rig.dma.reads[0].at, nanoseconds(3));
  EXPECT_EQ(rig.dma.reads[0].address, 0x1000U + 7 * 256);
  EXPECT_EQ(rig.dma.reads[0].bytes, 256U);
  EXPECT_EQ(rig.dma.reads[0].purpose, tlm_ext::Purpose::kQpc);
  EXPECT_EQ(wait.resumed, std::vector<Time>{nanoseconds(103)});
  t = sim_now();
  EXPECT_TRUE(rig.ask(qp, t, wait, true));
  EXPECT_EQ(t, nanoseconds(106));
  EXPECT_EQ(rig.unit.cache().cache().misses(), 1U);
  EXPECT_EQ(rig.unit.cache().cache().hits(), 0U);  // the repeated lookup does not count
  EXPECT_EQ(rig.unit.stats().stalled(stats::StallCause::kContext), nanoseconds(103));
}

TEST(QpContextCache, AMissReadsNoMoreThanItIsTold) {
  config::NicConfig config = cache_config(4);
  config.qpc_fetch = 128;
  FakeDma dma(nanoseconds(100), 1U << 18);
  nic::MissBudget budget(16);
  nic::QpContextCache unit("unit", config, 1, 0x1000, budget);
  unit.dma.bind(dma);
  nic::QpContext qp;
  number(qp, 7);
  Wait wait;
  Time t = kTimeZero;
  EXPECT_FALSE(unit.acquire(qp, ContextRole::kRequester, t, &wait, false));
  sc_core::sc_start();
  ASSERT_EQ(dma.reads.size(), 1U);
  EXPECT_EQ(dma.reads[0].address, 0x1000U + 7 * 256);  // contexts lie as far apart as ever
  EXPECT_EQ(dma.reads[0].bytes, 128U);
}

TEST(QpContextCache, KneeAtItsCapacity) {
  // Round robin over LRU: as many queue pairs as entries always hit, one more never does.
  Rig rig(64);
  for (const std::uint32_t qps : {64U, 65U}) {
    std::vector<nic::QpContext> contexts(qps);
    Wait wait;
    for (std::uint32_t round = 0; round < 4; ++round) {
      if (round == 1) rig.unit.cache().cache().reset_statistics();
      for (std::uint32_t i = 0; i < qps; ++i) {
        number(contexts[i], i + 1);
        Time t = sim_now();
        if (!rig.ask(contexts[i], t, wait)) sc_core::sc_start();
      }
    }
    EXPECT_EQ(rig.unit.cache().cache().misses(), qps == 64 ? 0U : 3 * 65U) << qps;
  }
}

TEST(QpContextCache, MissBudgetLimitsFetchesInFlight) {
  Rig rig(16, 2);
  std::vector<nic::QpContext> contexts(6);
  std::vector<Wait> waits(6);
  for (std::uint32_t i = 0; i < 6; ++i) {
    Time t = kTimeZero;
    EXPECT_FALSE(rig.ask(number(contexts[i], i + 1), t, waits[i]));
  }
  EXPECT_EQ(rig.dma.reads.size(), 2U);
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.size(), 6U);
  // Lookups end at 3, 4, ... ns; two at a time: 103 and 104, then 100 ns later, and again.
  const std::int64_t expected[] = {103, 104, 203, 204, 303, 304};
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(waits[i].resumed, std::vector<Time>{nanoseconds(expected[i])}) << i;
  }
}

}  // namespace
}  // namespace rnic::testbench

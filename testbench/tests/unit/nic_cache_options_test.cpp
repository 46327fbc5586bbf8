// SPDX-License-Identifier: Apache-2.0
// Options of the QP context cache, the CQ context cache and the WQE cache: what a queue pair takes,
// who shares, what is written back. Lookup 3 ns, a DMA read 100 ns.
#include <gtest/gtest.h>

#include <vector>

#include "nic/cq_context_cache.h"
#include "nic/cq_unit.h"
#include "nic/qp_context_cache.h"
#include "nic/wqe_cache.h"
#include "support/nic_fakes.h"

namespace rnic::testbench {
namespace {

using nic::ContextRole;
using tlm_ext::Purpose;

config::NicConfig options(std::uint32_t entries) {
  config::NicConfig config = nic_config();
  config.qpc_lookup = {3, 1};
  config.qpc_cache.entries = config.qpc_cache.ways = entries;
  return config;
}

struct Wait : nic::Waiter {
  void resume(Time now) override { resumed.push_back(now); }
  std::vector<Time> resumed;
};

struct Rig {
  explicit Rig(const config::NicConfig& config) : unit("unit", config, 1, 0x1000, budget) {
    unit.dma.bind(dma);
  }

  /// Uses `qpn`'s context as `role` and waits for it, once for each part that is missing.
  void use(std::uint32_t qpn, ContextRole role = ContextRole::kRequester) {
    nic::QpContext qp;
    qp.qpn = qpn;
    qp.roles_used = roles_used;
    Wait wait;
    Time t = sim_now();
    bool again = false;
    while (!unit.acquire(qp, role, t, &wait, again)) {
      sc_core::sc_start();
      t = sim_now();
      again = true;
    }
    sc_core::sc_start();
  }

  std::size_t writes() const { return dma.writes.size(); }

  std::uint8_t roles_used = 0;  ///< by every queue pair before: 1 requester, 2 responder

  FakeDma dma{nanoseconds(100), 1U << 18};
  nic::MissBudget budget{16};
  nic::QpContextCache unit;
};

TEST(QpContextOptions, AUsedContextIsWrittenBackWhenItMustGiveWay) {
  Rig rig(options(2));
  rig.use(1);
  rig.use(2);
  EXPECT_EQ(rig.writes(), 0U);
  rig.use(3);  // 1 gives way
  ASSERT_EQ(rig.writes(), 1U);
  EXPECT_EQ(rig.dma.writes[0].address, 0x1000U + 256);
  EXPECT_EQ(rig.dma.writes[0].bytes, 256U);
  EXPECT_EQ(rig.dma.writes[0].purpose, Purpose::kQpc);
  EXPECT_EQ(rig.unit.cache().write_backs(), 1U);
}

TEST(QpContextOptions, WithoutWriteBackNothingIsWritten) {
  config::NicConfig config = options(2);
  config.qpc_write_back = false;
  Rig rig(config);
  for (std::uint32_t qpn = 1; qpn < 9; ++qpn) rig.use(qpn);
  EXPECT_EQ(rig.writes(), 0U);
}

TEST(QpContextOptions, AnExpectedContextIsFetchedAndCleanUntilItIsUsed) {
  config::NicConfig config = options(2);
  config.qpc_prefetch = true;
  Rig rig(config);
  nic::QpContext qp;
  for (const std::uint32_t qpn : {1U, 2U, 3U}) {  // the third evicts a context nobody used
    qp.qpn = qpn;
    rig.unit.expect(qp, sim_now());
    rig.unit.expect(qp, sim_now());  // on its way already
    sc_core::sc_start();
  }
  EXPECT_EQ(rig.dma.reads.size(), 3U);
  EXPECT_EQ(rig.writes(), 0U);
  rig.use(3);
  EXPECT_EQ(rig.unit.cache().cache().hits(), 1U);
  EXPECT_EQ(rig.unit.cache().cache().misses(), 0U);
}

/// A context that was fetched ahead and lost ends nobody: it is read again when it is needed.
TEST(QpContextOptions, AContextFetchedAheadThatIsLostConcernsNobody) {
  config::NicConfig config = options(2);
  config.qpc_prefetch = true;
  Rig rig(config);
  rig.dma.hold = true;
  nic::QpContext qp;
  qp.qpn = 1;
  rig.unit.expect(qp, sim_now());
  ASSERT_EQ(rig.dma.held.size(), 1U);
  rig.dma.fail();
  EXPECT_EQ(rig.unit.cache().outstanding(), 0U);
  rig.dma.hold = false;
  rig.use(1);
  EXPECT_EQ(rig.dma.reads.size(), 2U);
}

TEST(QpContextOptions, HalvesTakeAnEntryEach) {
  config::NicConfig config = options(8);
  config.qpc_layout = config::QpcLayout::kByRole;
  Rig rig(config);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t qpn = 1; qpn <= 4; ++qpn) {
      rig.use(qpn, ContextRole::kRequester);
      rig.use(qpn, ContextRole::kResponder);
    }
  }
  EXPECT_EQ(rig.unit.cache().cache().misses(), 8U);  // 4 QPs x 2 halves fill 8 entries
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t qpn = 1; qpn <= 8; ++qpn) rig.use(qpn, ContextRole::kRequester);
  }
  // One half only: eight QPs fit. The four responder halves leave once, four requesters are there.
  EXPECT_LE(rig.unit.cache().cache().misses(), 8U + 8U);
  const std::uint64_t before = rig.unit.cache().cache().misses();
  for (std::uint32_t qpn = 1; qpn <= 8; ++qpn) rig.use(qpn, ContextRole::kRequester);
  EXPECT_EQ(rig.unit.cache().cache().misses(), before);
}

/// Misses of eight queue pairs, twice in turn, over eight entries, READs needing one more each.
std::uint64_t misses_of(ContextRole role) {
  config::NicConfig config = options(8);
  config.qpc_read_entries = 1;
  Rig rig(config);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t qpn = 1; qpn <= 8; ++qpn) rig.use(qpn, role);
  }
  return rig.unit.cache().cache().misses();
}

TEST(QpContextOptions, WritesNeedOneEntry) {
  EXPECT_EQ(misses_of(ContextRole::kRequester), 8U);  // those of the first round
}

TEST(QpContextOptions, ReadsNeedTheirStateBesides) {
  EXPECT_EQ(misses_of(ContextRole::kRequesterRead), 32U);  // 16 in turn over 8: every one
}

TEST(QpContextOptions, BothRolesShareAFurtherCache) {
  config::NicConfig config = options(64);
  config.qpc_layout = config::QpcLayout::kByRole;
  config.qpc_dual_cache.entries = config.qpc_dual_cache.ways = 4;
  Rig rig(config);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t qpn = 1; qpn <= 20; ++qpn) rig.use(qpn, ContextRole::kRequester);
  }
  ASSERT_NE(rig.unit.dual_cache(), nullptr);
  EXPECT_EQ(rig.unit.dual_cache()->cache().misses(), 0U);  // one role: no need of it
  rig.roles_used = 1;
  for (std::uint32_t qpn = 1; qpn <= 5; ++qpn) rig.use(qpn, ContextRole::kResponder);
  rig.roles_used = 3;
  // Five queue pairs in turn over four entries never meet what they left (LRU).
  const std::uint64_t before = rig.unit.dual_cache()->cache().misses();
  EXPECT_EQ(before, 5U);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t qpn = 1; qpn <= 5; ++qpn) rig.use(qpn, ContextRole::kRequester);
  }
  EXPECT_EQ(rig.unit.dual_cache()->cache().misses(), before + 10);
  EXPECT_EQ(rig.unit.cache().cache().misses(), 25U);  // 20 and 5 halves fit in 64
}

TEST(QpContextOptions, SplitGivesEachHalfItsOwn) {
  config::NicConfig config = options(8);
  config.qpc_cache.ways = 4;
  config.qpc_cache.split = true;
  Rig rig(config);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t qpn = 1; qpn <= 4; ++qpn) rig.use(qpn, ContextRole::kRequester);
    for (std::uint32_t qpn = 11; qpn <= 15; ++qpn) rig.use(qpn, ContextRole::kResponder);
  }
  // Four requesters fit in their half of four; five responders, in turn, never do (LRU).
  EXPECT_EQ(rig.unit.cache().cache().misses(), 4U);
  EXPECT_EQ(rig.unit.cache().cache().hits(), 4U);
  ASSERT_NE(rig.unit.responder_cache(), nullptr);
  EXPECT_EQ(rig.unit.responder_cache()->cache().misses(), 10U);
}

TEST(QpContextOptions, MissStatusRegistersLimitOneCache) {
  config::NicConfig config = options(8);
  config.qpc_cache.misses = 2;
  Rig rig(config);
  std::vector<nic::QpContext> contexts(4);
  std::vector<Wait> waits(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    contexts[i].qpn = i + 1;
    Time t = kTimeZero;
    EXPECT_FALSE(rig.unit.acquire(contexts[i], ContextRole::kRequester, t, &waits[i], false));
  }
  EXPECT_EQ(rig.dma.reads.size(), 2U);  // although 16 fetches may go on in the NIC
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.size(), 4U);
  EXPECT_EQ(waits[2].resumed, std::vector<Time>{nanoseconds(203)});
}

TEST(CqContextCache, AQueueThatFellOutKeepsItsCqesInOrder) {
  config::CacheConfig config = nic_config().cqc_cache;
  config.entries = config.ways = 1;
  FakeDma dma(nanoseconds(100), 1U << 18);
  nic::MissBudget budget(16);
  nic::CqContextCache contexts("contexts", config, 1, 0x8000, budget);
  nic::CqUnit unit("unit");
  contexts.dma.bind(dma);
  unit.dma.bind(dma);
  unit.set_contexts(&contexts);
  protocol::CreateCqCommand create;
  create.cqn = 1;
  create.log_entries = 4;
  create.ring_address = 0x1000;
  unit.create(create);
  create.cqn = 2;
  create.ring_address = 0x2000;
  unit.create(create);  // 1 falls out, and is written back: created contexts are news
  ASSERT_EQ(dma.writes.size(), 1U);
  EXPECT_EQ(dma.writes[0].address, 0x8000U + 64);
  EXPECT_EQ(dma.writes[0].purpose, Purpose::kCqc);
  dma.writes.clear();
  protocol::Cqe cqe;
  cqe.kind = protocol::Cqe::Kind::kRequester;
  unit.post(1, cqe, nullptr, kTimeZero);
  unit.post(1, cqe, nullptr, nanoseconds(1));
  EXPECT_TRUE(dma.writes.empty());
  sc_core::sc_start();
  ASSERT_EQ(dma.reads.size(), 1U);  // the second waits for the first one's fetch
  EXPECT_EQ(dma.reads[0].address, 0x8000U + 64);
  EXPECT_EQ(dma.reads[0].bytes, 64U);
  std::vector<std::uint64_t> cqes;
  for (const auto& write : dma.writes) {
    if (write.purpose == Purpose::kCqe) cqes.push_back(write.address);
  }
  EXPECT_EQ(cqes, (std::vector<std::uint64_t>{0x1000, 0x1000 + protocol::kCqeBytes}));
}

TEST(WqeCache, WhatFellOutIsReadFromItsRingAgain) {
  config::CacheConfig config = nic_config().wqe_cache;
  config.entries = config.ways = 2;
  FakeDma dma(nanoseconds(100), 1U << 18);
  nic::MissBudget budget(16);
  nic::WqeCache unit("unit", config, 1, Purpose::kWqe, budget);
  unit.dma.bind(dma);
  nic::QpContext qp;
  qp.qpn = 5;
  qp.sq_address = 0x4000;
  qp.sq_log_blocks = 3;
  std::vector<nic::WqeCache::Place> places;
  for (std::uint16_t i = 0; i < 3; ++i) {
    protocol::SendWqe wqe;
    wqe.index = static_cast<std::uint16_t>(8 + i);  // the ring's second pass
    wqe.blocks = 1;
    places.push_back(nic::WqeCache::of_send(qp, wqe));
    unit.hold(places.back());
  }
  Wait wait;
  EXPECT_FALSE(unit.acquire(places[0], kTimeZero, &wait, false));
  sc_core::sc_start();
  ASSERT_EQ(dma.reads.size(), 1U);
  EXPECT_EQ(dma.reads[0].address, 0x4000U);
  EXPECT_EQ(dma.reads[0].bytes, 64U);
  EXPECT_EQ(wait.resumed.size(), 1U);
  EXPECT_TRUE(unit.acquire(places[0], sim_now(), &wait, true));
  unit.release(places[0]);
  EXPECT_TRUE(unit.acquire(places[2], sim_now(), &wait, false));
  EXPECT_EQ(unit.cache().cache().misses(), 1U);
}

/// Reads that an evicted WQE of `blocks` blocks at `index` costs in a ring of 2^log_blocks blocks.
std::vector<FakeDma::Request> reads_of_evicted(std::uint32_t refetch, std::uint16_t index,
                                               std::uint8_t log_blocks, std::uint8_t blocks) {
  config::CacheConfig config = nic_config().wqe_cache;
  config.entries = config.ways = 2;
  config.refetch = refetch;
  FakeDma dma(nanoseconds(100), 1U << 18);
  nic::MissBudget budget(16);
  nic::WqeCache unit("unit", config, 1, Purpose::kWqe, budget);
  unit.dma.bind(dma);
  nic::QpContext qp;
  qp.sq_address = 0x4000;
  qp.sq_log_blocks = log_blocks;
  protocol::SendWqe wqe;
  wqe.index = index;
  wqe.blocks = blocks;
  Wait wait;
  EXPECT_FALSE(unit.acquire(nic::WqeCache::of_send(qp, wqe), kTimeZero, &wait, false));
  sc_core::sc_start();
  return dma.reads;
}

TEST(WqeCache, AnEvictedWqeIsReadWithItsNeighbours) {
  // Blocks of 64 B. Pieces of 512 B hold eight: block 13 of the ring lies in the second, 0x200 on.
  auto reads = reads_of_evicted(512, 13, 6, 1);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].address, 0x4200U);
  EXPECT_EQ(reads[0].bytes, 512U);
}

TEST(WqeCache, AWqeLongerThanAPieceIsReadAlone) {
  const auto reads = reads_of_evicted(128, 13, 6, 3);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].address, 0x4000U + 13 * 64);
  EXPECT_EQ(reads[0].bytes, 192U);
}

TEST(WqeCache, APieceNeverLeavesItsRing) {
  // A ring of four blocks is shorter than a piece of eight.
  const auto reads = reads_of_evicted(512, 3, 2, 1);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].address, 0x4000U + 3 * 64);
  EXPECT_EQ(reads[0].bytes, 64U);
}

}  // namespace
}  // namespace rnic::testbench

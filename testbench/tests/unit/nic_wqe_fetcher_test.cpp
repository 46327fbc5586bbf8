// SPDX-License-Identifier: Apache-2.0
// Decoding takes 4 ns, one WQE every 2 ns; a DMA read 100 ns. The ring of 16 blocks lies at 0x2000.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "nic/wqe_fetcher.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

using protocol::kWqeBlockBytes;

constexpr std::uint64_t kRing = 0x2000;
constexpr std::uint32_t kQpn = 5;

config::NicConfig fetcher_config() {
  config::NicConfig config = nic_config();
  config.wqe_decode = {4, 2};
  config.wqe_prefetch = 4;
  config.wqe_buffer = 8;
  return config;
}

config::NicConfig with_buffer(std::uint32_t wqes) {
  config::NicConfig config = fetcher_config();
  config.wqe_buffer = wqes;
  return config;
}

struct Rig {
  explicit Rig(const config::NicConfig& config = fetcher_config()) : unit("unit", config) {
    unit.dma.bind(dma);
    unit.scheduler.bind(scheduler);
    unit.completion.bind(completion);
    qp.qpn = kQpn;
    qp.state = protocol::QpState::kRts;
    qp.sq_address = kRing;
    qp.sq_log_blocks = 4;
  }

  /// A WRITE of `blocks` blocks: 2 header segments and 4 x blocks - 2 data segments of 8 bytes.
  static protocol::SendWqe make(std::uint16_t index, std::uint8_t blocks) {
    protocol::SendWqe wqe;
    wqe.opcode = protocol::WqeOpcode::kWrite;
    wqe.index = index;
    wqe.blocks = blocks;
    wqe.sge_count = 4U * blocks - 2;
    for (std::uint32_t i = 0; i < wqe.sge_count; ++i) wqe.sge.at(i) = {0x100, 8, 1};
    return wqe;
  }

  /// Writes a WQE into the ring and advances the producer index.
  void post(std::uint8_t blocks = 1) {
    std::array<std::uint8_t, std::size_t{protocol::kMaxWqeBlocks} * kWqeBlockBytes> bytes{};
    protocol::encode_wqe(make(qp.sq_producer, blocks), kQpn, bytes.data());
    for (std::uint32_t i = 0; i < blocks; ++i) {
      std::copy_n(&bytes[std::size_t{i} * kWqeBlockBytes], kWqeBlockBytes,
                  &dma.memory[kRing + (qp.sq_producer & 15U) * kWqeBlockBytes]);
      ++qp.sq_producer;
    }
  }

  void start_at(std::uint16_t index) { qp.sq_producer = qp.sq_fetched = index; }

  FakeDma dma;
  FakeScheduler scheduler;
  FakeCompletion completion;
  nic::WqeFetcher unit;
  nic::QpContext qp;
};

std::size_t cut_bytes(const nic::QpContext& qp) {
  return qp.sq_cut != nullptr ? qp.sq_cut->size() : 0;
}

TEST(WqeFetcher, ReadsWhatIsPostedUpToThePrefetch) {
  Rig rig;
  for (int i = 0; i < 6; ++i) rig.post();
  rig.unit.fetch(rig.qp, nanoseconds(10));
  rig.unit.fetch(rig.qp, nanoseconds(10));  // one at a time
  ASSERT_EQ(rig.dma.reads.size(), 1U);
  EXPECT_EQ(rig.dma.reads[0].at, nanoseconds(10));
  EXPECT_EQ(rig.dma.reads[0].address, kRing);
  EXPECT_EQ(rig.dma.reads[0].bytes, 4 * kWqeBlockBytes);
  sc_core::sc_start();
  ASSERT_EQ(rig.qp.sq.size(), 4U);
  EXPECT_EQ(rig.qp.sq[3].wqe.index, 3U);
  EXPECT_EQ(rig.qp.sq[0].wqe.length, 16U);  // two segments of 8 bytes
  // In the device at 110; each decode takes 4, and the fourth starts at 116.
  EXPECT_EQ(rig.scheduler.activated, (std::vector<QpCall>{{kQpn, nanoseconds(114)}}));
  EXPECT_EQ(rig.qp.sq[3].decode_start, nanoseconds(116));
  rig.qp.tx_number = 1;  // one is sent
  rig.unit.fetch(rig.qp, sim_now());
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.at(1).address, kRing + 4 * kWqeBlockBytes);
  EXPECT_EQ(rig.dma.reads.at(1).bytes, 2 * kWqeBlockBytes);
  EXPECT_EQ(rig.qp.sq.size(), 6U);
  rig.unit.fetch(rig.qp, sim_now());  // nothing is left
  EXPECT_EQ(rig.unit.fetches(), 2U);
}

TEST(WqeFetcher, AWrapOfTheRingIsTwoReads) {
  Rig rig;
  rig.start_at(14);
  for (int i = 0; i < 4; ++i) rig.post();
  rig.unit.fetch(rig.qp, kTimeZero);
  ASSERT_EQ(rig.dma.reads.size(), 2U);
  EXPECT_EQ(rig.dma.reads[0].address, kRing + 14 * kWqeBlockBytes);
  EXPECT_EQ(rig.dma.reads[0].bytes, 2 * kWqeBlockBytes);
  EXPECT_EQ(rig.dma.reads[1].address, kRing);
  EXPECT_EQ(rig.dma.reads[1].bytes, 2 * kWqeBlockBytes);
  sc_core::sc_start();
  ASSERT_EQ(rig.qp.sq.size(), 4U);
  EXPECT_EQ(rig.qp.sq[2].wqe.index, 16U);
  EXPECT_EQ(rig.scheduler.activated.size(), 1U);  // when both parts are here
}

TEST(WqeFetcher, CountersWrapAt16Bits) {
  Rig rig;
  rig.start_at(0xFFFE);
  for (int i = 0; i < 4; ++i) rig.post();
  rig.unit.fetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(rig.qp.sq.size(), 4U);
  EXPECT_EQ(rig.qp.sq[1].wqe.index, 0xFFFFU);
  EXPECT_EQ(rig.qp.sq[2].wqe.index, 0U);
  EXPECT_EQ(rig.qp.sq_fetched, 2U);
}

TEST(WqeFetcher, OfAWqeCutByTheFetchOnlyTheRestIsRead) {
  Rig rig;
  rig.post();   // block 0
  rig.post(8);  // blocks 1 to 8, of which the first read brings three
  rig.post();   // block 9
  rig.unit.fetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  EXPECT_EQ(rig.qp.sq.size(), 1U);
  EXPECT_EQ(rig.qp.sq_fetched, 1U);
  EXPECT_EQ(cut_bytes(rig.qp), 3 * kWqeBlockBytes);
  // Five blocks are missing, which is more than the prefetch of four.
  rig.unit.fetch(rig.qp, sim_now());
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.back().address, kRing + 4 * kWqeBlockBytes);
  EXPECT_EQ(rig.dma.reads.back().bytes, 5 * kWqeBlockBytes);
  ASSERT_EQ(rig.qp.sq.size(), 2U);
  EXPECT_EQ(rig.qp.sq[1].wqe.sge_count, 30U);  // 4 x 8 segments, two of which are headers
  EXPECT_EQ(rig.qp.sq_fetched, 9U);
  EXPECT_EQ(cut_bytes(rig.qp), 0U);
}

TEST(WqeFetcher, BehindACutWqeThePrefetchGoesOn) {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.post(3);  // blocks 0 to 8: the first read cuts the second WQE
  rig.unit.fetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  EXPECT_EQ(rig.qp.sq.size(), 1U);
  rig.unit.fetch(rig.qp, sim_now());  // its last two blocks and the next two
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.back().bytes, 4 * kWqeBlockBytes);
  EXPECT_EQ(rig.qp.sq.size(), 2U);
  EXPECT_EQ(cut_bytes(rig.qp), 2 * kWqeBlockBytes);
  rig.unit.fetch(rig.qp, sim_now());
  sc_core::sc_start();
  EXPECT_EQ(rig.dma.reads.back().bytes, kWqeBlockBytes);  // 9 blocks in 4, 4 and 1: none twice
  EXPECT_EQ(rig.qp.sq.size(), 3U);
}

TEST(WqeFetcher, NeverHoldsMoreThanItsBuffer) {
  Rig rig(with_buffer(16));
  for (int i = 0; i < 15; ++i) rig.post();
  for (int i = 0; i < 6; ++i) {
    rig.unit.fetch(rig.qp, sim_now());
    sc_core::sc_start();
  }
  EXPECT_EQ(rig.qp.sq.size(), 12U);  // the next four would take the place of the one in work
  rig.qp.tx_number = 1;              // one is sent, though not completed
  rig.unit.fetch(rig.qp, sim_now());
  sc_core::sc_start();
  EXPECT_EQ(rig.qp.sq.size(), 15U);
}

TEST(WqeFetcher, AsManyReadsAreUnderWayAsTheBufferHasRoomFor) {
  // Three reads of four WQEs beside a fourth place in work: 40 WQEs take 4 round trips, not 10.
  Rig rig(with_buffer(16));
  for (int i = 0; i < 12; ++i) rig.post();
  rig.unit.fetch(rig.qp, nanoseconds(10));
  ASSERT_EQ(rig.dma.reads.size(), 3U);
  EXPECT_EQ(rig.qp.sq_fetches, 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.dma.reads[i].address, kRing + i * 4 * kWqeBlockBytes);
    EXPECT_EQ(rig.dma.reads[i].bytes, 4 * kWqeBlockBytes);
  }
  sc_core::sc_start();
  ASSERT_EQ(rig.qp.sq.size(), 12U);
  for (std::uint16_t i = 0; i < 12; ++i) EXPECT_EQ(rig.qp.sq[i].wqe.index, i);
  EXPECT_EQ(rig.qp.sq_fetches, 0U);
  EXPECT_EQ(rig.qp.sq_coming, 0U);
}

TEST(WqeFetcher, AWqeThatTwoReadsBringIsPutTogether) {
  Rig rig(with_buffer(16));
  rig.post(3);
  rig.post(3);  // blocks 3 to 5: the first of two reads under way brings one of them
  rig.post(2);
  rig.unit.fetch(rig.qp, kTimeZero);
  ASSERT_EQ(rig.dma.reads.size(), 2U);
  sc_core::sc_start();
  ASSERT_EQ(rig.qp.sq.size(), 3U);
  EXPECT_EQ(rig.qp.sq[1].wqe.sge_count, 10U);
  EXPECT_EQ(rig.qp.sq[2].wqe.index, 6U);
  EXPECT_EQ(cut_bytes(rig.qp), 0U);
}

TEST(WqeFetcher, AMalformedWqeBecomesAnErrorOfItsOwn) {
  Rig rig;
  rig.post();
  rig.post();
  rig.dma.memory[kRing + 3] = 0x77;  // no such opcode
  rig.unit.fetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  ASSERT_EQ(rig.qp.sq.size(), 2U);
  EXPECT_TRUE(rig.qp.sq[0].finished);
  EXPECT_EQ(rig.qp.sq[0].status, protocol::WcStatus::kLocalQpOperationError);
  EXPECT_FALSE(rig.qp.sq[1].finished);
}

TEST(WqeFetcher, BlueFlameInOrderNeedsNoRead) {
  Rig rig;
  rig.start_at(3);
  rig.post(2);
  EXPECT_TRUE(
      rig.unit.blueflame(rig.qp, &rig.dma.memory[kRing + 3 * kWqeBlockBytes], 2, kTimeZero));
  EXPECT_EQ(rig.qp.sq_fetched, 5U);
  ASSERT_EQ(rig.qp.sq.size(), 1U);
  EXPECT_EQ(rig.qp.sq[0].wqe.index, 3U);
  rig.unit.fetch(rig.qp, kTimeZero);
  EXPECT_TRUE(rig.dma.reads.empty());
}

TEST(WqeFetcher, BlueFlameOutOfOrderIsNotUsed) {
  Rig rig;
  rig.post();
  rig.post();  // only the second is pushed: the first is still to be read from the ring
  EXPECT_FALSE(rig.unit.blueflame(rig.qp, &rig.dma.memory[kRing + kWqeBlockBytes], 1, kTimeZero));
  EXPECT_TRUE(rig.qp.sq.empty());
  rig.unit.fetch(rig.qp, kTimeZero);
  rig.post();
  // A read is under way: the push would overtake it.
  EXPECT_FALSE(
      rig.unit.blueflame(rig.qp, &rig.dma.memory[kRing + 2 * kWqeBlockBytes], 1, kTimeZero));
  sc_core::sc_start();
  EXPECT_EQ(rig.qp.sq.size(), 2U);
}

TEST(WqeFetcher, InErrorStateTheWorkGoesToTheCompletionUnit) {
  Rig rig;
  rig.qp.state = protocol::QpState::kError;
  rig.post();
  rig.unit.fetch(rig.qp, kTimeZero);
  sc_core::sc_start();
  EXPECT_TRUE(rig.scheduler.activated.empty());
  EXPECT_EQ(rig.completion.retired, (std::vector<QpCall>{{kQpn, nanoseconds(100)}}));
}

}  // namespace
}  // namespace rnic::testbench

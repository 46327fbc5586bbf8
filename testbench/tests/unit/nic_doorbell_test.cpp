// SPDX-License-Identifier: Apache-2.0
// Clock 1 ns; a doorbell takes 6 cycles, one every 2.
#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <array>
#include <vector>

#include "nic/completion_unit.h"
#include "nic/doorbell_unit.h"
#include "nic/wqe_fetcher.h"
#include "tests/support/nic_fakes.h"

namespace rnic::testbench {
namespace {

using protocol::BarLayout;
using protocol::kWqeBlockBytes;

config::NicConfig doorbell_config() {
  config::NicConfig config = nic_config();
  config.doorbell = {6, 2};
  return config;
}

/// The PCIe side: sends MMIO writes into the BAR.
struct Stores : sc_core::sc_module {
  explicit Stores(const sc_core::sc_module_name& name) : sc_module(name) {}

  tlm::tlm_response_status write(std::uint64_t offset, std::vector<std::uint8_t> data,
                                 Time delay = kTimeZero,
                                 tlm::tlm_command command = tlm::TLM_WRITE_COMMAND) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(offset);
    payload.set_data_ptr(data.data());
    payload.set_data_length(static_cast<unsigned>(data.size()));
    payload.set_streaming_width(static_cast<unsigned>(data.size()));
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time annotation = to_sc_time(delay);
    socket->nb_transport_fw(payload, phase, annotation);
    return payload.get_response_status();
  }

  void doorbell(std::uint32_t qpn, std::uint16_t producer, Time delay = kTimeZero) {
    std::vector<std::uint8_t> bytes(8);
    protocol::SendDoorbell{qpn, producer}.encode(bytes.data());
    write(BarLayout::kSendDoorbell, bytes, delay);
  }

  /// A WQE in stores of 64 bytes.
  void push(const std::vector<std::uint8_t>& wqe) {
    for (std::size_t at = 0; at < wqe.size(); at += kWqeBlockBytes) {
      const auto from = wqe.begin() + static_cast<std::ptrdiff_t>(at);
      write(BarLayout::kSendDoorbell + at, {from, from + kWqeBlockBytes});
    }
  }

  tlm_utils::simple_initiator_socket<Stores> socket{"socket"};
};

/// A SEND of 4 x blocks - 1 segments.
std::vector<std::uint8_t> make_wqe(std::uint32_t qpn, std::uint16_t index, std::uint8_t blocks) {
  protocol::SendWqe wqe;
  wqe.opcode = protocol::WqeOpcode::kSend;
  wqe.index = index;
  wqe.blocks = blocks;
  wqe.sge_count = 4U * blocks - 1;
  for (std::uint32_t i = 0; i < wqe.sge_count; ++i) wqe.sge.at(i) = {i, 1, 1};
  std::vector<std::uint8_t> bytes(std::size_t{blocks} * kWqeBlockBytes);
  protocol::encode_wqe(wqe, qpn, bytes.data());
  return bytes;
}

struct Rig {
  Rig() : unit("unit", doorbell_config(), table) {
    stores.socket.bind(unit.bar);
    unit.scheduler.bind(scheduler);
    unit.wqes.bind(wqes);
    unit.commands.bind(commands);
    table.create(3).state = protocol::QpState::kRts;
    table.create(4).state = protocol::QpState::kRts;
  }

  nic::QpTable table;
  Stores stores{"stores"};
  FakeScheduler scheduler;
  FakeWqeFetch wqes;
  FakeCommands commands;
  nic::DoorbellUnit unit;
};

TEST(DoorbellUnit, ADoorbellMovesTheProducerAfterItsLatency) {
  Rig rig;
  rig.stores.doorbell(3, 17);
  sc_core::sc_start(to_sc_time(picoseconds(5'999)));
  EXPECT_EQ(rig.table.find(3)->sq_producer, 0U);
  sc_core::sc_start();
  EXPECT_EQ(rig.table.find(3)->sq_producer, 17U);
  EXPECT_EQ(rig.table.find(3)->doorbell_at, nanoseconds(6));
  EXPECT_EQ(rig.scheduler.activated, (std::vector<QpCall>{{3, nanoseconds(6)}}));
  EXPECT_EQ(rig.unit.doorbells(), 1U);
}

TEST(DoorbellUnit, ArrivalsWaitForTheNextClockEdgeAndForEachOther) {
  Rig rig;
  rig.stores.doorbell(3, 1, picoseconds(1'001));  // edge at 2
  rig.stores.doorbell(4, 1, picoseconds(2'000));  // on the edge; starts at 4
  sc_core::sc_start();
  EXPECT_EQ(rig.scheduler.activated,
            (std::vector<QpCall>{{3, nanoseconds(8)}, {4, nanoseconds(10)}}));
}

TEST(DoorbellUnit, ABlueFlameStoreCarriesItsWqe) {
  Rig rig;
  const auto wqe = make_wqe(3, 7, 1);
  rig.stores.push(wqe);
  sc_core::sc_start();
  EXPECT_EQ(rig.wqes.pushes, (std::vector<QpCall>{{3, nanoseconds(6)}}));
  EXPECT_EQ(rig.wqes.pushed, wqe);
  EXPECT_EQ(rig.table.find(3)->sq_producer, 8U);
  EXPECT_EQ(rig.scheduler.activated.size(), 1U);
  EXPECT_EQ(rig.unit.blueflames(), 1U);
}

TEST(DoorbellUnit, AWqeOfSeveralBlocksIsUsedWhenComplete) {
  Rig rig;
  const auto wqe = make_wqe(4, 0xFFFF, 3);
  rig.stores.push(wqe);
  sc_core::sc_start();
  EXPECT_EQ(rig.wqes.pushes, (std::vector<QpCall>{{4, nanoseconds(10)}}));  // third: 4 + 6
  EXPECT_EQ(rig.wqes.pushed, wqe);
  EXPECT_EQ(rig.table.find(4)->sq_producer, 2U);  // 0xFFFF + 3, modulo 2^16
}

TEST(DoorbellUnit, BlocksOfTwoWqesOnOneRegisterMix) {
  Rig rig;
  const auto a = make_wqe(3, 7, 2);
  const auto b = make_wqe(4, 9, 2);
  const auto block = [](const std::vector<std::uint8_t>& wqe, std::size_t i) {
    const auto from = wqe.begin() + static_cast<std::ptrdiff_t>(i * kWqeBlockBytes);
    return std::vector<std::uint8_t>{from, from + kWqeBlockBytes};
  };
  const std::uint64_t first = BarLayout::kSendDoorbell;
  rig.stores.write(first, block(a, 0));
  rig.stores.write(first, block(b, 0));
  rig.stores.write(first + kWqeBlockBytes, block(a, 1));
  rig.stores.write(first + kWqeBlockBytes, block(b, 1));
  sc_core::sc_start();
  // A's head was a doorbell: it is fetched from its ring. B's head is taken with A's tail.
  EXPECT_EQ(rig.unit.interleaved(), 1U);
  EXPECT_EQ(rig.table.find(3)->sq_producer, 9U);
  EXPECT_EQ(rig.table.find(4)->sq_producer, 11U);
  EXPECT_EQ(rig.wqes.pushes, (std::vector<QpCall>{{4, nanoseconds(10)}}));
  std::vector<std::uint8_t> mixed = block(b, 0);
  const std::vector<std::uint8_t> tail = block(a, 1);
  mixed.insert(mixed.end(), tail.begin(), tail.end());
  EXPECT_EQ(rig.wqes.pushed, mixed);
  EXPECT_EQ(rig.unit.ignored(), 1U);  // B's own tail
}

TEST(DoorbellUnit, RegistersOfTheirOwnKeepWqesApart) {
  Rig rig;
  const auto a = make_wqe(3, 7, 2);
  const auto b = make_wqe(4, 9, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i * kWqeBlockBytes);
    const std::uint64_t offset = i * kWqeBlockBytes;
    rig.stores.write(BarLayout::blueflame_register(1) + offset,
                     {a.begin() + at, a.begin() + at + kWqeBlockBytes});
    rig.stores.write(BarLayout::blueflame_register(2) + offset,
                     {b.begin() + at, b.begin() + at + kWqeBlockBytes});
  }
  sc_core::sc_start();
  EXPECT_EQ(rig.unit.interleaved(), 0U);
  EXPECT_EQ(rig.wqes.pushes, (std::vector<QpCall>{{3, nanoseconds(10)}, {4, nanoseconds(12)}}));
  EXPECT_EQ(rig.wqes.pushed, b);
}

TEST(DoorbellUnit, UnknownQueuesAndRegistersAreIgnoredAndCounted) {
  Rig rig;
  rig.stores.doorbell(2, 1);
  rig.stores.doorbell(0xFF'FFFF, 1);
  rig.stores.push(make_wqe(77, 0, 1));
  rig.stores.write(0x10, std::vector<std::uint8_t>(8));
  rig.stores.write(BarLayout::kSendDoorbell + 1024, std::vector<std::uint8_t>(64));
  rig.stores.write(BarLayout::kSendDoorbell + 1000, std::vector<std::uint8_t>(64));  // no block
  sc_core::sc_start();
  EXPECT_EQ(rig.unit.ignored(), 6U);
  EXPECT_TRUE(rig.scheduler.activated.empty());
}

TEST(DoorbellUnit, CommandsCarryTheMailboxAddress) {
  Rig rig;
  rig.stores.write(BarLayout::kCommand, {0, 0, 0, 1, 0, 0, 0x20, 0});
  sc_core::sc_start();
  ASSERT_EQ(rig.commands.executed.size(), 1U);
  EXPECT_EQ(rig.commands.executed[0].first, 0x1'0000'2000U);
}

// (Reads are answered across the link: CpuCosts.AReadOfARegisterCrossesPcieTwice.)
TEST(DoorbellUnit, LongWritesAreRefused) {
  Rig rig;
  EXPECT_EQ(rig.stores.write(BarLayout::kSendDoorbell, std::vector<std::uint8_t>(65)),
            tlm::TLM_COMMAND_ERROR_RESPONSE);
}

/// The units that flush, for real.
struct ErrorRig {
  ErrorRig()
      : doorbell("doorbell", doorbell_config(), table),
        fetcher("fetcher", nic_config()),
        completion("completion", nic_config(), transport) {
    stores.socket.bind(doorbell.bar);
    doorbell.scheduler.bind(scheduler);
    doorbell.wqes.bind(fetcher.wqes);
    doorbell.commands.bind(commands);
    fetcher.dma.bind(dma);
    fetcher.scheduler.bind(scheduler);
    fetcher.completion.bind(completion.completion);
    completion.completion_queues.bind(cq);
    completion.recv_queues.bind(recv_queues);
    completion.wqes.bind(fetcher.wqes);
    completion.scheduler.bind(scheduler);
    nic::QpContext& qp = table.create(3);
    qp.state = protocol::QpState::kError;
    qp.sq_address = 0x2000;
    qp.sq_log_blocks = 4;
  }

  nic::QpTable table;
  Stores stores{"stores"};
  FakeDma dma;
  FakeScheduler scheduler;
  FakeCommands commands;
  FakeCq cq;
  FakeRecvQueues recv_queues;
  nic::DoorbellUnit doorbell;
  nic::WqeFetcher fetcher;
  FakeTransport transport;
  nic::CompletionUnit completion;
};

TEST(DoorbellUnit, WorkPushedInErrorStateIsFlushed) {
  ErrorRig rig;
  const auto wqe = make_wqe(3, 0, 1);
  std::copy(wqe.begin(), wqe.end(), &rig.dma.memory[0x2000]);
  rig.stores.push(wqe);
  sc_core::sc_start();
  ASSERT_EQ(rig.cq.posts.size(), 1U);
  EXPECT_EQ(rig.cq.posts[0].cqe.status, protocol::WcStatus::kWrFlushError);
}

TEST(DoorbellUnit, WorkRungForInErrorStateIsFlushed) {
  ErrorRig rig;
  for (std::uint16_t i = 0; i < 10; ++i) {
    const auto wqe = make_wqe(3, i, 1);
    std::copy(wqe.begin(), wqe.end(), &rig.dma.memory[0x2000 + std::size_t{i} * 64]);
  }
  rig.stores.doorbell(3, 10);
  sc_core::sc_start();
  ASSERT_EQ(rig.cq.posts.size(), 10U);
  EXPECT_EQ(rig.cq.posts[9].cqe.wqe_counter, 9U);
}

}  // namespace
}  // namespace rnic::testbench

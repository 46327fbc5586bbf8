// SPDX-License-Identifier: Apache-2.0
// Link parameters of the rig: 125 ps a byte, 100 ns one way, MPS 256, MRRS 512, RCB 64.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "pcie/link.h"
#include "tests/support/pcie_rig.h"

namespace rnic::testbench {
namespace {

using pcie::Direction;
using tlm_ext::Purpose;

TEST(PcieLink, RateIsWhatCodingAndDllpsLeave) {
  PcieRigConfig config;
  EXPECT_DOUBLE_EQ(PcieRig(config).link.rate().to_gbps(), 64.0);  // 16 x 5 GT/s x 8/10
}

TEST(PcieLink, DllpOverheadIsTakenOff) {
  PcieRigConfig config;
  config.pcie.dllp_overhead = 0.1;
  EXPECT_DOUBLE_EQ(PcieRig(config).link.rate().to_gbps(), 57.6);
}

TEST(PcieLink, CountsAReadByHand) {
  PcieRig rig;
  std::array<std::uint8_t, 4096> buffer{};
  rig.dma.dma_read(kTimeZero, 0, 4096, buffer.data(), Purpose::kWqe, &rig.client, 1);
  rig.run();
  // Eight requests of 24 B up; sixteen completions of 256 + 20 B down.
  const auto& up = rig.link.counter(Direction::kToHost, Purpose::kWqe);
  EXPECT_EQ(up.tlps, 8U);
  EXPECT_EQ(up.payload_bytes, 0U);
  EXPECT_EQ(up.wire_bytes, 192U);
  const auto& down = rig.link.counter(Direction::kToDevice, Purpose::kWqe);
  EXPECT_EQ(down.tlps, 16U);
  EXPECT_EQ(down.payload_bytes, 4096U);
  EXPECT_EQ(down.wire_bytes, 4416U);
  EXPECT_EQ(rig.link.counter(Direction::kToHost, Purpose::kPayload).tlps, 0U);
  // Busy: 192 B and 4416 B at 125 ps.
  EXPECT_EQ(rig.link.unit(Direction::kToHost).busy(), nanoseconds(24));
  EXPECT_EQ(rig.link.unit(Direction::kToDevice).busy(), nanoseconds(552));
}

TEST(PcieLink, CountsWritesByPurposeAndInTotal) {
  PcieRig rig;
  const std::array<std::uint8_t, 300> data{};
  rig.dma.dma_write(kTimeZero, 0, 300, data.data(), Purpose::kPayload, &rig.client, 1);
  rig.dma.dma_write(kTimeZero, 512, 64, data.data(), Purpose::kCqe, nullptr, 0);
  rig.run();
  // 300 B: two TLPs, 348 B on the wire; 64 B: one, 88 B. Nothing comes back.
  EXPECT_EQ(rig.link.counter(Direction::kToHost, Purpose::kPayload).wire_bytes, 348U);
  EXPECT_EQ(rig.link.counter(Direction::kToHost, Purpose::kCqe).wire_bytes, 88U);
  const pcie::TlpCounter total = rig.link.total(Direction::kToHost);
  EXPECT_EQ(total.tlps, 3U);
  EXPECT_EQ(total.payload_bytes, 364U);
  EXPECT_EQ(total.wire_bytes, 436U);
  EXPECT_EQ(rig.link.total(Direction::kToDevice).tlps, 0U);
  rig.link.reset_statistics(sim_now());
  EXPECT_EQ(rig.link.total(Direction::kToHost).wire_bytes, 0U);
  EXPECT_EQ(rig.link.unit(Direction::kToHost).busy(), kTimeZero);
}

TEST(PcieLink, AnErrorIsOneCompletionWithoutData) {
  PcieRig rig(PcieRigConfig(), 4096);
  std::array<std::uint8_t, 512> buffer{};
  rig.dma.dma_read(kTimeZero, 8192, 512, buffer.data(), Purpose::kPayload, &rig.client, 1);
  rig.run();
  EXPECT_EQ(rig.link.total(Direction::kToDevice).wire_bytes, 20U);
  EXPECT_EQ(rig.dma.faults(), 1U);
}

TEST(PcieLink, DoorbellArrivesAfterSerialisationAndLatency) {
  PcieRig rig;
  const std::array<std::uint8_t, 8> doorbell{1, 2, 3, 4, 5, 6, 7, 8};
  const std::uint64_t before = ModelEvents::count();
  rig.root.mmio_write(nanoseconds(5), 0x800, doorbell.data(), 8, Purpose::kDoorbell);
  // 5 ns, 32 B at 125 ps = 4 ns, 100 ns: known at once, without an event.
  ASSERT_EQ(rig.bar.writes.size(), 1U);
  EXPECT_EQ(rig.bar.writes[0].at, nanoseconds(109));
  EXPECT_EQ(rig.bar.writes[0].offset, 0x800U);
  EXPECT_EQ(rig.bar.writes[0].purpose, Purpose::kDoorbell);
  EXPECT_EQ(rig.bar.writes[0].data, std::vector<std::uint8_t>(doorbell.begin(), doorbell.end()));
  EXPECT_EQ(ModelEvents::count(), before);
  EXPECT_EQ(rig.link.counter(Direction::kToDevice, Purpose::kDoorbell).wire_bytes, 32U);
}

TEST(PcieLink, BlueFlameIsOneTlpForEach64Bytes) {
  PcieRig rig;
  std::array<std::uint8_t, 128> wqe{};
  std::iota(wqe.begin(), wqe.end(), std::uint8_t{0});
  rig.root.mmio_write(kTimeZero, 0x900, wqe.data(), 128, Purpose::kBlueFlame);
  // 88 B take 11 ns each; the second follows the first.
  ASSERT_EQ(rig.bar.writes.size(), 2U);
  EXPECT_EQ(rig.bar.writes[0].at, nanoseconds(111));
  EXPECT_EQ(rig.bar.writes[1].at, nanoseconds(122));
  EXPECT_EQ(rig.bar.writes[1].offset, 0x940U);
  EXPECT_EQ(rig.bar.writes[1].data[0], 64);
  EXPECT_EQ(rig.link.counter(Direction::kToDevice, Purpose::kBlueFlame).tlps, 2U);
}

TEST(PcieLink, MmioComesBetweenTheCompletionsOfABurst) {
  PcieRig rig;
  std::array<std::uint8_t, 8192> buffer{};
  rig.dma.dma_read(kTimeZero, 0, 4096, buffer.data(), Purpose::kPayload, &rig.client, 1);
  // Completions occupy the wire from 10 + 3 + 100 + 150 = 263 ns to 263 + 552 = 815 ns.
  sc_core::sc_start(to_sc_time(nanoseconds(300)));
  const std::array<std::uint8_t, 8> doorbell{};
  rig.root.mmio_write(sim_now(), 0, doorbell.data(), 8, Purpose::kDoorbell);
  rig.root.mmio_write(sim_now(), 8, doorbell.data(), 8, Purpose::kDoorbell);
  // Behind the packet on the wire, half of its 256 B on the average: 16 ns. The second behind the
  // first. Each takes 4 ns, then 100 ns to arrive.
  ASSERT_EQ(rig.bar.writes.size(), 2U);
  EXPECT_EQ(rig.bar.writes[0].at, nanoseconds(300 + 16 + 4 + 100));
  EXPECT_EQ(rig.bar.writes[1].at, nanoseconds(300 + 16 + 8 + 100));
  // Their 8 ns are taken from the wire all the same: what is read next comes so much later.
  rig.dma.dma_read(sim_now(), 4096, 4096, buffer.data() + 4096, Purpose::kPayload, &rig.client, 2);
  rig.run();
  EXPECT_EQ(rig.client.done_at.at(1), nanoseconds(815 + 100));
  EXPECT_EQ(rig.client.done_at.at(2), nanoseconds(815 + 8 + 552 + 100));
}

TEST(PcieLink, BlockingTransportTakesTheSameTime) {
  PcieRig rig;
  rig.memory.fill_pattern();
  std::array<std::uint8_t, 64> buffer{};
  tlm::tlm_generic_payload payload;
  payload.set_read();
  payload.set_address(100);
  payload.set_data_ptr(buffer.data());
  payload.set_data_length(16);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  rig.dma.socket->b_transport(payload, delay);
  // 3 + 100 + 150, completion of 36 B: 4.5 ns, 100; no DMA engine in it.
  EXPECT_EQ(from_sc_time(delay), picoseconds(357'500));
  EXPECT_EQ(buffer[0], FakeMemory::pattern(100));
  EXPECT_TRUE(payload.is_response_ok());
}

TEST(PcieLink, DebugTransportReachesMemoryWithoutTime) {
  PcieRig rig;
  std::array<std::uint8_t, 16> data{42};
  tlm::tlm_generic_payload payload;
  payload.set_write();
  payload.set_address(5);
  payload.set_data_ptr(data.data());
  payload.set_data_length(16);
  EXPECT_EQ(rig.dma.socket->transport_dbg(payload), 16U);
  EXPECT_EQ(rig.memory[5], 42);
  payload.set_address(1 << 20);
  EXPECT_EQ(rig.dma.socket->transport_dbg(payload), 0U);
  EXPECT_EQ(rig.link.total(Direction::kToHost).tlps, 0U);
}

}  // namespace
}  // namespace rnic::testbench

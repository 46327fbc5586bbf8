// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "host/cpu.h"

namespace rnic::testbench {
namespace {

constexpr Time ns(std::int64_t n) { return nanoseconds(n); }

/// Runs `body` as a thread of the simulation.
template <typename Body>
void run_thread(Body body) {
  sc_core::sc_spawn(body);
  sc_core::sc_start();
}

TEST(Core, RunsAheadUntilItSynchronises) {
  host::Core core;
  run_thread([&core] {
    core.spend(ns(30));
    core.spend(ns(12));
    EXPECT_EQ(sim_now(), kTimeZero);
    EXPECT_EQ(core.now(), ns(42));
    core.sync();
    EXPECT_EQ(sim_now(), ns(42));
    EXPECT_EQ(core.now(), ns(42));
    core.sync();  // nothing to catch up
    EXPECT_EQ(sim_now(), ns(42));
  });
  EXPECT_EQ(core.busy(), ns(42));
  EXPECT_EQ(sim_now(), ns(42));
}

TEST(PollSpot, SeesAWriteHalfALookLaterAndEndsTheNextLook) {
  // Looks take 20 ns. Written at 1000: 10 ns are left of the look under way on the average, the
  // next one sees it: 1030.
  host::Core core;
  host::PollSpot spot;
  Time seen{0};
  sc_core::sc_spawn([&] {
    core.spend(ns(50));
    spot.spin(core, ns(20), 0);
    seen = core.now();
  });
  sc_core::sc_spawn([&] {
    sc_core::wait(to_sc_time(ns(1000)));
    spot.memory_written(0, 64);
  });
  sc_core::sc_start();
  EXPECT_EQ(seen, ns(1030));
  EXPECT_EQ(core.polling(), ns(950));  // in vain, from 50 to 1000
  EXPECT_EQ(core.busy(), ns(50 + 950 + 30));
  EXPECT_EQ(spot.last_write(), ns(1000));
}

TEST(PollSpot, AWriteThatIsThereAlreadyCostsOneLook) {
  host::Core core;
  host::PollSpot spot;
  run_thread([&] {
    spot.memory_written(0, 64);
    spot.spin(core, ns(20), 0);
    EXPECT_EQ(core.now(), ns(20));
  });
  EXPECT_EQ(core.polling(), kTimeZero);
}

TEST(PollSpot, WaitsForMoreThanWasSeen) {
  host::Core core;
  host::PollSpot spot;
  Time seen{0};
  sc_core::sc_spawn([&] {
    spot.spin(core, ns(20), 2);  // the third write counts
    seen = core.now();
  });
  sc_core::sc_spawn([&] {
    for (int i = 0; i < 3; ++i) {
      sc_core::wait(to_sc_time(ns(100)));
      spot.memory_written(0, 64);
    }
  });
  sc_core::sc_start();
  EXPECT_EQ(seen, ns(330));
  EXPECT_EQ(spot.writes(), 3U);
}

struct Registers : host::MmioPort {
  struct Write {
    Time at;
    std::uint64_t offset;
    std::vector<std::uint8_t> bytes;
  };
  void mmio_write(Time earliest, std::uint64_t offset, const std::uint8_t* data,
                  std::uint32_t bytes, tlm_ext::Purpose /*purpose*/) override {
    EXPECT_EQ(earliest, sim_now());
    writes.push_back({earliest, offset, {data, data + bytes}});
  }
  std::vector<Write> writes;
};

TEST(StoreBuffer, StoresLeaveAtTheCoresTimeInOrder) {
  Registers registers;
  host::StoreBuffer stores("stores", registers);
  std::array<std::uint8_t, 8> data{1};
  stores.store(ns(40), 0x800, data.data(), 8, tlm_ext::Purpose::kDoorbell);
  data[0] = 2;  // taken at once
  stores.store(ns(40), 0x808, data.data(), 8, tlm_ext::Purpose::kDoorbell);
  stores.store(ns(10), 0x810, data.data(), 4, tlm_ext::Purpose::kDoorbell);
  sc_core::sc_start();
  ASSERT_EQ(registers.writes.size(), 3U);
  EXPECT_EQ(registers.writes[0].at, ns(10));
  EXPECT_EQ(registers.writes[0].bytes.size(), 4U);
  EXPECT_EQ(registers.writes[1].offset, 0x800U);
  EXPECT_EQ(registers.writes[1].bytes[0], 1);
  EXPECT_EQ(registers.writes[2].at, ns(40));
  EXPECT_EQ(registers.writes[2].bytes[0], 2);
}

TEST(StoreBuffer, MoreThanABlueFlamePushIsABrokenInvariant) {
  Registers registers;
  host::StoreBuffer stores("stores", registers);
  std::array<std::uint8_t, 1025> data{};
  EXPECT_THROW(stores.store(kTimeZero, 0x800, data.data(), 1025, tlm_ext::Purpose::kBlueFlame),
               SimulationError);
}

}  // namespace
}  // namespace rnic::testbench

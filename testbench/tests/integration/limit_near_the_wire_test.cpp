// SPDX-License-Identifier: Apache-2.0
// What the report names where a wire is busy nine tenths of the time because something else lets it
// be idle now and then, and where a limit is no unit.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

struct Named {
  std::string unit;
  std::string why;
  double gbps = 0;
};

Named limit(const Settings& settings) {
  const ProgramRun run = run_well(with({{"workload.pattern", "bandwidth"}}, settings));
  const auto& bottleneck = run.result["bottleneck"];
  return {bottleneck["unit"], bottleneck["why"], run.number("/throughput_gbps")};
}

bool says(const Named& named, const char* text) {
  return named.why.find(text) != std::string::npos;
}

// A READ of 64 KiB over 10 us takes 22.5 us: n slots move n x 524,288 bit in that time, 23.3 Gb/s
// each. The wire carries 392 of 400 Gb/s: less than 17 slots' worth.
TEST(LimitNearTheWire, ReadSlots) {
  const auto with_slots = [](const char* slots) {
    return limit({{"transport.protocol", "rocev2"},
                  {"transport.mtu", "4096"},
                  {"link.rate", "400Gbps"},
                  {"pcie.gen", "5"},
                  {"workload.op", "read"},
                  {"workload.msg_size", "64KiB"},
                  {"workload.iterations", "2000"},
                  {"link.delay", "10us"},
                  {"nic.max_rd_atomic", "64"},
                  {"transport.max_rd_atomic", slots}});
  };
  for (const int slots : {14, 15}) {
    const Named named = with_slots(std::to_string(slots).c_str());
    EXPECT_NEAR(named.gbps, slots * 524'288 / 22.5e3, 0.02 * named.gbps);
    EXPECT_EQ(named.unit, "transport.max_rd_atomic") << named.why;
    EXPECT_TRUE(says(named, "the next limit would be host1.nic.port")) << named.why;
  }
  EXPECT_EQ(with_slots("18").unit, "host1.nic.port");
}

// Two messages of 18 KiB in flight for 3.4 us each: 86 Gb/s.
TEST(LimitNearTheWire, MessagesInFlight) {
  const Named named = limit({{"transport.protocol", "rocev2"},
                             {"transport.mtu", "4096"},
                             {"workload.op", "write"},
                             {"workload.depth", "2"},
                             {"workload.msg_size", "18KiB"}});
  EXPECT_GT(named.gbps, 85);
  EXPECT_EQ(named.unit, "workload.depth") << named.why;
}

// 128 KiB of a lane, over a round trip of 11.5 us: 91 Gb/s.
TEST(LimitNearTheWire, CreditsOfALane) {
  const Named named = limit({{"transport.protocol", "ib"},
                             {"workload.op", "write"},
                             {"workload.msg_size", "32KiB"},
                             {"link.delay", "5us"}});
  EXPECT_NEAR(named.gbps, 131'072 * 8 / 11.5e3, 1.5);
  EXPECT_TRUE(says(named, "flow-control credits")) << named.why;
  EXPECT_TRUE(says(named, "the next limit would be host0.nic.port")) << named.why;
}

// One way of 100 us, in which the wire has been busy before what is measured, and is idle behind
// it: no window lets it wait.
TEST(LimitNearTheWire, FiguresOfALongerTimeAreNoGaps) {
  const Named named = limit({{"transport.protocol", "rocev2"},
                             {"transport.mtu", "4096"},
                             {"workload.op", "write"},
                             {"workload.qps", "4"},
                             {"workload.msg_size", "64KiB"},
                             {"workload.iterations", "200"},
                             {"link.delay", "100us"}});
  EXPECT_NEAR(named.gbps, 98, 0.1);
  EXPECT_EQ(named.unit, "host0.nic.port") << named.why;
}

// The responder answers an atomic of a queue pair in 0.54 us (0.5 and the look-up), so four queue
// pairs do 3.7 M/s however many slots they have; one slot is over sooner than a round trip.
TEST(LimitThatIsNoUnit, AtomicsInTurn) {
  const auto with_slots = [](const char* slots) {
    return limit({{"transport.protocol", "rocev2"},
                  {"workload.op", "atomic_cas"},
                  {"workload.qps", "4"},
                  {"workload.iterations", "2000"},
                  {"nic.atomics_in_turn", "true"},
                  {"nic.atomic_response_time", "500ns"},
                  {"nic.max_rd_atomic", "64"},
                  {"transport.max_rd_atomic", slots}});
  };
  EXPECT_EQ(with_slots("1").unit, "transport.max_rd_atomic");
  const Named few = with_slots("4");
  const Named many = with_slots("64");
  EXPECT_EQ(few.unit, "nic.atomics_in_turn") << few.why;
  EXPECT_EQ(many.unit, "nic.atomics_in_turn") << many.why;
  EXPECT_NEAR(few.gbps, many.gbps, 0.01 * many.gbps);
}

// Eight cores at one register: each waits for seven others, so at most a seventh of its time is its
// own.
TEST(LimitThatIsNoUnit, LocksOfDoorbellRegisters) {
  const Settings eight{{"workload.op", "write"},
                       {"workload.msg_size", "8"},
                       {"workload.threads", "8"},
                       {"workload.qps", "8"},
                       {"workload.iterations", "1000"}};
  const Named shared = limit(with(eight, {{"cpu.doorbell_registers", "1"}}));
  EXPECT_EQ(shared.unit, "host0.cpu");
  EXPECT_TRUE(says(shared, "of it at the locks of doorbell registers")) << shared.why;
  EXPECT_FALSE(says(limit(eight), "locks"));
}

TEST(LimitThatIsNoUnit, ReplaysOfThePcieLink) {
  const Named named = limit({{"workload.op", "write"},
                             {"workload.msg_size", "64KiB"},
                             {"workload.iterations", "200"},
                             {"pcie.bit_error_rate", "1e-4"}});
  EXPECT_EQ(named.unit, "host1.pcie.to_host");
  EXPECT_TRUE(says(named, "packets again after bit errors (pcie.bit_error_rate)")) << named.why;
}

}  // namespace
}  // namespace rnic::testbench

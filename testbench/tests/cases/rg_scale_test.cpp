// SPDX-License-Identifier: Apache-2.0
// Public cases RG-04 and RG-07 at their own size: a pool that each of many connections registers
// again, and a gigabyte whose pages come on demand.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::QueuePair;
using host::verbs::WrOpcode;
using protocol::WcStatus;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr protocol::AccessFlags kOnDemand = kAllAccess | protocol::kAccessOnDemand;

// RG-04 --------------------------------------------------------------------------------------

struct Reconnected {
  Time took{0};
  std::uint64_t mtts = 0;        ///< taken from the device's table
  std::set<std::uint32_t> keys;  ///< entries of the MR table
};

/// `count` connections are made one after the other; each registers the pool, or the first one
/// does.
Reconnected reconnect(VerbsRig& rig, std::uint64_t pool, std::uint64_t bytes, int count,
                      bool each) {
  Reconnected out;
  const std::uint64_t free_before = rig.a.node.host.context_memory.free_mtt_count();
  const Time start = rig.a.core.now();
  for (int i = 0; i < count; ++i) {
    if (each || i == 0) {
      const auto made = rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, pool, bytes, kAllAccess);
      EXPECT_EQ(made.status, Status::kOk);
      out.keys.insert(made.region.rkey);
    }
    QueuePair* mine = rig.a.make_qp(RigSide::qp_attr());
    rig.a.connect(*mine, 0x100, path_between(0, 1), rig.config().transport);
  }
  rig.a.core.sync();
  out.took = rig.a.core.now() - start;
  out.mtts = free_before - rig.a.node.host.context_memory.free_mtt_count();
  return out;
}

TEST(CaseRG, RG04_AllConnectionsComeBackAtOnce) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"memory.reg_page_cost", "350ns"}});
  rig.run([&] {
    rig.a.create();
    constexpr int kConnections = 256;
    constexpr std::uint64_t kPool = 4U << 20;
    const std::uint64_t pool = rig.a.space().map(kPool, kPage);
    const Time start = rig.a.core.now();
    ASSERT_EQ(rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, pool, kPool, kAllAccess).status,
              Status::kOk);
    const Time one = rig.a.core.now() - start;  // 1,024 pages of 0.35 us and the call
    EXPECT_GT(one, microseconds(358));
    const Reconnected once = reconnect(rig, pool, kPool, kConnections, false);
    const Reconnected each = reconnect(rig, pool, kPool, kConnections, true);
    // All else is the same: what is more is 255 registrations.
    EXPECT_NEAR(to_us(each.took - once.took), (kConnections - 1) * to_us(one),
                0.01 * kConnections * to_us(one));
    EXPECT_GT(each.took, 5 * once.took);
    EXPECT_EQ(each.mtts, kConnections * once.mtts);
    EXPECT_EQ(once.mtts, kPool / kPage);
    EXPECT_EQ(once.keys.size(), 1U);
    EXPECT_EQ(each.keys.size(), static_cast<std::size_t>(kConnections));
  });
}

// RG-07 --------------------------------------------------------------------------------------

struct Cold {
  std::uint64_t bytes = kGiB;
  std::string granularity = "2MiB";
  int handlers = 1;
  std::string fault = "100us";
  bool prefetch = false;
};

/// Time of one WRITE out of memory that was never touched.
double write_cold_us(const Cold& cold) {
  double took = 0;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"sim.payload", "none"},
                {"memory.memlock_limit", "unlimited"},
                {"memory.odp_fault_cost", cold.fault},
                {"memory.odp_handlers", std::to_string(cold.handlers)},
                {"memory.odp_granularity", cold.granularity}});
  const auto program = [&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(cold.bytes, kOnDemand);
    const RigBuffer theirs = rig.b.buffer(cold.bytes);
    rig.settle();  // the registrations' time is over
    const Time start = rig.a.core.now();
    if (cold.prefetch) {
      ASSERT_EQ(rig.a.verbs().advise_mr(rig.a.core, mine.region, mine.address, cold.bytes),
                Status::kOk);
      rig.settle(microseconds(110));  // the first chunk: 512 pages of 200 ns
    }
    ASSERT_EQ(
        rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey,
                   static_cast<std::uint32_t>(cold.bytes), theirs.address, theirs.region.rkey),
        Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    took = to_us(rig.a.core.now() - start);
  };
  rig.run(program, microseconds(20'000'000));
  return took;
}

/// 4 KiB at 100 Gb/s: 4096 + 82 B.
constexpr double kWireUsOfGiB = 262144.0 * (4096 + 82) * 8 / 100e3;

/// Faults one after the other: each its own time and 0.2 us for each page that it maps.
TEST(CaseRG, RG07_AGigabyteFaultByFaultOf2MiB) {
  const double faults = 512 * (100 + 512 * 0.2);
  const double took = write_cold_us({kGiB, "2MiB", 1, "100us", false});
  EXPECT_GT(took, faults);
  EXPECT_LT(took, faults + kWireUsOfGiB) << "what has been mapped goes out meanwhile";
}

TEST(CaseRG, RG07_AGigabyteFaultByFaultOf64KiB) {
  const double faults = 16384 * (50 + 16 * 0.2);
  const double took = write_cold_us({kGiB, "64KiB", 1, "50us", false});
  EXPECT_NEAR(took / faults, 1.0, 0.1);
  EXPECT_GT(took, 8 * kWireUsOfGiB);
}

/// 4 KiB: 16,384 faults of 64 MiB, by one handler or four of them.
TEST(CaseRG, RG07_PageByPageWithOneHandler) {
  const double took = write_cold_us({64U << 20, "4KiB", 1, "300us", false});
  EXPECT_NEAR(took / (16384 * 300.2), 1.0, 0.02);
}
TEST(CaseRG, RG07_PageByPageWithFourHandlers) {
  const double took = write_cold_us({64U << 20, "4KiB", 4, "300us", false});
  EXPECT_NEAR(took / (16384 / 4 * 300.2), 1.0, 0.02);
}

/// Pages come at 4 KiB in 0.2 us, 164 Gb/s: ahead of the wire from the first chunk on.
TEST(CaseRG, RG07_AGigabyteThatIsPrefetchedTakesTheTimeOfTheWire) {
  const double took = write_cold_us({kGiB, "4KiB", 4, "100us", true});
  EXPECT_GT(took, kWireUsOfGiB);
  EXPECT_LT(took, 1.02 * kWireUsOfGiB);
}

}  // namespace
}  // namespace rnic::testbench

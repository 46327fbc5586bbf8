// SPDX-License-Identifier: Apache-2.0
// What the host's side costs end to end: address translation services, fences and write combining,
// reads of registers, atomics against the host's own CPU, and atomics whose memory cannot be read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/atomic.h"
#include "protocol/doorbell.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::WcStatus;

Settings latency_of(const std::string& op) {
  return {{"workload.op", op},
          {"workload.pattern", "latency"},
          {"workload.msg_size", "64"},
          {"workload.iterations", "100"},
          {"sim.warmup", "10"}};
}

double mean(const Settings& settings) { return run_well(settings).number("/latency_ns/mean"); }

std::uint64_t tlps(const ProgramRun& run, const std::string& direction,
                   const std::string& purpose) {
  const auto& by_purpose = run.result["pcie"][0][direction]["by_purpose"];
  return by_purpose.contains(purpose) ? by_purpose[purpose]["tlps"].get<std::uint64_t>() : 0;
}

TEST(AtsTest, TheDevicesCacheReplacesTheIotlb) {
  // 64 pages fit into the IOTLB and 1,024 into the device's cache; the messages touch 512 and what
  // rings and contexts need.
  const Settings base = {{"workload.op", "write"},      {"workload.pattern", "bandwidth"},
                         {"workload.msg_size", "64"},   {"workload.iterations", "6000"},
                         {"workload.inline_max", "0"},  {"workload.mr_size", "2MiB"},
                         {"workload.access", "random"}, {"sim.warmup", "3000"},
                         {"iommu.enabled", "true"},     {"sim.payload", "none"},
                         {"iommu.walkers", "1"},        {"iommu.walk_latency", "500ns"}};
  const ProgramRun iommu = run_well(base);
  const ProgramRun ats = run_well(with(base, {{"pcie.ats", "true"}}));
  const ProgramRun small = run_well(with(base, {{"pcie.ats", "true"}, {"pcie.atc.entries", "64"}}));
  EXPECT_GT(ats.number("/message_rate_mops"), iommu.number("/message_rate_mops"));
  EXPECT_LT(small.number("/message_rate_mops"), ats.number("/message_rate_mops"));
  EXPECT_EQ(tlps(iommu, "to_host", "translation"), 0U);
  // A request and a completion for each miss.
  EXPECT_GT(tlps(small, "to_host", "translation"), 1000U);
  EXPECT_NEAR(static_cast<double>(tlps(small, "to_host", "translation")),
              static_cast<double>(tlps(small, "to_device", "translation")), 64);
  EXPECT_LT(tlps(ats, "to_host", "translation"), 100U);
}

TEST(AtsTest, EveryWireCarriesTheRightBytes) {
  for (const std::string& protocol : all_protocols()) {
    for (const char* op : {"write", "read", "send"}) {
      SCOPED_TRACE(protocol + " " + op);
      run_well({{"transport.protocol", protocol},
                {"workload.op", op},
                {"workload.pattern", "bandwidth"},
                {"workload.msg_size", "20000"},
                {"workload.iterations", "60"},
                {"iommu.enabled", "true"},
                {"pcie.ats", "true"},
                {"pcie.atc.entries", "8"},
                {"pcie.atc.ways", "8"}});
    }
  }
}

TEST(AtsTest, NobodyToAsk) {
  const ProgramRun run = run_program({{"pcie.ats", "true"}});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.error.find("iommu.enabled"), std::string::npos) << run.error;
}

TEST(AtsTest, DeregistrationWaitsForTheDevice) {
  VerbsRig rig({{"iommu.enabled", "true"}, {"pcie.ats", "true"}});
  rig.run([&rig] {
    rig.connect();
    const RigBuffer source = rig.a.buffer(4096);
    const RigBuffer target = rig.b.buffer(4096);
    EXPECT_EQ(rig.a.post(WrOpcode::kRdmaWrite, source.address, source.region.lkey, 1024,
                         target.address, target.region.rkey),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    pcie::TranslationAgent& agent = *rig.a.node.nic.translation_agent;
    EXPECT_EQ(agent.invalidations(), 0U);
    EXPECT_EQ(rig.a.verbs().dereg_mr(rig.a.core, source.region), host::Status::kOk);
    EXPECT_EQ(agent.invalidations(), 1U);
    const auto& link = rig.a.node.pcie;
    using tlm_ext::Purpose;
    EXPECT_EQ(link.counter(pcie::Direction::kToDevice, Purpose::kInvalidation).tlps, 1U);
    EXPECT_EQ(link.counter(pcie::Direction::kToHost, Purpose::kInvalidation).tlps, 1U);
  });
}

TEST(CpuCosts, FencesAddUp) {
  // Half a round trip has one post: a BlueFlame push has a fence before and one behind it, a plain
  // doorbell one before it.
  const Settings push = latency_of("write");
  EXPECT_NEAR(mean(with(push, {{"cpu.fence_cost", "30ns"}})) - mean(push), 60, 1);
  const Settings plain = with(push, {{"nic.blueflame", "false"}});
  EXPECT_NEAR(mean(with(plain, {{"cpu.fence_cost", "30ns"}})) - mean(plain), 30, 1);
}

TEST(CpuCosts, AHostsWriteCombinedLinesAreLimited) {
  // Eight threads, which start together, push a WQE of one block each: a line every 50 ns is
  // 20 M/s.
  const Settings threads = {{"workload.op", "write"},   {"workload.pattern", "bandwidth"},
                            {"workload.msg_size", "8"}, {"workload.inline_max", "16"},
                            {"workload.threads", "8"},  {"workload.qps", "8"},
                            {"workload.depth", "16"},   {"workload.iterations", "3000"},
                            {"sim.warmup", "0"},        {"sim.payload", "none"}};
  const double free = run_well(threads).number("/message_rate_mops");
  const double limited =
      run_well(with(threads, {{"cpu.wc_line_interval", "50ns"}})).number("/message_rate_mops");
  EXPECT_GT(free, 25);
  EXPECT_NEAR(limited, 20, 0.4);
}

TEST(CpuCosts, AReadOfARegisterCrossesPcieTwice) {
  VerbsRig rig{Settings{}};
  rig.run([&rig] {
    const config::PcieConfig& pcie = rig.config().pcie;
    rig.a.core.sync();
    const Time start = sim_now();
    const std::uint64_t clock =
        rig.a.verbs().read_register(rig.a.core, protocol::BarLayout::kClock);
    const Time took = sim_now() - start;
    // There and back, the device's time in between (to an edge of its clock), and a few ns of
    // wire.
    EXPECT_GE(took, 2 * pcie.one_way() + pcie.register_read_time);
    EXPECT_LT(took, 2 * pcie.one_way() + pcie.register_read_time + nanoseconds(6));
    const Time sampled = start + pcie.one_way() + pcie.register_read_time;
    EXPECT_NEAR(static_cast<double>(clock), static_cast<double>(sampled / nanoseconds(1)), 4);
    using tlm_ext::Purpose;
    EXPECT_EQ(rig.a.node.pcie.counter(pcie::Direction::kToDevice, Purpose::kRegister).tlps, 1U);
    EXPECT_EQ(rig.a.node.pcie.counter(pcie::Direction::kToHost, Purpose::kRegister).tlps, 1U);
  });
}

TEST(CpuCosts, ReadBackBoundsTheRateOfDoorbells) {
  const Settings stream = {{"workload.op", "write"},
                           {"workload.pattern", "bandwidth"},
                           {"workload.msg_size", "8"},
                           {"workload.iterations", "2000"}};
  const double rate =
      run_well(with(stream, {{"cpu.doorbell_readback", "true"}})).number("/message_rate_mops");
  // Each post takes 150 ns there, 150 back and 50 in the device, besides some 150 of its own.
  EXPECT_LT(rate, 1e3 / 350);
  EXPECT_GT(rate, 1e3 / 650);
}

/// A device adds while the host's CPU adds to the same word; how many additions got lost.
std::uint64_t lost_additions(const char* pcie_atomics) {
  constexpr std::uint32_t kAdditions = 200;
  VerbsRig rig(Settings{{"nic.pcie_atomics", pcie_atomics}});
  std::uint64_t lost = 0;
  rig.run([&] {
    rig.connect();
    const RigBuffer result = rig.a.buffer(4096);
    const RigBuffer word = rig.b.buffer(4096, kAllAccess | protocol::kAccessRemoteAtomic);
    std::uint64_t by_cpu = 0;
    for (std::uint32_t i = 0; i < kAdditions; ++i) {
      const protocol::Sge sge{result.address, 8, result.region.lkey};
      host::verbs::SendWr wr;
      wr.opcode = WrOpcode::kAtomicFetchAndAdd;
      wr.flags = host::verbs::SendFlags::kSignaled;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.remote_addr = word.address;
      wr.rkey = word.region.rkey;
      wr.compare_add = 1;
      EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
      // A locked add of the host's CPU, at one instant, every 100 ns meanwhile.
      for (int k = 0; k < 30; ++k) {
        sc_core::wait(to_sc_time(nanoseconds(100)));
        std::uint8_t bytes[8];
        rig.b.space().read(word.address, bytes, sizeof bytes);
        protocol::store_operand(bytes, protocol::load_operand(bytes) + 1);
        rig.b.space().write(word.address, bytes, sizeof bytes);
        ++by_cpu;
      }
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    }
    const auto bytes = rig.b.bytes_at(word.address, 8);
    lost = kAdditions + by_cpu - protocol::load_operand(bytes.data());
  });
  return lost;
}

TEST(AtomicScope, ADevicesReadAndWriteLoseWhatTheCpuAddsBetween) {
  // About 450 ns lie between the device's read of memory and its write: four additions each.
  EXPECT_GT(lost_additions("false"), 200U);
}

TEST(AtomicScope, AtomicOpsOfTheRootComplexLoseNothing) { EXPECT_EQ(lost_additions("true"), 0U); }

TEST(AtomicScope, AnAtomicOpTakesOneRoundTripOfPcie) {
  const Settings atomic = with(latency_of("atomic_fadd"), {{"workload.msg_size", "8"}});
  const ProgramRun device = run_well(atomic);
  const ProgramRun root = run_well(with(atomic, {{"nic.pcie_atomics", "true"}}));
  // The device's write behind its read has to leave first: the DMA engine again, and a TLP.
  EXPECT_LT(root.number("/latency_ns/mean"), device.number("/latency_ns/mean"));
  EXPECT_GT(root.number("/latency_ns/mean"), device.number("/latency_ns/mean") - 30);
  // At the responder, one request instead of a read and a write.
  const auto at_responder = [](const ProgramRun& run) {
    return run.result["pcie"][1]["to_host"]["by_purpose"]["atomic"]["tlps"].get<std::uint64_t>();
  };
  EXPECT_EQ(2 * at_responder(root), at_responder(device));
}

TEST(AtomicFaults, AWordThatCannotBeReadIsARemoteOperationalError) {
  for (const std::string& protocol : all_protocols()) {
    for (const char* op : {"atomic_fadd", "atomic_cas"}) {
      for (const char* scope : {"false", "true"}) {
        SCOPED_TRACE(protocol + " " + op + " pcie_atomics=" + scope);
        const ProgramRun run = run_program({{"transport.protocol", protocol},
                                            {"workload.op", op},
                                            {"workload.pattern", "bandwidth"},
                                            {"workload.depth", "4"},
                                            {"workload.iterations", "8"},
                                            {"workload.signal_every", "1"},
                                            {"sim.warmup", "0"},
                                            {"nic.pcie_atomics", scope},
                                            {"pcie.fault.purpose", "atomic"},
                                            {"pcie.fault.poisoned", "2"}});
        ASSERT_EQ(run.status, 0) << run.error;
        EXPECT_EQ(run.number("/completions/remote_operation_error"), 1);
        EXPECT_LE(run.number("/completions/success"), 1);
        EXPECT_GE(run.number("/completions/wr_flush_error"), 1);
      }
    }
  }
}

}  // namespace
}  // namespace rnic::testbench

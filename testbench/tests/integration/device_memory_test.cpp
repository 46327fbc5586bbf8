// SPDX-License-Identifier: Apache-2.0
// Memory on the device: data and atomics, without PCIe in between.
#include <gtest/gtest.h>

#include "support/program.h"

namespace rnic::testbench {
namespace {

const Settings kOnDevice = {{"workload.remote_memory", "device"}, {"nic.device_memory", "1MiB"}};

class DeviceMemoryTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceMemoryTest, EveryByteArrives) {
  for (const std::string op : {"write", "read", "atomic_fadd", "atomic_cas"}) {
    for (const std::string pattern : {"latency", "bandwidth"}) {
      const Settings base = {{"transport.protocol", GetParam()},
                             {"workload.op", op},
                             {"workload.pattern", pattern},
                             {"workload.msg_size", op.rfind("atomic", 0) == 0 ? "8" : "5000"},
                             {"workload.iterations", "100"},
                             {"workload.depth", "16"}};
      // The program compares what arrived with what was sent.
      const ProgramRun run = run_well(with(base, kOnDevice));
      ASSERT_EQ(run.status, 0) << op << " " << pattern;
      EXPECT_EQ(run.result["completions"].size(), 1U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, DeviceMemoryTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

TEST(DeviceMemory, PayloadDoesNotCrossPcie) {
  const Settings base = {{"workload.op", "write"},
                         {"workload.pattern", "bandwidth"},
                         {"workload.msg_size", "4KiB"},
                         {"workload.iterations", "200"},
                         {"sim.warmup", "0"}};
  const auto purposes = [](const ProgramRun& run) {
    return run.result["pcie"][1]["to_host"]["by_purpose"];
  };
  EXPECT_GE(purposes(run_well(base))["payload"]["tlps"].get<int>(), 200);
  EXPECT_FALSE(purposes(run_well(with(base, kOnDevice))).contains("payload"));
}

TEST(DeviceMemory, AReadIsFasterByTheRoundTripOfPcie) {
  const Settings base = {{"workload.op", "read"}, {"workload.msg_size", "64"}};
  const ProgramRun host = run_well(base);
  const ProgramRun device = run_well(with(base, kOnDevice));
  // 30 ns and 64 B at 256 Gb/s, 2 ns, instead of what responder_read takes from host memory.
  const double less = host.stage("responder_read") - device.stage("responder_read");
  EXPECT_GT(less, 200);
  EXPECT_NEAR(host.number("/latency_ns/mean") - device.number("/latency_ns/mean"), less, 25);
}

TEST(DeviceMemory, NoMoreThanThereIs) {
  for (const std::string bytes : {"0", "4KiB"}) {
    const ProgramRun run =
        run_program({{"workload.remote_memory", "device"}, {"nic.device_memory", bytes}});
    EXPECT_EQ(run.status, 2);
    EXPECT_NE(run.error.find("nic.device_memory"), std::string::npos) << run.error;
  }
}

}  // namespace
}  // namespace rnic::testbench

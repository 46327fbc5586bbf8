// SPDX-License-Identifier: Apache-2.0
// A queue pair whose READ slots are all taken does not ask for its context in vain: not when it has
// sent the last request that may go, and not for each doorbell that comes meanwhile.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "support/program.h"

namespace rnic::testbench {
namespace {

constexpr int kMessages = 16384;

class ContextLookups
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

// Small READs and atomics that wait for the wire, on queue pairs with more posted than slots: one
// look-up for the request, one for the response.
TEST_P(ContextLookups, AreTwoForAREadWhateverWaits) {
  const auto& [protocol, op, slots] = GetParam();
  const ProgramRun run = run_well({{"transport.protocol", protocol},
                                   {"workload.op", op},
                                   {"workload.pattern", "bandwidth"},
                                   {"workload.msg_size", "8"},
                                   {"workload.qps", "8"},
                                   {"workload.depth", "64"},
                                   {"workload.signal_every", "1"},
                                   {"workload.iterations", std::to_string(kMessages)},
                                   {"transport.max_rd_atomic", slots},
                                   {"link.rate", "1Gbps"},
                                   {"sim.warmup", "2048"}});
  for (const auto& cache : run.result["caches"]) {
    if (cache["name"] != "host0.nic.qpc_cache") continue;
    const double lookups = cache["hits"].get<double>() + cache["misses"].get<double>();
    EXPECT_NEAR(lookups / kMessages, 2, 0.02);
    return;
  }
  FAIL() << "no such cache";
}

INSTANTIATE_TEST_SUITE_P(Slots, ContextLookups,
                         ::testing::Combine(::testing::Values("ib", "rocev2"),
                                            ::testing::Values("read", "atomic_fadd"),
                                            ::testing::Values("1", "4", "16")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param) + "_" + std::get<2>(test.param);
                         });

}  // namespace
}  // namespace rnic::testbench

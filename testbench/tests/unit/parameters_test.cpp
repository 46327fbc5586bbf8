// SPDX-License-Identifier: Apache-2.0
#include "config/parameters.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace rnic::config {
namespace {

TEST(ParametersTest, EveryKeyIsUniqueAndDocumented) {
  std::set<std::string> keys;
  for (const Parameter& parameter : parameters()) {
    EXPECT_TRUE(keys.insert(parameter.key).second) << parameter.key << " twice";
    EXPECT_NE(parameter.key.find('.'), std::string::npos) << parameter.key;
    EXPECT_FALSE(parameter.meaning.empty()) << parameter.key;
    EXPECT_FALSE(parameter.source.empty()) << parameter.key;
    EXPECT_FALSE(valid_values(parameter).empty()) << parameter.key;
  }
}

TEST(ParametersTest, KeysOfASectionStandTogether) {
  std::set<std::string> closed;
  std::string current;
  for (const Parameter& parameter : parameters()) {
    const std::string section = parameter.key.substr(0, parameter.key.find('.'));
    if (section == current) continue;
    EXPECT_TRUE(closed.insert(section).second) << section << " is split by " << parameter.key;
    current = section;
  }
}

/// Two keys bound to one field would overwrite each other.
TEST(ParametersTest, NoTwoKeysShareAField) {
  std::set<const void*> addresses;
  Config config{};
  for (const Parameter& parameter : parameters()) {
    const void* address = std::visit(
        [&config](auto field) -> const void* {
          if constexpr (std::is_invocable_v<decltype(field), Config&>) {
            return &field(config);
          } else {
            return nullptr;  // enumerations are set, not exposed
          }
        },
        parameter.field);
    if (address == nullptr) continue;
    EXPECT_TRUE(addresses.insert(address).second) << parameter.key;
  }
}

TEST(ParametersTest, ChoicesReachTheirField) {
  Config config{};
  assign(*find_parameter("workload.op"), "send_imm", config);
  EXPECT_EQ(config.workload.op, Op::kSendImm);
  assign(*find_parameter("transport.protocol"), "iwarp", config);
  EXPECT_EQ(config.transport.protocol, Protocol::kIwarp);
  assign(*find_parameter("nic.mpt_cache.replacement"), "tree_plru", config);
  EXPECT_EQ(config.nic.mpt_cache.replacement, Replacement::kTreePlru);
  assign(*find_parameter("fabric.topology"), "single_switch", config);
  EXPECT_EQ(config.fabric.topology, "single_switch");
}

TEST(ParametersTest, ValuesAreReportedInTheKeysUnit) {
  Config config{};
  EXPECT_EQ(assign(*find_parameter("link.delay"), "1.5us", config), Value(std::uint64_t{1500}));
  EXPECT_EQ(assign(*find_parameter("link.delay"), "500ps", config), Value(0.5));
  EXPECT_EQ(assign(*find_parameter("link.rate"), "25.78125Gbps", config), Value(25.78125));
  EXPECT_EQ(assign(*find_parameter("nic.clock"), "500MHz", config), Value(0.5));
  EXPECT_EQ(config.nic.clock_hz, 500e6);
  EXPECT_EQ(assign(*find_parameter("nic.rx_buffer"), "1MiB", config),
            Value(std::uint64_t{1'048'576}));
  EXPECT_EQ(assign(*find_parameter("link.drop_list"), "17, 5,17", config),
            Value(std::string("5,17")));
  EXPECT_EQ(config.link.drop_list,
            (std::vector<FaultTarget>{{FrameKind::kData, 5}, {FrameKind::kData, 17}}));
  EXPECT_EQ(assign(*find_parameter("memory.memlock_limit"), "unlimited", config),
            Value(std::string("unlimited")));
  EXPECT_EQ(config.memory.memlock_limit, ~std::uint64_t{0});
}

TEST(ParametersTest, RangesAreEnforcedAtBothEnds) {
  Config config{};
  const Parameter& timeout = *find_parameter("transport.ack_timeout");  // 5 bits
  EXPECT_NO_THROW(assign(timeout, "0", config));
  EXPECT_NO_THROW(assign(timeout, "31", config));
  EXPECT_THROW(assign(timeout, "32", config), ConfigError);
  const Parameter& mps = *find_parameter("pcie.mps");
  EXPECT_NO_THROW(assign(mps, "512", config));
  EXPECT_THROW(assign(mps, "384", config), ConfigError);
  EXPECT_THROW(assign(mps, "64", config), ConfigError);
}

TEST(ParametersTest, WordsOfThisReleaseOnly) {
  Config config{};
  EXPECT_THROW(assign(*find_parameter("workload.op"), "send_invalidate", config), ConfigError);
  EXPECT_THROW(assign(*find_parameter("transport.type"), "xrc", config), ConfigError);
  EXPECT_THROW(assign(*find_parameter("transport.recovery"), "selective", config), ConfigError);
  EXPECT_THROW(assign(*find_parameter("output.traces"), "vcd", config), ConfigError);
  // Keys of later releases are unknown rather than ignored.
  EXPECT_EQ(find_parameter("workload.offered_load"), nullptr);
}

TEST(ParametersTest, NearestKeyHelps) {
  EXPECT_EQ(nearest_key("nic.clok"), "nic.clock");
  EXPECT_EQ(nearest_key("clock"), "nic.clock");
  EXPECT_EQ(nearest_key("qpc_cache.entries"), "nic.qpc_cache.entries");
  EXPECT_EQ(nearest_key("workload.message_size"), "workload.msg_size");
  // A key that breaks off between two words means the one that goes on.
  EXPECT_EQ(nearest_key("link.drop"), "link.drop_list");
  EXPECT_EQ(nearest_key("link.fault"), "link.fault_cable");
  EXPECT_EQ(nearest_key("nic.qpc_cache"), "nic.qpc_cache.ways");
  EXPECT_EQ(nearest_key("link.dela"), "link.delay");
  EXPECT_FALSE(nearest_key("").empty());
}

}  // namespace
}  // namespace rnic::config

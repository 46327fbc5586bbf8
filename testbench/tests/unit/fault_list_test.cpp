// SPDX-License-Identifier: Apache-2.0
#include "config/fault_list.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/loader.h"

namespace rnic::config {
namespace {

TEST(FaultList, BareNumbersAreDataPackets) {
  EXPECT_EQ(parse_fault_list("17,5"),
            (std::vector<FaultTarget>{{FrameKind::kData, 5}, {FrameKind::kData, 17}}));
  EXPECT_TRUE(parse_fault_list("none").empty());
}

TEST(FaultList, EveryKindHasItsName) {
  for (std::size_t kind = 0; kind < kFrameKinds; ++kind) {
    const std::string& name = frame_kind_names()[kind];
    const std::vector<FaultTarget> targets = parse_fault_list(name + ":3");
    ASSERT_EQ(targets.size(), 1U) << name;
    EXPECT_EQ(targets[0].kind, static_cast<FrameKind>(kind)) << name;
    EXPECT_EQ(targets[0].number, 3U);
    EXPECT_EQ(kinds_named({name}), 1U << kind) << name;
  }
}

TEST(FaultList, TheTextReadsBack) {
  for (const char* text : {"none", "5", "any:1,5,17,ack:2,nak:1,cnp:9"}) {
    EXPECT_EQ(fault_list_text(parse_fault_list(text)), text);
  }
  EXPECT_EQ(fault_list_text(parse_fault_list(" ack : 2 , data:5, 5 ")), "5,ack:2");
}

TEST(FaultList, MistakesAreRefused) {
  for (const char* text : {"acks:1", "ack", "ack:", ":3", "5,,6", "ack:-1", "ack:1.5", "x"}) {
    EXPECT_THROW(parse_fault_list(text), ConfigError) << text;
  }
}

/// One line that names the key and what would be valid.
void expect_refused(const std::string& key, const std::string& value, const std::string& words) {
  try {
    load_from({{key, value}});
    ADD_FAILURE() << "accepted: " << key << "=" << value;
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(key + "=" + value), std::string::npos) << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(FaultList, KeysSayWhatIsValid) {
  expect_refused("link.drop_list", "acks:1", "any|data|request|response|ack|nak|rnr|cnp");
  expect_refused("link.corrupt_list", "0", "N 1..");
  expect_refused("link.fault_frames", "acks", "any,data,request,response,ack,nak,rnr,cnp");
  expect_refused("link.fault_cable", "1", "there is one cable, 0");
  expect_refused("link.fault_direction", "up", "both|from_host|to_host");
}

}  // namespace
}  // namespace rnic::config

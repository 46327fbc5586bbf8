// SPDX-License-Identifier: Apache-2.0
#include "config/service_level.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/loader.h"
#include "config/weights.h"
#include "simulation/addresses.h"
#include "tests/support/program.h"
#include "transport/encapsulation.h"

namespace rnic::config {
namespace {

using testbench::Settings;
using testbench::with;

Config load(const Settings& settings) { return load_from(settings).config; }

void expect_refused(const Settings& settings, const std::string& named) {
  try {
    load(settings);
    ADD_FAILURE() << testbench::text_of(settings) << "is accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
  }
}

TEST(ServiceLevel, ListsRepeatOverQueuePairs) {
  const Config config = load({{"transport.protocol", "rocev2"},
                              {"transport.service_level", "3,0,3"},
                              {"transport.response_service_level", "5"}});
  EXPECT_EQ(request_service_level(config, 0), 3);
  EXPECT_EQ(request_service_level(config, 1), 0);
  EXPECT_EQ(request_service_level(config, 5), 3);
  EXPECT_EQ(response_service_level(config, 1), 5);
  EXPECT_EQ(used_lanes(config), 0b10'1001U);
  const Config plain = load({{"transport.service_level", "0"}});
  EXPECT_EQ(response_service_level(plain, 4), 0);
}

TEST(ServiceLevel, MapsToVirtualLanes) {
  const Config modulo = load({{"link.data_vls", "4"}, {"transport.service_level", "6"}});
  EXPECT_EQ(lane_of_service_level(modulo, 6), 2);
  const Config table = load({{"link.data_vls", "4"}, {"link.sl2vl", "3,1,1"}});
  EXPECT_EQ(lane_of_service_level(table, 0), 3);
  EXPECT_EQ(lane_of_service_level(table, 2), 1);
  EXPECT_EQ(lane_of_service_level(table, 3), 3);  // repeated
}

TEST(ServiceLevel, ThePacketsLaneIsTheOneItsHeadersTell) {
  for (const Settings& settings :
       std::vector<Settings>{{{"transport.protocol", "ib"}, {"link.data_vls", "8"}},
                             {{"transport.protocol", "rocev1"}, {"transport.vlan", "true"}},
                             {{"transport.protocol", "rocev2"}},
                             {{"transport.protocol", "rocev2"}, {"transport.ip_version", "6"}},
                             {{"transport.protocol", "rocev2"}, {"transport.vlan", "true"}},
                             {{"transport.protocol", "iwarp"}}}) {
    const Config config = load(with(settings, {{"transport.service_level", "5"}}));
    const auto wire = transport::make_encapsulation(
        config.transport.protocol,
        {config.transport.vlan, config.transport.ip_version == 6, false, true});
    const auto av = testbench::path_of_qp(config, testbench::path_between(0, 1), 5, 16, 17);
    EXPECT_EQ(wire->lane_of(av), 5) << testbench::text_of(settings);
    std::uint8_t bytes[protocol::Frame::kMaxHeaderBytes] = {};
    wire->write_outer(av, 60, bytes);
    EXPECT_EQ(wire->parse_outer(bytes, sizeof bytes).lane, 5) << testbench::text_of(settings);
    EXPECT_EQ(used_lanes(config), 1U << 5);
  }
}

TEST(ServiceLevel, ImpossibleOnesAreRefused) {
  expect_refused({{"transport.protocol", "rocev2"}, {"transport.service_level", "8"}},
                 "transport.service_level");
  expect_refused({{"transport.protocol", "rocev1"}, {"transport.service_level", "3"}},
                 "transport.vlan");
  expect_refused({{"link.data_vls", "2"}, {"link.sl2vl", "5"}}, "link.sl2vl");
  expect_refused({{"link.data_vls", "2"}, {"link.vl_arb_low", "3:1"}}, "link.data_vls");
  expect_refused(
      {{"link.data_vls", "2"}, {"link.vl_arb_low", "0:1"}, {"transport.service_level", "0,1"}},
      "VL 1");
  for (const char* text : {"1", "1:", ":1", "15:1", "0:256", "0:strict", "0:1,,1:1", "0:-1"}) {
    expect_refused({{"link.vl_arb_low", text}}, "link.vl_arb_low");
  }
  for (const char* text : {"8:1", "0:0", "1:1,1:2", "0:loose"}) {
    expect_refused({{"transport.protocol", "rocev2"}, {"link.ets", text}}, "link.ets");
  }
}

TEST(Weights, AreReadInOrder) {
  const auto entries = parse_ets("link.ets", "3:70,5:strict,0:30");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].lane, 3U);
  EXPECT_EQ(entries[0].weight, 70U);
  EXPECT_TRUE(entries[1].strict);
  EXPECT_EQ(entries[2].lane, 0U);
  EXPECT_TRUE(parse_vl_weights("link.vl_arb_high", "none").empty());
}

}  // namespace
}  // namespace rnic::config

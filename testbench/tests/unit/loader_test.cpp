// SPDX-License-Identifier: Apache-2.0
#include "config/loader.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/resolved_json.h"
#include "support/program.h"
#include "support/temporary_file.h"

namespace rnic::config {
namespace {

using testbench::TemporaryFile;

template <typename Function>
std::string reason(Function function) {
  try {
    function();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

std::string file_error(const std::string& text) {
  const TemporaryFile file("loader.ini", text);
  std::string message = reason([&file] { load(read_file(file.path())); });
  const std::size_t at = message.find(file.path());
  return at == std::string::npos ? message : message.replace(at, file.path().size(), "F");
}

TEST(LoaderTest, DefaultsAreValidAndResolved) {
  const LoadedConfig loaded = load({});
  EXPECT_EQ(loaded.resolved.size(), parameters().size());
  EXPECT_EQ(loaded.config.link.rate.bits_per_second(), 100e9);
  EXPECT_EQ(loaded.config.transport.mtu, 4096U);
  EXPECT_EQ(loaded.config.link.flow_control, FlowControl::kCredit);
  const auto json = resolved_json(loaded);
  EXPECT_EQ(json["link.rate"], 100);
  EXPECT_EQ(json["transport.protocol"], "ib");
  EXPECT_EQ(json["iommu.enabled"], false);
  for (const auto& [key, value] : json.items()) {
    if (key == "output.progress") continue;     // there, auto is a choice, not a value to resolve
    if (key == "pcie.dllp_overhead") continue;  // the link works it out from its generation
    EXPECT_NE(value, "auto") << key;
  }
}

TEST(LoaderTest, ResolvedValuesReadBackToTheSameConfiguration) {
  const auto first =
      resolved_json(load_from({{"transport.protocol", "iwarp"}, {"link.delay", "333ps"}}));
  std::vector<std::pair<std::string, std::string>> again;
  for (const auto& [key, value] : first.items()) {
    if (key == "output.dir") continue;  // the only value that may be empty
    again.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  EXPECT_EQ(resolved_json(load_from(again)), first);
}

TEST(LoaderTest, AutomaticValuesFollowTheirKeys) {
  EXPECT_EQ(load_from({{"transport.protocol", "iwarp"}}).config.transport.mtu, 9000U);
  EXPECT_EQ(load_from({{"transport.protocol", "rocev2"}}).config.link.flow_control,
            FlowControl::kPfc);
  EXPECT_EQ(load_from({{"transport.protocol", "iwarp"}}).config.link.flow_control,
            FlowControl::kNone);
  const Config bandwidth = load_from({{"workload.pattern", "bandwidth"}}).config;
  EXPECT_EQ(bandwidth.workload.inline_max, 0U);
  EXPECT_EQ(bandwidth.workload.signal_every, 32U);  // 128 / 4
  EXPECT_EQ(load_from({{"workload.pattern", "bandwidth"}, {"workload.depth", "1"}})
                .config.workload.signal_every,
            1U);
  EXPECT_EQ(load_from({{"nic.max_inline", "64"}}).config.workload.inline_max, 64U);
  // Four blocks of 64 B: 16 of control, 16 of remote address and 4 of inline header leave 220 B to
  // a WRITE, 236 to a SEND, and 188 where 48 B of address go before. A WQE that is fetched is as
  // long as the device allows.
  const auto inlined = [](const testbench::Settings& more) {
    return load_from(testbench::with({{"nic.max_inline", "400"}}, more)).config.workload.inline_max;
  };
  EXPECT_EQ(inlined({{"workload.op", "write"}}), 220U);
  EXPECT_EQ(inlined({{"workload.op", "send"}}), 236U);
  EXPECT_EQ(inlined({{"workload.op", "send"}, {"transport.type", "ud"}}), 188U);
  EXPECT_EQ(inlined({{"nic.blueflame_blocks", "2"}}), 92U);
  EXPECT_EQ(inlined({{"nic.blueflame", "false"}}), 400U);
  EXPECT_EQ(load_from({{"transport.mtu", "256"}, {"transport.mtu", "auto"}}).config.transport.mtu,
            4096U);
}

TEST(LoaderTest, LaterSettingsWin) {
  const TemporaryFile file("wins.ini", "[workload]\nmsg_size = 1KiB\nqps = 3\n");
  std::vector<Setting> settings = read_file(file.path());
  settings.push_back({"workload.qps", "5", "--"});
  const Config config = load(settings).config;
  EXPECT_EQ(config.workload.msg_size, 1024U);
  EXPECT_EQ(config.workload.qps, 5U);
}

TEST(LoaderTest, ReadsSectionsCommentsAndDottedKeys) {
  const TemporaryFile file("grammar.ini",
                           "# comment\n\nlink.delay = 20ns # two\n[nic]\r\n"
                           "  qpc_cache.entries = 64  \r\n[ link ]\nrate=25Gbps\n");
  const Config config = load(read_file(file.path())).config;
  EXPECT_EQ(config.link.delay, nanoseconds(20));
  EXPECT_EQ(config.nic.qpc_cache.entries, 64U);
  EXPECT_EQ(config.link.rate.bits_per_second(), 25e9);
}

TEST(LoaderTest, FileErrorsTellTheLine) {
  EXPECT_EQ(file_error("\n[nic]\nclok = 1GHz\n"),
            "F:3: unknown key 'nic.clok' (nearest: nic.clock)");
  EXPECT_EQ(file_error("[nic]\nclock = 1GHzz\n"),
            "F:2: nic.clock=1GHzz has the unknown unit 'GHzz' (units: Hz, kHz, MHz, GHz) (valid: "
            "0.01..10 GHz)");
  EXPECT_EQ(file_error("[nic]\nclock = 11GHz\n"),
            "F:2: nic.clock=11GHz is out of range (valid: 0.01..10 GHz)");
  EXPECT_EQ(file_error("[nic]\nclock =\n"), "F:2: nic.clock= is empty (valid: 0.01..10 GHz)");
  EXPECT_EQ(file_error("[nick]\n"), "F:1: unknown section 'nick' (nearest: nic)");
  EXPECT_EQ(file_error("[nic]\nclock\n"),
            "F:2: expected 'key = value' or '[section]', not 'clock'");
  EXPECT_EQ(file_error("[nic]\nclock=1\nmax_sge=2\n\nclock=2\n"),
            "F:5: nic.clock is set twice (first in line 2)");
  EXPECT_EQ(file_error("[link]\nreorder_ratio = 0.1\n").substr(0, 40),
            "F:2: unknown key 'link.reorder_ratio' (n");
}

TEST(LoaderTest, OverriddenMistakesAreStillMistakes) {
  const TemporaryFile file("overridden.ini", "[workload]\nqps = -1\n");
  std::vector<Setting> settings = read_file(file.path());
  settings.push_back({"workload.qps", "5", "--"});
  EXPECT_THROW(load(settings), ConfigError);
}

TEST(LoaderTest, FilesThatCannotBeRead) {
  EXPECT_THROW(read_file("/nonexistent/x.ini"), ConfigError);
  EXPECT_THROW(read_file("/"), ConfigError);
  EXPECT_THROW(find_file("no_such_preset"), ConfigError);
  EXPECT_NE(reason([] { find_file("write_lta"); }).find("write_lat"), std::string::npos);
}

TEST(LoaderTest, BareNamesArePresets) {
  EXPECT_EQ(find_file("generic"), testbench::presets_path() + "/nic/generic.ini");
  EXPECT_EQ(find_file("generic.ini"), testbench::presets_path() + "/nic/generic.ini");
  EXPECT_EQ(find_file("./generic"), "./generic");
}

}  // namespace
}  // namespace rnic::config

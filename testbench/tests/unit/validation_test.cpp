// SPDX-License-Identifier: Apache-2.0
#include "config/validation.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/loader.h"

namespace rnic::config {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The message must name both keys, in one line.
void expect_refused(const Settings& settings, const std::string& one, const std::string& other) {
  try {
    load_from(settings);
    ADD_FAILURE() << "accepted: " << one << " with " << other;
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(one), std::string::npos) << message;
    EXPECT_NE(message.find(other), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(ValidationTest, MtuSuitsTheProtocol) {
  for (const char* protocol : {"ib", "rocev1", "rocev2"}) {
    for (const char* mtu : {"256", "512", "1024", "2048", "4096"}) {
      EXPECT_NO_THROW(load_from({{"transport.protocol", protocol}, {"transport.mtu", mtu}}));
    }
    for (const char* mtu : {"257", "1500", "8192"}) {
      expect_refused({{"transport.protocol", protocol}, {"transport.mtu", mtu}}, "transport.mtu",
                     "transport.protocol");
    }
  }
  for (const char* mtu : {"576", "1500", "9000", "9216"}) {
    EXPECT_NO_THROW(load_from({{"transport.protocol", "iwarp"}, {"transport.mtu", mtu}}));
  }
  expect_refused({{"transport.protocol", "iwarp"}, {"transport.mtu", "575"}}, "transport.mtu",
                 "transport.protocol");
}

TEST(ValidationTest, AnIwarpRegionHasOneKey) {
  expect_refused({{"transport.protocol", "iwarp"}, {"nic.key_policy", "distinct"}},
                 "nic.key_policy=distinct", "transport.protocol=iwarp");
  EXPECT_NO_THROW(load_from({{"transport.protocol", "ib"}, {"nic.key_policy", "distinct"}}));
}

TEST(ValidationTest, TheRingBufferNeedsEmptyReceivesThatAreConsumed) {
  for (const Settings& device :
       {Settings{{"nic.empty_recv", "false"}}, Settings{{"nic.write_imm_unsolicited", "true"}},
        Settings{{"nic.write_imm_needs_handle", "true"}}}) {
    Settings settings = {{"workload.program", "ring_buffer"}};
    EXPECT_NO_THROW(load_from(settings));
    settings.push_back(device.front());
    expect_refused(settings, "workload.program", device.front().first);
  }
}

TEST(ValidationTest, FlowControlSuitsTheProtocol) {
  for (const char* protocol : {"ib", "rocev1", "rocev2", "iwarp"}) {
    EXPECT_NO_THROW(load_from({{"transport.protocol", protocol}, {"link.flow_control", "none"}}));
  }
  expect_refused({{"transport.protocol", "rocev2"}, {"link.flow_control", "credit"}},
                 "link.flow_control", "transport.protocol");
  expect_refused({{"link.flow_control", "pfc"}}, "link.flow_control", "transport.protocol");
  // What is valid depends on the wire.
  expect_refused({{"link.flow_control", "pfc"}}, "auto|none|credit", "ib");
  expect_refused({{"transport.protocol", "rocev1"}, {"link.flow_control", "credit"}},
                 "auto|none|pause|pfc", "rocev1");
  expect_refused({{"transport.protocol", "iwarp"}, {"link.flow_control", "pfc"}}, "auto|none|pause",
                 "iwarp");
}

// Rates without a frame that they may strike would be a run without faults.
TEST(ValidationTest, RatesOfFaultsNeedFrames) {
  for (const char* rate : {"link.loss_rate", "link.corrupt_rate", "link.duplicate_rate",
                           "link.reorder_rate", "link.burst_rate"}) {
    expect_refused({{rate, "0.01"}, {"link.fault_frames", "none"}}, "link.fault_frames=none",
                   "link.*_rate");
    EXPECT_NO_THROW(load_from({{rate, "0.01"}, {"link.fault_frames", "ack"}}));
  }
  EXPECT_NO_THROW(load_from({{"link.drop_list", "5"}, {"link.fault_frames", "none"}}));
}

// A switch's thresholds of pauses mean something only where something pauses.
TEST(ValidationTest, SwitchThresholdsBelongToPauses) {
  const Settings roce{{"transport.protocol", "rocev2"}};
  const auto with = [&roce](const std::string& key, const std::string& value) {
    Settings all = roce;
    all.emplace_back(key, value);
    return all;
  };
  expect_refused(with("switch.pfc_xon", "200KiB"), "switch.pfc_xon", "switch.pfc_xoff");
  expect_refused(with("switch.buffer", "64KiB"), "switch.pfc_xoff", "switch.buffer");
  EXPECT_NO_THROW(load_from({{"switch.buffer", "64KiB"}}));  // ib: credits
  EXPECT_NO_THROW(load_from({{"switch.buffer", "64KiB"}, {"transport.protocol", "iwarp"}}));
}

// RDMA MTU from the Ethernet MTU: 96 B are set aside for headers (Linux ib_addr.h), so that 1500
// gives 1024, 2200 gives 2048, 4200 and 9000 give 4096. iWARP's MTU is Ethernet's.
TEST(ValidationTest, AutomaticMtuFollowsTheLinks) {
  const auto mtu = [](const std::string& protocol, const std::string& link) {
    return load_from({{"transport.protocol", protocol}, {"link.mtu", link}}).config.transport.mtu;
  };
  for (const char* protocol : {"rocev1", "rocev2"}) {
    EXPECT_EQ(mtu(protocol, "1500"), 1024U);
    EXPECT_EQ(mtu(protocol, "2143"), 1024U);
    EXPECT_EQ(mtu(protocol, "2144"), 2048U);
    EXPECT_EQ(mtu(protocol, "2200"), 2048U);
    EXPECT_EQ(mtu(protocol, "4191"), 2048U);
    EXPECT_EQ(mtu(protocol, "4192"), 4096U);
    EXPECT_EQ(mtu(protocol, "4200"), 4096U);
    EXPECT_EQ(mtu(protocol, "9000"), 4096U);
    EXPECT_EQ(mtu(protocol, "any"), 4096U);
    EXPECT_EQ(mtu(protocol, "576"), 256U);
  }
  for (const char* link : {"576", "1500", "4200", "9000", "9216"}) {
    EXPECT_EQ(mtu("iwarp", link), std::stoul(link));
  }
  EXPECT_EQ(mtu("iwarp", "any"), 9000U);
  EXPECT_EQ(load_from({}).config.transport.mtu, 4096U);
}

// By IEEE 802.1Q annex N at 100 Gb/s over 10 us: 2 x 10 us + 4 x 50 ns + 2 x 200 ns are 257,501 B,
// eight pauses of 84 B and three frames of 4,096 + 128 + 20 B are 13,404. As much below the pause's
// threshold, and two frames of 4,096 + 128 B.
TEST(ValidationTest, AutomaticReceiveBufferHoldsWhatPausesNeed) {
  const auto buffer = [](const Settings& settings) {
    return load_from(settings).config.nic.rx_buffer;
  };
  EXPECT_EQ(buffer({{"transport.protocol", "rocev2"}}), 256U * 1024);
  EXPECT_EQ(buffer({{"transport.protocol", "rocev2"}, {"link.delay", "10us"}}),
            2 * (257'501U + 13'404) + 8'448);
  EXPECT_EQ(buffer({{"link.delay", "10us"}}), 256U * 1024);  // credits
  EXPECT_EQ(buffer({{"transport.protocol", "iwarp"}, {"link.delay", "10ms"}}), 256U * 1024);
}

// 16 ports at 100 Gb/s, 100 us apart: 200 us on the way are 2,500,000 B; then 1 B of rounding, 8
// pauses of 84 B and three frames of 4,096 + 128 + 20 B, one of which crosses the threshold:
// 2,513,405 B above it. As much is to be
// left at the end of a pause, which begins 32 KiB above that: 5,059,578 B for each, 80,953,248 B in
// all. Two priorities need it twice. Short cables do with 16 MiB.
TEST(ValidationTest, AutomaticSwitchBufferHoldsWhatPausesNeed) {
  const auto buffer = [](const Settings& more) {
    Settings all = {{"transport.protocol", "rocev2"}, {"fabric.topology", "single_switch"},
                    {"fabric.hosts", "16"},           {"link.delay", "100us"},
                    {"link.phy_latency", "0"},        {"link.commit_ahead", "0"}};
    all.insert(all.end(), more.begin(), more.end());
    return load_from(all).config.network_switch.buffer;
  };
  EXPECT_EQ(buffer({}), 80'953'248U);
  EXPECT_EQ(buffer({{"transport.vlan", "true"}, {"transport.service_level", "0,3"}}),
            2 * 80'953'248U);
  EXPECT_EQ(buffer({{"transport.protocol", "iwarp"}, {"link.flow_control", "pause"}}),
            80'953'248U + 2 * 16 * 3 * (9000 - 4096));
  EXPECT_EQ(buffer({{"link.pfc_headroom", "3MiB"}}),
            16U * ((3 << 20) + 4'244) + 16U * (2'513'405 + (32 << 10)));
  EXPECT_EQ(buffer({{"nic.ports", "2"}}), 2 * 80'953'248U);
  EXPECT_EQ(buffer({{"switch.pfc_xoff", "1MiB"}}), 16U * ((1 << 20) + 2'513'405));
  constexpr std::uint64_t kUsual = 16 << 20;
  EXPECT_EQ(buffer({{"link.delay", "1us"}}), kUsual);
  EXPECT_EQ(buffer({{"link.flow_control", "none"}}), kUsual);
  EXPECT_EQ(buffer({{"transport.protocol", "ib"}}), kUsual);
  EXPECT_EQ(buffer({{"switch.buffer", "1MiB"}}), 1U << 20);
}

// As above: 2,513,405 B are left at the end of a pause over 100 us. A buffer that is given is
// shared: 20 MiB for 4 ports less their headroom leave 2,729,475 B each, more than 32 KiB above
// that; 16 MiB leave 1,680,899 B, and 1 MiB nothing: the usual 128 KiB. XON is 32 KiB below XOFF,
// or a quarter.
TEST(ValidationTest, AutomaticPauseThresholdsFollowTheCable) {
  const auto thresholds = [](const Settings& more) {
    Settings all = {{"transport.protocol", "rocev2"},
                    {"fabric.topology", "single_switch"},
                    {"fabric.hosts", "4"},
                    {"link.delay", "100us"},
                    {"link.phy_latency", "0"},
                    {"link.commit_ahead", "0"}};
    all.insert(all.end(), more.begin(), more.end());
    const SwitchConfig config = load_from(all).config.network_switch;
    return std::pair{config.pfc_xoff, config.pfc_xon};
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(thresholds({}), Pair(2'546'173, 2'513'405));
  EXPECT_EQ(thresholds({{"switch.buffer", "20MiB"}}), Pair(2'546'173, 2'513'405));
  EXPECT_EQ(thresholds({{"switch.buffer", "16MiB"}}), Pair(1'680'899, 1'648'131));
  EXPECT_EQ(thresholds({{"switch.buffer", "1MiB"}}), Pair(128 << 10, 96 << 10));
  EXPECT_EQ(thresholds({{"link.delay", "1us"}}), Pair(128 << 10, 96 << 10));
  EXPECT_EQ(thresholds({{"switch.pfc_xoff", "64KiB"}}), Pair(64 << 10, 48 << 10));
  EXPECT_EQ(thresholds({{"switch.pfc_xon", "64KiB"}}).second, 64U << 10);
}

// An experiment that could show nothing is refused, with what it needs.
TEST(ValidationTest, WhatWouldHaveNoEffectIsRefused) {
  const std::string none = "never comes";
  const std::vector<std::pair<Settings, std::string>> wrong = {
      {{{"transport.type", "uc"}, {"transport.recovery", "selective_repeat"}}, "transport.type=rc"},
      {{{"transport.type", "ud"},
        {"workload.op", "send"},
        {"transport.recovery", "selective_repeat"}},
       "transport.type=rc"},
      {{{"transport.protocol", "iwarp"}, {"transport.window", "8"}}, "tcp.window"},
      {{{"transport.type", "uc"}, {"transport.window", "8"}}, "transport.type=rc"},
      {{{"link.drop_list", "cnp:1"}}, "rocev2"},
      {{{"transport.protocol", "rocev2"}, {"link.drop_list", "cnp:1"}}, "transport.ecn"},
      {{{"link.corrupt_list", "5,connection:1"}}, "iwarp"},
      {{{"transport.type", "uc"}, {"link.duplicate_list", "ack:1"}}, "transport.type=rc"},
      {{{"transport.protocol", "iwarp"}, {"link.reorder_list", "nak:2"}}, none},
      {{{"workload.op", "send"}, {"link.drop_list", "response:1"}}, "workload.op=read"},
      {{{"link.fault_frames", "cnp,connection"}, {"link.loss_rate", "0.1"}}, "link.fault_frames"},
      {{{"workload.program", "kv_store"}, {"workload.traffic", "incast"}}, "workload.traffic"},
      {{{"transport.protocol", "rocev2"},
        {"transport.type", "ud"},
        {"transport.mtu", "4096"},
        {"link.mtu", "1500"},
        {"workload.msg_size", "2000"},
        {"workload.program", "ping_pong"}},
       "transport.mtu=auto"}};
  for (const auto& [settings, words] : wrong) {
    expect_refused(settings, settings.back().first.substr(0, 4), words);
  }
  for (const Settings& good :
       {Settings{{"link.drop_list", "ack:1,nak:1,rnr:1,data:1,request:1,any:1"}},
        {{"transport.protocol", "rocev2"}, {"transport.ecn", "2"}, {"link.drop_list", "cnp:1"}},
        {{"transport.protocol", "iwarp"}, {"link.drop_list", "connection:1,ack:1"}},
        {{"workload.op", "atomic_cas"}, {"link.drop_list", "response:1"}},
        {{"workload.program", "kv_store"}, {"link.drop_list", "response:1"}},
        {{"link.fault_frames", "cnp,ack"}, {"link.loss_rate", "0.1"}}}) {
    EXPECT_NO_THROW(load_from(good)) << good.back().first;
  }
}

TEST(ValidationTest, EventsNeedACompletionWhereTheThreadWaits) {
  expect_refused(
      {{"workload.op", "write"}, {"workload.pattern", "latency"}, {"workload.completion", "event"}},
      "workload.completion", "workload.op");
  expect_refused({{"workload.op", "send"},
                  {"workload.completion", "event"},
                  {"workload.poll_interval", "1us"}},
                 "workload.poll_interval", "workload.completion");
  EXPECT_NO_THROW(load_from({{"workload.op", "send"}, {"workload.completion", "event"}}));
}

TEST(ValidationTest, CachesHaveWholeSets) {
  expect_refused({{"nic.mtt_cache.entries", "100"}}, "nic.mtt_cache.ways", "nic.mtt_cache.entries");
  EXPECT_NO_THROW(load_from({{"nic.mtt_cache.entries", "96"}, {"nic.mtt_cache.ways", "12"}}));
  expect_refused({{"nic.mtt_cache.entries", "96"},
                  {"nic.mtt_cache.ways", "12"},
                  {"nic.mtt_cache.replacement", "tree_plru"}},
                 "nic.mtt_cache.ways", "nic.mtt_cache.replacement");
}

TEST(ValidationTest, QueuesAndLimits) {
  expect_refused({{"workload.signal_every", "129"}}, "workload.signal_every", "workload.depth");
  expect_refused({{"workload.post_batch", "129"}}, "workload.post_batch", "workload.depth");
  expect_refused({{"workload.inline_max", "221"}}, "workload.inline_max", "nic.max_inline");
  expect_refused({{"workload.mr_size", "32"}}, "workload.msg_size", "workload.mr_size");
  expect_refused({{"transport.max_rd_atomic", "17"}}, "transport.max_rd_atomic",
                 "nic.max_rd_atomic");
  expect_refused({{"nic.wqe_buffer", "4"}}, "nic.wqe_prefetch", "nic.wqe_buffer");
  expect_refused({{"nic.rx_buffer", "8KiB"}}, "nic.rx_buffer", "transport.mtu");
}

TEST(ValidationTest, WorkloadSuitsTheSystem) {
  expect_refused({{"workload.bidirectional", "true"}}, "workload.bidirectional",
                 "workload.pattern");
  expect_refused({{"workload.op", "send_imm"}, {"transport.protocol", "iwarp"}}, "workload.op",
                 "transport.protocol");
  expect_refused({{"fabric.hosts", "3"}}, "fabric.hosts", "fabric.topology");
  EXPECT_NO_THROW(load_from({{"fabric.hosts", "3"}, {"fabric.topology", "single_switch"}}));
  expect_refused({{"workload.probe_size", "64"}}, "workload.probe_size", "workload.pattern");
  expect_refused(
      {{"workload.probe_size", "64"}, {"workload.pattern", "bandwidth"}, {"transport.type", "uc"}},
      "workload.probe_size", "transport.type");
  expect_refused({{"workload.probe_size", "64"},
                  {"workload.pattern", "bandwidth"},
                  {"transport.protocol", "rocev2"},
                  {"workload.probe_service_level", "9"}},
                 "workload.probe_service_level", "0..7");
}

}  // namespace
}  // namespace rnic::config

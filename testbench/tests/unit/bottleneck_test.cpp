// SPDX-License-Identifier: Apache-2.0
#include "report/bottleneck.h"

#include <gtest/gtest.h>

#include "tests/support/sample_result.h"

namespace rnic::testbench {
namespace {

using tlm_ext::Purpose;

UnitResult unit(const std::string& name, double utilization) {
  UnitResult result;
  result.name = name;
  result.utilization = utilization;
  return result;
}

/// 1 QP, 16 in flight, 10 M messages/s of 1200 ns each: 12 in flight on average. Nothing busy.
Result bandwidth_result() {
  Result result;
  result.scenario.op = "write";
  result.scenario.qps = 1;
  result.scenario.depth = 16;
  result.window = microseconds(100);
  result.message_rate_mops = 10;
  result.latency.add(nanoseconds(1200));
  result.flows.resize(1);
  result.flows[0].message_rate_mops = 10;
  return result;
}

bool says(const Bottleneck& bottleneck, const std::string& text) {
  return bottleneck.why.find(text) != std::string::npos;
}

TEST(Bottleneck, LatencyPatternNamesTheLongestStage) {
  // Means of the sample: post 100, payload_fetch 800, poll 300 of 1200 ns.
  const Bottleneck bottleneck = find_bottleneck(test::sample_result());
  EXPECT_EQ(bottleneck.unit, "payload_fetch");
  EXPECT_NEAR(bottleneck.utilization, 2.0 / 3, 1e-9);
  EXPECT_EQ(bottleneck.next_unit, "poll");
  EXPECT_NEAR(bottleneck.next_utilization, 0.25, 1e-9);
  EXPECT_TRUE(says(bottleneck, "saturates nothing")) << bottleneck.why;
  EXPECT_TRUE(says(bottleneck, "800 ns of 1.20 us (67 %)")) << bottleneck.why;
}

TEST(Bottleneck, PcieDirection) {
  // 725,000 B in 100 us are 58 Gb/s, of 59 Gb/s: 98.3 %. Payload 650,000 B: 52 Gb/s.
  Result result = bandwidth_result();
  PcieResult pcie;
  pcie.name = "host0.pcie";
  pcie.rate_gbps = 59;
  pcie.to_device.total = {1000, 650'000, 725'000};
  pcie.to_device.by_purpose[static_cast<std::size_t>(Purpose::kPayload)] = {1000, 650'000, 725'000};
  result.pcie.push_back(pcie);
  result.units.push_back(unit("host0.nic.translation", 0.5));
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host0.pcie.to_device");
  EXPECT_NEAR(bottleneck.utilization, 58.0 / 59, 1e-9);
  EXPECT_TRUE(says(bottleneck, "The PCIe link host0.pcie towards the device is busy 98 %"));
  EXPECT_TRUE(says(bottleneck, "58.0 of 59.0 Gb/s")) << bottleneck.why;
  EXPECT_TRUE(says(bottleneck, "52.0 Gb/s of it payload")) << bottleneck.why;
  EXPECT_TRUE(says(bottleneck, "next limit would be host0.nic.translation, busy 50 %"));
  EXPECT_TRUE(says(bottleneck, "2.00 times the throughput")) << bottleneck.why;
}

// A link that carries more contexts than payload is full because of them. In 100 us 400,000 B are
// 32 Gb/s, 200,000 B 16 Gb/s; what takes less than a tenth of 735,000 B is not named.
TEST(Bottleneck, PcieThatFetchesContextsSaysSo) {
  Result result = bandwidth_result();
  PcieResult pcie;
  pcie.name = "host0.pcie";
  pcie.rate_gbps = 59;
  auto& purposes = pcie.to_device.by_purpose;
  purposes[static_cast<std::size_t>(Purpose::kPayload)] = {1000, 50'000, 75'000};
  purposes[static_cast<std::size_t>(Purpose::kWqe)] = {1000, 50'000, 60'000};
  purposes[static_cast<std::size_t>(Purpose::kMtt)] = {1000, 150'000, 200'000};
  purposes[static_cast<std::size_t>(Purpose::kQpc)] = {1000, 350'000, 400'000};
  pcie.to_device.total = {4000, 600'000, 735'000};
  result.pcie.push_back(pcie);
  result.caches.resize(2);
  result.caches[0].name = "host0.nic.qpc_cache";
  result.caches[0].hits = 4;
  result.caches[0].misses = 96;
  result.caches[1].name = "host1.nic.qpc_cache";
  result.caches[1].misses = 1;
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_TRUE(says(
      bottleneck,
      "58.8 of 59.0 Gb/s with all headers, 4.00 Gb/s of it payload, 32.0 Gb/s for qpc (4.0 % of "
      "look-ups hit in host0.nic.qpc_cache), 16.0 Gb/s for mtt"))
      << bottleneck.why;
}

TEST(Bottleneck, WireWithTheSameResourceElsewhereIsNotTheNextLimit) {
  Result result = bandwidth_result();
  for (const char* name : {"host0.port", "switch.port1"}) {
    LinkResult link;
    link.name = name;
    link.rate_gbps = 100;
    link.wire_bytes = 1'240'000;  // in 100 us: 99.2 Gb/s
    result.links.push_back(link);
  }
  result.units.push_back(unit("host0.nic.packetizer", 0.8));
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host0.port");
  EXPECT_EQ(bottleneck.next_unit, "host0.nic.packetizer");
}

TEST(Bottleneck, UnitOfALineIsNotASecondResource) {
  Result result = bandwidth_result();
  LinkResult link;
  link.name = "host0.port";
  link.rate_gbps = 100;
  link.wire_bytes = 1'000'000;  // 80 %, while the port itself counted 97 %
  result.links.push_back(link);
  result.units.push_back(unit("host0.port", 0.97));
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host0.port");
  EXPECT_DOUBLE_EQ(bottleneck.utilization, 0.97);
  EXPECT_EQ(bottleneck.next_unit, "");
}

TEST(Bottleneck, CpuCountsWithoutPollingInVain) {
  Result result = bandwidth_result();
  result.hosts.resize(2);
  result.hosts[0].cpu_busy = 1;
  result.hosts[0].cpu_polling = 0.05;
  result.hosts[1].cpu_busy = 1;
  result.hosts[1].cpu_polling = 1;
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host0.cpu");
  EXPECT_DOUBLE_EQ(bottleneck.utilization, 0.95);
  // 0.95 of the time at 10 M messages/s: 95 ns each.
  EXPECT_TRUE(says(bottleneck, "95.0 ns a message")) << bottleneck.why;
}

/// A port that sends 80 % of the time and has no credits for the rest.
Result starved_port() {
  Result result = bandwidth_result();
  UnitResult port = unit("host0.nic.port", 0.8);
  port.stalled[static_cast<std::size_t>(stats::StallCause::kNoCredit)] = 0.2;
  result.units.push_back(port);
  return result;
}

// A receiver that waits for its translations frees its buffer slowly: that is the cause, whatever
// the sender's port waits for. The sender's own translations are none, nor are short waits.
TEST(Bottleneck, AReceiverThatWaitsForItsCachesIsNamed) {
  Result result = starved_port();
  UnitResult own = unit("host0.nic.translation", 0.1);
  own.stalled[static_cast<std::size_t>(stats::StallCause::kTranslation)] = 0.45;
  result.units.push_back(own);
  UnitResult other = unit("host1.nic.translation", 0.3);
  other.stalled[static_cast<std::size_t>(stats::StallCause::kTranslation)] = 0.1;
  result.units.push_back(other);
  EXPECT_EQ(find_bottleneck(result).unit, "host0.nic.port");
  result.units.back().stalled[static_cast<std::size_t>(stats::StallCause::kTranslation)] = 0.44;
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host1.nic.translation");
  EXPECT_TRUE(says(bottleneck, "Host0.nic.port sends whenever it may")) << bottleneck.why;
  EXPECT_TRUE(says(bottleneck, "because host1.nic.translation waits 44 %")) << bottleneck.why;
}

// Of the caches of the host that waits, though another host's are worse.
TEST(Bottleneck, TheCacheThatIsCitedIsTheWaitingHosts) {
  Result result = bandwidth_result();
  UnitResult translation = unit("host0.nic.translation", 0.3);
  translation.stalled[static_cast<std::size_t>(stats::StallCause::kTranslation)] = 0.6;
  result.units.push_back(translation);
  result.caches = {{"host0.nic.mtt_cache", 88, 12}, {"host1.nic.mtt_cache", 10, 90}};
  EXPECT_TRUE(says(find_bottleneck(result), "88 % of look-ups hit in host0.nic.mtt_cache"));
}

// Nothing was lost, and still packets were sent again: the timer is too short. One frame that was
// lost would be reason enough for them.
TEST(Bottleneck, ATimerThatIsTooShortIsNamed) {
  Result result = bandwidth_result();
  result.sim.data_packets = 1000;
  result.counters = {{{"local_ack_timeout_err", 40}, {"retransmitted_packets", 300}}};
  result.links.resize(1);
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "transport.ack_timeout");
  EXPECT_TRUE(says(bottleneck, "timers ran out 40 times")) << bottleneck.why;
  result.links[0].more = {{"cable_lost", 1}};
  EXPECT_EQ(find_bottleneck(result).unit, "transport.recovery");
}

TEST(Bottleneck, LongWaitWhenNothingIsSaturated) {
  Result result = bandwidth_result();
  UnitResult dma = unit("host0.nic.dma", 0.3);
  dma.stalled[static_cast<std::size_t>(stats::StallCause::kNoTag)] = 0.7;
  dma.stalled[static_cast<std::size_t>(stats::StallCause::kDownstreamFull)] = 0.9;
  result.units.push_back(dma);
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host0.nic.dma");
  EXPECT_TRUE(says(bottleneck, "waits 70 % of the time for PCIe read tags")) << bottleneck.why;
}

TEST(Bottleneck, MissesNameTheWorstCache) {
  Result result = bandwidth_result();
  UnitResult translation = unit("host0.nic.translation", 0.3);
  translation.stalled[static_cast<std::size_t>(stats::StallCause::kTranslation)] = 0.6;
  result.units.push_back(translation);
  result.caches = {{"host0.nic.mpt_cache", 90, 10}, {"host0.nic.mtt_cache", 20, 80}};
  EXPECT_TRUE(says(find_bottleneck(result), "20 % of look-ups hit in host0.nic.mtt_cache"));
}

TEST(Bottleneck, WqesThatAreReadAgainAreNotThoseThatAreFetched) {
  Result result = bandwidth_result();
  UnitResult cache = unit("host0.nic.wqe_cache", 0);
  cache.stalled[static_cast<std::size_t>(stats::StallCause::kWqe)] = 0.9;
  result.units.push_back(cache);
  result.caches = {{"host0.nic.wqe_cache", 10, 90}};
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host0.nic.wqe_cache");
  EXPECT_TRUE(says(bottleneck, "had to give way")) << bottleneck.why;
  EXPECT_TRUE(says(bottleneck, "10 % of look-ups hit")) << bottleneck.why;
}

TEST(Bottleneck, APortThatSendsWheneverItMay) {
  // Neither its wire nor its pauses take most of the time, but both together all of it.
  for (const auto cause : {stats::StallCause::kPaused, stats::StallCause::kNoCredit}) {
    Result result = bandwidth_result();
    UnitResult port = unit("host0.nic.port", 0.6);
    port.stalled[static_cast<std::size_t>(cause)] = 0.38;
    result.units.push_back(port);
    const Bottleneck bottleneck = find_bottleneck(result);
    EXPECT_EQ(bottleneck.unit, "host0.nic.port");
    EXPECT_TRUE(says(bottleneck, "waits 38 % of the time for")) << bottleneck.why;
    // With time to spare it is not what limits.
    result.units.back().utilization = 0.5;
    EXPECT_NE(find_bottleneck(result).unit, "host0.nic.port");
  }
}

TEST(Bottleneck, MissingPagesAreToldFromMissingRecvs) {
  Result result = bandwidth_result();
  result.sim.data_packets = 1000;
  result.counters = {{{"rnr_naks_sent", 50}, {"page_faults", 50}}};
  EXPECT_EQ(find_bottleneck(result).unit, "transport.min_rnr_timer");
  EXPECT_TRUE(says(find_bottleneck(result), "workload.odp"));
  result.counters = {{{"rnr_naks_sent", 50}, {"page_faults", 3}}};
  EXPECT_EQ(find_bottleneck(result).unit, "workload.recv_depth");
}

TEST(Bottleneck, WindowWhenNothingIsBusy) {
  Result result = bandwidth_result();
  result.units.push_back(unit("host0.nic.packetizer", 0.6));
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "workload.depth");
  EXPECT_NEAR(bottleneck.utilization, 12.0 / 16, 1e-9);
  EXPECT_TRUE(says(bottleneck, "12.0 of 16 messages")) << bottleneck.why;
  EXPECT_EQ(bottleneck.next_unit, "host0.nic.packetizer");
}

TEST(Bottleneck, OutstandingReadsAreTheWindowOfReads) {
  // 4 slots; a READ takes 1200 ns of which 900 ns in the send queue: 10 M/s x 300 ns = 3 slots.
  Result result = bandwidth_result();
  result.scenario.op = "read";
  result.scenario.read_window = 4;
  stats::MessageTrace trace;
  trace.start(kTimeZero);
  trace.mark(stats::Stage::kSqWait, nanoseconds(900));
  trace.mark(stats::Stage::kResponse, nanoseconds(1200));
  result.breakdown.add(trace);
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "transport.max_rd_atomic");
  EXPECT_NEAR(bottleneck.utilization, 0.75, 1e-9);
  EXPECT_TRUE(says(bottleneck, "3.0 of 4 READ slots")) << bottleneck.why;
}

TEST(Bottleneck, LossesWhenPacketsWereSentAgain) {
  Result result = bandwidth_result();
  result.counters = {{{"retransmitted_packets", 50}}};
  result.sim.data_packets = 1000;
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "transport.recovery");
  EXPECT_TRUE(says(bottleneck, "50 packets sent again")) << bottleneck.why;
}

// Go-back-N keeps the wire busy with what has been sent before.
TEST(Bottleneck, AWireThatIsBusyWithRepetitionsSaysSo) {
  Result result = bandwidth_result();
  LinkResult link;
  link.name = "host0.port";
  link.rate_gbps = 100;
  link.wire_bytes = 1'240'000;  // in 100 us: 99.2 Gb/s
  result.links.push_back(link);
  result.sim.data_packets = 10'000;
  result.counters = {{{"retransmitted_packets", 40}}, {{"retransmitted_packets", 59}}};
  EXPECT_FALSE(says(find_bottleneck(result), "repetitions")) << "below 1 %";
  result.counters[1][0].second = 7'500;
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host0.port");
  EXPECT_TRUE(says(bottleneck, "7,540 of 10,000 packets are repetitions")) << bottleneck.why;
  EXPECT_TRUE(says(bottleneck, "transport.recovery")) << bottleneck.why;
}

// 98 Gb/s of payload on the wire: what is delivered of it decides between the wire and recovery.
TEST(Bottleneck, RecoveryLimitsWhenItBurnsTheWire) {
  Result result = bandwidth_result();
  LinkResult link;
  link.name = "host0.port";
  link.rate_gbps = 100;
  link.wire_bytes = 1'240'000;  // in 100 us: 99.2 Gb/s
  link.payload_bytes = 1'225'000;
  result.links.push_back(link);
  result.sim.data_packets = 10'000;
  result.throughput_gbps = 73.5;
  EXPECT_EQ(find_bottleneck(result).unit, "host0.port") << "nothing was sent again";
  for (const char* counter : {"retransmitted_packets", "tcp_retransmitted_segments"}) {
    result.counters = {{{counter, 2'500}}};
    const Bottleneck bottleneck = find_bottleneck(result);
    EXPECT_EQ(bottleneck.unit, "transport.recovery");
    EXPECT_NEAR(bottleneck.utilization, 0.25, 1e-9);
    EXPECT_TRUE(says(bottleneck, "25 % of the payload")) << bottleneck.why;
  }
  result.throughput_gbps = 93;
  EXPECT_EQ(find_bottleneck(result).unit, "host0.port") << "5 % are not the limit";
}

// Hosts are paused, and the switch's thresholds are why its port has nothing to send meanwhile.
TEST(Bottleneck, PauseThresholdsThatAreTooSmallAreNamed) {
  Result result = bandwidth_result();
  UnitResult port;
  port.name = "host1.nic.port";
  port.utilization = 0.4;
  port.stalled[static_cast<std::size_t>(stats::StallCause::kPaused)] = 0.58;
  result.units.push_back(port);
  UnitResult wire;
  wire.name = "switch.port0";
  for (const double busy : {0.8, 0.9}) {
    wire.utilization = busy;
    result.units.resize(1);
    result.units.push_back(wire);
    result.pause_limit = {};
    EXPECT_NE(find_bottleneck(result).unit, "switch.pfc_xoff");
    result.pause_limit = {"switch.pfc_xoff", "switch.pfc_xon=98304 bytes"};
    const Bottleneck bottleneck = find_bottleneck(result);
    EXPECT_EQ(bottleneck.unit, "switch.pfc_xoff");
    EXPECT_TRUE(says(bottleneck, "switch.pfc_xon=98304 bytes")) << bottleneck.why;
  }
  result.units.back().utilization = 0.97;  // it has something to send all the time
  EXPECT_EQ(find_bottleneck(result).unit, "switch.port0");
}

TEST(Bottleneck, WorkloadThatAsksForLittle) {
  Result result = bandwidth_result();
  result.message_rate_mops = 1;  // 1.2 of 16 in flight
  EXPECT_EQ(find_bottleneck(result).unit, "workload");
}

TEST(Bottleneck, WhatKeepsQueuePairsFromSendingIsALimitOfItsOwn) {
  const auto held = [](transport::Hold hold, double share) {
    Result result = bandwidth_result();
    result.hosts.resize(2);
    result.hosts[0].held[static_cast<std::size_t>(hold)] = share;
    return result;
  };
  EXPECT_EQ(find_bottleneck(held(transport::Hold::kPeerWindow, 0.9)).unit, "tcp.window");
  EXPECT_EQ(find_bottleneck(held(transport::Hold::kWindow, 0.9)).unit, "transport.window");
  // READ slots are one of the workload's windows; and a wait now and then is no limit.
  EXPECT_EQ(find_bottleneck(held(transport::Hold::kReadSlots, 0.9)).unit, "workload.depth");
  EXPECT_EQ(find_bottleneck(held(transport::Hold::kPeerWindow, 0.4)).unit, "workload.depth");
  // The waits after RNR NAKs come with their number.
  Result recvs = held(transport::Hold::kReceiverNotReady, 0.8);
  recvs.sim.data_packets = 1000;
  recvs.counters = {{{"rnr_naks_sent", 50}}};
  const Bottleneck bottleneck = find_bottleneck(recvs);
  EXPECT_EQ(bottleneck.unit, "workload.recv_depth");
  EXPECT_DOUBLE_EQ(bottleneck.utilization, 0.8);
  EXPECT_TRUE(says(bottleneck, "50 times (RNR NAK), and senders waited 80 %")) << bottleneck.why;
}

TEST(Bottleneck, AFailedQueuePairIsNamedByItsCauseNotByTheFlushBehindIt) {
  Result result = bandwidth_result();
  result.units.push_back(unit("host0.nic.dma", 0.99));
  result.completions = {{"success", 9}, {"wr_flush_error", 6}, {"remote_access_error", 1}};
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "none");
  EXPECT_TRUE(says(bottleneck, "failed with remote_access_error after 9 ")) << bottleneck.why;
}

TEST(Bottleneck, AWaitThatOutlastsTheBusiestUnitIsWhatItWaitsFor) {
  Result result = bandwidth_result();
  result.units.push_back(unit("host0.nic.dma", 0.88));
  result.units.push_back(unit("host0.nic.scheduler", 0.2));
  result.units.back().stalled[static_cast<std::size_t>(stats::StallCause::kWqe)] = 0.93;
  EXPECT_EQ(find_bottleneck(result).unit, "host0.nic.scheduler");
  result.units.front().utilization = 0.96;  // busy all the time: then others wait for it
  EXPECT_EQ(find_bottleneck(result).unit, "host0.nic.dma");
}

TEST(Bottleneck, ReadSlotsAreHeldForWhatTheirNumberAndTheRateTell) {
  // One slot, 10 M READs/s: 100 ns each, though each took 1200 ns with its wait for the slot.
  Result result = bandwidth_result();
  result.scenario.op = "read";
  result.scenario.read_window = 1;
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "transport.max_rd_atomic");
  EXPECT_TRUE(says(bottleneck, "1.0 of 1 READ slots are in use, each for 100 ns"))
      << bottleneck.why;
}

UnitResult waiting(const std::string& name, double utilization, stats::StallCause cause,
                   double share) {
  UnitResult result = unit(name, utilization);
  result.stalled[static_cast<std::size_t>(cause)] = share;
  return result;
}

TEST(Bottleneck, PostedCreditsAreNamedWithTheirKeys) {
  // The receiver waits for its host, and the sender for the receiver: longer, but for that reason.
  Result result = bandwidth_result();
  result.units.push_back(waiting("host0.nic.port", 0.1, stats::StallCause::kNoCredit, 0.9));
  result.units.push_back(waiting("host1.pcie.to_host", 0.1, stats::StallCause::kNoCredit, 0.8));
  const Bottleneck bottleneck = find_bottleneck(result);
  EXPECT_EQ(bottleneck.unit, "host1.pcie.to_host");
  EXPECT_TRUE(says(bottleneck, "pcie.root_credits")) << bottleneck.why;
  EXPECT_FALSE(says(bottleneck, "nic.rx_buffer")) << bottleneck.why;
  // A device that takes too little has keys of its own; a port without a waiting host as before.
  result.units.pop_back();
  EXPECT_TRUE(says(find_bottleneck(result), "nic.rx_buffer"));
  result.units[0] = waiting("host1.pcie.to_device", 0.1, stats::StallCause::kNoCredit, 0.8);
  EXPECT_TRUE(says(find_bottleneck(result), "pcie.device_credits"));
}

TEST(Bottleneck, OrderOfWritesIsNamedWithItsKeys) {
  Result result = bandwidth_result();
  result.units.push_back(unit("host1.host.root_complex.strict_order", 0.99));
  EXPECT_TRUE(says(find_bottleneck(result), "pcie.ordering_time")) << find_bottleneck(result).why;
  result.units[0].name = "host1.host.root_complex.relaxed_order";
  EXPECT_TRUE(says(find_bottleneck(result), "pcie.relaxed_time")) << find_bottleneck(result).why;
}

TEST(Bottleneck, TheNarrowerOfTransmitSlotsAndBuffer) {
  Result result = bandwidth_result();
  result.units.push_back(
      waiting("host0.nic.sq_scheduler", 0.1, stats::StallCause::kDownstreamFull, 1.0));
  EXPECT_EQ(find_bottleneck(result).unit, "nic.tx_slots");
  result.scenario.buffer_before_slots = true;
  EXPECT_EQ(find_bottleneck(result).unit, "nic.tx_buffer");
  // A wire that is idle now and then although there is always something to send waits for it, too.
  LinkResult link;
  link.name = "host0.nic.port";
  link.rate_gbps = 100;
  link.wire_bytes = 1'110'000;  // in 100 us: 88.8 %
  result.links.push_back(link);
  EXPECT_EQ(find_bottleneck(result).unit, "nic.tx_buffer");
  result.links[0].wire_bytes = 1'240'000;
  EXPECT_EQ(find_bottleneck(result).unit, "host0.nic.port");
}

TEST(Bottleneck, OneLongMessageAtATimeKeepsAWireBusy) {
  Result result = test::sample_result();
  result.links.clear();
  for (const char* name : {"host0.nic.port", "host1.nic.port"}) {
    LinkResult link;
    link.name = name;
    link.rate_gbps = 100;
    link.wire_bytes = 62'000;  // in 10 us: 49.6 %, there and back in turn
    result.links.push_back(link);
  }
  const Bottleneck ping_pong = find_bottleneck(result);
  EXPECT_EQ(ping_pong.unit, "host0.nic.port");
  EXPECT_NEAR(ping_pong.utilization, 0.992, 1e-9);
  EXPECT_TRUE(says(ping_pong, "or that of the other end, is busy 99 %")) << ping_pong.why;
  // A READ's data come one way only.
  result.scenario.op = "read";
  EXPECT_TRUE(says(find_bottleneck(result), "saturates nothing"));
  result.links[1].wire_bytes = 124'000;
  EXPECT_EQ(find_bottleneck(result).unit, "host1.nic.port");
  EXPECT_FALSE(says(find_bottleneck(result), "saturates nothing"));
}

TEST(Bottleneck, EmptyResultIsNoReasonToFail) {
  EXPECT_EQ(find_bottleneck(Result()).unit, "workload");
  Result latency;
  latency.scenario.latency_pattern = true;
  EXPECT_EQ(find_bottleneck(latency).unit, "none");
}

}  // namespace
}  // namespace rnic::testbench

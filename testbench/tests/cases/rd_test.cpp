// SPDX-License-Identifier: Apache-2.0
// READ concurrency and responder resources.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::WcStatus;

constexpr double kRoceEfficiency4096 = 4096.0 / (4096 + 82);

double gbps_of(const ProgramRun& run) { return run.number("/throughput_gbps"); }
std::string limiter(const ProgramRun& run) { return run.result["bottleneck"]["unit"]; }

/// A link long enough that the READ window matters. A lossless buffer of that reach is not the
/// point.
Settings long_link(const std::string& rate, const std::string& delay) {
  return {{"transport.protocol", "rocev2"}, {"link.rate", rate}, {"link.delay", delay},
          {"link.flow_control", "none"},    {"pcie.gen", "5"},   {"sim.payload", "none"},
          {"nic.max_rd_atomic", "32"}};
}

TEST(CaseRD, RD01_ReadWindow) {
  // One block of 32 KB in about 13.5 us; S / L = 19.4 Gb/s for each READ outstanding, up to the
  // line. Blocks of 64 KB take the time of 32 KB more on the wire, 0.67 us.
  const double line = 400 * kRoceEfficiency4096;
  for (const int kib : {32, 64}) {
    const Settings once =
        with(long_link("400Gbps", "5500ns"), {{"workload.msg_size", std::to_string(kib) + "KiB"}});
    const ProgramRun alone =
        run_well(with(once, {{"workload.op", "read"}, {"workload.iterations", "20"}}));
    const double latency_ns = alone.number("/latency_ns/mean");
    EXPECT_NEAR(latency_ns, 13500 + (kib - 32) * 1024 * 8 / line, 500) << kib;
    const Settings base = with(once, {{"workload.pattern", "bandwidth"},
                                      {"workload.depth", "64"},
                                      {"workload.iterations", "300"}});
    double before = 0;
    for (const int ord : {1, 2, 4, 8, 16, 32}) {
      SCOPED_TRACE(std::to_string(kib) + " KiB, " + std::to_string(ord));
      const Settings window{{"transport.max_rd_atomic", std::to_string(ord)}};
      const ProgramRun run = run_well(with(with(base, window), {{"workload.op", "read"}}));
      const double asked = ord * kib * 1024.0 * 8 / latency_ns;
      const double expected = std::min(line, asked);
      EXPECT_NEAR(gbps_of(run), expected, 0.10 * expected);
      if (kib == 32 && ord == 1) {
        EXPECT_NEAR(gbps_of(run) / 8, 2.45, 0.15);  // GB/s
      }
      if (ord > 1 && asked < 0.9 * line) {
        EXPECT_NEAR(gbps_of(run) / before, 2, 0.1);
      }
      if (asked < 0.9 * line) {
        EXPECT_EQ(limiter(run), "transport.max_rd_atomic");
      } else if (asked > 1.2 * line) {
        EXPECT_EQ(limiter(run), "host1.nic.port");
      }
      before = gbps_of(run);
      const ProgramRun write = run_well(with(with(base, window), {{"workload.op", "write"}}));
      EXPECT_NEAR(gbps_of(write), line, 0.01 * line);
    }
  }
}

TEST(CaseRD, RD03_OneQpDoesNotFillFourHundredGigabits) {
  // A QP's engine moves 93 % of the line with WRITE. A READ of 4 MiB is 1024 requests of
  // 4 KiB, of which 16 are on their way: 16 x 4 KiB a round trip of some 1.63 us (190 ns of cable
  // each way) are 322 Gb/s, 82 % of the line.
  const Settings base{{"transport.protocol", "rocev2"},
                      {"link.rate", "400Gbps"},
                      {"link.delay", "190ns"},
                      {"pcie.gen", "5"},
                      {"pcie.mps", "512"},
                      {"sim.payload", "none"},
                      {"nic.qp_rate", "365Gbps"},
                      {"nic.read_segment", "4KiB"}};
  const auto run = [&base](const char* op, const char* qps) {
    return run_well(with(base, {{"workload.op", op},
                                {"workload.qps", qps},
                                {"workload.pattern", "bandwidth"},
                                {"workload.msg_size", "4MiB"},
                                {"workload.depth", "4"},
                                {"workload.iterations", "16"},
                                {"sim.warmup", "8"}}));
  };
  const ProgramRun write1 = run("write", "1");
  const ProgramRun read1 = run("read", "1");
  const ProgramRun write2 = run("write", "2");
  const ProgramRun read2 = run("read", "2");
  const double line = 400 * kRoceEfficiency4096;
  EXPECT_LT(gbps_of(read1), gbps_of(write1));
  EXPECT_LT(gbps_of(write1), gbps_of(write2));
  EXPECT_NEAR(gbps_of(write1), 365, 0.01 * 365);
  EXPECT_NEAR(gbps_of(read2), gbps_of(write2), 0.01 * gbps_of(write2));
  EXPECT_GE(gbps_of(read1) / gbps_of(read2), 0.80);
  EXPECT_LE(gbps_of(read1) / gbps_of(read2), 0.88);
  EXPECT_NEAR(gbps_of(write2), line, 0.005 * line);
  for (const char* qps : {"4", "8"}) {
    EXPECT_NEAR(gbps_of(run("write", qps)), gbps_of(write2), 0.01 * gbps_of(write2)) << qps;
    EXPECT_NEAR(gbps_of(run("read", qps)), gbps_of(read2), 0.01 * gbps_of(read2)) << qps;
  }
  EXPECT_EQ(limiter(write1), "host0.nic.qp_engine");
  EXPECT_EQ(limiter(read1), "transport.max_rd_atomic");
  EXPECT_EQ(limiter(write2), "host0.nic.port");
  EXPECT_EQ(limiter(read2), "host1.nic.port");
}

TEST(CaseRD, RD03_TheWindowOfPartsIsAFormula) {
  // What one READ of the size of a part takes, and 16 of them in that time: up to the line.
  const Settings base = with(long_link("400Gbps", "5us"), {{"workload.op", "read"}});
  for (const int kib : {4, 8, 16, 32}) {
    const std::string part = std::to_string(kib) + "KiB";
    const double latency_ns =
        run_well(with(base, {{"workload.msg_size", part}, {"workload.iterations", "9"}}))
            .number("/latency_ns/mean");
    const auto with_slots = [&](const char* slots) {
      return gbps_of(run_well(with(base, {{"workload.pattern", "bandwidth"},
                                          {"workload.msg_size", "1MiB"},
                                          {"workload.depth", "8"},
                                          {"workload.iterations", "24"},
                                          {"transport.max_rd_atomic", slots},
                                          {"nic.read_segment", part}})));
    };
    const double line = 400 * kRoceEfficiency4096;
    for (const int slots : {4, 16, 32}) {
      const double expected = std::min(line, slots * kib * 1024 * 8 / latency_ns);
      EXPECT_NEAR(with_slots(std::to_string(slots).c_str()), expected, 0.10 * expected)
          << part << ' ' << slots;
    }
  }
}

TEST(CaseRD, RD03_PartsThatAreLostComeAgain) {
  // 100,000 B are 98 packets of 1 KiB: 24 requests of four and one of two. Every byte is checked.
  for (const char* protocol : {"ib", "rocev1", "rocev2"}) {
    const Settings base{{"transport.protocol", protocol},   {"transport.mtu", "1024"},
                        {"transport.max_rd_atomic", "4"},   {"transport.ack_timeout", "4"},
                        {"nic.read_segment", "4KiB"},       {"workload.op", "read"},
                        {"workload.pattern", "bandwidth"},  {"workload.msg_size", "100000"},
                        {"workload.iterations", "200"},     {"workload.signal_every", "1"},
                        {"workload.bidirectional", "true"}, {"sim.warmup", "0"}};
    const ProgramRun clean = run_well(base);
    EXPECT_EQ(clean.counter("rx_read_requests"), 2U * 200 * 25) << protocol;
    const ProgramRun lossy = run_well(with(base, {{"link.loss_rate", "2e-3"}}));
    EXPECT_EQ(lossy.number("/completions/success"), 2 * 200) << protocol;
    EXPECT_GT(lossy.counter("retransmitted_packets"), 0U) << protocol;
  }
}

TEST(CaseRD, RD04_EachRemedyRaisesReadBandwidth) {
  // 16 READs of 64 KB over a round trip of some 54 us: 155 of 185 Gb/s.
  const Settings base = with(long_link("200Gbps", "25us"), {{"workload.op", "read"},
                                                            {"workload.pattern", "bandwidth"},
                                                            {"workload.msg_size", "64KiB"},
                                                            {"workload.depth", "32"},
                                                            {"transport.mtu", "1024"},
                                                            {"workload.iterations", "2000"}});
  const ProgramRun first = run_well(base);
  const ProgramRun more_qps =
      run_well(with(base, {{"workload.qps", "4"}, {"workload.iterations", "400"}}));
  const ProgramRun larger_mtu = run_well(with(base, {{"transport.mtu", "4096"}}));
  const ProgramRun longer =
      run_well(with(base, {{"workload.msg_size", "8MiB"}, {"workload.iterations", "48"}}));
  const ProgramRun both = run_well(with(
      base, {{"workload.qps", "4"}, {"transport.mtu", "4096"}, {"workload.iterations", "400"}}));
  EXPECT_EQ(limiter(first), "transport.max_rd_atomic");
  EXPECT_GT(gbps_of(more_qps), gbps_of(first));
  EXPECT_GT(gbps_of(larger_mtu), gbps_of(first));
  EXPECT_GT(gbps_of(longer), gbps_of(first));
  EXPECT_GE(gbps_of(both), 0.95 * 200 * kRoceEfficiency4096);
  EXPECT_EQ(limiter(both), "host1.nic.port");
}

/// `count` READs of `bytes` in one list, all signalled.
Status post_reads(RigSide& side, std::uint32_t count, std::uint32_t bytes, const RigBuffer& into,
                  const RigBuffer& from) {
  std::vector<protocol::Sge> sges(count);
  std::vector<host::verbs::SendWr> wrs(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    sges[i] = {into.address, bytes, into.region.lkey};
    wrs[i].wr_id = i + 1;
    wrs[i].opcode = WrOpcode::kRdmaRead;
    wrs[i].flags = host::verbs::SendFlags::kSignaled;
    wrs[i].sg_list = &sges[i];
    wrs[i].num_sge = 1;
    wrs[i].remote_addr = from.address;
    wrs[i].rkey = from.region.rkey;
  }
  return side.verbs().post_send(side.core, *side.qp, wrs.data(), count);
}

TEST(CaseRD, RD06_MoreReadsThanTheResponderTakes) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&rig] {
    rig.a.create();
    rig.b.create();
    config::TransportConfig requester = rig.config().transport;
    requester.max_rd_atomic = 16;
    config::TransportConfig responder = requester;
    responder.max_dest_rd_atomic = 8;  // not what was agreed
    responder.max_rd_atomic = 8;
    rig.a.connect(rig.b.qp->qpn, path_between(0, 1), requester);
    rig.b.connect(rig.a.qp->qpn, path_between(1, 0), responder);
    rig.settle();
    const RigBuffer into = rig.a.buffer(65536);
    const RigBuffer from = rig.b.buffer(65536);
    ASSERT_EQ(post_reads(rig.a, 16, 65536, into, from), Status::kOk);
    for (std::uint64_t i = 1; i <= 16; ++i) {
      const Wc wc = rig.a.await_send();
      EXPECT_EQ(wc.wr_id, i);
      const WcStatus expected = i < 9    ? WcStatus::kSuccess
                                : i == 9 ? WcStatus::kRemoteInvalidRequestError
                                         : WcStatus::kWrFlushError;
      EXPECT_EQ(wc.status, expected) << i;
    }
    EXPECT_EQ(rig.b.device_qp().state, protocol::QpState::kError);
  });
}

TEST(CaseRD, RD06_AWorkloadWhoseEndsDisagree) {
  for (const std::string protocol : {"ib", "rocev1", "rocev2"}) {
    SCOPED_TRACE(protocol);
    const ProgramRun run = run_well({{"transport.protocol", protocol},
                                     {"workload.op", "read"},
                                     {"workload.pattern", "bandwidth"},
                                     {"workload.msg_size", "64KiB"},
                                     {"workload.depth", "16"},
                                     {"workload.iterations", "16"},
                                     {"workload.signal_every", "1"},
                                     {"sim.warmup", "0"},
                                     {"transport.max_rd_atomic", "16"},
                                     {"transport.max_dest_rd_atomic", "8"}});
    EXPECT_EQ(run.number("/completions/success"), 8);
    EXPECT_EQ(run.number("/completions/remote_invalid_request_error"), 1);
    EXPECT_EQ(run.number("/completions/wr_flush_error"), 7);
    EXPECT_EQ(run.counter("event_qp_req_err"), 1U) << "the responder's";
  }
}

TEST(CaseRD, RD06_WithinTheResponderDepthNothingFails) {
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"transport.max_rd_atomic", "8"}});
  rig.run([&rig] {
    rig.connect();
    const RigBuffer into = rig.a.buffer(65536);
    const RigBuffer from = rig.b.buffer(65536);
    ASSERT_EQ(post_reads(rig.a, 16, 65536, into, from), Status::kOk);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
  });
}

TEST(CaseRD, RD07_DepthBeyondTheDevice) {
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"nic.max_rd_atomic", "8"},
                {"transport.max_rd_atomic", "8"}});
  rig.run([&rig] {
    rig.a.create();
    using Mask = protocol::QpAttrMask;
    host::verbs::QpAttr attr;
    attr.qp_state = protocol::QpState::kRtr;
    attr.ah_attr = path_between(0, 1);
    attr.path_mtu = 1024;
    attr.dest_qp_num = 77;
    const std::uint32_t to_rtr = Mask::kState | Mask::kAv | Mask::kPathMtu | Mask::kDestQpn |
                                 Mask::kRqPsn | Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer;
    attr.max_dest_rd_atomic = 9;
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, to_rtr), Status::kEinval);
    EXPECT_EQ(rig.a.qp->state, protocol::QpState::kInit);
    attr.max_dest_rd_atomic = 8;
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, to_rtr), Status::kOk);
    attr.qp_state = protocol::QpState::kRts;
    const std::uint32_t to_rts = Mask::kState | Mask::kSqPsn | Mask::kTimeout | Mask::kRetryCnt |
                                 Mask::kRnrRetry | Mask::kMaxQpRdAtomic;
    attr.max_rd_atomic = 16;
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, to_rts), Status::kEinval);
    EXPECT_EQ(rig.a.qp->state, protocol::QpState::kRtr);
    EXPECT_EQ(rig.a.device_qp().state, protocol::QpState::kRtr);
    EXPECT_EQ(rig.a.port().sent().data_packets, 0U);
    attr.max_rd_atomic = 8;
    EXPECT_EQ(rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, to_rts), Status::kOk);
  });
}

TEST(CaseRD, RD09_SeventeenReadsWithSixteenSlots) {
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&rig] {
    rig.connect();
    const RigBuffer into = rig.a.buffer(65536);
    const RigBuffer from = rig.b.buffer(65536);
    ASSERT_EQ(post_reads(rig.a, 17, 65536, into, from), Status::kOk);
    // Looked at with every poll, some 25 ns apart, until all are there.
    std::uint32_t most = 0;
    std::vector<Wc> done;
    while (done.size() < 17) {
      rig.a.core.sync();
      most = std::max(most, rig.a.device_qp().outstanding_reads);
      Wc wc;
      if (rig.a.verbs().poll_cq(rig.a.core, *rig.a.send_cq, 1, &wc) == 1) done.push_back(wc);
    }
    EXPECT_EQ(most, 16U);
    for (std::size_t i = 0; i < done.size(); ++i) {
      EXPECT_EQ(done[i].wr_id, i + 1);
      EXPECT_EQ(done[i].status, WcStatus::kSuccess);
    }
  });
}

TEST(CaseRD, RD10_ReadsQueueBehindTheirWindow) {
  // All fragments of a burst posted at once, 8 KB each, over a round trip of some 42 us. The window
  // holds 16, so that the second half of 32 waits for one round trip more: N / ORD - 1 = 1.
  const Settings base = with(long_link("100Gbps", "20us"), {{"workload.msg_size", "8KiB"}});
  const auto worst = [&base](const char* op, const char* fragments) {
    return run_well(with(base, {{"workload.op", op},
                                {"workload.pattern", "bandwidth"},
                                {"workload.depth", fragments},
                                {"workload.post_batch", fragments},
                                {"workload.signal_every", "1"},
                                {"workload.iterations", fragments},
                                {"sim.warmup", "0"}}))
        .number("/latency_ns/max");
  };
  const double read16 = worst("read", "16");
  const double read32 = worst("read", "32");
  const double write16 = worst("write", "16");
  EXPECT_NEAR(read16, write16, 0.03 * write16);  // as long as all fit
  const double read64 = worst("read", "64");
  EXPECT_GT(read32, 1.3 * worst("write", "32"));
  // The slot of the second half's first READ is free one round trip after the start.
  const double round_trip =
      run_well(with(base, {{"workload.op", "read"}, {"workload.iterations", "9"}}))
          .number("/latency_ns/mean");
  EXPECT_NEAR(read32 - read16, round_trip, 0.10 * round_trip);
  EXPECT_NEAR(read64 - read16, 3 * round_trip, 0.10 * 3 * round_trip);
}

TEST(CaseRD, RD10_TheDeviceCutsLongReads) {
  // 32 x 512 KiB, which the device asks for in parts of 32 KiB: 512 parts, 16 at a time, over a
  // round trip of 42 us at 100 Gb/s: (512 / 16 - 1) round trips of waiting for the last one, on
  // average half of it; WRITEs wait for the wire only, 42 us for each.
  const Settings base = with(long_link("100Gbps", "20us"), {{"workload.msg_size", "512KiB"},
                                                            {"workload.pattern", "bandwidth"},
                                                            {"workload.depth", "32"},
                                                            {"workload.post_batch", "32"},
                                                            {"workload.signal_every", "1"},
                                                            {"workload.iterations", "32"},
                                                            {"sim.warmup", "0"},
                                                            {"nic.read_segment", "32KiB"}});
  const ProgramRun read = run_well(with(base, {{"workload.op", "read"}}));
  const ProgramRun write = run_well(with(base, {{"workload.op", "write"}}));
  EXPECT_GT(read.number("/latency_ns/mean"), write.number("/latency_ns/mean"));
  const double round_trip =
      run_well(with(long_link("100Gbps", "20us"), {{"workload.op", "read"},
                                                   {"workload.msg_size", "32KiB"},
                                                   {"workload.iterations", "9"}}))
          .number("/latency_ns/mean");
  // A slot is free when its part has come: at the end all of it is at the wire's rate or at that of
  // 16 parts a round trip, whichever is slower.
  const double rate = std::min(100 * kRoceEfficiency4096, 16 * 32768 * 8 / round_trip);
  EXPECT_NEAR(read.number("/latency_ns/max"), 32 * 524288 * 8 / rate,
              0.10 * 32 * 524288 * 8 / rate);
}

TEST(CaseRD, RD11_ReadAgainstWriteLatency) {
  // Paths of about 1 us one way (300 ns of it cable). WRITE without inline fetches its payload over
  // PCIe once, READ crosses the wire twice and has its payload fetched at the responder.
  const auto run = [](const char* op, const char* delay) {
    return run_well({{"workload.op", op},
                     {"workload.inline_max", "0"},
                     {"transport.protocol", "rocev2"},
                     {"link.delay", delay},
                     {"workload.iterations", "50"}});
  };
  const auto latency = [&run](const char* op, const char* delay) {
    return run(op, delay).number("/latency_ns/p50");
  };
  const double ratio = latency("read", "300ns") / latency("write", "300ns");
  EXPECT_GE(ratio, 1.3);
  EXPECT_LE(ratio, 1.6);
  // The READ's way is twice the WRITE's: a cable of 500 ns more costs it 1 us, and no more.
  EXPECT_NEAR(latency("read", "800ns") - latency("read", "300ns"), 1000, 5);
  EXPECT_NEAR(latency("write", "800ns") - latency("write", "300ns"), 500, 5);
  // And the responder reads memory, as long as the WRITE's own NIC does for its payload.
  const auto stage = [](const ProgramRun& of, const char* name) {
    for (const auto& one : of.result["breakdown_ns"]) {
      if (one["stage"] == name) return one["mean"].get<double>();
    }
    return 0.0;
  };
  const double fetched = stage(run("write", "300ns"), "payload_fetch");
  EXPECT_GT(fetched, 0);
  EXPECT_NEAR(stage(run("read", "300ns"), "responder_read"), fetched, 0.1 * fetched);
}

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
// Public cases of theme PC about the host's side: sockets, memory, DDIO, IOMMU, alignment.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/program.h"

namespace rnic::testbench {
namespace {

std::string limiter(const ProgramRun& run) {
  return run.result.at("bottleneck").at("unit").get<std::string>();
}

double host_counter(const ProgramRun& run, const char* host, const char* name) {
  return run.result.at("counters").at(host).at(name).get<double>();
}

/// 100 Gb/s of InfiniBand with a path MTU of 4096 and enough READs in flight.
Settings edr_read(const char* pattern, const char* bytes) {
  return {{"transport.protocol", "ib"},    {"transport.mtu", "4096"},
          {"link.rate", "100Gbps"},        {"workload.op", "read"},
          {"workload.pattern", pattern},   {"workload.msg_size", bytes},
          {"workload.iterations", "1000"}, {"sim.payload", "none"}};
}

Settings on_remote_socket(const Settings& settings) {
  // The case's inter-socket path of 45 to 55 Gb/s, and 150 ns for each way across: of the doorbell
  // and of an access.
  return with(settings, {{"memory.numa_remote", "true"},
                         {"memory.numa_bandwidth", "50Gbps"},
                         {"memory.numa_latency", "150ns"}});
}

TEST(CasePC, PC06_ReadFromTheRemoteSocket) {
  const ProgramRun local = run_well(edr_read("bandwidth", "64KiB"));
  const ProgramRun remote = run_well(on_remote_socket(edr_read("bandwidth", "64KiB")));
  // 4096 B in 4122 B of InfiniBand packet (26 B of headers, first packets 4 B more of AETH).
  EXPECT_NEAR(local.number("/throughput_gbps"), 100 * 4096.0 / 4122, 1.0);
  const double ratio = remote.number("/throughput_gbps") / local.number("/throughput_gbps");
  EXPECT_GE(ratio, 0.45);
  EXPECT_LE(ratio, 0.60);
  EXPECT_NE(limiter(remote).find("socket_link"), std::string::npos) << limiter(remote);
  const double later =
      run_well(on_remote_socket(edr_read("latency", "64B"))).number("/latency_ns/mean") -
      run_well(edr_read("latency", "64B")).number("/latency_ns/mean");
  EXPECT_GE(later, 200);
  EXPECT_LE(later, 500);
}

TEST(CasePC, PC06_TheOtherSocketAlone) {
  // What the defaults make of it: 50 Gb/s of the link between the sockets; a doorbell takes 100 ns
  // more, and so does the read of the payload; 64 B on that link take 10 ns twice.
  const Settings far{{"memory.numa_remote", "true"}};
  const double local = run_well(edr_read("bandwidth", "64KiB")).number("/throughput_gbps");
  const double remote =
      run_well(with(edr_read("bandwidth", "64KiB"), far)).number("/throughput_gbps");
  EXPECT_GE(remote / local, 0.45);
  EXPECT_LE(remote / local, 0.60);
  const double later = run_well(with(edr_read("latency", "64B"), far)).number("/latency_ns/mean") -
                       run_well(edr_read("latency", "64B")).number("/latency_ns/mean");
  EXPECT_NEAR(later, 100 + 100 + 20, 11);
  EXPECT_GE(later, 200);
  EXPECT_LE(later, 500);
}

/// Inbound WRITEs to a footprint on host1, whose cache is 32 MiB of 20 ways, two for devices.
Settings inbound(const char* footprint, const char* ddio) {
  return {{"workload.op", "write"},        {"workload.pattern", "bandwidth"},
          {"workload.msg_size", "64KiB"},  {"workload.mr_size", footprint},
          {"workload.iterations", "2048"}, {"memory.llc_size", "32MiB"},
          {"memory.llc_ways", "20"},       {"memory.ddio_ways", "2"},
          {"memory.ddio", ddio},           {"sim.payload", "none"}};
}

TEST(CasePC, PC14_DramTrafficOfInboundWrites) {
  const auto dram_share = [](const ProgramRun& run) {
    const double network = 2048.0 * 65536;
    return host_counter(run, "host1", "dram_write_bytes") / network;
  };
  // Two ways of twenty are 3.2 MiB.
  const ProgramRun resident = run_well(inbound("256KiB", "true"));
  const ProgramRun spilling = run_well(inbound("64MiB", "true"));
  const ProgramRun around = run_well(inbound("256KiB", "false"));
  EXPECT_LT(dram_share(resident), 0.02);
  EXPECT_NEAR(dram_share(spilling), 1, 0.1);
  EXPECT_NEAR(dram_share(around), 1, 0.1);
  // DRAM carries far more than the network brings: the throughput does not notice.
  const double throughput = resident.number("/throughput_gbps");
  EXPECT_NEAR(spilling.number("/throughput_gbps"), throughput, 0.01 * throughput);
  EXPECT_NEAR(around.number("/throughput_gbps"), throughput, 0.01 * throughput);
}

TEST(CasePC, PC14_SlowDramLimitsWhatSpills) {
  // One channel of 40 Gb/s: rewriting in the cache does not need it, spilling does.
  const Settings slow = {{"memory.dram_channels", "1"},
                         {"memory.dram_channel_bandwidth", "40Gbps"}};
  Settings cached = with(inbound("256KiB", "true"), slow);
  // The sender reads what the CPU has just prepared.
  cached = with(cached, {{"sim.payload", "bytes"}});
  const ProgramRun resident = run_well(cached);
  EXPECT_GT(resident.number("/throughput_gbps"), 90);
  for (const char* detail : {"fast", "tlp"}) {
    // Around the cache the receiver's DRAM takes 40 Gb/s, and the wire waits for it.
    const ProgramRun around =
        run_well(with(with(inbound("256KiB", "false"), slow), {{"pcie.detail", detail}}));
    EXPECT_NEAR(around.number("/throughput_gbps"), 40, 0.4) << detail;
    EXPECT_EQ(limiter(around), "host1.host.root_complex.dram") << detail;
    // Spilling costs a line written back for each that comes.
    const ProgramRun spilling =
        run_well(with(with(inbound("64MiB", "true"), slow), {{"pcie.detail", detail}}));
    EXPECT_LE(spilling.number("/throughput_gbps"), 40.4) << detail;
    EXPECT_EQ(limiter(spilling).find("host1.host.root_complex.dram"), 0U) << limiter(spilling);
  }
}

TEST(CasePC, PC14_TimingDoesNotDependOnMovingBytes) {
  for (const char* ddio : {"true", "false"}) {
    for (const char* op : {"write", "read", "send"}) {
      SCOPED_TRACE(std::string(op) + " ddio " + ddio);
      const Settings slow =
          with(inbound("16MiB", ddio), {{"workload.op", op},
                                        {"workload.iterations", "512"},
                                        {"memory.dram_channels", "1"},
                                        {"memory.dram_channel_bandwidth", "60Gbps"}});
      const ProgramRun bytes = run_well(with(slow, {{"sim.payload", "bytes"}}));
      const ProgramRun none = run_well(with(slow, {{"sim.payload", "none"}}));
      EXPECT_EQ(bytes.result["latency_ns"], none.result["latency_ns"]);
      EXPECT_EQ(bytes.result["throughput_gbps"], none.result["throughput_gbps"]);
      EXPECT_EQ(bytes.result["pcie"], none.result["pcie"]);
    }
  }
}

/// WRITEs of pages in random order over far more pages than an IOTLB of 64 entries reaches.
Settings scattered(const Settings& iommu) {
  return with({{"workload.op", "write"},
               {"workload.pattern", "bandwidth"},
               {"workload.msg_size", "4KiB"},
               {"workload.mr_size", "8MiB"},
               {"workload.access", "random"},
               {"workload.iterations", "8000"},
               {"link.rate", "200Gbps"},
               {"pcie.gen", "5"},
               {"iommu.iotlb_entries", "64"},
               {"iommu.walkers", "1"},
               {"sim.payload", "none"}},
              iommu);
}

TEST(CasePC, PC16_IommuOffPassThroughAndTranslating) {
  const ProgramRun off = run_well(scattered({{"iommu.enabled", "false"}}));
  const ProgramRun passthrough =
      run_well(scattered({{"iommu.enabled", "true"}, {"iommu.passthrough", "true"}}));
  const ProgramRun small =
      run_well(scattered({{"iommu.enabled", "true"}, {"iommu.page_size", "4KiB"}}));
  const ProgramRun large =
      run_well(scattered({{"iommu.enabled", "true"}, {"memory.page_size", "2MiB"}}));
  const double best = off.number("/throughput_gbps");
  EXPECT_DOUBLE_EQ(passthrough.number("/throughput_gbps"), best);
  EXPECT_LT(small.number("/throughput_gbps"), 0.9 * best);
  EXPECT_NE(limiter(small).find("iommu"), std::string::npos) << limiter(small);
  EXPECT_GT(large.number("/throughput_gbps"), 0.95 * best);
}

TEST(CasePC, PC16_AWalkIsPartOfTheLatency) {
  const auto latency = [](const char* enabled) {
    return run_well(with(scattered({{"iommu.enabled", enabled}}),
                         {{"workload.pattern", "latency"}, {"workload.iterations", "500"}}))
        .number("/latency_ns/mean");
  };
  // At least the read of the payload at the sender and its write at the receiver walk: 270 ns each.
  // The write's walk begins with the first of 16 packets; the others, 280 B each, take 75 ns more
  // on PCIe 5.0 x16.
  EXPECT_GT(latency("true") - latency("false"), (2 * 270 - 75) * 0.9);
}

TEST(CasePC, PC16_WhatIsNotMappedIsAFault) {
  // Only the first 4 KiB of each page of 2 MiB are mapped. Messages of 4 KiB: the first finds its
  // page, the second does not. The device that must read what is not mapped says so: at once of its
  // own buffer, by a NAK of a peer's.
  const auto run = [](const char* op, const char* mapped, const char* page) {
    return run_program({{"workload.op", op},
                        {"workload.pattern", "bandwidth"},
                        {"workload.msg_size", "4KiB"},
                        {"workload.mr_size", "2MiB"},
                        {"workload.iterations", "16"},
                        {"workload.depth", "4"},
                        {"workload.signal_every", "1"},
                        {"sim.warmup", "0"},
                        {"memory.page_size", page},
                        {"iommu.enabled", "true"},
                        {"iommu.mapped_bytes", mapped}});
  };
  for (const char* op : {"write", "read", "send"}) {
    SCOPED_TRACE(op);
    const ProgramRun broken = run(op, "4KiB", "2MiB");
    EXPECT_EQ(broken.status, 0) << broken.error;
    EXPECT_EQ(broken.number("/completions/success"), 1);
    const char* status = std::string(op) == "read" ? "/completions/remote_operation_error"
                                                   : "/completions/local_protection_error";
    EXPECT_EQ(broken.number(status), 1);
    EXPECT_EQ(run(op, "page", "2MiB").number("/completions/success"), 16);
    EXPECT_EQ(run(op, "4KiB", "4KiB").number("/completions/success"), 16);
  }
}

/// Pages written by DMA at an offset within their first line.
ProgramRun at_offset(const char* offset) {
  return run_well({{"workload.op", "dma_write"},
                   {"workload.pattern", "bandwidth"},
                   {"workload.msg_size", "4032B"},
                   {"workload.offset", offset},
                   {"workload.window", "1MiB"},
                   {"workload.iterations", "4000"},
                   {"memory.partial_line_time", "200ns"},
                   {"pcie.gen", "3"},
                   {"sim.payload", "none"}});
}

TEST(CasePC, PC13_PartialLinesAreThoseOfTheWriteNotOfItsPackets) {
  // 4,032 B from offset 1 are 16 packets of 256 B, which share lines: head and tail are in part,
  // whether the packets come as one burst or each for itself, or few credits cut the burst.
  for (const char* detail : {"fast", "tlp"}) {
    for (const char* credits : {"128", "8"}) {
      SCOPED_TRACE(std::string(detail) + " " + credits);
      const ProgramRun run = run_well({{"workload.op", "dma_write"},
                                       {"workload.pattern", "bandwidth"},
                                       {"workload.msg_size", "4032B"},
                                       {"workload.offset", "1"},
                                       {"workload.window", "1MiB"},
                                       {"workload.iterations", "4000"},
                                       {"memory.partial_line_time", "50ns"},
                                       {"pcie.detail", detail},
                                       {"pcie.root_credits.posted_headers", credits},
                                       {"pcie.gen", "3"},
                                       {"sim.payload", "none"}});
      EXPECT_NEAR(host_counter(run, "host0", "partial_line_writes"), 2 * 4000, 2 * 140);
      // 4,032 B in 4,416 B of packets, of 113.7 Gb/s; two partial lines are 100 of 311 ns.
      EXPECT_GT(run.number("/throughput_gbps"), credits[0] == '8' ? 20 : 103);
    }
  }
}

TEST(CasePC, PC13_UnalignedBuffersCostPartialLines) {
  const ProgramRun aligned = at_offset("0");
  const ProgramRun unaligned = at_offset("1");
  const ProgramRun padded = at_offset("64");
  // A head and a tail of each access; none when it starts and ends between lines.
  EXPECT_EQ(host_counter(aligned, "host0", "partial_line_writes"), 0);
  EXPECT_NEAR(host_counter(unaligned, "host0", "partial_line_writes"), 2 * 4000, 2 * 130);
  EXPECT_LT(unaligned.number("/throughput_gbps"), 0.9 * aligned.number("/throughput_gbps"));
  EXPECT_GT(padded.number("/throughput_gbps"), 0.95 * aligned.number("/throughput_gbps"));
}

/// Streamed SENDs whose buffers lie at multiples of `alignment`.
ProgramRun sends_of(const char* bytes, const char* alignment) {
  return run_well({{"workload.op", "send"},
                   {"workload.pattern", "bandwidth"},
                   {"transport.protocol", "rocev2"},
                   {"workload.msg_size", bytes},
                   {"workload.alignment", alignment},
                   {"workload.mr_size", "4MiB"},
                   {"workload.depth", "16"},
                   {"workload.iterations", "400"},
                   {"memory.partial_line_time", "200ns"},
                   {"pcie.gen", "3"},
                   {"pcie.lanes", "16"},
                   {"sim.warmup", "64"},
                   {"sim.payload", "none"}});
}

TEST(CasePC, PC13_PackedMessagesOfAnOddSizeAreSlower) {
  const ProgramRun even = sends_of("65536", "1");
  EXPECT_EQ(host_counter(even, "host1", "partial_line_writes"), 0);
  const double line = even.number("/throughput_gbps");
  for (const char* odd : {"65535", "65537"}) {
    SCOPED_TRACE(odd);
    const ProgramRun packed = sends_of(odd, "1");
    // Each of 16 packets of 4 KiB begins and ends within a line.
    EXPECT_GT(host_counter(packed, "host1", "partial_line_writes"), 400 * 2 * 15);
    EXPECT_LT(packed.number("/throughput_gbps"), 0.9 * line);
    EXPECT_GT(packed.number("/throughput_gbps"), 0.2 * line);
    EXPECT_GT(sends_of(odd, "64").number("/throughput_gbps"), 0.95 * line);
  }
}

TEST(CasePC, PC13_TheCostOfAPartialLineIsAParameter) {
  // Counters are of the window, which counts 300 messages and edges. Without a region's size,
  // packed messages still begin elsewhere in their lines. A message of 16 packets has 32 partial
  // lines: at T each they take 32 T of the 5.25 us that 65,537 B need at 100 Gb/s, unless the wire
  // is slower. The path itself takes 0.66 us.
  const auto packed = [](const char* size, const char* cost) {
    return run_well({{"workload.op", "send"},
                     {"workload.pattern", "bandwidth"},
                     {"transport.protocol", "rocev2"},
                     {"workload.msg_size", size},
                     {"workload.alignment", "1"},
                     {"workload.iterations", "300"},
                     {"memory.partial_line_time", cost},
                     {"sim.payload", "none"}});
  };
  const double line = packed("65536", "0ns").number("/throughput_gbps");
  double before = line * 1.001;
  for (const char* cost : {"0ns", "180ns", "300ns", "800ns"}) {
    SCOPED_TRACE(cost);
    const ProgramRun run = packed("65537", cost);
    EXPECT_NEAR(host_counter(run, "host1", "partial_line_writes") / 300, 32, 1);
    const double path = 32 * std::stod(cost) + 65537 * 8 / 800.0;  // ns
    const double expected = std::min(line, 65537 * 8 / path);
    EXPECT_NEAR(run.number("/throughput_gbps"), expected, 0.05 * expected);
    EXPECT_LE(run.number("/throughput_gbps"), before);
    before = run.number("/throughput_gbps");
  }
  EXPECT_LT(before, 0.25 * line);
}

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
// The latency of one small message on an idle system, as a sum that can be followed with a pencil:
// every term comes from the configuration, none from the model.
#include <gtest/gtest.h>

#include <string>

#include "config/loader.h"
#include "simulation/run.h"
#include "support/program.h"

namespace rnic::testbench {
namespace {

constexpr double kTlpOverhead = 24;  ///< memory request: header 16, sequence 2, LCRC 4, STP 2
constexpr double kCompletionOverhead = 20;  ///< completion: header 12, else the same
constexpr double kCqeBytes = 64;
constexpr double kWqeBlock = 64;
constexpr double kMessage = 64;

struct WireOverhead {
  double plain;  ///< line bytes besides the payload of a packet in the middle of a message
  double write;  ///< of a WRITE of one packet
  double read_request;
  double read_response;
};

/// IB: LRH 8, BTH 12, ICRC 4, VCRC 2 and two framing symbols = 28. RoCE: preamble 8, Ethernet 14,
/// FCS 4, gap 12, BTH 12, ICRC 4 = 54, with GRH 40 (v1) or IPv4 20 and UDP 8 (v2). RETH has 16
/// bytes, AETH 4. iWARP: 38 of Ethernet, IPv4 20, TCP 20, then an FPDU: length 2, DDP and RDMAP 14
/// tagged or 18 untagged, READ request 28, CRC 4.
WireOverhead overhead_of(const std::string& protocol) {
  if (protocol == "iwarp") return {78, 78 + 20, 78 + 2 + 18 + 28 + 4, 78 + 20};
  const double plain = protocol == "ib" ? 28 : (protocol == "rocev1" ? 94 : 82);
  return {plain, plain + 16, plain + 16, plain + 4};
}

/// Terms in nanoseconds.
class Pencil {
 public:
  Pencil(const config::Config& config, const std::string& protocol)
      : c(config), wire_(overhead_of(protocol)), iwarp_(protocol == "iwarp") {
    // PCIe 4: 16 GT/s a lane, 128b/130b, less what DLLPs and SKP sets take.
    EXPECT_EQ(c.pcie.gen, 4U);
    pcie_gbps_ = 16.0 * c.pcie.lanes * 128 / 130 * (1 - dllp_share());
    cycle = 1e9 / c.nic.clock_hz;
  }

  /// Ack latency limit of x16 at MPS 256: (256 + 28) x 3.0 / 16 + 19 = 72 symbol times at 2.5 GT/s,
  /// 96 more from 8 GT/s on. An Ack and an UpdateFC of 8 B each in that time, and SKP sets.
  double dllp_share() const {
    if (c.pcie.dllp_overhead >= 0) return c.pcie.dllp_overhead;
    EXPECT_EQ(c.pcie.lanes, 16U);
    EXPECT_EQ(c.pcie.mps, 256U);
    return 2 * 8.0 / (72 + 96) + 4.0 / 1538;
  }

  static double ns(Time time) { return static_cast<double>(time.count()) / 1e3; }
  double pass(const config::StageConfig& stage) const { return stage.latency * cycle; }
  /// Waiting for the next edge of the NIC's clock: between nothing and a cycle.
  double edge() const { return cycle / 2; }
  double pcie_bytes(double bytes) const { return bytes * 8 / pcie_gbps_; }
  double wire_bytes(double bytes) const { return bytes * 8 / c.link.rate.to_gbps(); }
  /// One way over the line: both ends' PHY and the cable.
  double propagation() const { return 2 * ns(c.link.phy_latency) + ns(c.link.delay); }

  /// DMA engine, request TLP over, memory, one completion TLP back.
  double dma_read(double bytes) const {
    return pass(c.nic.dma) + pcie_bytes(kTlpOverhead) + ns(c.pcie.latency) +
           ns(c.memory.read_latency) + pcie_bytes(bytes + kCompletionOverhead) + ns(c.pcie.latency);
  }
  /// DMA engine and the bytes on PCIe: then the write has left the device.
  double dma_write_leaves(double bytes) const {
    return pass(c.nic.dma) + pcie_bytes(bytes + kTlpOverhead);
  }
  double write_becomes_visible() const { return ns(c.pcie.latency) + ns(c.memory.write_latency); }

  /// The pick of a queue pair and the lookup of its context, which hits.
  double schedule() const { return pass(c.nic.scheduler) + pass(c.nic.qpc_lookup); }
  /// Headers, the line, and the peer's receive pipeline up to the state machine.
  double packet(double bytes) const {
    return pass(c.nic.packetizer) + (iwarp_ ? pass(c.nic.tcp_tx) : 0) + wire_bytes(bytes) +
           propagation() + edge() + pass(c.nic.rx_parse) + (iwarp_ ? pass(c.nic.tcp_rx) : 0) +
           pass(c.nic.qpc_lookup);
  }
  /// A spinning look takes poll_cost; the write falls into its middle on the average and the next
  /// look sees it.
  double spin() const { return 1.5 * ns(c.cpu.poll_cost); }

  /// perftest's WRITE changes a byte that the device has read: the line comes back from the
  /// last-level cache, and leaves the core's again, each as long as taking a CQE. (Its payload that
  /// is inline is in the core's cache.)
  double change_payload() const { return 2 * ns(c.cpu.cqe_cost); }

  /// perftest takes the completion of its own message before it looks for the peer's: long before
  /// that comes, but on iWARP, where the acknowledgement comes with it. There the CQE follows the
  /// answer's data; a poll takes it, and a look finds the byte that is there by then.
  double own_completion() const {
    if (!iwarp_) return 0;
    return pass(c.nic.completion) + dma_write_leaves(kCqeBytes) + ns(c.cpu.poll_cost) +
           ns(c.cpu.cqe_cost) + ns(c.cpu.poll_cost);
  }

  double blueflame(double blocks) const {
    // Each block is a write TLP; one after another enters the doorbell unit, at least an interval
    // apart, which is more than the TLPs' own distance.
    return ns(c.cpu.doorbell_cost) + ns(c.cpu.blueflame_cost_per_64b) * blocks +
           pcie_bytes(kWqeBlock + kTlpOverhead) + ns(c.pcie.latency) + edge() +
           (blocks - 1) * c.nic.doorbell.interval * cycle + pass(c.nic.doorbell);
  }
  double doorbell() const {
    return ns(c.cpu.doorbell_cost) + pcie_bytes(8 + kTlpOverhead) + ns(c.pcie.latency) + edge() +
           pass(c.nic.doorbell);
  }
  /// At the receiver of a WRITE: rights and addresses, then the bytes go to memory.
  double place_and_see() const {
    return pass(c.nic.responder) + pass(c.nic.translation) + dma_write_leaves(kMessage) +
           write_becomes_visible() + spin();
  }

  double inline_write() const {
    // Control 16, remote address 16, inline header 4 and 64 B: 112 B with padding, two blocks. The
    // WQE is decoded while the scheduler picks; a pick takes no less time.
    EXPECT_LE(c.nic.wqe_decode.latency, c.nic.scheduler.latency);
    return ns(c.cpu.post_cost) + ns(c.cpu.inline_cost_per_64b) + blueflame(2) + schedule() +
           packet(kMessage + wire_.write) + place_and_see() + own_completion();
  }
  double fetched_write() const {
    // The first pick finds that the WQE has to be fetched, the second one sends.
    return change_payload() + ns(c.cpu.post_cost) + doorbell() + schedule() + dma_read(kWqeBlock) +
           pass(c.nic.wqe_decode) + schedule() + pass(c.nic.translation) + dma_read(kMessage) +
           packet(kMessage + wire_.write) + place_and_see() + own_completion();
  }
  double read() const {
    // Control 16, remote address 16, one SGE 16: one block.
    const double request = ns(c.cpu.post_cost) + blueflame(1) + schedule() +
                           packet(wire_.read_request) + pass(c.nic.responder) +
                           pass(c.nic.translation);  // rights and the address
    const double response =
        schedule() + dma_read(kMessage) + packet(kMessage + wire_.read_response);
    // The CQE follows the data when these have left the device.
    const double completion = pass(c.nic.responder) + pass(c.nic.translation) +
                              dma_write_leaves(kMessage) + pass(c.nic.completion) +
                              dma_write_leaves(kCqeBytes) + write_becomes_visible();
    // Spinning on the CQ, then the poll that takes the CQE.
    return request + response + completion + spin() + ns(c.cpu.poll_cost) + ns(c.cpu.cqe_cost);
  }

  const config::Config& c;
  double cycle = 0;

 private:
  WireOverhead wire_;
  bool iwarp_;
  double pcie_gbps_ = 0;
};

class HandCalculationTest : public ::testing::TestWithParam<std::string> {
 protected:
  config::LoadedConfig load(const Settings& more) const {
    return config::load_from(with({{"transport.protocol", GetParam()},
                                   {"workload.pattern", "latency"},
                                   {"workload.msg_size", "64"},
                                   {"workload.iterations", "100"},
                                   {"sim.warmup", "10"}},
                                  more));
  }
};

/// Two clock-domain crossings a way, each known to half a cycle.
constexpr double kToleranceCycles = 2;

TEST_P(HandCalculationTest, InlineWriteByBlueFlame) {
  const config::LoadedConfig loaded = load({{"workload.op", "write"}});
  const Pencil pencil(loaded.config, GetParam());
  EXPECT_NEAR(simulate(loaded).latency.mean_ns(), pencil.inline_write(),
              kToleranceCycles * pencil.cycle);
}

TEST_P(HandCalculationTest, WriteWithFetchedWqeAndPayload) {
  const config::LoadedConfig loaded =
      load({{"workload.op", "write"}, {"nic.blueflame", "false"}, {"workload.inline_max", "0"}});
  const Pencil pencil(loaded.config, GetParam());
  EXPECT_NEAR(simulate(loaded).latency.mean_ns(), pencil.fetched_write(),
              kToleranceCycles * pencil.cycle);
}

TEST_P(HandCalculationTest, Read) {
  const config::LoadedConfig loaded = load({{"workload.op", "read"}});
  const Pencil pencil(loaded.config, GetParam());
  EXPECT_NEAR(simulate(loaded).latency.mean_ns(), pencil.read(), kToleranceCycles * pencil.cycle);
}

TEST_P(HandCalculationTest, OtherHardware) {
  // Every parameter of the sum differs from its default, so that no two of them can be mixed up.
  const config::LoadedConfig loaded = load({{"workload.op", "write"},
                                            {"nic.blueflame", "false"},
                                            {"workload.inline_max", "0"},
                                            {"nic.clock", "0.4GHz"},
                                            {"nic.doorbell.latency", "11"},
                                            {"nic.scheduler.latency", "13"},
                                            {"nic.qpc_lookup.latency", "7"},
                                            {"nic.wqe_decode.latency", "12"},
                                            {"nic.translation.latency", "14"},
                                            {"nic.dma.latency", "9"},
                                            {"nic.packetizer.latency", "23"},
                                            {"nic.rx_parse.latency", "27"},
                                            {"nic.responder.latency", "16"},
                                            {"nic.tcp_tx.latency", "51"},
                                            {"nic.tcp_rx.latency", "57"},
                                            {"pcie.latency", "170ns"},
                                            {"pcie.lanes", "8"},
                                            {"pcie.dllp_overhead", "0.05"},
                                            {"memory.read_latency", "90ns"},
                                            {"memory.write_latency", "45ns"},
                                            {"link.rate", "40Gbps"},
                                            {"link.delay", "500ns"},
                                            {"link.phy_latency", "80ns"},
                                            {"cpu.post_cost", "55ns"},
                                            {"cpu.doorbell_cost", "65ns"},
                                            {"cpu.poll_cost", "32ns"},
                                            {"cpu.cqe_cost", "17ns"}});
  const Pencil pencil(loaded.config, GetParam());
  EXPECT_NEAR(simulate(loaded).latency.mean_ns(), pencil.fetched_write(),
              kToleranceCycles * pencil.cycle);
}

INSTANTIATE_TEST_SUITE_P(Transports, HandCalculationTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench

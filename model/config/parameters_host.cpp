// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_table.h"

namespace rnic::config {
namespace {

constexpr double kMillisecond = 1e6;  // ns
constexpr double kSecond = 1e9;       // ns
constexpr double kUnlimited = 18446744073709551616.0;
constexpr double kTiB = 1099511627776.0;

constexpr const char* kPcieBench =
    "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018";

void add_memory(ParameterTable& table) {
  table.bytes("memory.page_size", RNIC_FIELD(memory.page_size), "4KiB")
      .one_of({4096, 2097152, 1073741824})
      .spec("x86-64 page sizes; 4 KiB is what malloc gives")
      .means("pages that back the application's buffers");
  table.bytes("memory.memlock_limit", RNIC_FIELD(memory.memlock_limit), "unlimited")
      .range(0, 1024 * kTiB)
      .or_word("unlimited", kUnlimited)
      .assumed("what RDMA installation guides set; 0 forbids pinning")
      .means("bytes a process may pin (RLIMIT_MEMLOCK)");
  table.time("memory.read_latency", RNIC_FIELD(memory.read_latency), "150ns")
      .range(0, kMillisecond)
      .fitted("with pcie.latency a 64 B DMA read takes about 450 ns; 413..520 ns measured by " +
              std::string(kPcieBench))
      .means("root complex: DMA read, request in to first data out");
  table.time("memory.write_latency", RNIC_FIELD(memory.write_latency), "60ns")
      .range(0, kMillisecond)
      .assumed("a write ends in the last-level cache, without the way back of a read")
      .means("root complex: posted write, last byte in to visible to the CPU");
  table.rate("memory.bandwidth", RNIC_FIELD(memory.bandwidth), "800Gbps")
      .range(1, 100000)
      .assumed("80 % of six DDR4-2666 channels (128 GB/s)")
      .means("memory bandwidth left to DMA");
}

void add_registration(ParameterTable& table) {
  const std::string lite = "Tsai and Zhang, LITE kernel RDMA support, SOSP 2017 (registration)";
  table.time("memory.reg_call_cost", RNIC_FIELD(memory.reg_call_cost), "30us")
      .range(0, kSecond)
      .measured(lite + ": intercept over 64 KB to 1 MB")
      .means("ibv_reg_mr, whatever the size");
  table.time("memory.reg_page_cost", RNIC_FIELD(memory.reg_page_cost), "1200ns")
      .range(0, kSecond)
      .measured(lite + ": slope per 4 KiB page; 0.4 us when pages are already present")
      .means("ibv_reg_mr, for each page it pins");
  table.time("memory.dereg_call_cost", RNIC_FIELD(memory.dereg_call_cost), "38us")
      .range(0, kSecond)
      .measured("published figures for small regions lie between 38 and 60 us")
      .means("ibv_dereg_mr, whatever the size");
  table.time("memory.dereg_page_cost", RNIC_FIELD(memory.dereg_page_cost), "100ns")
      .range(0, kSecond)
      .measured("published figure of 0.10 us a page for large regions")
      .means("ibv_dereg_mr, for each page it unpins");
  table.time("memory.odp_fault_cost", RNIC_FIELD(memory.odp_fault_cost), "100us")
      .range(0, kSecond)
      .measured("public reports of on-demand paging lie between 50 and 300 us a fault")
      .means("driver's time for one page fault of the device (on-demand paging)");
  table.time("memory.odp_page_cost", RNIC_FIELD(memory.odp_page_cost), "200ns")
      .range(0, kSecond)
      .assumed("half of what registration takes for a page that is present")
      .means("and for each page that it maps");
  table.bytes("memory.odp_granularity", RNIC_FIELD(memory.odp_granularity), "4KiB")
      .range(4096, kTiB)
      .assumed("a page; drivers map what one request asks for, or chunks up to 2 MiB")
      .means("bytes mapped around a fault, aligned; a power of two");
  table.count("memory.odp_handlers", RNIC_FIELD(memory.odp_handlers), "4")
      .range(1, 1024)
      .in("faults")
      .assumed("worker threads of the driver")
      .means("page faults handled at a time");
}

void add_iommu(ParameterTable& table) {
  table.flag("iommu.enabled", RNIC_FIELD(iommu.enabled), "false")
      .assumed("pass-through, as RDMA tuning guides advise")
      .means("whether an IOMMU translates the NIC's DMA");
  table.count("iommu.iotlb_entries", RNIC_FIELD(iommu.iotlb_entries), "64")
      .range(1, 1 << 20)
      .measured(std::string(kPcieBench) + ": knee at 64 pages of 4 KiB")
      .means("translations the IOMMU caches");
  table.time("iommu.walk_latency", RNIC_FIELD(iommu.walk_latency), "270ns")
      .range(0, kMillisecond)
      .measured(std::string(kPcieBench) + ": 266..280 ns more on a 64 B read (Broadwell)")
      .means("page-table walk after an IOTLB miss");
}

void add_cpu(ParameterTable& table) {
  table.time("cpu.post_cost", RNIC_FIELD(cpu.post_cost), "40ns")
      .range(0, kMillisecond)
      .fitted("with doorbell and poll: 5 to 9 M messages/s of one QP posting one at a time")
      .means("ibv_post_send: build one WQE in the ring");
  table.time("cpu.sge_cost", RNIC_FIELD(cpu.sge_cost), "4ns")
      .range(0, kMillisecond)
      .assumed("16 B more in the WQE: a few instructions")
      .means("each further scatter/gather entry");
  table.time("cpu.inline_cost_per_64b", RNIC_FIELD(cpu.inline_cost_per_64b), "4ns")
      .range(0, kMillisecond)
      .assumed("copy of one cache line within L1")
      .means("each 64 B of inline payload copied into the WQE");
  table.time("cpu.doorbell_cost", RNIC_FIELD(cpu.doorbell_cost), "95ns")
      .range(0, kMillisecond)
      .fitted("one QP, one post a doorbell: 6.9 to 7.3 M messages/s on 100G RoCE (Xeon)")
      .means("doorbell record, store fence and MMIO store, as seen by the core");
  table.time("cpu.blueflame_cost_per_64b", RNIC_FIELD(cpu.blueflame_cost_per_64b), "6ns")
      .range(0, kMillisecond)
      .measured(
          "Kalia et al., Design guidelines for high performance RDMA systems, ATC 2016: at most "
          "175 M write-combined cache lines per second")
      .means("each 64 B of a WQE written by MMIO (BlueFlame), besides cpu.doorbell_cost");
  table.count("cpu.doorbell_registers", RNIC_FIELD(cpu.doorbell_registers), "unlimited")
      .range(1, 65536)
      .or_word("unlimited", 0)
      .assumed(
          "mlx5 gives a context about a dozen and then shares them; tuned libraries avoid that")
      .means("doorbell registers that the QPs of a host share, one core at a time on each");
  table.time("cpu.poll_cost", RNIC_FIELD(cpu.poll_cost), "25ns")
      .range(0.001, kMillisecond)
      .assumed("one pass of ibv_poll_cq or of a polling loop that finds nothing")
      .means("one poll of a CQ or of a memory location");
  table.time("cpu.cqe_cost", RNIC_FIELD(cpu.cqe_cost), "20ns")
      .range(0, kMillisecond)
      .assumed("one cache line just written by DMA is read and digested")
      .means("digest one CQE");
  table.time("cpu.syscall_cost", RNIC_FIELD(cpu.syscall_cost), "300ns")
      .range(0, kMillisecond)
      .assumed("entry and exit with the usual mitigations, and a short path in between")
      .means("a system call: waiting on a completion channel, acknowledging an event");
  table.time("cpu.interrupt_latency", RNIC_FIELD(cpu.interrupt_latency), "1us")
      .range(0, kMillisecond)
      .assumed("delivery to the core, entry, reading the event queue, exit")
      .means("from the arrival of an MSI-X interrupt to the end of its handler");
  table.time("cpu.wakeup_latency", RNIC_FIELD(cpu.wakeup_latency), "4.5us")
      .range(0, kMillisecond)
      .measured("public report on OdinLink: 22 us round trip with events, 11 us with polling")
      .means("from there to a thread that waited for the event running again");
  const auto sleep_state = [&table](const std::string& name, Field after, Field exit,
                                    const char* exit_time, const char* evidence) {
    table.time("cpu." + name + "_after", after, "0ns")
        .range(0, kSecond)
        .assumed("RDMA servers run with deep sleep states off; 0: never")
        .means("idle time after which a core enters this sleep state");
    table.time("cpu." + name + "_exit", exit, exit_time)
        .range(0, kMillisecond)
        .assumed(evidence)
        .means("time to leave it, on top of cpu.wakeup_latency");
  };
  sleep_state("sleep1", RNIC_FIELD(cpu.sleep1_after), RNIC_FIELD(cpu.sleep1_exit), "2us",
              "C1E of server processors, as their idle drivers state it");
  sleep_state("sleep2", RNIC_FIELD(cpu.sleep2_after), RNIC_FIELD(cpu.sleep2_exit), "130us",
              "C6 of server processors, as their idle drivers state it");
  table.real("cpu.preempt_probability", RNIC_FIELD(cpu.preempt_probability), "0")
      .range(0, 1)
      .assumed("a pinned thread on an isolated core")
      .means("that a polling thread has lost its core when what it waits for arrives");
  table.time("cpu.preempt_time", RNIC_FIELD(cpu.preempt_time), "1ms")
      .range(0, kSecond)
      .assumed("a tick of the scheduler")
      .means("how long it waits for the core then");
}

}  // namespace

void add_host_parameters(ParameterTable& table) {
  add_memory(table);
  add_registration(table);
  add_iommu(table);
  add_cpu(table);
}

}  // namespace rnic::config

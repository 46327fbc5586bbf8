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
  table.time("memory.read_line_latency", RNIC_FIELD(memory.read_line_latency), "0ns")
      .range(0, kMillisecond)
      .assumed("lines of a read are fetched together and keep up with the link")
      .means("and for each further cache line of a read request, besides the link's own time");
  table.time("memory.write_latency", RNIC_FIELD(memory.write_latency), "60ns")
      .range(0, kMillisecond)
      .assumed("a write ends in the last-level cache, without the way back of a read")
      .means("root complex: posted write, last byte in to visible to the CPU");
  table.rate("memory.bandwidth", RNIC_FIELD(memory.bandwidth), "800Gbps")
      .range(1, 100000)
      .assumed("80 % of six DDR4-2666 channels (128 GB/s)")
      .means("memory bandwidth left to DMA: the path from root complex to last-level cache");
  table.time("memory.partial_line_time", RNIC_FIELD(memory.partial_line_time), "0ns")
      .range(0, kMillisecond)
      .assumed("a partial write merges with the line in the last-level cache as fast as it comes")
      .means("time for which a cache line written in part keeps that path from others");
  table.flag("memory.reads_wait_for_writes", RNIC_FIELD(memory.reads_wait_for_writes), "false")
      .assumed("a read overlaps the writes it follows and returns their data")
      .means(
          "a DMA read begins only when earlier writes are visible (strict ordering), as pcie-bench "
          "sees it on Xeons");
}

void add_cache(ParameterTable& table) {
  table.bytes("memory.llc_size", RNIC_FIELD(memory.llc_size), "auto")
      .range(0, 4294967296.0)
      .or_auto()
      .assumed("15 to 40 MiB on the Xeons of published measurements")
      .means(
          "last-level cache; 0: what DMA reads is taken to be resident; auto: 32 MiB for dma_* "
          "operations, else 0");
  table.count("memory.llc_ways", RNIC_FIELD(memory.llc_ways), "20")
      .range(1, 64)
      .in("ways")
      .datasheet("Xeon E5: 20 ways of the last-level cache")
      .means("associativity of the last-level cache");
  table.flag("memory.ddio", RNIC_FIELD(memory.ddio), "true")
      .datasheet("Intel Data Direct I/O: on by default since Xeon E5 (2012)")
      .means("device writes allocate in the last-level cache instead of going to DRAM");
  table.count("memory.ddio_ways", RNIC_FIELD(memory.ddio_ways), "2")
      .range(0, 64)
      .in("ways")
      .datasheet("Intel Data Direct I/O: 10 % of the last-level cache, 2 of 20 ways (IIO LLC WAYS)")
      .means("ways that device writes may allocate in");
}

void add_dram(ParameterTable& table) {
  table.time("memory.dram_latency", RNIC_FIELD(memory.dram_latency), "42ns")
      .range(0, kMillisecond)
      .measured(std::string(kPcieBench) + ": 40..53 ns more on a 64 B read that misses the cache")
      .means("a DMA read that misses the last-level cache, besides memory.read_latency");
  table.time("memory.dram_write_latency", RNIC_FIELD(memory.dram_write_latency), "100ns")
      .range(0, kMillisecond)
      .measured("about 100 ns more without DDIO in published measurements (SoCC 2020)")
      .means("a DMA write with memory.ddio=false, besides memory.write_latency");
  table.count("memory.dram_channels", RNIC_FIELD(memory.dram_channels), "6")
      .range(1, 64)
      .in("channels")
      .datasheet("Xeon Scalable: six channels a socket")
      .means("memory channels, which addresses interleave over");
  table.rate("memory.dram_channel_bandwidth", RNIC_FIELD(memory.dram_channel_bandwidth), "136Gbps")
      .range(1, 10000)
      .datasheet("80 % of a DDR4-2666 channel (21.3 GB/s)")
      .means("bandwidth of one memory channel");
  table.bytes("memory.dram_interleave", RNIC_FIELD(memory.dram_interleave), "256B")
      .range(64, 1 << 20)
      .assumed("256 B on one channel, as common servers interleave")
      .means("bytes on one memory channel before the next");
  table.real("memory.cpu_traffic", RNIC_FIELD(memory.cpu_traffic), "0")
      .range(0, 0.95)
      .assumed("nobody else uses memory")
      .means("share of DRAM bandwidth that the CPUs' own accesses take from DMA");
}

void add_numa(ParameterTable& table) {
  table.flag("memory.numa_remote", RNIC_FIELD(memory.numa_remote), "false")
      .assumed("buffers on the NIC's socket, as tuning guides advise")
      .means("whether memory and cores are on another socket than the device");
  table.time("memory.numa_latency", RNIC_FIELD(memory.numa_latency), "100ns")
      .range(0, kMillisecond)
      .measured(std::string(kPcieBench) +
                ": 95..107 ns more on reads of the remote socket, none on posted writes")
      .means("added to DMA reads of remote memory, and to doorbells");
  table.rate("memory.numa_bandwidth", RNIC_FIELD(memory.numa_bandwidth), "50Gbps")
      .range(1, 10000)
      .measured(
          "open-mpi/ompi issue 6888: ConnectX-5 EDR reaches half of its 98.9 Gb/s from the other "
          "socket; the link itself has more (QPI at 9.6 GT/s: 19.2 GB/s)")
      .means("what DMA gets of the link between the sockets, each direction");
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
  table.time("memory.reg_zero_cost", RNIC_FIELD(memory.reg_zero_cost), "0ns")
      .range(0, kSecond)
      .assumed("memory.reg_page_cost, as it was measured, contains it")
      .means("ibv_reg_mr, for each 4 KiB that nobody has touched: the kernel clears them first");
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
      .means("page-table walk after an IOTLB miss, with the upper levels cached");
  table.flag("iommu.passthrough", RNIC_FIELD(iommu.passthrough), "false")
      .assumed("as with iommu=pt: host devices are identity-mapped without look-ups")
      .means("an enabled IOMMU lets the NIC's addresses through");
  table.bytes("iommu.page_size", RNIC_FIELD(iommu.page_size), "auto")
      .one_of({4096, 2097152, 1073741824})
      .or_auto()
      .spec("VT-d and AMD-Vi page sizes; sp_off leaves 4 KiB only")
      .means("page size of the IOMMU's mappings; auto: memory.page_size");
  table.bytes("iommu.mapped_bytes", RNIC_FIELD(iommu.mapped), "page")
      .range(1, 1 << 30)
      .or_word("page", 0)
      .assumed(
          "a driver maps all; one that maps the first 4 KiB of each huge page only hung (Coyote, "
          "issue 191)")
      .means(
          "bytes of each page of payload that are mapped, from its beginning; DMA beyond them is a "
          "fault");
  table.count("iommu.walkers", RNIC_FIELD(iommu.walkers), "6")
      .range(0, 1024)
      .in("walks")
      .fitted(std::string(kPcieBench) + ": a miss costs 45..52 ns of throughput, 270 ns of latency")
      .means("page-table walks at a time; 0: any number");
  table.count("iommu.walk_cache_entries", RNIC_FIELD(iommu.walk_cache), "0")
      .range(0, 1 << 20)
      .in("entries")
      .assumed("upper levels stay cached")
      .means("page-table pages whose place the IOMMU caches (each 512 mappings); 0: all");
  table.time("iommu.walk_level_latency", RNIC_FIELD(iommu.walk_level_latency), "40ns")
      .range(0, kMillisecond)
      .assumed("one more read that hits in the last-level cache, from within the socket")
      .means("added to a walk whose upper level is not cached");
  table.time("iommu.invalidate_latency", RNIC_FIELD(iommu.invalidate_latency), "1us")
      .range(0, kMillisecond)
      .assumed("a command in the invalidation queue and the wait for it (strict mode)")
      .means(
          "deregistration: the IOTLB forgets the pages; with pcie.ats the device's answer comes "
          "on top");
  table.time("iommu.ats_latency", RNIC_FIELD(iommu.ats_latency), "100ns")
      .range(0, kMillisecond)
      .assumed("translation agent of the root complex, without memory")
      .means("a translation request of the device (ATS), besides IOTLB and walk");
  table.flag("iommu.serial_tables", RNIC_FIELD(iommu.serial_tables), "false")
      .assumed("walkers work independently of each other; Sandy Bridge's seem not to")
      .means("walks start in order, one at a time within a page-table page (512 mappings)");
}

void add_peer(ParameterTable& table) {
  const std::string reports =
      "public perftest reports: 23 GB/s into host memory, 11 into a GPU behind the root complex";
  table
      .choice<PeerConfig::Path>(
          "peer.path", RNIC_CHOICE(peer.path), "switch",
          {{"switch", PeerConfig::Path::kSwitch}, {"root", PeerConfig::Path::kRoot}})
      .assumed("GPU servers pair NICs and GPUs under PCIe switches")
      .means("way to another device's memory: a PCIe switch above both, or the root complex");
  table.flag("peer.reads", RNIC_FIELD(peer.reads), "true")
      .assumed("server platforms forward both; client chipsets only writes")
      .means("whether reads reach the peer; else they end in a completer abort");
  table.rate("peer.write_bandwidth", RNIC_FIELD(peer.write_bandwidth), "192Gbps")
      .range(1, 10000)
      .measured(reports)
      .means("writes that the peer takes");
  table.rate("peer.read_bandwidth", RNIC_FIELD(peer.read_bandwidth), "176Gbps")
      .range(1, 10000)
      .assumed("a little less than it takes: BAR reads are not what GPUs are made for")
      .means("reads that the peer answers");
  table.time("peer.write_latency", RNIC_FIELD(peer.write_latency), "100ns")
      .range(0, kMillisecond)
      .assumed("as host memory, a little further")
      .means("a posted write, last byte at the peer to visible in its memory");
  table.time("peer.read_latency", RNIC_FIELD(peer.read_latency), "500ns")
      .range(0, kMillisecond)
      .assumed("a GPU's memory behind its BAR")
      .means("a read, request at the peer to first data out");
  table.rate("peer.root_write_bandwidth", RNIC_FIELD(peer.root_write_bandwidth), "92Gbps")
      .range(1, 10000)
      .measured(reports)
      .means("writes that the root complex forwards between two of its ports");
  table.rate("peer.root_read_bandwidth", RNIC_FIELD(peer.root_read_bandwidth), "60Gbps")
      .range(1, 10000)
      .assumed("reads fare worse than writes in every report")
      .means("reads that it forwards");
  table.time("peer.root_latency", RNIC_FIELD(peer.root_latency), "250ns")
      .range(0, kMillisecond)
      .assumed("into the root complex and out of another port")
      .means("added by the root complex, one way");
  table.bytes("peer.size", RNIC_FIELD(peer.size), "256MiB")
      .range(65536, 17179869184.0)
      .datasheet("GPUs without a resizable BAR show 256 MiB")
      .means("memory of the peer that its BAR shows");
}

void add_dma_device(ParameterTable& table) {
  const std::string fit = "0: cuts through; nfp6000 has a card's fitted figures";
  table.time("dma_device.setup_time", RNIC_FIELD(dma_device.setup_time), "0ns")
      .range(0, kMillisecond)
      .assumed(fit)
      .means("dma_*: from the program's descriptor to the DMA engine, for any number at a time");
  const auto path = [&](const std::string& name, Field request, Field unit, Field unit_time,
                        const std::string& what) {
    table.time("dma_device." + name + "_request_time", request, "0ns")
        .range(0, kMillisecond)
        .assumed(fit)
        .means("dma_*: occupancy of " + what + " by each request");
    table.bytes("dma_device." + name + "_unit", unit, "64B")
        .range(1, 65536)
        .assumed("a cache line")
        .means("dma_*: what " + what + " moves at a time");
    table.time("dma_device." + name + "_unit_time", unit_time, "0ns")
        .range(0, kMillisecond)
        .assumed(fit)
        .means("dma_*: occupancy of " + what + " by each such unit");
  };
  path("read", RNIC_FIELD(dma_device.read.request_time), RNIC_FIELD(dma_device.read.unit),
       RNIC_FIELD(dma_device.read.unit_time),
       "the device's way in, once all of a read has arrived,");
  path("write", RNIC_FIELD(dma_device.write.request_time), RNIC_FIELD(dma_device.write.unit),
       RNIC_FIELD(dma_device.write.unit_time), "the device's way out, before a write leaves,");
  path("memory", RNIC_FIELD(dma_device.memory.request_time), RNIC_FIELD(dma_device.memory.unit),
       RNIC_FIELD(dma_device.memory.unit_time), "the device's memory, which both ways share,");
}

void add_cpu(ParameterTable& table) {
  table.time("cpu.post_cost", RNIC_FIELD(cpu.post_cost), "40ns")
      .range(0, kMillisecond)
      .fitted("with doorbell and poll: 5 to 9 M messages/s of one QP posting one at a time")
      .means("ibv_post_send: build one WQE in the ring");
  table.time("cpu.list_saving", RNIC_FIELD(cpu.list_saving), "0ns")
      .range(0, kMillisecond)
      .assumed("0: each WQE of a list costs as much as one that is posted alone")
      .means("of cpu.post_cost, what a WQE of a list saves that is not its first");
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
  table.time("cpu.fence_cost", RNIC_FIELD(cpu.fence_cost), "0ns")
      .range(0, kMillisecond)
      .assumed("part of cpu.doorbell_cost")
      .means("each store fence of its own: one before a doorbell, and one behind a BlueFlame push");
  table.time("cpu.wc_line_interval", RNIC_FIELD(cpu.wc_line_interval), "0ns")
      .range(0, kMillisecond)
      .assumed("cpu.blueflame_cost_per_64b bounds a core; 5.7 ns: 175 M lines a second for a host")
      .means("write-combined cache lines of a host leave at this interval; 0: no limit");
  table.count("cpu.wc_buffers", RNIC_FIELD(cpu.wc_buffers), "10")
      .range(1, 1024)
      .in("lines")
      .datasheet("10 to 12 fill buffers of an Intel core serve write combining")
      .means("lines that wait to leave before the storing core has to");
  table.flag("cpu.doorbell_readback", RNIC_FIELD(cpu.doorbell_readback), "false")
      .assumed("drivers of RDMA devices let posted writes go")
      .means("a register is read after each doorbell: an uncached load that waits for PCIe");
  table.time("cpu.doorbell_stall", RNIC_FIELD(cpu.doorbell_stall), "0ns")
      .range(0, kMillisecond)
      .fitted("0: part of cpu.doorbell_cost; presets of hosts tell latency and rate apart")
      .means("time a core waits after a doorbell has left it, as for its write-combining buffer");
  table.time("cpu.blueflame_stall", RNIC_FIELD(cpu.blueflame_stall), "0ns")
      .range(0, kMillisecond)
      .assumed("part of cpu.doorbell_stall, which fits devices whose every lone WQE is written")
      .means("time a core waits besides cpu.doorbell_stall after it has written a WQE (BlueFlame)");
  table.count("cpu.doorbell_registers", RNIC_FIELD(cpu.doorbell_registers), "unlimited")
      .range(1, 65536)
      .or_word("unlimited", 0)
      .assumed(
          "mlx5 gives a context about a dozen and then shares them; tuned libraries avoid that")
      .means("doorbell registers that the QPs of a host share, one core at a time on each");
  table.flag("cpu.doorbell_lock", RNIC_FIELD(cpu.doorbell_lock), "true")
      .assumed("what drivers do; false: the blocks of WQEs of several threads mix (ucx issue 2464)")
      .means(
          "whether a thread locks a shared doorbell register until its stores have left it "
          "(cpu.doorbell_stall)");
  table.time("cpu.lock_transfer", RNIC_FIELD(cpu.lock_transfer), "60ns")
      .range(0, kMillisecond)
      .assumed("a cache line from core to core within a socket; each core that spins takes it once")
      .means(
          "the lock of a shared doorbell register changes hands: once, and for each further core "
          "that holds it or waits for it");
  table.time("cpu.lock_wait", RNIC_FIELD(cpu.lock_wait), "60ns")
      .range(0, kMillisecond)
      .assumed(
          "as cpu.lock_transfer; three threads on a QP post 6 M/s together, each 2.0 (Kalia et "
          "al., FaSST, OSDI 2016)")
      .means(
          "longer post under the lock of a QP that threads share, which comes from another core");
  table.time("cpu.lock_crowd", RNIC_FIELD(cpu.lock_crowd), "8ns")
      .range(0, kMillisecond)
      .assumed("each further core that spins takes the line once more, while others wait anyway")
      .means("longer post under that lock, for each thread beyond two that shares the QP");
  table.time("cpu.poll_cost", RNIC_FIELD(cpu.poll_cost), "25ns")
      .range(0.001, kMillisecond)
      .assumed("one pass of ibv_poll_cq or of a polling loop that finds nothing")
      .means("one poll of a CQ or of a memory location");
  table.time("cpu.cqe_cost", RNIC_FIELD(cpu.cqe_cost), "20ns")
      .range(0, kMillisecond)
      .assumed("one cache line just written by DMA is read and digested")
      .means("digest one CQE: what a line costs a core that a device has touched");
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
  add_cache(table);
  add_dram(table);
  add_numa(table);
  add_registration(table);
  add_iommu(table);
  add_peer(table);
  add_dma_device(table);
  add_cpu(table);
}

}  // namespace rnic::config

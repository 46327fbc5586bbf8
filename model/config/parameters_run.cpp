// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_table.h"

namespace rnic::config {
namespace {

constexpr double kMaxExact = 9007199254740991.0;  // 2^53 - 1
constexpr double kDay = 86400e9;                  // ns

constexpr const char* kFreeChoice = "free choice of the user";

void add_sim(ParameterTable& table) {
  table.count("sim.seed", RNIC_FIELD(sim.seed), "1")
      .range(0, kMaxExact)
      .assumed("free choice of the user; limited to what every JSON reader keeps exactly")
      .means("seed of all random numbers; same seed and configuration, same result");
  table.count("sim.warmup", RNIC_FIELD(sim.warmup), "128")
      .range(0, 1e9)
      .in("messages")
      .assumed("one full default send queue, so that caches and windows are in steady state")
      .means(
          "messages each flow completes before measuring starts (UC, UD: delivers, or sends in "
          "vain); the window ends with the last delivery, or the last message sent in vain");
  table.time("sim.max_time", RNIC_FIELD(sim.max_time), "100s")
      .range(1, kDay)
      .assumed("far beyond any default workload; catches runs that never end")
      .means("simulated time after which the run is given up as stuck");
  table
      .choice<PayloadMode>("sim.payload", RNIC_CHOICE(sim.payload), "bytes",
                           {{"bytes", PayloadMode::kBytes}, {"none", PayloadMode::kNone}})
      .assumed(kFreeChoice)
      .means("whether payload bytes are really copied; timing is the same either way");
  table
      .choice<SimDetail>("sim.detail", RNIC_CHOICE(sim.detail), "full",
                         {{"full", SimDetail::kFull}, {"auto", SimDetail::kAuto}})
      .assumed(kFreeChoice)
      .means("auto: a stream that repeats itself exactly is accounted for, not simulated again");
  table
      .choice<HostGroups>("sim.host_groups", RNIC_CHOICE(sim.host_groups), "apart",
                          {{"apart", HostGroups::kApart}, {"together", HostGroups::kTogether}})
      .assumed(kFreeChoice)
      .means(
          "apart: pairs of hosts that exchange frames with no other are simulated in turns of "
          "some microseconds, which changes no figure; together: event by event");
}

void add_output(ParameterTable& table) {
  table.text("output.dir", RNIC_FIELD(output.dir), "")
      .assumed(kFreeChoice)
      .means("directory for result.json, latency.csv and traces, created if absent; empty: none");
  table.list("output.traces", RNIC_FIELD(output.traces), "none", {{"pcap", 0}})
      .assumed(kFreeChoice)
      .means("traces to write into output.dir; pcap: what passes each port, in PORT.pcapng");
  table
      .choice<ProgressMode>(
          "output.progress", RNIC_CHOICE(output.progress), "auto",
          {{"auto", ProgressMode::kAuto}, {"on", ProgressMode::kOn}, {"off", ProgressMode::kOff}})
      .assumed(kFreeChoice)
      .means("progress line on stderr; auto: only on a terminal");
}

void add_programs(ParameterTable& table) {
  table
      .choice<Program>("workload.program", RNIC_CHOICE(workload.program), "none",
                       {{"none", Program::kNone},
                        {"ping_pong", Program::kPingPong},
                        {"kv_store", Program::kKvStore},
                        {"ring_buffer", Program::kRingBuffer},
                        {"rendezvous", Program::kRendezvous},
                        {"spin_lock", Program::kSpinLock},
                        {"multicast", Program::kMulticast}})
      .assumed(kFreeChoice)
      .means("example application on the verbs API instead of a stream of workload.op");
}

void add_messages(ParameterTable& table) {
  table
      .choice<Op>("workload.op", RNIC_CHOICE(workload.op), "write",
                  {{"write", Op::kWrite},
                   {"write_imm", Op::kWriteImm},
                   {"read", Op::kRead},
                   {"send", Op::kSend},
                   {"send_imm", Op::kSendImm},
                   {"atomic_cas", Op::kAtomicCas},
                   {"atomic_fadd", Op::kAtomicFadd},
                   {"dma_read", Op::kDmaRead},
                   {"dma_write", Op::kDmaWrite},
                   {"dma_read_write", Op::kDmaReadWrite}})
      .assumed(kFreeChoice)
      .means(
          "operation that every message is; dma_*: the device's DMA engine against host memory "
          "alone, as pcie-bench, without verbs or a wire");
  table
      .choice<Pattern>("workload.pattern", RNIC_CHOICE(workload.pattern), "latency",
                       {{"latency", Pattern::kLatency}, {"bandwidth", Pattern::kBandwidth}})
      .assumed(kFreeChoice)
      .means("latency: one message at a time, as perftest's *_lat; bandwidth: depth in flight");
  table.bytes("workload.msg_size", RNIC_FIELD(workload.msg_size), "auto")
      .range(0, 1U << 30)
      .or_auto()
      .assumed("free choice of the user; verbs allow up to 2 GiB")
      .means("payload of a message; auto: 64 B, atomics 8 B");
  table.count("workload.iterations", RNIC_FIELD(workload.iterations), "1000")
      .range(1, 1e12)
      .in("messages")
      .assumed("1,000 as perftest's *_lat")
      .means("measured messages of each thread of a flow");
  table.bytes("workload.inline_max", RNIC_FIELD(workload.inline_max), "auto")
      .range(0, 960)
      .or_auto()
      .assumed("perftest: the device's limit for *_lat, 0 for *_bw")
      .means(
          "largest payload put into the WQE; auto: for latency nic.max_inline, or what fits "
          "nic.blueflame_blocks beside the WQE's header; else 0");
}

/// A small message beside bulk data.
void add_probe(ParameterTable& table) {
  table.bytes("workload.probe_size", RNIC_FIELD(workload.probe_size), "none")
      .range(0, 1 << 20)
      .or_word("none", 1.9e19)
      .assumed("perftest runs one kind of traffic; a second program beside it is an experiment")
      .means(
          "size of a WRITE that a program of its own posts beside the streams of the first flow's "
          "hosts, on a queue pair of its own; its latency is reported apart");
  table.time("workload.probe_interval", RNIC_FIELD(workload.probe_interval), "10us")
      .range(1, 1e9)
      .assumed("free choice of the user")
      .means("from one probe to the next; one that takes longer puts the next one off");
  table
      .count("workload.probe_service_level", RNIC_FIELD(workload.probe_service_level), "as_streams")
      .range(0, 15)
      .or_word("as_streams", kProbeAsStreams)
      .assumed("without quality of service, all queue pairs share one class")
      .means("SL (Ethernet: priority, 0..7) of the probe's queue pair, both ends");
}

void add_queues(ParameterTable& table) {
  table
      .choice<Traffic>("workload.traffic", RNIC_CHOICE(workload.traffic), "pair",
                       {{"pair", Traffic::kPair},
                        {"incast", Traffic::kIncast},
                        {"all_to_all", Traffic::kAllToAll},
                        {"permutation", Traffic::kPermutation},
                        {"ring", Traffic::kRing},
                        {"loopback", Traffic::kLoopback}})
      .assumed(kFreeChoice)
      .means(
          "flows between hosts: 0 to 1, 2 to 3 ...; all to host 0; each to each; by lot; each to "
          "the next; each to itself, inside its NIC");
  table.count("workload.threads", RNIC_FIELD(workload.threads), "1")
      .range(1, 256)
      .in("threads")
      .assumed("perftest has one")
      .means("threads at each end of a flow, each on a core of its own with its share of the QPs");
  table.count("workload.qps", RNIC_FIELD(workload.qps), "1")
      .range(1, 65536)
      .in("QPs")
      .assumed(kFreeChoice)
      .means("queue pairs of each flow, dealt out to its threads");
  table.count("workload.depth", RNIC_FIELD(workload.depth), "128")
      .range(1, 16384)
      .in("messages")
      .assumed("perftest's --tx-depth")
      .means("messages in flight on each QP (bandwidth pattern)");
  table.count("workload.outstanding", RNIC_FIELD(workload.outstanding), "0")
      .range(0, 1 << 20)
      .in("messages")
      .assumed("rdma_bench and FaRM have a window a thread, perftest one a QP")
      .means("messages in flight of a thread over all its QPs; 0: depth on each QP");
  table
      .choice<QpOrder>(
          "workload.qp_order", RNIC_CHOICE(workload.qp_order), "in_turn",
          {{"in_turn", QpOrder::kInTurn}, {"random", QpOrder::kRandom}, {"zipf", QpOrder::kZipf}})
      .assumed("free of the gaps that chance leaves; rdma_bench and FaRM choose at random")
      .means("which of its QPs a thread with workload.outstanding posts on next");
  table.count("workload.qp_sharers", RNIC_FIELD(workload.qp_sharers), "1")
      .range(1, 256)
      .in("threads")
      .assumed("queue pairs of their own, as tuned programs have")
      .means(
          "threads that each thread stands for: they share its QPs under a lock (cpu.lock_wait)");
  table.count("workload.signal_every", RNIC_FIELD(workload.signal_every), "auto")
      .range(1, 16384)
      .in("messages")
      .or_auto()
      .assumed(
          "as perftest's --cq-mod, kept to a quarter of the depth so that the queue stays full")
      .means(
          "every n-th message asks for a CQE; auto: 1 for latency or with workload.outstanding, "
          "else depth/4 in 1..100");
  table.count("workload.post_batch", RNIC_FIELD(workload.post_batch), "1")
      .range(1, 16384)
      .in("messages")
      .assumed("perftest's --post_list")
      .means("messages posted at a time, once there is room for all of them");
  table.flag("workload.batch_as_list", RNIC_FIELD(workload.batch_as_list), "true")
      .assumed(
          "lists are what batches are for; false: programs that wait for a window's last answer")
      .means("whether a batch is one list with one doorbell, or each message is posted by itself");
  table.count("workload.recv_depth", RNIC_FIELD(workload.recv_depth), "auto")
      .range(1, 16384)
      .in("RECVs")
      .or_auto()
      .assumed("perftest: --rx-depth; auto: as many as workload.depth")
      .means("RECVs posted ahead on each QP; fewer than what is in flight runs into RNR");
  table.flag("workload.recv_credits", RNIC_FIELD(workload.recv_credits), "true")
      .assumed("as perftest does over iWARP, where a message without a RECV ends the connection")
      .means("iWARP: a sender posts no more messages than its peer has RECVs (told out of band)");
  table.count("workload.recv_batch", RNIC_FIELD(workload.recv_batch), "1")
      .range(1, 16384)
      .in("RECVs")
      .assumed("perftest's --recv_post_list")
      .means("consumed RECVs that the receiver collects before it posts them again");
  table.time("workload.recv_cost", RNIC_FIELD(workload.recv_cost), "0ns")
      .range(0, kDay)
      .assumed(kFreeChoice)
      .means("time the receiving CPU works on a message before its RECV is posted again");
  table.flag("workload.bidirectional", RNIC_FIELD(workload.bidirectional), "false")
      .assumed(kFreeChoice)
      .means("both ends of a flow send (bandwidth pattern)");
  table
      .choice("workload.completion", RNIC_CHOICE(workload.completion), "poll",
              std::vector<std::pair<const char*, Completion>>{{"poll", Completion::kPoll},
                                                              {"event", Completion::kEvent}})
      .assumed("as perftest without --events")
      .means("how threads learn of completions: by polling, or asleep until an event");
  table.count("workload.cq_count", RNIC_FIELD(workload.cq_count), "1")
      .range(1, 65535)
      .in("completions")
      .assumed("without moderation, as perftest; 16 bits as ibv_modify_cq's cq_count")
      .means("completions that raise one event together (workload.completion=event)");
  table.time("workload.cq_period", RNIC_FIELD(workload.cq_period), "0us")
      .range(0, 65535e3)
      .assumed("16 bits of us as ibv_modify_cq's cq_period; the default goes with cq_count=1")
      .means(
          "an event comes no later than this after the first completion that waits for "
          "workload.cq_count; whole us");
  table.flag("workload.solicited_only", RNIC_FIELD(workload.solicited_only), "false")
      .assumed("as perftest, whose ibv_req_notify_cq asks for any completion")
      .means(
          "receivers that wait for events wake only for messages with the solicited bit and for "
          "errors");
  table.count("workload.solicited_every", RNIC_FIELD(workload.solicited_every), "1")
      .range(1, 16384)
      .in("messages")
      .assumed(kFreeChoice)
      .means(
          "with workload.solicited_only: every n-th message of a QP, and its last, carries the "
          "solicited bit");
  table.time("workload.poll_interval", RNIC_FIELD(workload.poll_interval), "0ns")
      .range(0, 1e9)
      .assumed(kFreeChoice)
      .means("pause between two polls that find nothing; 0: spin");
  table.time("workload.gap", RNIC_FIELD(workload.gap), "0ns")
      .range(0, 1e9)
      .assumed(kFreeChoice)
      .means("pause of the client before each message (latency pattern)");
  table.time("workload.answer_timeout", RNIC_FIELD(workload.answer_timeout), "auto")
      .range(0, 3600e9)
      .or_auto()
      .assumed(
          "a thousand round trips of a short cable, and twice what cables, pauses of the programs "
          "and the message, at 0.5 Gb/s or half of a slower link, add each way; perftest would "
          "wait for ever")
      .means(
          "latency pattern of UC and UD: a message whose answer takes longer counts as lost, and "
          "the client goes on with the next (messages carry the number of their turn); 0: it "
          "waits for ever, as perftest does");
  table.time("workload.long_gap", RNIC_FIELD(workload.long_gap), "0ns")
      .range(0, 1e9)
      .assumed(kFreeChoice)
      .means("before each second message, instead of workload.gap; 0: all pauses are alike");
  table.time("workload.start_gap", RNIC_FIELD(workload.start_gap), "0ns")
      .range(0, 1e9)
      .assumed(kFreeChoice)
      .means("each flow begins this much later than the one before (bandwidth pattern)");
  table.flag("workload.srq", RNIC_FIELD(workload.srq), "false")
      .assumed("as perftest without --use-srq")
      .means("the queue pairs of a thread take RECVs from one shared receive queue");
  table.count("workload.idle_qps", RNIC_FIELD(workload.idle_qps), "0")
      .range(0, 1 << 20)
      .in("QPs")
      .assumed(kFreeChoice)
      .means("further connected QPs of each host that stay silent");
  add_probe(table);
  table
      .choice<Mistake>("workload.mistake", RNIC_CHOICE(workload.mistake), "none",
                       {{"none", Mistake::kNone},
                        {"local_key", Mistake::kLocalKey},
                        {"local_bounds", Mistake::kLocalBounds},
                        {"local_pd", Mistake::kLocalPd},
                        {"sink_not_writable", Mistake::kSinkNotWritable},
                        {"too_long", Mistake::kTooLong},
                        {"remote_key", Mistake::kRemoteKey},
                        {"lkey_as_rkey", Mistake::kLkeyAsRkey},
                        {"remote_bounds", Mistake::kRemoteBounds},
                        {"remote_pd", Mistake::kRemotePd},
                        {"remote_right", Mistake::kRemoteRight},
                        {"qp_right", Mistake::kQpRight},
                        {"misaligned", Mistake::kMisaligned},
                        {"recv_small", Mistake::kRecvSmall},
                        {"recv_key", Mistake::kRecvKey},
                        {"qkey", Mistake::kQkey},
                        {"handle_pd", Mistake::kHandlePd},
                        {"no_handle", Mistake::kNoHandle}})
      .assumed("an experiment with errors")
      .means(
          "what is wrong with one message of the first flow; the result's completions tell how it "
          "and those behind it end. qp_right, no_handle: with all messages");
  table.count("workload.mistake_at", RNIC_FIELD(workload.mistake_at), "1")
      .range(1, 1e12)
      .in("message")
      .assumed(kFreeChoice)
      .means("which message it is, counted from 1, warm-up included");
}

void add_buffers(ParameterTable& table) {
  table.count("workload.mrs", RNIC_FIELD(workload.mrs), "1")
      .range(1, 1 << 20)
      .in("MRs")
      .assumed(kFreeChoice)
      .means("memory regions that the messages of each end are spread over");
  table.flag("workload.mr_per_qp", RNIC_FIELD(workload.mr_per_qp), "true")
      .assumed("as perftest has it")
      .means(
          "whether each QP has workload.mrs regions of its own; else a thread's QPs have their "
          "buffers in one region for sending and one for receiving");
  table.count("workload.sges", RNIC_FIELD(workload.sges), "1")
      .range(1, 30)
      .in("SGEs")
      .assumed("a message in one piece")
      .means("scatter/gather entries of a message's local data: pieces of one size, side by side");
  table.bytes("workload.alignment", RNIC_FIELD(workload.alignment), "64")
      .range(1, 2 << 20)
      .assumed(
          "buffers of their own, at cache lines; 1: packed, as one message ends the next begins")
      .means("messages begin at multiples of it in their buffer, plus workload.offset");
  table.bytes("workload.mr_size", RNIC_FIELD(workload.mr_size), "0")
      .range(0, 17179869184.0)
      .assumed(kFreeChoice)
      .means(
          "bytes of one region; 0: a page, or one message; of packed ones as many as the window "
          "holds, up to 16 MiB");
  table
      .choice<Registration>("workload.registration", RNIC_CHOICE(workload.registration), "ahead",
                            {{"ahead", Registration::kAhead}, {"each", Registration::kEach}})
      .assumed("perftest and tuned applications register once")
      .means(
          "when senders' buffers are registered: ahead of the stream, or each message's by itself, "
          "with ibv_reg_mr before it is posted and ibv_dereg_mr when it is complete");
  table.real("workload.reg_rate", RNIC_FIELD(workload.reg_rate), "0")
      .range(0, 1e7)
      .in("1/s")
      .assumed("nobody else registers; a cache of registrations that misses: thousands a second")
      .means(
          "regions of workload.reg_size that another thread of each host registers, and "
          "deregisters "
          "again, a second, as far as it can");
  table.bytes("workload.reg_size", RNIC_FIELD(workload.reg_size), "1MiB")
      .range(4096, 1U << 30)
      .assumed(kFreeChoice)
      .means("bytes of a region that is registered beside the stream (workload.reg_rate)");
  table
      .choice<OnDemand>("workload.odp", RNIC_CHOICE(workload.odp), "none",
                        {{"none", OnDemand::kNone},
                         {"explicit", OnDemand::kExplicit},
                         {"implicit", OnDemand::kImplicit}})
      .assumed("pinned memory, as perftest without --odp")
      .means(
          "on-demand paging: pages are pinned at registration; brought in by the device's page "
          "faults (memory.odp_*); or one region is the whole process");
  table.flag("workload.odp_prefetch", RNIC_FIELD(workload.odp_prefetch), "false")
      .assumed("as perftest without --use_prefetch")
      .means("whether ibv_advise_mr brings the pages in before the first message");
  const auto memory = [&table](const char* key, auto set, const char* whose) {
    table
        .choice<BufferMemory>(key, set, "host",
                              {{"host", BufferMemory::kHost},
                               {"peer", BufferMemory::kPeer},
                               {"device", BufferMemory::kDevice}})
        .assumed(kFreeChoice)
        .means(
            std::string("where the ") + whose +
            " buffers lie: host memory, a PCIe device's beside the NIC (peer.*), or the NIC's own "
            "(nic.device_memory)");
  };
  memory("workload.local_memory", RNIC_CHOICE(workload.local_memory), "clients'");
  memory("workload.remote_memory", RNIC_CHOICE(workload.remote_memory), "servers'");
  table
      .choice<Access>("workload.access", RNIC_CHOICE(workload.access), "sequential",
                      {{"sequential", Access::kSequential},
                       {"random", Access::kRandom},
                       {"zipf", Access::kZipf}})
      .assumed(kFreeChoice)
      .means("order in which messages touch regions and offsets");
}

void add_dma(ParameterTable& table) {
  table.bytes("workload.window", RNIC_FIELD(workload.window), "auto")
      .range(1, 17179869184.0)
      .or_auto()
      .assumed("8 KiB as pcie-bench (SIGCOMM 2018), or one message if that is more")
      .means("bytes of host memory that dma_* operations touch");
  table
      .choice<HostCache>("workload.host_cache", RNIC_CHOICE(workload.host_cache), "warm",
                         {{"cold", HostCache::kCold}, {"warm", HostCache::kWarm}})
      .assumed("pcie-bench's usual setting")
      .means(
          "dma_*: whether the CPU has touched the window just before, or none of it is in the "
          "last-level cache");
  table.bytes("workload.offset", RNIC_FIELD(workload.offset), "0")
      .range(0, 4095)
      .assumed("pcie-bench's accesses, and most buffers, start at a cache line")
      .means(
          "start of each dma_* access past its natural alignment, of each message's buffers past "
          "workload.alignment");
}

}  // namespace

void add_run_parameters(ParameterTable& table) {
  add_sim(table);
  add_output(table);
  add_programs(table);
  add_messages(table);
  add_queues(table);
  add_buffers(table);
  add_dma(table);
}

}  // namespace rnic::config

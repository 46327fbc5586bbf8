// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/checks.h"

namespace rnic::config {
namespace {

constexpr std::uint64_t kAtomicBytes = 8;

/// Without it the run would not be the experiment that was asked for: more than an option without
/// effect.
void refuse(bool set, const std::string& what, const std::string& without) {
  if (set) throw ConfigError(what + " has no effect " + without);
}

void check_dma_workload(const WorkloadConfig& workload) {
  const std::string alone = "on a dma_* operation, which is one device and its host's memory";
  refuse(workload.qps > 1, equals("workload.qps", workload.qps), alone);
  refuse(workload.bidirectional, "workload.bidirectional=true", alone);
  refuse(workload.mistake != Mistake::kNone, "workload.mistake", alone);
  refuse(workload.local_memory == BufferMemory::kPeer, "workload.local_memory=peer", alone);
  refuse(workload.remote_memory == BufferMemory::kPeer, "workload.remote_memory=peer", alone);
  constexpr std::uint64_t kMostWindow = 15ULL << 30;  // of a host's 16 GiB
  if (workload.window > kMostWindow) {
    throw ConfigError(equals("workload.window", workload.window) +
                      " does not fit a host's memory beside its queues (valid: 15GiB at most)");
  }
  if (workload.completion == Completion::kEvent) {
    throw ConfigError(
        "workload.completion=event does not go with workload.op=dma_*: a DMA engine has no "
        "completion queue");
  }
  if (workload.msg_size == 0) {
    throw ConfigError(
        "workload.msg_size=0 leaves a dma_* operation nothing to do (valid: 1 B or "
        "more)");
  }
  if (workload.msg_size + workload.offset > workload.window) {
    throw ConfigError(
        equals("workload.window", workload.window) + " is less than one access of " +
        equals("workload.msg_size", workload.msg_size) +
        (workload.offset == 0 ? "" : " at " + equals("workload.offset", workload.offset)));
  }
}

/// Keys of plain messages that a program would not look at.
void check_what_programs_ignore(const Config& config) {
  const WorkloadConfig& w = config.workload;
  const auto need = [](bool met, const char* what) {
    if (!met) throw ConfigError(std::string("workload.program needs ") + what);
  };
  need(w.pattern == Pattern::kLatency, "no workload.pattern: it is one of its own");
  need(config.fabric.hosts == 2 || w.program == Program::kMulticast,
       "fabric.hosts=2, except multicast: it runs between host 0 and host 1");
  need(w.traffic == Traffic::kPair, "no workload.traffic: it has its own hosts");
  need(w.program != Program::kRingBuffer ||
           (config.nic.empty_recv && !config.nic.write_imm_unsolicited &&
            !config.nic.write_imm_needs_handle),
       "nic.empty_recv=true, nic.write_imm_unsolicited=false and nic.write_imm_needs_handle=false "
       "when it is ring_buffer: it posts an empty RECV for each WRITE with immediate");
  need(w.qps == 1 || w.program == Program::kSpinLock,
       "workload.qps=1, except spin_lock (as many clients)");
  need(w.mrs == 1, "workload.mrs=1");
  need(w.local_memory == BufferMemory::kHost && w.remote_memory == BufferMemory::kHost,
       "workload.local_memory=host and workload.remote_memory=host");
  const bool twice = config.link.duplicate_rate > 0 || !config.link.duplicate_list.empty();
  need(config.transport.type == TransportType::kRc || !(loses_packets(config) || twice),
       w.program == Program::kMulticast
           ? "links that lose, reorder and repeat nothing when it is multicast: groups have "
             "datagrams only, and it would wait for ever for one that nobody sends again, or take "
             "one for another (remedy: leave the faults out, or observe them with "
             "workload.op=send of transport.type=ud)"
           : "transport.type=rc where packets are lost, reordered or come twice: it would wait "
             "for ever for a message that nobody sends again, or take one for another");
  const bool reads_control_words =
      w.program == Program::kRendezvous || w.program == Program::kRingBuffer;
  need(config.sim.payload == PayloadMode::kBytes || !reads_control_words,
       "sim.payload=bytes for rendezvous and ring_buffer: they act on what they receive");
}

/// The probe is a WRITE whose acknowledgement tells how long it took.
void check_probe(const Config& config) {
  const WorkloadConfig& w = config.workload;
  if (w.probe_size == kNoProbe) return;
  const auto need = [](bool met, const char* what) {
    if (!met) throw ConfigError(std::string("workload.probe_size needs ") + what);
  };
  need(w.program == Program::kNone && w.pattern == Pattern::kBandwidth,
       "workload.pattern=bandwidth: it is a probe beside streams");
  need(config.transport.type == TransportType::kRc, "transport.type=rc");
  need(w.traffic != Traffic::kLoopback, "a workload.traffic other than loopback");
}

/// Whether it is found where memory is accessed.
constexpr bool needs_bytes(Mistake mistake) {
  switch (mistake) {
    case Mistake::kNone:
    case Mistake::kQpRight:
    case Mistake::kQkey:
    case Mistake::kHandlePd:
    case Mistake::kNoHandle:
      return false;
    default:
      return true;
  }
}

/// A mistake that the operation or service cannot make would never be seen.
void check_mistake(const Config& config) {
  const WorkloadConfig& workload = config.workload;
  const Mistake mistake = workload.mistake;
  if (mistake == Mistake::kNone) return;
  const auto need = [](bool met, const char* what) {
    if (!met) throw ConfigError(std::string("this workload.mistake needs ") + what);
  };
  need(workload.program == Program::kNone, "no workload.program");
  need(workload.pattern == Pattern::kBandwidth || config.transport.type == TransportType::kRc ||
           workload.answer_timeout > kTimeZero,
       "a workload.answer_timeout, workload.pattern=bandwidth or transport.type=rc (nobody tells a "
       "ping-pong of a message that is dropped)");
  // One in a RECV is made on the first queue pair.
  const bool in_recv = mistake == Mistake::kRecvSmall || mistake == Mistake::kRecvKey;
  const std::uint64_t messages =
      (config.sim.warmup + workload.iterations) / (in_recv ? std::max(1U, workload.qps) : 1U);
  if (workload.mistake_at > messages) {
    throw ConfigError(equals("workload.mistake_at", workload.mistake_at) +
                      " is never reached: " + std::to_string(messages) +
                      (in_recv ? " RECVs are taken on the first QP" : " messages are sent") +
                      " (sim.warmup, workload.iterations, workload.qps)");
  }
  const bool one_sided = !is_send(workload.op);
  if (needs_bytes(mistake) && workload.msg_size == 0) {
    throw ConfigError(
        "this workload.mistake needs a workload.msg_size of 1 B or more: of a message without "
        "bytes nobody looks at a key or an address (IBTA vol. 1, 9.4.3)");
  }
  switch (mistake) {
    case Mistake::kSinkNotWritable:
      need(returns_data(workload.op), "workload.op=read or an atomic one");
      break;
    case Mistake::kTooLong:
      need(is_atomic(workload.op) || config.transport.type == TransportType::kUd,
           "an atomic workload.op (it has 8 B) or transport.type=ud (a datagram is one packet)");
      break;
    case Mistake::kMisaligned:
      need(is_atomic(workload.op), "an atomic workload.op");
      break;
    case Mistake::kRemoteKey:
    case Mistake::kLkeyAsRkey:
    case Mistake::kRemoteBounds:
    case Mistake::kRemotePd:
    case Mistake::kRemoteRight:
    case Mistake::kQpRight:
      need(one_sided, "a workload.op that names remote memory");
      break;
    case Mistake::kRecvSmall:
    case Mistake::kRecvKey:
      need(!one_sided && workload.msg_size > 0, "workload.op=send or send_imm of at least 1 B");
      break;
    case Mistake::kQkey:
    case Mistake::kHandlePd:
      need(config.transport.type == TransportType::kUd, "transport.type=ud");
      break;
    case Mistake::kNoHandle:
      need(config.nic.write_imm_needs_handle && workload.op == Op::kWriteImm,
           "nic.write_imm_needs_handle=true and workload.op=write_imm");
      break;
    default:
      break;
  }
}

void check_buffers(const Config& config) {
  const WorkloadConfig& workload = config.workload;
  at_most("workload.sges", workload.sges, "nic.max_sge", config.nic.max_sge);
  if (!workload.mr_per_qp && workload.mrs > 1) {
    throw ConfigError(equals("workload.mrs", workload.mrs) +
                      " needs workload.mr_per_qp=true: else there is one region");
  }
  if (config.transport.protocol == Protocol::kIwarp && workload.op == Op::kRead &&
      workload.sges > 1 && workload.program == Program::kNone) {
    throw ConfigError(
        "an iWARP READ has one place to put its data (RFC 5040, 4.4), workload.sges=" +
        std::to_string(workload.sges) + " does not fit (remedy: workload.sges=1)");
  }
  if (is_atomic(workload.op) && (workload.sges > 1 || (workload.alignment | workload.offset) % 8)) {
    throw ConfigError(
        "atomics work on 8 B at multiples of 8 (remedy: workload.sges=1, workload.alignment and "
        "workload.offset multiples of 8)");
  }
}

/// Registration while messages run, and pages that come on demand.
void check_registration(const Config& config) {
  const WorkloadConfig& w = config.workload;
  const bool host_memory =
      w.local_memory == BufferMemory::kHost && w.remote_memory == BufferMemory::kHost;
  if (w.odp != OnDemand::kNone && (!host_memory || config.transport.type != TransportType::kRc)) {
    throw ConfigError(
        "workload.odp=explicit|implicit needs transport.type=rc and buffers in host memory");
  }
  if (w.reg_rate > 0 && w.reg_rate < 1) {
    throw ConfigError("workload.reg_rate=" + std::to_string(w.reg_rate) +
                      " is out of range (valid: 0, or 1..10000000 a second)");
  }
  if (w.registration == Registration::kAhead) return;
  const bool plain = w.odp == OnDemand::kNone && w.mistake == Mistake::kNone;
  if (w.pattern != Pattern::kBandwidth || !plain || !host_memory) {
    throw ConfigError(
        "workload.registration=each needs workload.pattern=bandwidth, buffers in host memory, "
        "workload.odp=none and workload.mistake=none");
  }
}

/// What would let a thread sleep for ever, or would not be seen.
void check_events(const Config& config) {
  const WorkloadConfig& w = config.workload;
  const bool moderated = w.cq_count > 1 || w.cq_period > kTimeZero;
  if ((moderated || w.solicited_only) &&
      (w.completion != Completion::kEvent || w.program != Program::kNone)) {
    throw ConfigError(std::string(moderated ? "workload.cq_count and workload.cq_period"
                                            : "workload.solicited_only") +
                      " need workload.completion=event and no workload.program");
  }
  if (moderated && (w.cq_count < 2 || w.cq_period == kTimeZero)) {
    throw ConfigError(
        "workload.cq_count above 1 and workload.cq_period go together: the last completions are "
        "fewer than the count and would never raise an event");
  }
  if (w.cq_period % microseconds(1) != kTimeZero) {
    throw ConfigError("workload.cq_period must be a whole number of us");
  }
  if (!w.solicited_only) return;
  if (!takes_recv(w.op) || w.bidirectional) {
    throw ConfigError(
        "workload.solicited_only needs a workload.op that takes RECVs, and no "
        "workload.bidirectional (own completions of a shared queue raise no solicited event)");
  }
  if (w.pattern == Pattern::kLatency && w.solicited_every > 1) {
    throw ConfigError(equals("workload.solicited_every", w.solicited_every) +
                      " needs workload.pattern=bandwidth: each message of a ping-pong is awaited");
  }
  // Asleep, the receiver posts no RECV: those posted must last until the next solicited message.
  const std::uint32_t needed = w.solicited_every + w.recv_batch - 1;
  if (w.pattern == Pattern::kBandwidth && w.recv_depth < needed) {
    throw ConfigError(equals("workload.recv_depth", w.recv_depth) +
                      " leaves the sleeping receiver without a RECV before the next solicited "
                      "message (valid: at least solicited_every + recv_batch - 1, " +
                      std::to_string(needed) + ")");
  }
}

/// Datagrams of one packet to a group, as many as every member has RECVs for.
void check_multicast(const Config& config) {
  constexpr std::uint32_t kMostHosts = 64;
  if (config.transport.type != TransportType::kUd) {
    throw ConfigError("workload.program=multicast needs transport.type=ud");
  }
  at_most("workload.msg_size", config.workload.msg_size, "transport.mtu", config.transport.mtu);
  if (config.fabric.hosts > kMostHosts) {
    throw ConfigError(equals("fabric.hosts", config.fabric.hosts) +
                      " is too many for workload.program=multicast (valid: 2..64)");
  }
}

}  // namespace

std::string equals(const std::string& key, std::uint64_t value) {
  return key + "=" + std::to_string(value);
}

void at_most(const std::string& key, std::uint64_t value, const std::string& limit_key,
             std::uint64_t limit) {
  if (value > limit) {
    throw ConfigError(equals(key, value) + " exceeds " + equals(limit_key, limit));
  }
}

void check_program(const Config& config) {
  if (config.workload.program == Program::kNone) return;
  if (is_dma(config.workload.op)) {
    throw ConfigError(
        "workload.program does not go with a workload.op=dma_* (remedy: leave out one)");
  }
  if (config.workload.program == Program::kMulticast) {
    check_multicast(config);
  } else if (config.transport.type != TransportType::kRc &&
             config.workload.program != Program::kPingPong) {
    throw ConfigError(
        "this workload.program needs transport.type=rc (ping_pong runs over uc and ud, too)");
  }
  if (config.workload.msg_size == 0) {
    throw ConfigError("workload.program needs a workload.msg_size of at least 1 B");
  }
  check_what_programs_ignore(config);
}

void check_workload(const Config& config) {
  const WorkloadConfig& workload = config.workload;
  if (is_dma(workload.op)) {
    check_dma_workload(workload);
    return;
  }
  check_probe(config);
  check_mistake(config);
  check_buffers(config);
  check_events(config);
  at_most("workload.signal_every", workload.signal_every, "workload.depth", workload.depth);
  at_most("workload.post_batch", workload.post_batch, "workload.depth", workload.depth);
  at_most("workload.recv_batch", workload.recv_batch, "workload.recv_depth", workload.recv_depth);
  const bool counts_recvs = config.transport.protocol == Protocol::kIwarp &&
                            workload.recv_credits && takes_recv(workload.op) &&
                            workload.pattern == Pattern::kBandwidth;
  if (counts_recvs && workload.post_batch + workload.recv_batch - 1 > workload.recv_depth) {
    throw ConfigError(equals("workload.recv_depth", workload.recv_depth) +
                      " is less than workload.post_batch + workload.recv_batch - 1, so that a "
                      "sender would wait for ever for the RECVs of a batch");
  }
  check_registration(config);
  at_most("workload.inline_max", workload.inline_max, "nic.max_inline", config.nic.max_inline);
  // With less, every queue pair could hold an unsignalled message, and none would ever complete.
  const std::uint64_t held = std::uint64_t{workload.signal_every} *
                             ((workload.qps + workload.threads - 1) / workload.threads);
  if (workload.outstanding != 0 && workload.signal_every > 1 && workload.outstanding < held) {
    throw ConfigError(equals("workload.outstanding", workload.outstanding) +
                      " is below signal_every times the QPs of a thread, " + std::to_string(held) +
                      ", so that messages would wait for ever (remedy: workload.signal_every=1)");
  }
  if (workload.outstanding != 0) {
    at_most("workload.post_batch", workload.post_batch, "workload.outstanding",
            workload.outstanding);
  }
  at_most("workload.threads", workload.threads, "workload.qps", workload.qps);
  if (workload.mr_size != 0) {
    at_most("workload.msg_size", workload.msg_size, "workload.mr_size", workload.mr_size);
  }
  if (is_atomic(workload.op) && workload.msg_size != kAtomicBytes) {
    throw ConfigError(equals("workload.msg_size", workload.msg_size) +
                      " does not suit an atomic workload.op: atomics work on 8 B");
  }
  if (workload.completion == Completion::kEvent && workload.op == Op::kWrite &&
      workload.pattern == Pattern::kLatency && workload.program == Program::kNone) {
    throw ConfigError(
        "workload.completion=event does not suit workload.op=write with workload.pattern=latency: "
        "nothing completes at the peer (valid: send|send_imm|write_imm|read, or poll)");
  }
  if (workload.completion == Completion::kEvent && workload.poll_interval > kTimeZero) {
    throw ConfigError("workload.poll_interval needs workload.completion=poll");
  }
  if (workload.bidirectional && workload.pattern == Pattern::kLatency) {
    throw ConfigError("workload.bidirectional=true needs workload.pattern=bandwidth");
  }
  if (workload.op == Op::kWrite && workload.pattern == Pattern::kLatency &&
      workload.msg_size == 0) {
    throw ConfigError(
        "workload.msg_size=0 leaves workload.op=write with workload.pattern=latency no byte that "
        "the peer could poll (valid: 1 B or more)");
  }
  if (workload.op == Op::kSendImm && config.transport.protocol == Protocol::kIwarp) {
    throw ConfigError(
        "workload.op=send_imm does not exist with transport.protocol=iwarp (RFC 7306 has immediate "
        "data behind a WRITE only; valid: write|write_imm|read|send|atomic_cas|atomic_fadd)");
  }
}

}  // namespace rnic::config

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/checks.h"
#include "config/fault_list.h"

/// What would be without effect though the experiment is about it: refused, not passed over.
namespace rnic::config {
namespace {

bool is_program(const Config& config) { return config.workload.program != Program::kNone; }

void check_recovery(const Config& config) {
  const TransportConfig& transport = config.transport;
  const bool acknowledged = transport.type == TransportType::kRc;
  const bool iwarp = transport.protocol == Protocol::kIwarp;
  if (!acknowledged && transport.recovery == Recovery::kSelectiveRepeat) {
    throw ConfigError(
        "transport.recovery=selective_repeat needs transport.type=rc: nobody sends again what is "
        "lost of uc and ud");
  }
  if (transport.window == 0 || (acknowledged && !iwarp)) return;
  throw ConfigError(equals("transport.window", transport.window) +
                    (iwarp
                         ? " is of InfiniBand and RoCE; TCP has windows of its own (remedy: "
                           "tcp.window)"
                         : " needs transport.type=rc: nothing acknowledges packets of uc and ud"));
}

/// Why frames of `kind` never pass in this run; empty when they may.
std::string why_never(FrameKind kind, const Config& config) {
  const TransportConfig& transport = config.transport;
  const bool iwarp = transport.protocol == Protocol::kIwarp;
  switch (kind) {
    case FrameKind::kConnection:
      return iwarp ? "" : "transport.protocol=iwarp (others set connections up out of band)";
    case FrameKind::kCnp: {
      const bool marks = transport.protocol == Protocol::kRoceV2 && transport.ecn != 0;
      return marks ? "" : "transport.protocol=rocev2 and transport.ecn=1 or 2";
    }
    case FrameKind::kAck:
      return transport.type == TransportType::kRc ? "" : "transport.type=rc";
    case FrameKind::kNak:
    case FrameKind::kRnr:
      return transport.type == TransportType::kRc && !iwarp
                 ? ""
                 : "transport.type=rc of InfiniBand or RoCE";
    case FrameKind::kResponse:
      return is_program(config) || returns_data(config.workload.op)
                 ? ""
                 : "workload.op=read or an atomic one";
    default:
      return {};
  }
}

void check_list(const char* key, const std::vector<FaultTarget>& list, const Config& config) {
  for (const FaultTarget& target : list) {
    const std::string needs = why_never(target.kind, config);
    if (needs.empty()) continue;
    throw ConfigError(std::string(key) + "=" + fault_list_text({target}) +
                      " names a frame that never comes: that kind needs " + needs);
  }
}

/// Faults of frames that do not exist.
void check_faults(const Config& config) {
  const LinkConfig& link = config.link;
  check_list("link.drop_list", link.drop_list, config);
  check_list("link.corrupt_list", link.corrupt_list, config);
  check_list("link.duplicate_list", link.duplicate_list, config);
  check_list("link.reorder_list", link.reorder_list, config);
  const bool rates = link.loss_rate + link.corrupt_rate + link.duplicate_rate + link.reorder_rate +
                         link.burst_rate >
                     0;
  if (!rates) return;
  if (link.fault_frames.empty()) {
    throw ConfigError(
        "link.fault_frames=none leaves the rates of faults nothing to strike (remedy: name kinds "
        "of frames, or leave out link.*_rate)");
  }
  std::string needs;
  const FrameKinds named = kinds_named(link.fault_frames);
  for (std::size_t i = 0; i < kFrameKinds; ++i) {
    const auto kind = static_cast<FrameKind>(i);
    if ((named & kinds(kind)) == 0) continue;
    needs = why_never(kind, config);
    // That rates of responses do not touch other operations is an experiment, too.
    if (needs.empty() || kind == FrameKind::kResponse) return;
  }
  if (needs.empty()) return;
  throw ConfigError(
      "link.fault_frames names only frames that never come, so that the rates of faults strike "
      "nothing: they need " +
      needs);
}

/// Whether a message may come late or twice.
bool disturbs(const Config& config) {
  const LinkConfig& link = config.link;
  const Time limit = config.workload.answer_timeout;
  return loses_packets(config) || link.duplicate_rate > 0 || !link.duplicate_list.empty() ||
         (limit > kTimeZero && limit < automatic_answer_timeout(config));
}

/// A ping-pong that nobody acknowledges tells its messages apart by the number of their turn.
void check_turn_numbers(const Config& config) {
  const WorkloadConfig& w = config.workload;
  if (config.transport.type == TransportType::kRc || is_program(config) ||
      w.pattern != Pattern::kLatency || is_dma(w.op)) {
    return;
  }
  const bool immediate = w.op == Op::kSendImm || w.op == Op::kWriteImm;
  const bool has_bytes = config.sim.payload == PayloadMode::kBytes && w.msg_size > 0;
  if (immediate || has_bytes || !disturbs(config)) return;
  throw ConfigError(
      std::string(w.msg_size == 0 ? "workload.msg_size=0" : "sim.payload=none") +
      " leaves a ping-pong over uc or ud no room for the number of its turn, without which a late "
      "or second answer is taken for the next one (remedy: sim.payload=bytes and 1 B or more, or "
      "workload.op=send_imm" +
      (config.transport.type == TransportType::kUc ? "|write_imm)" : ")"));
}

/// Datagrams that do not fit the links vanish, and a program waits for them.
void check_program_frames(const Config& config) {
  if (!is_program(config) || config.transport.type == TransportType::kRc || config.link.mtu == 0) {
    return;
  }
  constexpr std::uint64_t kHeaders = 96;  // as Linux sets aside (ib_addr.h)
  const std::uint64_t packet =
      std::min<std::uint64_t>(config.workload.msg_size, config.transport.mtu) + kHeaders;
  if (packet <= config.link.mtu) return;
  throw ConfigError("packets of " + equals("workload.msg_size", config.workload.msg_size) +
                    " do not fit " + equals("link.mtu", config.link.mtu) +
                    " with their headers, and workload.program would wait for ever for what is "
                    "dropped (remedy: transport.mtu=auto)");
}

}  // namespace

bool loses_packets(const Config& config) {
  const LinkConfig& link = config.link;
  return link.loss_rate + link.corrupt_rate + link.burst_rate + link.reorder_rate +
                 config.network_switch.corrupt_rate >
             0 ||
         (link.paths > 1 && link.path_choice == PathChoice::kSpray) || !link.drop_list.empty() ||
         !link.corrupt_list.empty() || !link.reorder_list.empty() || link.down_time > kTimeZero ||
         config.fabric.silent_host != kNoHost;
}

void check_silent(const Config& config) {
  if (is_dma(config.workload.op)) return;
  check_recovery(config);
  check_faults(config);
  check_turn_numbers(config);
  check_program_frames(config);
}

}  // namespace rnic::config

// SPDX-License-Identifier: Apache-2.0
#include "simulation/host_groups.h"

#include <algorithm>
#include <bitset>

#include "base/bit_rate.h"
#include "base/timelines.h"
#include "simulation/surprises.h"
#include "simulation/system.h"

namespace rnic::testbench {
namespace {

// How far the clocks of two groups may come apart: what a turn needs from memory should be little
// beside what it does.
constexpr Time kMostReach = microseconds(2'000);
constexpr Time kLeastReach = microseconds(2);

/// Nothing that one pair of hosts does can change what another does.
bool independent(const config::Config& config) {
  const config::WorkloadConfig& w = config.workload;
  const bool pairs = w.traffic == config::Traffic::kPair && config.fabric.hosts >= 4 &&
                     config.fabric.topology == "single_switch" && config.nic.ports == 1 &&
                     config.nic.functions == 1;
  const bool streams = w.pattern == config::Pattern::kBandwidth && !config::is_dma(w.op) &&
                       w.program == config::Program::kNone && w.msg_size > 0 &&
                       w.probe_size == config::kNoProbe && w.reg_rate == 0;
  // Marks and damaged bits are drawn by one generator for the whole switch.
  const bool own_chances = config.transport.ecn == 0 && !surprises(config);
  return pairs && streams && own_chances;
}

/// Who watches messages, or frames, sees those of all hosts in the order of time.
bool watched(const config::Config& config) {
  return config.sim.detail != config::SimDetail::kFull || !config.output.traces.empty();
}

/// What the ports may hold at most fits into the switch's buffer: it is never full for anybody.
bool buffer_suffices(const network::Switch& fabric, const config::Config& config) {
  const link::LinkPortConfig& port = fabric.port(0).config();
  // Fed by one port of the same rate, a port without flow control holds a frame or two.
  if (port.flow_control == config::FlowControl::kNone) return true;
  const std::size_t lanes = std::bitset<32>(port.used_lanes).count();
  return port.rx_buffer * lanes * fabric.ports() <= config.network_switch.buffer;
}

/// All streams run, and all are in their warm-up or all amid what is measured.
bool amid(const Measurement& m) {
  const bool warming_up = m.programs_ready == m.programs_total && m.flows_warm == 0;
  const bool measured = m.flows_warm == m.flows_total;
  return (warming_up || measured) && m.flows_done == 0 && m.common_end == kTimeNever;
}

/// How far timelines may come apart now: no stream ends, or is warm, before it has carried what is
/// left of it until then, and twice that time is kept.
Time reach(const System& system) {
  if (!amid(system.measurement)) return kTimeZero;
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto& flow : system.flows) least = std::min(least, flow->least_left());
  const BitRate rate = system.config().link.rate;
  const auto enough = static_cast<std::uint64_t>(2 * kMostReach / rate.time_for(1));
  const Time half = least >= enough ? kMostReach : rate.time_for(least) / 2;
  return half < kLeastReach ? kTimeZero : std::min(half, kMostReach);
}

}  // namespace

HostGroups::HostGroups(const config::Config& config)
    : hosts_in_each_(independent(config) ? 2 : config.fabric.hosts),
      timelines_{&Timeline::instance()} {
  while (timelines_.size() * hosts_in_each_ < config.fabric.hosts) {
    timelines_.push_back(&Timelines::instance().add());
  }
}

void HostGroups::run_apart(const System& system) const {
  if (!several() || system.config().sim.host_groups == config::HostGroups::kTogether ||
      watched(system.config()) || !buffer_suffices(*system.fabric_switch, system.config())) {
    return;
  }
  Timelines::instance().set_apart([&system](Time present) { return present + reach(system); });
}

}  // namespace rnic::testbench

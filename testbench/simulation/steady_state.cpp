// SPDX-License-Identifier: Apache-2.0
#include "simulation/steady_state.h"

#include <algorithm>
#include <cmath>

#include "base/event_queue.h"
#include "base/timelines.h"
#include "simulation/collect.h"
#include "simulation/surprises.h"

namespace rnic::testbench {
namespace {

constexpr std::size_t kFirstSearch = 24;  ///< completions before a period is looked for
constexpr std::size_t kMostMarks = 16384;
constexpr std::size_t kAlikePeriods = 3;
constexpr std::size_t kLongestPeriod = 2048;  ///< completions; nothing is saved by longer ones

/// `now` + what `times` periods like the one from `before` to `after` add.
std::uint64_t later(std::uint64_t now, std::uint64_t before, std::uint64_t after,
                    std::uint64_t times) {
  return now + times * (after - before);
}

Time later(Time now, Time before, Time after, std::uint64_t times) {
  return now + static_cast<std::int64_t>(times) * (after - before);
}

/// A figure that is a share or mean over a window, and the windows it is over.
struct Windows {
  Time now;
  Time before;
  Time after;
  std::uint64_t times;

  double later(double share, double share_before, double share_after) const {
    const auto ps = [](Time t) { return static_cast<double>(t.count()); };
    const double in_period = share_after * ps(after) - share_before * ps(before);
    const auto n = static_cast<double>(times);
    return (share * ps(now) + n * in_period) / (ps(now) + n * ps(after - before));
  }
};

bool same_amount(double a, double b, double c) {
  constexpr double kRounding = 1e-9;
  return std::abs((c - b) - (b - a)) <= kRounding * std::max({1.0, std::abs(a), std::abs(c)});
}

bool same_amount(std::uint64_t a, std::uint64_t b, std::uint64_t c) { return c - b == b - a; }

/// Walks over the figures of three results side by side; `counter` or `share` is called with
/// references to each.
template <typename R, typename Share>
void visit_units(R& x, const Result& y, const Result& z, Share&& share) {
  for (std::size_t i = 0; i < x.units.size(); ++i) {
    share(x.units[i].utilization, y.units[i].utilization, z.units[i].utilization);
    share(x.units[i].occupancy_mean, y.units[i].occupancy_mean, z.units[i].occupancy_mean);
    for (std::size_t cause = 0; cause < x.units[i].stalled.size(); ++cause) {
      share(x.units[i].stalled[cause], y.units[i].stalled[cause], z.units[i].stalled[cause]);
    }
  }
  for (std::size_t i = 0; i < x.hosts.size(); ++i) {
    share(x.hosts[i].cpu_busy, y.hosts[i].cpu_busy, z.hosts[i].cpu_busy);
    share(x.hosts[i].cpu_polling, y.hosts[i].cpu_polling, z.hosts[i].cpu_polling);
    share(x.hosts[i].cpu_locks, y.hosts[i].cpu_locks, z.hosts[i].cpu_locks);
    for (std::size_t hold = 0; hold < x.hosts[i].held.size(); ++hold) {
      share(x.hosts[i].held[hold], y.hosts[i].held[hold], z.hosts[i].held[hold]);
    }
  }
}

template <typename R, typename Counter>
void visit_pcie(R& x, const Result& y, const Result& z, Counter&& counter) {
  const auto tlps = [&](auto& a, const TlpResult& b, const TlpResult& c) {
    counter(a.tlps, b.tlps, c.tlps);
    counter(a.payload_bytes, b.payload_bytes, c.payload_bytes);
    counter(a.wire_bytes, b.wire_bytes, c.wire_bytes);
  };
  const auto direction = [&](auto& a, const PcieDirectionResult& b, const PcieDirectionResult& c) {
    tlps(a.total, b.total, c.total);
    for (std::size_t p = 0; p < a.by_purpose.size(); ++p) {
      tlps(a.by_purpose[p], b.by_purpose[p], c.by_purpose[p]);
    }
    counter(a.replays, b.replays, c.replays);
  };
  for (std::size_t i = 0; i < x.pcie.size(); ++i) {
    direction(x.pcie[i].to_host, y.pcie[i].to_host, z.pcie[i].to_host);
    direction(x.pcie[i].to_device, y.pcie[i].to_device, z.pcie[i].to_device);
  }
}

template <typename R, typename Counter>
void visit_counters(R& x, const Result& y, const Result& z, Counter&& counter) {
  const auto named = [&](auto& a, const NamedCounts& b, const NamedCounts& c) {
    for (std::size_t i = 0; i < a.size(); ++i) counter(a[i].second, b[i].second, c[i].second);
  };
  for (std::size_t i = 0; i < x.caches.size(); ++i) {
    counter(x.caches[i].hits, y.caches[i].hits, z.caches[i].hits);
    counter(x.caches[i].misses, y.caches[i].misses, z.caches[i].misses);
    counter(x.caches[i].joined, y.caches[i].joined, z.caches[i].joined);
  }
  for (std::size_t i = 0; i < x.links.size(); ++i) {
    counter(x.links[i].packets, y.links[i].packets, z.links[i].packets);
    counter(x.links[i].payload_bytes, y.links[i].payload_bytes, z.links[i].payload_bytes);
    counter(x.links[i].wire_bytes, y.links[i].wire_bytes, z.links[i].wire_bytes);
    counter(x.links[i].dropped, y.links[i].dropped, z.links[i].dropped);
    named(x.links[i].more, y.links[i].more, z.links[i].more);
    named(x.links[i].lanes, y.links[i].lanes, z.links[i].lanes);
  }
  for (std::size_t i = 0; i < x.counters.size(); ++i) {
    named(x.counters[i], y.counters[i], z.counters[i]);
  }
  for (std::size_t i = 0; i < x.hosts.size(); ++i) {
    counter(x.hosts[i].copies_bytes, y.hosts[i].copies_bytes, z.hosts[i].copies_bytes);
    counter(x.hosts[i].syscalls, y.hosts[i].syscalls, z.hosts[i].syscalls);
    counter(x.hosts[i].interrupts, y.hosts[i].interrupts, z.hosts[i].interrupts);
  }
  counter(x.sim.data_packets, y.sim.data_packets, z.sim.data_packets);
}

/// A share of a window as an amount.
double amount(double share, Time window) { return share * static_cast<double>(window.count()); }

bool same_figures(const Result& a, const Result& b, const Result& c) {
  bool same = true;
  const auto counter = [&same](std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    same = same && same_amount(x, y, z);
  };
  const auto share = [&](double x, double y, double z) {
    same = same && same_amount(amount(x, a.window), amount(y, b.window), amount(z, c.window));
  };
  visit_units(a, b, c, share);
  visit_pcie(a, b, c, counter);
  visit_counters(a, b, c, counter);
  for (std::size_t i = 0; i < a.links.size(); ++i) {
    same = same && c.links[i].paused - b.links[i].paused == b.links[i].paused - a.links[i].paused;
  }
  return same;
}

}  // namespace

SteadyState::SteadyState(System& system) : system_(system), next_search_(kFirstSearch) {}

bool SteadyState::possible(const config::Config& config) {
  const config::WorkloadConfig& w = config.workload;
  return w.pattern == config::Pattern::kBandwidth && w.program == config::Program::kNone &&
         !config::is_dma(w.op) &&
         config.transport.congestion_control == config::RoceCongestion::kNone &&
         config.transport.type == config::TransportType::kRc && config.output.traces.empty() &&
         w.probe_size == config::kNoProbe && !surprises(config);
}

void SteadyState::message_completed(const FlowMeasurement& flow, std::uint32_t qp, Time latency,
                                    Time now) {
  if (over_) return;
  if (!measuring_) {
    measuring_ = std::all_of(system_.flows.begin(), system_.flows.end(),
                             [](const auto& each) { return each->measuring(); });
    if (!measuring_) return;
  }
  const std::uint64_t events = ModelEvents::count();
  marks_.push_back({&flow, qp, now - last_at_, latency, events - last_events_});
  last_at_ = now;
  last_events_ = events;
  if (period_ == 0) {
    search();
    return;
  }
  const std::size_t last = marks_.size() - 1;
  if (!(marks_[last] == marks_[last - period_])) {  // it only looked like a period
    period_ = 0;
    snapshots_.clear();
    next_search_ = marks_.size() + marks_.size() / 4;
    return;
  }
  if (marks_.size() == looked_at_ + period_) compare();
}

std::size_t SteadyState::find_period() const {
  const std::size_t size = marks_.size();
  for (std::size_t period = 1; 2 * period <= size; ++period) {
    // Short patterns repeat a few times within longer ones: half of what was seen must be alike.
    const std::size_t alike = std::max(period, size / 2);
    if (alike + period > size) break;
    const auto end = marks_.rbegin() + static_cast<std::ptrdiff_t>(alike);
    if (std::equal(marks_.rbegin(), end, marks_.rbegin() + static_cast<std::ptrdiff_t>(period))) {
      return period;
    }
  }
  return 0;
}

void SteadyState::search() {
  if (marks_.size() < next_search_) return;
  next_search_ = marks_.size() + marks_.size() / 4;
  over_ = marks_.size() > kMostMarks;
  period_ = find_period();
  if (period_ == 0) return;
  looked_at_ = marks_.size();
  snapshots_ = {look()};
}

SteadyState::Snapshot SteadyState::look() const {
  Snapshot now;
  now.at = sim_now();
  collect_figures(system_, now.at, now.figures);
  now.figures.window = now.at - system_.window_start();
  now.breakdown = system_.measurement.breakdown;
  now.completions = system_.measurement.completions;
  for (const auto& flow : system_.flows) {
    now.flows.push_back(flow->progress());
    for (const FlowMeasurement& measured : flow->measured()) {
      now.latencies.push_back(measured.latency);
    }
  }
  // Timers of the far future are set again lazily, when they ring; they are no part of the stream.
  const Time near = marks_.back().since;
  for (const Time instant : Timelines::instance().pending()) {
    if (instant < near) now.pending.push_back(instant);
  }
  return now;
}

bool SteadyState::alike(const Snapshot& a, const Snapshot& b, const Snapshot& c) {
  if (c.at - b.at != b.at - a.at || c.pending != b.pending) return false;
  for (std::size_t flow = 0; flow < c.flows.size(); ++flow) {
    const FlowProgress& x = a.flows[flow];
    const FlowProgress& y = b.flows[flow];
    const FlowProgress& z = c.flows[flow];
    for (std::size_t qp = 0; qp < z.qps.size(); ++qp) {
      // What is used for the first time misses all caches, period by period, and then no more.
      if (x.qps[qp].done < x.qps[qp].lap) return false;
      if (!same_amount(x.qps[qp].posted, y.qps[qp].posted, z.qps[qp].posted) ||
          !same_amount(x.qps[qp].done, y.qps[qp].done, z.qps[qp].done) ||
          z.qps[qp].posted - y.qps[qp].posted != z.qps[qp].done - y.qps[qp].done) {
        return false;
      }
    }
    for (std::size_t i = 0; i < z.delivered.size(); ++i) {
      if (!same_amount(x.delivered[i], y.delivered[i], z.delivered[i])) return false;
    }
  }
  return same_figures(a.figures, b.figures, c.figures);
}

void SteadyState::compare() {
  looked_at_ = marks_.size();
  snapshots_.push_back(look());
  if (snapshots_.size() < kAlikePeriods) return;
  if (alike(snapshots_[0], snapshots_[1], snapshots_[2])) {
    replay();
    return;
  }
  // What is counted may take several of the shortest periods to repeat (the laps of a ring).
  period_ *= 2;
  over_ = period_ > kLongestPeriod || marks_.size() > kMostMarks;
  snapshots_ = {std::move(snapshots_[2])};
}

void SteadyState::replay() {
  over_ = true;
  const Snapshot& before = snapshots_[1];
  const Snapshot& after = snapshots_[2];
  periods_ = ~std::uint64_t{0};
  for (std::size_t flow = 0; flow < after.flows.size(); ++flow) {
    for (std::size_t qp = 0; qp < after.flows[flow].qps.size(); ++qp) {
      const FlowProgress::Qp& now = after.flows[flow].qps[qp];
      const std::uint64_t each = now.posted - before.flows[flow].qps[qp].posted;
      if (each > 0) periods_ = std::min(periods_, (now.quota - now.posted) / each);
      if (each == 0 && now.quota > now.posted) periods_ = 0;
    }
  }
  for (std::size_t flow = 0; flow < after.flows.size() && periods_ > 0; ++flow) {
    std::vector<std::uint64_t> less;
    for (std::size_t qp = 0; qp < after.flows[flow].qps.size(); ++qp) {
      less.push_back(periods_ *
                     (after.flows[flow].qps[qp].posted - before.flows[flow].qps[qp].posted));
      replayed_ += less.back();
    }
    system_.flows[flow]->shorten(less);
  }
}

void SteadyState::extend_measurements() {
  if (replayed_ == 0) return;
  const Snapshot& before = snapshots_[1];
  const Snapshot& after = snapshots_[2];
  std::size_t direction = 0;
  for (std::size_t flow = 0; flow < system_.flows.size(); ++flow) {
    std::vector<FlowMeasurement>& measured = system_.flows[flow]->measured();
    for (std::size_t i = 0; i < measured.size(); ++i, ++direction) {
      FlowMeasurement& m = measured[i];
      const FlowProgress& a = before.flows[flow];
      const FlowProgress& b = after.flows[flow];
      m.bytes = later(m.bytes, a.delivered[i], b.delivered[i], periods_);
      m.messages = later(m.messages, a.completed[i], b.completed[i], periods_);
      m.common_bytes = later(m.common_bytes, a.delivered[i], b.delivered[i], periods_);
      m.whole_bytes = later(m.whole_bytes, a.delivered[i], b.delivered[i], periods_);
      m.whole_messages += static_cast<double>(periods_ * (b.completed[i] - a.completed[i]));
      m.common_messages += static_cast<double>(periods_ * (b.completed[i] - a.completed[i]));
      m.window_end = later(m.window_end, before.at, after.at, periods_);
      m.latency.repeat(before.latencies[direction], after.latencies[direction], periods_);
    }
  }
  Measurement& all = system_.measurement;
  if (all.common_end != kTimeNever) {
    all.common_end = later(all.common_end, before.at, after.at, periods_);
  }
  all.breakdown.repeat(before.breakdown, after.breakdown, periods_);
  for (std::size_t i = 0; i < all.completions.size(); ++i) {
    all.completions[i] =
        later(all.completions[i], before.completions[i], after.completions[i], periods_);
  }
}

void SteadyState::extend(Result& result, Time window) const {
  if (replayed_ == 0) return;
  const Snapshot& before = snapshots_[1];
  const Snapshot& after = snapshots_[2];
  const Windows windows{window, before.figures.window, after.figures.window, periods_};
  const auto counter = [this](std::uint64_t& now, std::uint64_t a, std::uint64_t b) {
    now = later(now, a, b, periods_);
  };
  const auto share = [&windows](double& now, double a, double b) {
    now = windows.later(now, a, b);
  };
  visit_units(result, before.figures, after.figures, share);
  visit_pcie(result, before.figures, after.figures, counter);
  visit_counters(result, before.figures, after.figures, counter);
  for (std::size_t i = 0; i < result.links.size(); ++i) {
    result.links[i].paused = later(result.links[i].paused, before.figures.links[i].paused,
                                   after.figures.links[i].paused, periods_);
  }
  result.sim.simulated = later(result.sim.simulated, before.at, after.at, periods_);
  result.sim.replayed_messages = replayed_;
}

}  // namespace rnic::testbench

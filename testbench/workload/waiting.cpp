// SPDX-License-Identifier: Apache-2.0
#include "workload/waiting.h"

#include <algorithm>

#include "base/sc_time.h"

namespace rnic::testbench {
namespace {

/// How a thread looks: each look takes `cost`, and it sleeps in between.
struct Looks {
  Time interval;
  Time cost;
};

/// Looks until something is `ready`, which a write to `spot` tells; false at the first look behind
/// `deadline`. Looks that cannot find anything, because nobody has written, are arithmetic and no
/// events. (Statistics that start anew between two writes leave out the looks in between.)
template <typename Ready>
bool look_at_intervals(host::Core& core, host::PollSpot& spot, const Looks& how, Ready ready,
                       Time deadline) {
  const Time period = how.interval + how.cost;
  core.spend(how.cost);
  core.sync();
  while (!ready()) {
    const Time last = sim_now();
    if (last >= deadline) return false;
    const Time busy = core.busy();
    host::Core nobody;  // the wait itself costs no core anything
    spot.spin(nobody, kTimeZero, spot.writes(), deadline);
    const std::int64_t passed = (sim_now() - last + period - picoseconds(1)) / period;
    const std::int64_t looks = std::max<std::int64_t>(1, passed);
    core.idle(last + looks * period - sim_now());
    if (core.busy() >= busy) core.add_stall(looks * how.cost);
  }
  return true;
}

}  // namespace

Waiting::Waiting(host::Host& host, host::Core& core, const config::Config& config,
                 const std::string& stream)
    : host_(host), core_(core), config_(config), rng_(config.sim.seed, stream) {}

host::verbs::CompletionChannel* Waiting::channel() {
  if (config_.workload.completion == config::Completion::kPoll) return nullptr;
  if (channel_ == nullptr) channel_ = host_.verbs.create_comp_channel();
  return channel_;
}

void Waiting::pause(Time duration) {
  if (duration == kTimeZero) return;
  core_.idle(duration);
}

bool Waiting::wait(host::verbs::CompletionQueue& cq, Time deadline) {
  if (channel_ != nullptr) return wait_for_event(cq, deadline);
  if (config_.workload.poll_interval > kTimeZero) {
    return look_at_intervals(
        core_, cq.written, {config_.workload.poll_interval, config_.cpu.poll_cost},
        [&] { return cq.failed || host_.verbs.has_completion(cq); }, deadline);
  }
  const bool there = host_.verbs.wait_cq(core_, cq, deadline);
  maybe_preempted();
  return there;
}

bool Waiting::wait(host::PollSpot& spot, std::uint64_t seen, Time deadline) {
  if (config_.workload.poll_interval > kTimeZero) {
    return look_at_intervals(
        core_, spot, {config_.workload.poll_interval, config_.cpu.poll_cost},
        [&] { return spot.writes() > seen; }, deadline);
  }
  const bool there = spot.spin(core_, config_.cpu.poll_cost, seen, deadline);
  maybe_preempted();
  return there;
}

bool Waiting::wait_for_event(host::verbs::CompletionQueue& cq, Time deadline) {
  const bool solicited = &cq == solicited_;
  // Completions between the last poll and the arming raise no event, so look once more.
  host_.verbs.req_notify_cq(core_, cq, solicited);
  core_.spend(config_.cpu.poll_cost);
  core_.sync();
  while (!host_.verbs.has_completion(cq) && !cq.failed) {
    host::verbs::CompletionQueue* signalled = host_.verbs.get_cq_event(core_, *channel_, deadline);
    if (signalled == nullptr) return host_.verbs.has_completion(cq);
    host_.verbs.ack_cq_events(*signalled, 1);
    // An event of an earlier arming, whose completions have been polled, or of another queue.
    if (host_.verbs.has_completion(cq) || cq.failed) return true;
    host_.verbs.req_notify_cq(core_, cq, solicited);
    core_.sync();
  }
  return true;
}

void Waiting::maybe_preempted() {
  const double probability = config_.cpu.preempt_probability;
  if (probability > 0 && rng_.uniform() < probability) pause(config_.cpu.preempt_time);
}

}  // namespace rnic::testbench

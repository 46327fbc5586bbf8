// SPDX-License-Identifier: Apache-2.0
#include "workload/waiting.h"

#include "base/sc_time.h"

namespace rnic::testbench {

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
    return look_at_intervals([&] { return cq.failed || host_.verbs.has_completion(cq); }, deadline);
  }
  const bool there = host_.verbs.wait_cq(core_, cq, deadline);
  maybe_preempted();
  return there;
}

bool Waiting::wait(host::PollSpot& spot, std::uint64_t seen, Time deadline) {
  if (config_.workload.poll_interval > kTimeZero) {
    return look_at_intervals([&] { return spot.writes() > seen; }, deadline);
  }
  const bool there = spot.spin(core_, config_.cpu.poll_cost, seen, deadline);
  maybe_preempted();
  return there;
}

template <typename Ready>
bool Waiting::look_at_intervals(Ready ready, Time deadline) {
  while (true) {
    core_.spend(config_.cpu.poll_cost);
    core_.sync();
    if (ready()) return true;
    if (sim_now() >= deadline) return false;
    pause(config_.workload.poll_interval);
  }
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

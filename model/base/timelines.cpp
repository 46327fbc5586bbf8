// SPDX-License-Identifier: Apache-2.0
#include "base/timelines.h"

#include <algorithm>

#include "base/sc_time.h"

namespace rnic {

Timelines& Timelines::instance() {
  // Lives as long as the simulation context, of which a process has one; its process and event
  // must not be destroyed after the kernel's own statics.
  static auto* timelines = new Timelines;
  return *timelines;
}

Timelines::Timelines() {
  building_ = &add();
  sc_core::sc_spawn_options options;
  options.spawn_method();
  options.dont_initialize();
  options.set_sensitivity(&event_);
  sc_core::sc_spawn([this] { run(); }, "timeline", &options);
}

Timeline& Timelines::add() {
  timelines_.emplace_back(new Timeline(timelines_.size()));
  return *timelines_.back();
}

Timelines::Scope::Scope(Timeline& timeline) : before_(Timelines::instance().building_) {
  Timelines::instance().building_ = &timeline;
}

Timelines::Scope::~Scope() { Timelines::instance().building_ = before_; }

std::uint64_t Timelines::fired() const {
  std::uint64_t all = 0;
  for (const auto& timeline : timelines_) all += timeline->fired_;
  return all;
}

void Timelines::reset_fired() {
  for (const auto& timeline : timelines_) timeline->fired_ = 0;
}

std::vector<Time> Timelines::pending() const {
  std::vector<Time> all;
  for (const auto& timeline : timelines_) {
    const std::vector<Time> some = timeline->pending();
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

void Timelines::arm(Time at) {
  if (at >= armed_) return;
  armed_ = at;
  event_.notify(to_sc_time(at - Timeline::kernel_now()));
}

Time Timelines::limit(Time present) const {
  if (horizon_ <= present) return present;
  // The kernel answers "never" with a time beyond what Time holds.
  const sc_core::sc_time pending =
      sc_core::sc_time_to_pending_activity(sc_core::sc_get_curr_simcontext());
  const Time room = horizon_ - present;
  return pending > to_sc_time(room) ? horizon_ : present + from_sc_time(pending);
}

/// The one with the earliest instant, of several the one that was added first; null: nothing is to
/// come. `but`: one that does not count.
Timeline* Timelines::earliest(const Timeline* but) const {
  Timeline* first = nullptr;
  for (const auto& timeline : timelines_) {
    if (timeline.get() == but || timeline->empty()) continue;
    if (first == nullptr || timeline->front() < first->front()) first = timeline.get();
  }
  return first;
}

/// Runs `first` until another timeline is earlier, or beyond `last`, which a program that is woken
/// brings nearer.
void Timelines::run_first(Timeline& first, Time present, Time& last) {
  const Timeline* second = earliest(&first);
  Timeline::running_ = &first;
  do {
    first.fire_first();
    if (Timeline::kernel_touched_) {
      Timeline::kernel_touched_ = false;
      last = limit(present);
    }
  } while (first.due(last) && (second == nullptr || first.comes_before(*second)));
}

void Timelines::run_in_order(Time present) {
  Time last = limit(present);
  for (Timeline* first = earliest(); first != nullptr && first->due(last); first = earliest()) {
    run_first(*first, present, last);
  }
}

bool Timelines::may_run_apart(Time present) {
  if (!apart_) return false;
  if (present >= apart_until_ && present >= ask_again_) {
    constexpr Time kPatience = nanoseconds(2'000);
    apart_until_ = std::min(apart_(present), limit(present));  // nothing else waits for the kernel
    ask_again_ = present + kPatience;
  }
  return present < apart_until_;
}

/// How far the kernel is behind what a source notifies it of.
Time Timelines::kernel_delay() const {
  const Time present = Timeline::kernel_now();
  const bool apart = present < apart_until_;  // programs wake up while its time stands still
  return Timeline::running_ == nullptr || apart ? kTimeZero : Timeline::now_ - present;
}

/// The timelines in turn, each as far as all may go; whenever a source wakes a program, the kernel
/// runs that before the turn goes on.
void Timelines::run_apart(Time present) {
  if (sc_core::sc_pending_activity_at_current_time(sc_core::sc_get_curr_simcontext())) {
    event_.notify(sc_core::SC_ZERO_TIME);
    return;
  }
  Timeline::ahead_of_kernel_ = true;
  for (; turn_ < timelines_.size(); ++turn_) {
    Timeline::running_ = timelines_[turn_].get();
    const bool woken = timelines_[turn_]->run_apart(apart_until_);
    Timeline::running_ = nullptr;
    if (woken) {
      event_.notify(sc_core::SC_ZERO_TIME);
      return;
    }
    Timeline::now_ = present;
  }
  turn_ = 0;
  Timeline::ahead_of_kernel_ = false;
  arm(apart_until_);
}

void Timelines::run() {
  ++kernel_calls_;
  armed_ = kTimeNever;
  const Time present = Timeline::kernel_now();
  Timeline::kernel_touched_ = false;
  if (may_run_apart(present)) {
    if (!Timeline::ahead_of_kernel_) Timeline::now_ = present;
    run_apart(present);
    return;
  }
  Timeline::now_ = present;
  Timeline::ahead_of_kernel_ = true;
  run_in_order(present);
  Timeline::ahead_of_kernel_ = false;
  Timeline::running_ = nullptr;
  if (const Timeline* first = earliest()) arm(std::max(first->front(), present));
}

}  // namespace rnic

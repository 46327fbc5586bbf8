// SPDX-License-Identifier: Apache-2.0
#include "base/timeline.h"

#include <algorithm>

#include "base/error.h"
#include "base/sc_time.h"
#include "base/timelines.h"

namespace rnic {

/// Wakes a program that sleeps.
class AlarmClock : public Timeline::Source {
 public:
  void sleep() {
    while (!rung_) sc_core::wait(ring_);
  }

 private:
  void fire(Time /*now*/) override {
    rung_ = true;
    Timeline::notify(ring_);
  }

  sc_core::sc_event ring_;
  bool rung_ = false;
};

Timeline* Timeline::running_ = nullptr;
bool Timeline::ahead_of_kernel_ = false;
bool Timeline::kernel_touched_ = false;
Time Timeline::now_{0};
std::uint64_t Timeline::next_sequence_ = 0;

Timeline& Timeline::instance() { return *Timelines::instance().building_; }

Time Timeline::kernel_now() { return from_sc_time(sc_core::sc_time_stamp()); }

void Timeline::place(const Slot& slot, std::size_t at) {
  far_[at] = slot;
  slot.source->place_ = at;
}

void Timeline::sift_up(std::size_t at) {
  const Slot slot = far_[at];
  while (at > 0) {
    const std::size_t parent = (at - 1) / 2;
    if (!slot.before(far_[parent])) break;
    place(far_[parent], at);
    at = parent;
  }
  place(slot, at);
}

void Timeline::sift_down(std::size_t at) {
  const Slot slot = far_[at];
  const std::size_t size = far_.size();
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size) child += static_cast<std::size_t>(far_[child + 1].before(far_[child]));
    if (!far_[child].before(slot)) break;
    place(far_[child], at);
    at = child;
  }
  place(slot, at);
}

/// `slot` is the newest of all.
void Timeline::add(const Slot& slot) {
  slot.source->at_ = slot.at;
  const bool room = near_count() < kNearMost;
  const bool is_near = !empty() && slot.at < near_[near_end_ - 1].at;
  if (is_near || (room && (far_.empty() || slot.at < far_.front().at))) {
    if (!room) add_far(near_[--near_end_]);  // the latest of them makes room
    add_near(slot);
  } else {
    add_far(slot);
  }
}

void Timeline::add_near(const Slot& slot) {
  if (near_end_ == kNearPlaces) close_up();
  std::size_t at = near_end_++;
  for (; at > near_begin_ && slot.at < near_[at - 1].at; --at) near_[at] = near_[at - 1];
  near_[at] = slot;
  slot.source->place_ = kNear;
}

void Timeline::close_up() {
  std::copy(near_.begin() + near_begin_, near_.begin() + near_end_, near_.begin());
  near_end_ = near_count();
  near_begin_ = 0;
}

void Timeline::add_far(const Slot& slot) {
  far_.push_back(slot);
  sift_up(far_.size() - 1);
}

void Timeline::remove_far(std::size_t at) {
  const Slot last = far_.back();
  far_.pop_back();
  if (at == far_.size()) return;
  place(last, at);
  sift_up(at);
  sift_down(last.source->place_);
}

/// Takes the next sources out of the heap when none is near.
void Timeline::refill() {
  constexpr std::size_t kAtOnce = kNearMost / 2;
  near_begin_ = near_end_ = 0;
  for (std::size_t left = std::min(kAtOnce, far_.size()); left > 0; --left) {
    near_[near_end_] = far_.front();
    near_[near_end_++].source->place_ = kNear;
    remove_far(0);
  }
}

void Timeline::remove(Source& source) {
  if (source.place_ == kNear) {
    auto* const end = near_.begin() + near_end_;
    auto* const at = std::find_if(near_.begin() + near_begin_, end,
                                  [&source](const Slot& slot) { return slot.source == &source; });
    std::move(at + 1, end, at);
    --near_end_;
    if (empty()) refill();
  } else {
    remove_far(source.place_);
  }
  source.place_ = kNowhere;
}

void Timeline::schedule(Source& source, Time at) {
  if (running_ != nullptr && running_ != this) {
    panic("timeline", "a unit acted on one that is simulated apart");
  }
  if (source.place_ != kNowhere) {
    if (at >= source.at_) return;
    remove(source);
  }
  add({at, next_sequence_++, &source});
  if (!ahead_of_kernel_) Timelines::instance().arm(front());
}

void Timeline::cancel(Source& source) {
  if (source.place_ != kNowhere) remove(source);
}

void Timeline::notify(sc_core::sc_event& event) {
  kernel_touched_ = true;
  event.notify(to_sc_time(Timelines::instance().kernel_delay()));
}

void Timeline::sleep(Time duration) {
  if (!Timelines::instance().several()) {
    sc_core::wait(to_sc_time(duration));
    return;
  }
  AlarmClock clock;
  schedule(clock, now() + duration);
  clock.sleep();
}

std::vector<Time> Timeline::pending() const {
  std::vector<Time> instants;
  instants.reserve(near_count() + far_.size());
  for (std::size_t i = near_begin_; i < near_end_; ++i) instants.push_back(near_[i].at - now());
  for (const Slot& slot : far_) instants.push_back(slot.at - now());
  std::sort(instants.begin(), instants.end());
  return instants;
}

void Timeline::fire_first() {
  Source* source = near_[near_begin_++].source;
  source->place_ = kNowhere;
  if (empty()) refill();
  now_ = std::max(now_, source->at_);
  ++fired_;
  source->fire(now_);
}

/// Fires sources up to and at `last`, or the instant at which one wakes a program; true if one did.
bool Timeline::run_apart(Time last) {
  bool woken = false;
  while (due(last)) {
    fire_first();
    if (kernel_touched_) {
      kernel_touched_ = false;
      woken = true;
      last = now_;
    }
  }
  return woken;
}

}  // namespace rnic

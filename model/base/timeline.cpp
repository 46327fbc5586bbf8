// SPDX-License-Identifier: Apache-2.0
#include "base/timeline.h"

#include <algorithm>

#include "base/sc_time.h"

namespace rnic {

bool Timeline::running_ = false;
bool Timeline::kernel_touched_ = false;
Time Timeline::now_{0};

Timeline& Timeline::instance() {
  // Lives as long as the simulation context, of which a process has one; its process and event
  // must not be destroyed after the kernel's own statics.
  static auto* timeline = new Timeline;
  return *timeline;
}

Timeline::Timeline() {
  sc_core::sc_spawn_options options;
  options.spawn_method();
  options.dont_initialize();
  options.set_sensitivity(&event_);
  sc_core::sc_spawn([this] { run(); }, "timeline", &options);
}

Time Timeline::kernel_now() { return from_sc_time(sc_core::sc_time_stamp()); }

void Timeline::place(const Slot& slot, std::size_t at) {
  heap_[at] = slot;
  slot.source->place_ = at;
}

void Timeline::sift_up(std::size_t at) {
  const Slot slot = heap_[at];
  while (at > 0) {
    const std::size_t parent = (at - 1) / 2;
    if (!slot.before(heap_[parent])) break;
    place(heap_[parent], at);
    at = parent;
  }
  place(slot, at);
}

void Timeline::sift_down(std::size_t at) {
  const Slot slot = heap_[at];
  const std::size_t size = heap_.size();
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(slot)) break;
    place(heap_[child], at);
    at = child;
  }
  place(slot, at);
}

void Timeline::remove(std::size_t at) {
  heap_[at].source->place_ = kNowhere;
  const Slot last = heap_.back();
  heap_.pop_back();
  if (at == heap_.size()) return;
  place(last, at);
  sift_up(at);
  sift_down(last.source->place_);
}

void Timeline::schedule(Source& source, Time at) {
  if (&source == firing_) {
    if (at >= source.again_at_) return;
    source.again_at_ = at;
    source.again_sequence_ = next_sequence_++;
    return;
  }
  if (source.place_ != kNowhere) {
    if (at >= source.at_) return;
    heap_[source.place_] = {at, next_sequence_++, &source};
  } else {
    source.place_ = heap_.size();
    heap_.push_back({at, next_sequence_++, &source});
  }
  source.at_ = at;
  sift_up(source.place_);
  if (!running_) arm(heap_.front().at);
}

void Timeline::cancel(Source& source) {
  if (&source == firing_) {
    source.again_at_ = kTimeNever;
  } else if (source.place_ != kNowhere) {
    remove(source.place_);
  }
}

void Timeline::arm(Time at) {
  if (at >= armed_) return;
  armed_ = at;
  event_.notify(to_sc_time(at - kernel_now()));
}

void Timeline::notify(sc_core::sc_event& event) {
  const Time ahead = running_ ? now_ - kernel_now() : kTimeZero;
  kernel_touched_ = true;
  event.notify(to_sc_time(ahead));
}

std::vector<Time> Timeline::pending() const {
  std::vector<Time> instants;
  instants.reserve(heap_.size());
  for (const Slot& slot : heap_) {
    if (slot.source != firing_) instants.push_back(slot.at - now());
  }
  std::sort(instants.begin(), instants.end());
  return instants;
}

Time Timeline::limit(Time kernel_present) const {
  if (horizon_ <= kernel_present) return kernel_present;
  // The kernel answers "never" with a time beyond what Time holds.
  const sc_core::sc_time pending =
      sc_core::sc_time_to_pending_activity(sc_core::sc_get_curr_simcontext());
  const Time room = horizon_ - kernel_present;
  return pending > to_sc_time(room) ? horizon_ : kernel_present + from_sc_time(pending);
}

void Timeline::fire_first() {
  // Most sources fire again soon: the first stays at the top of the heap, earlier than whatever is
  // scheduled meanwhile, and moves once, to its next instant.
  Source* source = heap_.front().source;
  now_ = std::max(now_, source->at_);
  ++fired_;
  firing_ = source;
  source->again_at_ = kTimeNever;
  source->fire(now_);
  firing_ = nullptr;
  if (source->again_at_ == kTimeNever) {
    remove(0);
    return;
  }
  source->at_ = source->again_at_;
  heap_.front() = {source->again_at_, source->again_sequence_, source};
  sift_down(0);
}

void Timeline::run() {
  ++kernel_calls_;
  armed_ = kTimeNever;
  const Time kernel_present = kernel_now();
  running_ = true;
  kernel_touched_ = false;
  now_ = kernel_present;
  Time last = limit(kernel_present);
  while (!heap_.empty() && heap_.front().at <= last) {
    fire_first();
    if (kernel_touched_) {
      kernel_touched_ = false;
      last = limit(kernel_present);
    }
  }
  running_ = false;
  if (!heap_.empty()) arm(std::max(heap_.front().at, kernel_present));
}

}  // namespace rnic

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

void Timeline::place(Source* source, std::size_t at) {
  heap_[at] = source;
  source->place_ = at;
}

void Timeline::sift_up(std::size_t at) {
  Source* source = heap_[at];
  while (at > 0) {
    const std::size_t parent = (at - 1) / 2;
    if (!earlier(*source, *heap_[parent])) break;
    place(heap_[parent], at);
    at = parent;
  }
  place(source, at);
}

void Timeline::sift_down(std::size_t at) {
  Source* source = heap_[at];
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && earlier(*heap_[child + 1], *heap_[child])) ++child;
    if (!earlier(*heap_[child], *source)) break;
    place(heap_[child], at);
    at = child;
  }
  place(source, at);
}

Timeline::Source* Timeline::pop() {
  Source* top = heap_.front();
  top->place_ = kNowhere;
  Source* last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) {
    heap_[0] = last;
    sift_down(0);
  }
  return top;
}

void Timeline::schedule(Source& source, Time at) {
  if (source.place_ != kNowhere) {
    if (at >= source.at_) return;
    source.at_ = at;
    source.sequence_ = next_sequence_++;
    sift_up(source.place_);
  } else {
    source.at_ = at;
    source.sequence_ = next_sequence_++;
    heap_.push_back(&source);
    sift_up(heap_.size() - 1);
  }
  if (!running_) arm(heap_.front()->at_);
}

void Timeline::cancel(Source& source) {
  if (source.place_ == kNowhere) return;
  const std::size_t at = source.place_;
  source.place_ = kNowhere;
  Source* last = heap_.back();
  heap_.pop_back();
  if (at == heap_.size()) return;
  heap_[at] = last;
  last->place_ = at;
  sift_up(at);
  sift_down(last->place_);
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

Time Timeline::limit(Time kernel_present) const {
  if (horizon_ <= kernel_present) return kernel_present;
  // The kernel answers "never" with a time beyond what Time holds.
  const sc_core::sc_time pending =
      sc_core::sc_time_to_pending_activity(sc_core::sc_get_curr_simcontext());
  const Time room = horizon_ - kernel_present;
  return pending > to_sc_time(room) ? horizon_ : kernel_present + from_sc_time(pending);
}

void Timeline::run() {
  ++kernel_calls_;
  armed_ = kTimeNever;
  const Time kernel_present = kernel_now();
  running_ = true;
  kernel_touched_ = false;
  now_ = kernel_present;
  Time last = limit(kernel_present);
  while (!heap_.empty() && heap_.front()->at_ <= last) {
    Source* source = pop();
    now_ = std::max(now_, source->at_);
    ++fired_;
    source->fire(now_);
    if (kernel_touched_) {
      kernel_touched_ = false;
      last = limit(kernel_present);
    }
  }
  running_ = false;
  if (!heap_.empty()) arm(std::max(heap_.front()->at_, kernel_present));
}

}  // namespace rnic

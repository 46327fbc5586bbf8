// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <systemc>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ring.h"
#include "base/sc_time.h"
#include "base/timeline.h"
#include "base/timelines.h"

namespace rnic {

/// Events of the model's queues so far, over the whole simulation: what `scripts/bench` divides by
/// packets.
struct ModelEvents {
  static std::uint64_t count() { return Timelines::instance().fired(); }
  static void reset() { Timelines::instance().reset_fired(); }
};

/// Delivers items at arbitrary future times, earliest first, ties in posting order. A ring for
/// items that come in order, as most do, a binary heap for the others, and one source on the
/// timeline: `peq_with_cb_and_phase` would scan linearly.
///
/// The handler is a member function `void (Item&)` of the owner, called at the item's time.
template <typename Owner, typename Item>
class EventQueue : public sc_core::sc_object, private Timeline::Source {
 public:
  using Handler = void (Owner::*)(Item&);

  EventQueue(const char* name, Owner* owner, Handler handler)
      : sc_core::sc_object(name),
        owner_(owner),
        handler_(handler),
        timeline_(Timeline::instance()) {}

  /// `at` must not lie in the past.
  void post(Time at, Item item) {
    if (in_order_.empty() || at >= in_order_.back().at) {
      in_order_.push_back(Entry{at, sequence_++, std::move(item)});
    } else {
      heap_.push_back(Entry{at, sequence_++, std::move(item)});
      std::push_heap(heap_.begin(), heap_.end(), Later{});
    }
    if (!firing_) timeline_.schedule(*this, at);
  }

  bool empty() const { return in_order_.empty() && heap_.empty(); }
  std::size_t size() const { return in_order_.size() + heap_.size(); }

 private:
  struct Entry {
    Time at{0};
    std::uint64_t sequence = 0;
    Item item{};
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };

  void fire(Time now) override {
    firing_ = true;
    Time at;
    do {  // the source fires when an item is due
      Item item = take_first();
      (owner_->*handler_)(item);
      at = next();
    } while (at <= now);
    firing_ = false;
    if (at != kTimeNever) timeline_.schedule(*this, at);
  }

  /// Of a heap with items.
  bool heap_is_next() const {
    return in_order_.empty() || Later{}(in_order_.front(), heap_.front());
  }
  /// kTimeNever: nothing is posted.
  Time next() const {
    const Time in_order = in_order_.empty() ? kTimeNever : in_order_.front().at;
    return heap_.empty() ? in_order : std::min(in_order, heap_.front().at);
  }
  Item take_first() {
    if (heap_.empty() || !heap_is_next()) {
      Item item = std::move(in_order_.front().item);
      in_order_.pop_front();
      return item;
    }
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    Item item = std::move(heap_.back().item);
    heap_.pop_back();
    return item;
  }

  Owner* owner_;
  Handler handler_;
  Timeline& timeline_;
  Ring<Entry> in_order_;
  std::vector<Entry> heap_;
  std::uint64_t sequence_ = 0;
  bool firing_ = false;
};

/// Delivers items in posting order at non-decreasing times: a hop whose later entries never arrive
/// before earlier ones (a cable, a pipeline of fixed latency). A ring and one source on the
/// timeline.
template <typename Owner, typename Item>
class DelayLine : public sc_core::sc_object, private Timeline::Source {
 public:
  using Handler = void (Owner::*)(Item&);

  DelayLine(const char* name, Owner* owner, Handler handler)
      : sc_core::sc_object(name),
        owner_(owner),
        handler_(handler),
        timeline_(Timeline::instance()) {}

  /// An `at` before the last one posted is a broken invariant.
  void post(Time at, Item item) {
    if (at < last_) panic(name(), "an item was posted before its predecessor");
    last_ = at;
    const bool idle = ring_.empty();
    ring_.push_back(Entry{at, std::move(item)});
    if (idle && !firing_) timeline_.schedule(*this, at);
  }

  bool empty() const { return ring_.empty(); }
  std::size_t size() const { return ring_.size(); }
  /// Time of the latest item posted so far.
  Time last() const { return last_; }

 private:
  struct Entry {
    Time at{0};
    Item item{};
  };

  void fire(Time now) override {
    firing_ = true;
    do {  // the source fires when the first item is due
      Item item = std::move(ring_.front().item);
      ring_.pop_front();
      (owner_->*handler_)(item);
    } while (!ring_.empty() && ring_.front().at <= now);
    firing_ = false;
    if (!ring_.empty()) timeline_.schedule(*this, ring_.front().at);
  }

  Owner* owner_;
  Handler handler_;
  Timeline& timeline_;
  Ring<Entry> ring_;
  Time last_{0};
  bool firing_ = false;
};

}  // namespace rnic

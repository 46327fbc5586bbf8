// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>
#include <vector>

#include "base/time.h"

namespace rnic {

/// The order in which the model's own events happen: every EventQueue, DelayLine and Alarm is a
/// source with one next instant, and one SystemC process fires the earliest.
///
/// A kernel event costs 40 to 60 ns, ten times what firing a source costs. So between two
/// activities of the kernel (a program that wakes up, the end of a sc_start()) the process fires
/// source after source without returning to the kernel, and the model's present runs ahead of
/// sc_time_stamp(): temporal decoupling, but exact, because nothing else can act in between. It
/// stops at the next pending kernel activity. Without a horizon (the default, so that tests may
/// use sc_start() as they like) every instant is a kernel event.
class Timeline {
 public:
  /// Something with a next instant.
  class Source {
   public:
    virtual ~Source() = default;

   protected:
    virtual void fire(Time now) = 0;

   private:
    friend class Timeline;
    Time at_{0};
    std::size_t place_ = kNowhere;
    Time again_at_ = kTimeNever;  ///< while it fires: when it is to fire next
    std::uint64_t again_sequence_ = 0;
  };

  static Timeline& instance();

  /// The model's present.
  static Time now() { return running_ ? now_ : kernel_now(); }

  /// `source` fires at `at`, not in the past; replaces a later instant, keeps an earlier one.
  /// Sources of one instant fire in the order in which they were scheduled.
  void schedule(Source& source, Time at);
  /// `source` fires no more unless scheduled again.
  void cancel(Source& source);

  /// Notifies a kernel event at the model's present, which may lie ahead of the kernel's.
  static void notify(sc_core::sc_event& event);

  /// The model may run ahead of the kernel up to `horizon`: the end of the sc_start() under way.
  void set_horizon(Time horizon) { horizon_ = horizon; }

  /// Instants at which sources are to fire, from now, earliest first.
  std::vector<Time> pending() const;

  /// Sources fired so far.
  std::uint64_t fired() const { return fired_; }
  void reset_fired() { fired_ = 0; }
  /// Times the kernel called; at most one for each instant.
  std::uint64_t kernel_calls() const { return kernel_calls_; }

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  Timeline();
  static Time kernel_now();
  /// The heap compares without a look at the source.
  struct Slot {
    Time at;
    std::uint64_t sequence;
    Source* source;

    bool before(const Slot& other) const {
      return at != other.at ? at < other.at : sequence < other.sequence;
    }
  };
  void run();
  Time limit(Time kernel_present) const;
  void arm(Time at);
  void place(const Slot& slot, std::size_t at);
  void sift_up(std::size_t at);
  void sift_down(std::size_t at);
  void fire_first();
  void remove(std::size_t at);

  static bool running_;
  static bool kernel_touched_;
  static Time now_;

  sc_core::sc_event event_;
  std::vector<Slot> heap_;
  Source* firing_ = nullptr;  ///< keeps its place at the top until it has fired
  std::uint64_t next_sequence_ = 0;
  Time horizon_{0};
  Time armed_ = kTimeNever;
  std::uint64_t fired_ = 0;
  std::uint64_t kernel_calls_ = 0;
};

/// Current simulated time as the model sees it.
inline Time sim_now() { return Timeline::now(); }

}  // namespace rnic

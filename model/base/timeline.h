// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <systemc>
#include <vector>

#include "base/time.h"

namespace rnic {

/// The order in which the model's own events happen: every EventQueue, DelayLine and Alarm is a
/// source with one next instant, and one SystemC process (`Timelines`) fires the earliest.
///
/// A kernel event costs 40 to 60 ns, ten times what firing a source costs. So between two
/// activities of the kernel (a program that wakes up, the end of a sc_start()) the process fires
/// source after source without returning to the kernel, and the model's present runs ahead of
/// sc_time_stamp(): temporal decoupling, but exact, because nothing else can act in between. It
/// stops at the next pending kernel activity. Without a horizon (the default, so that tests may
/// use sc_start() as they like) every instant is a kernel event.
///
/// Units that never act on one another may be built on timelines of their own (Timelines::Scope).
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
    std::size_t place_ = kNowhere;  ///< in the heap; kNear; kNowhere: not scheduled
  };

  /// The one that what is built now belongs to.
  static Timeline& instance();

  /// The model's present.
  static Time now() { return ahead_of_kernel_ ? now_ : kernel_now(); }

  /// `source` fires at `at`, not in the past; replaces a later instant, keeps an earlier one.
  /// Sources of one instant fire in the order in which they were scheduled.
  void schedule(Source& source, Time at);
  /// `source` fires no more unless scheduled again.
  void cancel(Source& source);

  /// Notifies a kernel event at the model's present, which may lie ahead of the kernel's.
  static void notify(sc_core::sc_event& event);

  /// Lets the calling program, whose hosts are on this timeline, sleep for `duration`.
  void sleep(Time duration);

  /// Instants at which sources are to fire, from now, earliest first.
  std::vector<Time> pending() const;

 private:
  friend class Timelines;
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr std::size_t kNear = kNowhere - 1;
  static constexpr std::size_t kNearMost = 16;
  static constexpr std::size_t kNearPlaces = 4 * kNearMost;  ///< moved together when used up

  /// Compared without a look at the source.
  struct Slot {
    Time at;
    std::uint64_t sequence;
    Source* source;

    /// Without a branch: its outcome would be a toss-up.
    bool before(const Slot& other) const {
      return (static_cast<unsigned>(at < other.at) |
              (static_cast<unsigned>(at == other.at) &
               static_cast<unsigned>(sequence < other.sequence))) != 0;
    }
  };

  explicit Timeline(std::size_t index) : index_(index) {}
  static Time kernel_now();
  void place(const Slot& slot, std::size_t at);
  void sift_up(std::size_t at);
  void sift_down(std::size_t at);
  void add(const Slot& slot);
  void add_near(const Slot& slot);
  void add_far(const Slot& slot);
  void remove(Source& source);
  void remove_far(std::size_t at);
  void refill();
  void fire_first();
  void close_up();
  std::size_t near_count() const { return near_end_ - near_begin_; }
  bool empty() const { return near_end_ == near_begin_; }
  Time front() const { return empty() ? kTimeNever : near_[near_begin_].at; }
  bool due(Time last) const { return !empty() && near_[near_begin_].at <= last; }
  bool comes_before(const Timeline& other) const {
    return front() != other.front() ? front() < other.front() : index_ < other.index_;
  }
  bool run_apart(Time last);

  static Timeline* running_;     ///< whose sources fire; null: programs run, or nothing
  static bool ahead_of_kernel_;  ///< the present is now_, not the kernel's
  static bool kernel_touched_;
  static Time now_;
  static std::uint64_t next_sequence_;

  std::size_t index_;  ///< in the order in which they were added
  // The sources that are next, in [near_begin_, near_end_), and a heap of all that come later. In a
  // small system nearly all that moves is near: what is scheduled goes a step or two ahead of the
  // last of a sorted list. Nothing is near only when nothing is scheduled.
  std::array<Slot, kNearPlaces> near_;
  std::size_t near_begin_ = 0;
  std::size_t near_end_ = 0;
  std::vector<Slot> far_;
  std::uint64_t fired_ = 0;
};

/// Current simulated time as the model sees it.
inline Time sim_now() { return Timeline::now(); }

}  // namespace rnic

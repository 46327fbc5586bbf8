// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <vector>

#include "base/time.h"
#include "base/timeline.h"

namespace rnic {

/// All timelines of a simulation, and the SystemC process that runs them.
///
/// Normally events happen in the order of their instants, whatever timeline they are on; those of
/// one instant timeline by timeline. While that
/// is allowed (set_apart()), each timeline is instead run on its own for a while, with its
/// programs, which see its present: the kernel's time stands still and programs wake up in delta
/// cycles. Nothing can tell the difference, as timelines do not act on one another; but the state
/// of a group of hosts stays in the processor's caches meanwhile.
class Timelines {
 public:
  /// Built before any module: its process belongs to none of them.
  static Timelines& instance();

  /// A new timeline, beside the first, which exists from the start.
  Timeline& add();
  bool several() const { return timelines_.size() > 1; }

  /// What is built during its life belongs to `timeline`.
  class Scope {
   public:
    explicit Scope(Timeline& timeline);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Timeline* before_;
  };

  /// The model may run ahead of the kernel up to `horizon`: the end of the sc_start() under way.
  void set_horizon(Time horizon) { horizon_ = horizon; }

  /// `until(present)` answers up to when timelines may be run apart: whatever programs do up to
  /// then concerns their own timeline only. An answer not after `present`: not now.
  void set_apart(std::function<Time(Time present)> until) { apart_ = std::move(until); }

  /// Sources fired so far.
  std::uint64_t fired() const;
  void reset_fired();
  /// Times the kernel called; at most one for each instant.
  std::uint64_t kernel_calls() const { return kernel_calls_; }
  /// Instants at which sources of any timeline are to fire, from now, earliest first.
  std::vector<Time> pending() const;

 private:
  friend class Timeline;

  Timelines();
  void run();
  void run_in_order(Time present);
  void run_apart(Time present);
  bool may_run_apart(Time present);
  Time kernel_delay() const;
  Timeline* earliest(const Timeline* but = nullptr) const;
  void run_first(Timeline& first, Time present, Time& last);
  Time limit(Time present) const;
  void arm(Time at);

  sc_core::sc_event event_;
  std::vector<std::unique_ptr<Timeline>> timelines_;
  Timeline* building_;
  std::function<Time(Time)> apart_;
  Time apart_until_{0};
  std::size_t turn_ = 0;  ///< of the timelines that are run apart
  Time ask_again_{0};     ///< whether they may be
  Time horizon_{0};
  Time armed_ = kTimeNever;
  std::uint64_t kernel_calls_ = 0;
};

}  // namespace rnic

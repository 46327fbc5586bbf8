// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <systemc>

#include "base/event_queue.h"
#include "base/sc_time.h"

namespace rnic::link {

/// One wake-up call: the earliest time asked for since it last rang. The handler, a member function
/// `void (Time now)` of the owner, sets it again when it still waits for something.
template <typename Owner>
class Alarm : public sc_core::sc_object {
 public:
  using Handler = void (Owner::*)(Time);

  Alarm(const char* name, Owner* owner, Handler handler)
      : sc_core::sc_object(name), owner_(owner), handler_(handler) {
    sc_core::sc_spawn_options options;
    options.spawn_method();
    options.dont_initialize();
    options.set_sensitivity(&event_);
    sc_core::sc_spawn([this] { ring(); }, sc_core::sc_gen_unique_name("alarm"), &options);
  }

  /// kTimeNever, or a time not before the one already set, changes nothing.
  void set(Time at) {
    if (at >= set_for_) return;
    const Time now = sim_now();
    set_for_ = std::max(at, now);
    event_.notify(to_sc_time(set_for_ - now));
  }

 private:
  void ring() {
    ++KernelEvents::count();
    set_for_ = kTimeNever;
    (owner_->*handler_)(sim_now());
  }

  Owner* owner_;
  Handler handler_;
  sc_core::sc_event event_;
  Time set_for_ = kTimeNever;
};

}  // namespace rnic::link

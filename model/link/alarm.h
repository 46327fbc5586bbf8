// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <systemc>

#include "base/timeline.h"

namespace rnic::link {

/// One wake-up call: the earliest time asked for since it last rang. The handler, a member function
/// `void (Time now)` of the owner, sets it again when it still waits for something.
template <typename Owner>
class Alarm : public sc_core::sc_object, private Timeline::Source {
 public:
  using Handler = void (Owner::*)(Time);

  Alarm(const char* name, Owner* owner, Handler handler)
      : sc_core::sc_object(name),
        owner_(owner),
        handler_(handler),
        timeline_(Timeline::instance()) {}

  /// kTimeNever, or a time not before the one already set, changes nothing.
  void set(Time at) {
    if (at >= set_for_) return;
    set_for_ = std::max(at, sim_now());
    timeline_.schedule(*this, set_for_);
  }

 private:
  void fire(Time now) override {
    set_for_ = kTimeNever;
    (owner_->*handler_)(now);
  }

  Owner* owner_;
  Handler handler_;
  Timeline& timeline_;
  Time set_for_ = kTimeNever;
};

}  // namespace rnic::link

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "base/timeline.h"
#include "config/config.h"

namespace rnic::testbench {

class System;

/// Groups of hosts that exchange frames with no other, each on a timeline of its own.
///
/// With sixty-four hosts the state of all does not fit the caches of the processor that simulates,
/// and event by event nearly everything that a packet needs has to be fetched again. Pairs that
/// only meet at a switch whose buffer they cannot fill may be simulated in turns instead
/// (`Timelines`), as long as no program does what concerns all: begins or ends what is measured.
class HostGroups {
 public:
  /// One group for each pair of `config`, or one in all when hosts may act on others.
  explicit HostGroups(const config::Config& config);

  Timeline& timeline_of(std::uint32_t host) const { return *timelines_[host / hosts_in_each_]; }
  bool several() const { return timelines_.size() > 1; }

  /// Allows turns for as long as all flows of `system` are amid what is measured.
  void run_apart(const System& system) const;

 private:
  std::uint32_t hosts_in_each_;
  std::vector<Timeline*> timelines_;
};

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/rng.h"
#include "config/config.h"
#include "host/host.h"

namespace rnic::testbench {

/// How a thread waits for what the NIC brings: it spins, looks at intervals, or sleeps until an
/// event wakes it; and the operating system may take the core away from it while it polls.
class Waiting {
 public:
  /// `stream`: names the random numbers of the thread.
  Waiting(host::Host& host, host::Core& core, const config::Config& config,
          const std::string& stream);

  /// Null when the thread does not wait for events.
  host::verbs::CompletionChannel* channel();

  /// Events of `cq` are asked for with solicited_only from now on.
  void solicited_only(const host::verbs::CompletionQueue& cq) { solicited_ = &cq; }

  /// Returns when `cq` holds a completion, or never will (CQ_ERR); false when it is `deadline` and
  /// there is none.
  bool wait(host::verbs::CompletionQueue& cq, Time deadline = kTimeNever);
  /// Returns when `spot` has seen more than `seen` writes; false as above.
  bool wait(host::PollSpot& spot, std::uint64_t seen, Time deadline = kTimeNever);
  /// Does nothing for `duration`.
  void pause(Time duration);

 private:
  bool wait_for_event(host::verbs::CompletionQueue& cq, Time deadline);
  void maybe_preempted();

  host::Host& host_;
  host::Core& core_;
  const config::Config& config_;
  Rng rng_;
  host::verbs::CompletionChannel* channel_ = nullptr;
  const host::verbs::CompletionQueue* solicited_ = nullptr;
};

}  // namespace rnic::testbench

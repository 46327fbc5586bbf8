// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "report/result.h"
#include "simulation/system.h"
#include "workload/measurement.h"

namespace rnic::testbench {

/// `sim.detail=auto`: finds out when a stream has become periodic, and accounts for the periods to
/// come instead of simulating them.
///
/// A stream without contention or chance repeats itself: after some messages (more than one, since
/// the wire's time for a message is no multiple of the device's clock) every unit does the same
/// again, a period later. So messages are watched as they complete: who, how long after the one
/// before, how long it took, how many events lay between. When the last two periods are alike,
/// two more are simulated and every figure of the run is compared across them, along with the
/// instants of all events that are pending. If both have moved every counter by exactly the same
/// amount, the program is told to send that many periods less, and the figures are moved on by as
/// many. What is left (the end of the run) is simulated as ever. A run that is not periodic is
/// simulated whole.
class SteadyState : public CompletionObserver {
 public:
  explicit SteadyState(System& system);

  /// Whether a configuration can be periodic at all: reliable bandwidth streams without faults and
  /// random addresses, whose frames nobody looks at.
  static bool possible(const config::Config& config);

  void message_completed(const FlowMeasurement& flow, std::uint32_t qp, Time latency,
                         Time now) override;

  /// Messages that were accounted for, not simulated.
  std::uint64_t replayed() const { return replayed_; }
  /// Adds the replayed periods to what the flows have measured.
  void extend_measurements();
  /// Adds the replayed periods to the figures of a result whose flows have been extended, and whose
  /// shares are of `window`.
  void extend(Result& result, Time window) const;

 private:
  /// One completion as seen by an observer.
  struct Mark {
    const FlowMeasurement* flow = nullptr;
    std::uint32_t qp = 0;
    Time since{0};  ///< the completion before
    Time latency{0};
    std::uint64_t events = 0;  ///< since the completion before: what is rare shows here

    friend bool operator==(const Mark& a, const Mark& b) {
      return a.flow == b.flow && a.qp == b.qp && a.since == b.since && a.latency == b.latency &&
             a.events == b.events;
    }
  };
  /// Everything that a run counts, at one instant.
  struct Snapshot {
    Time at{0};
    Result figures;
    stats::Breakdown breakdown;
    std::array<std::uint64_t, 256> completions{};
    std::vector<FlowProgress> flows;
    std::vector<stats::Histogram> latencies;
    std::vector<Time> pending;  ///< events before the next completion, from `at`
  };

  Snapshot look() const;
  std::size_t find_period() const;
  void search();
  void compare();
  static bool alike(const Snapshot& a, const Snapshot& b, const Snapshot& c);
  void replay();

  System& system_;
  std::vector<Mark> marks_;
  Time last_at_{0};
  std::uint64_t last_events_ = 0;
  std::size_t next_search_;
  std::size_t period_ = 0;     ///< completions; 0: not found yet
  std::size_t looked_at_ = 0;  ///< marks_.size() at the last snapshot
  std::vector<Snapshot> snapshots_;
  bool measuring_ = false;  ///< all flows are
  bool over_ = false;       ///< replayed, or given up
  std::uint64_t periods_ = 0;
  std::uint64_t replayed_ = 0;
};

}  // namespace rnic::testbench

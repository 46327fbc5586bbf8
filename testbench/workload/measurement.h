// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <systemc>
#include <vector>

#include "base/pool.h"
#include "base/ring.h"
#include "base/sc_time.h"
#include "base/time.h"
#include "protocol/work_request.h"
#include "stats/breakdown.h"
#include "stats/histogram.h"
#include "stats/instruments.h"
#include "stats/stage.h"

namespace rnic::testbench {

/// Traces of messages in flight. First in, first out: a trace rests as long as possible before its
/// next use, for late marks of the last.
class TracePool {
 public:
  stats::MessageTrace* take() {
    if (free_.size() < kRest) return store_.take();
    stats::MessageTrace* trace = free_.front();
    free_.pop_front();
    return trace;
  }
  void give(stats::MessageTrace* trace) { free_.push_back(trace); }

 private:
  static constexpr std::size_t kRest = 64;
  Pool<stats::MessageTrace> store_;
  Ring<stats::MessageTrace*> free_;
};

/// Traces of turns that were given up: late frames may mark them for long.
class LateTraces {
 public:
  /// `pool` gets the oldest back, when there are many.
  void lay_aside(stats::MessageTrace* trace, TracePool& pool) {
    resting_.push_back(trace);
    if (resting_.size() <= kRest) return;
    pool.give(resting_.front());
    resting_.pop_front();
  }

 private:
  static constexpr std::size_t kRest = 65'536;
  Ring<stats::MessageTrace*> resting_;
};

/// What one flow measures, after its warm-up.
struct FlowMeasurement {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint64_t messages = 0;  ///< delivered in the window
  std::uint64_t bytes = 0;
  std::uint64_t sent = 0;       ///< messages, warm-up included; of unacknowledged services
  std::uint64_t delivered = 0;  ///< of `sent`, whole
  std::uint64_t late = 0;       ///< of `delivered`: a ping-pong had given up waiting for them
  std::uint64_t again = 0;      ///< further copies of what a ping-pong had seen
  Time window_start{0};
  Time window_end{0};
  Time drained{0};  ///< that what was delivered took longer to arrive (DeliveryMeter::drained())
  double common_messages = 0;  ///< delivered in Measurement::common_window()
  std::uint64_t common_bytes = 0;
  Time common_drained{0};
  double whole_messages = 0;  ///< delivered since Measurement::window_start
  std::uint64_t whole_bytes = 0;
  stats::Histogram latency;

  Time window() const { return window_end - window_start; }
};

/// How far a flow is, queue pair by queue pair of each direction that sends.
struct FlowProgress {
  struct Qp {
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::uint64_t quota = 0;  ///< messages in all
    std::uint64_t lap = 0;    ///< messages from one use of a buffer to the next
  };
  std::vector<Qp> qps;
  std::vector<std::uint64_t> completed;  ///< messages of each direction
  std::vector<std::uint64_t> delivered;  ///< payload bytes of each direction
};

/// Watches the messages of all flows.
class CompletionObserver {
 public:
  virtual ~CompletionObserver() = default;
  virtual void message_completed(const FlowMeasurement& flow, std::uint32_t qp, Time latency,
                                 Time now) = 0;
};

/// Everything the workload measures, shared by all flows.
struct Measurement {
  stats::Breakdown breakdown;
  std::array<std::uint64_t, 256> completions{};  ///< by WcStatus
  std::uint32_t programs_total = 0;              ///< threads that set up queue pairs
  std::uint32_t programs_ready = 0;
  sc_core::sc_event all_ready;
  std::uint32_t flows_total = 0;
  std::uint32_t flows_warm = 0;
  std::uint32_t flows_done = 0;
  std::uint64_t corrupt_bytes = 0;   ///< payload that arrived different from what was sent
  std::uint64_t messages_total = 0;  ///< expected over all flows, warm-up included
  std::uint64_t messages_done = 0;
  std::vector<stats::DeliveryMeter*> meters;  ///< of all streams
  /// Where the measured window begins, for rates and for shares of units: when all flows are past
  /// their warm-up; or the first one, if a flow has ended before the last one gets there.
  Time window_start{0};
  Time common_start = kTimeNever;          ///< all streams are past their warm-up
  Time common_end = kTimeNever;            ///< the first of them has delivered everything
  std::exception_ptr failure;              ///< what ended a program early
  std::function<void()> on_warm;           ///< the measured window begins, maybe anew
  std::function<void()> on_first_end;      ///< the time in which all streams ran is over
  std::function<void()> on_done;           ///< all flows have finished
  std::function<bool()> frames_under_way;  ///< somewhere in the network or in a NIC
  CompletionObserver* observer = nullptr;

  void count_completion(protocol::WcStatus status) {
    ++completions[static_cast<std::size_t>(status)];
  }
  /// A program has set up its queue pairs: waits until all have, so that what is measured of one
  /// thread is never measured while another registers memory.
  void start_together() {
    if (++programs_ready == programs_total) {
      all_ready.notify(sc_core::SC_ZERO_TIME);
    }
    sc_core::wait(all_ready);
  }
  void flow_warm() {
    ++flows_warm;
    const bool last = flows_warm == flows_total;
    if (flows_warm == 1 || (last && common_end == kTimeNever)) open_window();
    if (!last) return;
    if (meters.size() != flows_total || common_end != kTimeNever) return;
    common_start = kTimeZero;
    for (stats::DeliveryMeter* meter : meters) {
      common_start = std::max(common_start, meter->window_start());
      meter->open_common(common_start);
    }
  }
  void open_window() {
    window_start = sim_now();
    for (stats::DeliveryMeter* meter : meters) meter->open_whole();
    if (on_warm) on_warm();
  }
  /// A stream has delivered everything, or failed, at `end`. Rates of streams that begin and end at
  /// different times do not add up: what counts is the time in which all of them ran.
  void stream_delivered(Time end) {
    if (common_end != kTimeNever) return;
    common_end = end;
    for (stats::DeliveryMeter* meter : meters) meter->close_common(end);
    if (overlap() > kTimeZero && meters.size() > 1 && on_first_end) on_first_end();
  }
  /// In which all streams ran; zero if there was no such time.
  Time overlap() const {
    if (common_start == kTimeNever || common_end == kTimeNever) return kTimeZero;
    return std::max(kTimeZero, common_end - common_start);
  }
  void flow_done() {
    if (++flows_done == flows_total && on_done) on_done();
  }
};

}  // namespace rnic::testbench

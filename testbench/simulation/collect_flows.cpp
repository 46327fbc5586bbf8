// SPDX-License-Identifier: Apache-2.0
#include "simulation/collect_flows.h"

#include <algorithm>

#include "base/sc_time.h"

namespace rnic::testbench {
namespace {

/// The flow of a pair of hosts that `measured` is part of.
FlowResult& flow_between(const FlowMeasurement& measured, std::vector<FlowResult>& flows) {
  const auto same = std::find_if(flows.begin(), flows.end(), [&](const FlowResult& flow) {
    return flow.source == measured.source && flow.destination == measured.destination;
  });
  if (same != flows.end()) return *same;
  FlowResult& flow = flows.emplace_back();
  flow.source = measured.source;
  flow.destination = measured.destination;
  return flow;
}

/// Which of the times a stream was measured in its rates are of.
struct RateWindow {
  enum class Of { kOwn, kCommon, kWhole };
  Of of = Of::kOwn;
  Time length{0};  ///< common or whole
};

/// Adds what was measured to a flow and to the whole.
void add_flow(const FlowMeasurement& measured, const RateWindow& rates, FlowResult& flow,
              Result& result) {
  Time window = measured.window() + measured.drained;
  double messages = static_cast<double>(measured.messages);
  std::uint64_t bytes = measured.bytes;
  if (rates.of == RateWindow::Of::kCommon) {
    window = rates.length + measured.common_drained;
    messages = measured.common_messages;
    bytes = measured.common_bytes;
  } else if (rates.of == RateWindow::Of::kWhole) {
    window = rates.length;
    messages = measured.whole_messages;
    bytes = measured.whole_bytes;
  }
  const double throughput = gbps(bytes, window);
  const double rate = window > kTimeZero ? messages / to_us(window) : 0;
  flow.throughput_gbps += throughput;
  flow.message_rate_mops += rate;
  flow.latency.merge(measured.latency);
  flow.threads.push_back(
      {throughput, rate, measured.latency.mean_ns(), to_ns(measured.latency.quantile(0.99))});
  result.throughput_gbps += throughput;
  result.message_rate_mops += rate;
  result.latency.merge(measured.latency);
}

/// When the measured streams began and ended.
struct Span {
  Time start = kTimeNever;
  Time end{0};

  Time length() const { return std::max(kTimeZero, end - start); }
  void add(const FlowMeasurement& measured) {
    start = std::min(start, measured.window_start);
    end = std::max(end, measured.window_end);
  }
};

/// Shares of the time of all streams: above kSame they ran side by side; below kEnough what they
/// did while all of them ran does not stand for the whole. A stream that goes on as long again,
/// because it has half the rate of the others, does not belong there.
constexpr double kSame = 0.9;
constexpr double kEnough = 0.3;

bool overlap_for(double share, Time whole, const Measurement& m) {
  return to_us(m.overlap()) >= share * to_us(whole);
}

Span span_of(System& system) {
  Span span;
  for (const auto& flow : system.flows) {
    for (const FlowMeasurement& measured : flow->measured()) span.add(measured);
  }
  if (system.dma_stream) {
    for (const FlowMeasurement& measured : system.dma_stream->measured()) span.add(measured);
  }
  if (system.program != nullptr) span.add(system.program->measured());
  return span;
}

}  // namespace

Time common_window(System& system) {
  const Measurement& m = system.measurement;
  return overlap_for(kEnough, span_of(system).length(), m) ? m.overlap() : kTimeZero;
}

namespace {

bool has_several_streams(const System& system) {
  return system.config().workload.pattern == config::Pattern::kBandwidth && system.flows.size() > 1;
}

/// The measured window.
Span measured_span(System& system) {
  Span span = span_of(system);
  if (has_several_streams(system)) span.start = system.measurement.window_start;
  return span;
}

/// Streams that ran for different times had the network to themselves for a part of it: the sum of
/// the rates of each one's own time is no rate that ever was. What counts is the time in which all
/// ran; if that is too little of the whole, what each delivered in the measured window.
RateWindow rate_window(System& system) {
  if (const Time common = common_window(system); common > kTimeZero) {
    return {RateWindow::Of::kCommon, common};
  }
  const Time whole = measured_span(system).length();
  if (has_several_streams(system) && whole > kTimeZero) return {RateWindow::Of::kWhole, whole};
  return {};
}

/// Whether some streams had the network to themselves for a part of the window.
bool is_uneven(System& system) {
  if (!has_several_streams(system)) return false;
  Span whole = span_of(system);
  Span together{kTimeZero, kTimeNever};
  for (const auto& flow : system.flows) {
    for (const FlowMeasurement& measured : flow->measured()) {
      together.start = std::max(together.start, measured.window_start);
      together.end = std::min(together.end, measured.window_end);
    }
  }
  return whole.length() > kTimeZero && to_us(together.length()) < kSame * to_us(whole.length());
}

}  // namespace

void collect_flows(System& system, Result& result) {
  const Measurement& m = system.measurement;
  const RateWindow rates = rate_window(system);
  const auto add = [&](const FlowMeasurement& measured, FlowResult& flow) {
    add_flow(measured, rates, flow, result);
  };
  for (const auto& flow : system.flows) {
    for (const FlowMeasurement& measured : flow->measured()) {
      add(measured, flow_between(measured, result.flows));
    }
  }
  if (system.dma_stream) {
    // Both directions join the same host and its device.
    for (const FlowMeasurement& measured : system.dma_stream->measured()) {
      add(measured, result.flows.emplace_back());
    }
  }
  if (system.program != nullptr) {
    const FlowMeasurement& measured = system.program->measured();
    result.ended_early = system.program->ended_early();
    add(measured, flow_between(measured, result.flows));
  }
  result.window = measured_span(system).length();
  if (system.config().transport.type != config::TransportType::kRc && !system.flows.empty()) {
    MessageCounts& counts = result.messages.emplace();
    for (const auto& flow : system.flows) {
      for (const FlowMeasurement& measured : flow->measured()) {
        counts.sent += measured.sent;
        counts.delivered += measured.delivered;
        counts.late += measured.late;
        counts.duplicates += measured.again;
      }
    }
  }
  if (system.probe) result.probe = system.probe->result();
  result.uneven = is_uneven(system);
  result.breakdown = m.breakdown;
  for (std::size_t status = 0; status < m.completions.size(); ++status) {
    if (m.completions[status] == 0 && status != 0) continue;
    result.completions.emplace_back(
        protocol::wc_status_name(static_cast<protocol::WcStatus>(status)), m.completions[status]);
  }
}

Time window_end(System& system) {
  const Time end = span_of(system).end;
  return end > system.window_start() ? std::min(end, sim_now()) : sim_now();
}

}  // namespace rnic::testbench

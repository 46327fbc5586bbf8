// SPDX-License-Identifier: Apache-2.0
#include "simulation/run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <optional>

#include "base/error.h"
#include "base/sc_time.h"
#include "base/timelines.h"
#include "capture/capture.h"
#include "report/format.h"
#include "report/json_writer.h"
#include "report/output_file.h"
#include "report/text_report.h"
#include "simulation/collect.h"
#include "simulation/steady_state.h"
#include "simulation/stuck.h"
#include "simulation/system.h"

namespace rnic::testbench {
namespace {

using WallClock = std::chrono::steady_clock;

double seconds_since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

bool shows_progress(config::ProgressMode mode) {
  if (mode == config::ProgressMode::kAuto) return isatty(STDERR_FILENO) != 0;
  return mode == config::ProgressMode::kOn;
}

/// Nothing happens any more: some program may not have looked yet whether its message has failed.
bool look_for_failures(System& system) {
  bool any = false;
  for (const auto& flow : system.flows) any |= flow->look_for_failure();
  return any;
}

/// Lets the model go on for `slice`, or less when a program ends the simulation.
void go_on(System& system, Time slice) {
  Timelines::instance().set_horizon(sim_now() + slice);
  sc_core::sc_start(to_sc_time(slice));
  if (system.measurement.failure) std::rethrow_exception(system.measurement.failure);
}

// Between two looks at how far it is; groups of hosts cannot come further apart than this.
constexpr Time kSlice = microseconds(2'000);

/// Runs until the programs are done; between slices, shows how far they are.
void run_to_completion(System& system) {
  const config::Config& config = system.config();
  const bool progress = shows_progress(config.output.progress);
  const Measurement& m = system.measurement;
  auto shown = WallClock::now();
  // Timers and outages keep the simulation going while nobody looks whether anything can come.
  constexpr Time kNothingDone = microseconds(10'000);
  std::uint64_t done = 0;
  Time done_at{0};
  sc_core::sc_start(sc_core::SC_ZERO_TIME);  // elaborates; nothing is pending before
  while (m.flows_done < m.flows_total) {
    const Time left = config.sim.max_time - sim_now();
    if (left <= kTimeZero) {
      throw SimulationError("sim.max_time=" + duration(to_ns(config.sim.max_time)) +
                            " is over and the workload is not (remedy: a larger sim.max_time, "
                            "where what follows may still go on): " +
                            explain(system));
    }
    if (!sc_core::sc_pending_activity() && !look_for_failures(system)) {
      throw SimulationError("nothing can happen any more and the workload is not done: " +
                            explain(system));
    }
    if (m.messages_done != done) {
      done = m.messages_done;
      done_at = sim_now();
    } else if (sim_now() - done_at >= kNothingDone) {
      look_for_failures(system);
      done_at = sim_now();
    }
    go_on(system, std::min(kSlice, left));
    if (progress && seconds_since(shown) > 0.2) {
      shown = WallClock::now();
      std::cerr << "\r" << m.messages_done * 100 / std::max<std::uint64_t>(1, m.messages_total)
                << " % of " << m.messages_total << " messages, " << to_us(sim_now())
                << " us simulated   " << std::flush;
    }
  }
  if (progress) std::cerr << "\r\033[K" << std::flush;
}

std::uint64_t compare_payload(System& system) {
  std::uint64_t wrong = system.measurement.corrupt_bytes;
  for (const auto& flow : system.flows) wrong += flow->verify();
  if (system.dma_stream) wrong += system.dma_stream->verify();
  return wrong;
}

/// Compares what arrived with what was sent; bytes that differ. A WRITE is acknowledged when its
/// data is on the way to memory, not when it is there: what is missing may come yet.
std::uint64_t wrong_bytes(System& system) {
  for (;;) {
    const std::uint64_t wrong = compare_payload(system);
    const bool over = sim_now() >= system.config().sim.max_time || !sc_core::sc_pending_activity();
    if (wrong == 0 || over || !system.measurement.frames_under_way()) return wrong;
    go_on(system, kSlice);
  }
}

}  // namespace

Result simulate(const config::LoadedConfig& loaded) {
  const auto start = WallClock::now();
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  Timelines::instance();  // before any module: its process belongs to none of them
  // Never taken apart: a process simulates once, and what hosts hold the operating system takes
  // back at a stroke.
  auto& system = *new System(loaded.config);
  Captures captures(system);
  std::optional<SteadyState> steady;
  if (loaded.config.sim.detail == config::SimDetail::kAuto &&
      SteadyState::possible(loaded.config)) {
    system.measurement.observer = &steady.emplace(system);
  }
  std::vector<LinkResult> before;
  system.measurement.on_warm = [&system, &before] {
    collect_losses_before(system, sim_now(), before);
    system.reset_statistics();
  };
  std::optional<Result> together;
  system.measurement.on_first_end = [&system, &together] {
    collect_figures(system, sim_now(), together.emplace());
  };
  std::uint64_t wrong = 0;
  std::optional<Result> result;
  try {
    run_to_completion(system);
    result = collect(system, loaded, steady ? &*steady : nullptr, std::move(before),
                     std::move(together));
    wrong = wrong_bytes(system);
  } catch (const sc_core::sc_report& report) {
    captures.finish();                        // what led to the error is worth looking at
    throw SimulationError(report.get_msg());  // an exception thrown inside a kernel process
  } catch (const SimulationError&) {
    captures.finish();
    throw;
  }
  captures.finish();
  if (wrong > 0) {
    throw SimulationError(std::to_string(wrong) +
                          " payload bytes arrived different from what was sent");
  }
  result->sim.wall_s = seconds_since(start);
  result->sim.peak_rss_bytes = peak_rss_bytes();
  return std::move(*result);
}

int run(const config::LoadedConfig& loaded) {
  const Result result = simulate(loaded);
  if (!loaded.config.output.dir.empty()) write_result_files(result, loaded.config.output.dir);
  write_stdout(text_report(result));
  return 0;
}

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <systemc>

#include "config/config.h"
#include "report/result.h"
#include "workload/endpoint.h"
#include "workload/measurement.h"

namespace rnic::testbench {

/// A program beside the streams: one small WRITE at a time, at intervals, on a queue pair of its
/// own, with a core of its own. Its latency tells what bulk data does to others
/// (workload.probe_size).
class Probe : public sc_core::sc_module {
 public:
  /// From host `from` to host `to`, whose numbers are `client` and `server`.
  Probe(const sc_core::sc_module_name& name, const config::Config& config, host::Host& from,
        std::uint32_t client, host::Host& to, std::uint32_t server, Measurement& measurement);

  /// Probes that were posted when all streams were past their warm-up and done before the first of
  /// them ended.
  const ProbeResult& result() const { return result_; }

 private:
  void run();
  void set_up();
  void connect(Endpoint& self, Endpoint& peer);
  /// One WRITE; false when it fails.
  bool write();
  bool streams_run() const;

  const config::Config config_;  ///< of the two ends
  Measurement& measurement_;
  Endpoint client_;
  Endpoint server_;
  ProbeResult result_;
};

}  // namespace rnic::testbench

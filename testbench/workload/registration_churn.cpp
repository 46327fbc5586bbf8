// SPDX-License-Identifier: Apache-2.0
#include "workload/registration_churn.h"

#include <string>

#include "base/error.h"
#include "base/sc_time.h"
#include "protocol/access.h"

namespace rnic::testbench {

RegistrationChurn::RegistrationChurn(const sc_core::sc_module_name& name,
                                     const config::Config& config, host::Host& host,
                                     Measurement& measurement)
    : sc_module(name), workload_(config.workload), host_(host), measurement_(measurement) {
  SC_HAS_PROCESS(RegistrationChurn);
  SC_THREAD(run);
}

void RegistrationChurn::run() {
  wait(measurement_.all_ready);  // with the streams, not with what they set up
  const std::uint32_t pd = host_.verbs.alloc_pd();
  const std::uint64_t buffer = host_.space.map(workload_.reg_size);
  const Time interval = from_ns(1e9 / workload_.reg_rate);
  for (Time due = sim_now();; due += interval) {
    if (due > sim_now()) wait(to_sc_time(due - sim_now()));
    const auto result =
        host_.verbs.reg_mr(core_, pd, buffer, workload_.reg_size, protocol::kAccessLocalWrite);
    if (result.status == host::Status::kEio) return;  // the device has failed, as the streams see
    if (result.status != host::Status::kOk) return refuse(result.status);
    host_.verbs.dereg_mr(core_, result.region);
    core_.sync();
  }
}

/// What has no room the first time will have none later: the run would show streams that nobody
/// disturbs.
void RegistrationChurn::refuse(host::Status status) {
  if (measurement_.failure) return;
  measurement_.failure = std::make_exception_ptr(ConfigError(
      "workload.reg_size=" + std::to_string(workload_.reg_size) +
      " cannot be registered beside the stream: reg_mr fails with " + host::status_name(status) +
      " (remedy: a smaller one, or a larger memory.memlock_limit)"));
  sc_core::sc_stop();
}

}  // namespace rnic::testbench

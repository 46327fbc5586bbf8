// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "config/config.h"
#include "host/host.h"
#include "workload/measurement.h"

namespace rnic::testbench {

/// A thread beside those that send: registers a region and deregisters it again, workload.reg_rate
/// times a second or as often as it can, on a core and a protection domain of its own. What it does
/// to the streams (commands, cached translations that go, PCIe) is what is to be seen.
class RegistrationChurn : public sc_core::sc_module {
 public:
  RegistrationChurn(const sc_core::sc_module_name& name, const config::Config& config,
                    host::Host& host, Measurement& measurement);

 private:
  void run();
  void refuse(host::Status status);

  const config::WorkloadConfig& workload_;
  host::Host& host_;
  host::Core core_;
  Measurement& measurement_;
};

}  // namespace rnic::testbench

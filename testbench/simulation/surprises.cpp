// SPDX-License-Identifier: Apache-2.0
#include "simulation/surprises.h"

namespace rnic::testbench {

bool surprises(const config::Config& config) {
  const config::LinkConfig& link = config.link;
  const config::PcieFaultConfig& pcie = config.pcie.fault;
  const double chance = link.loss_rate + link.corrupt_rate + link.duplicate_rate +
                        link.reorder_rate + link.burst_rate + config.network_switch.corrupt_rate +
                        config.pcie.bit_error_rate + pcie.loss_rate + pcie.poison_rate;
  const bool listed = config.workload.mistake != config::Mistake::kNone ||
                      !link.drop_list.empty() || !link.corrupt_list.empty() ||
                      !link.duplicate_list.empty() || !link.reorder_list.empty() ||
                      !pcie.lost_list.empty() || !pcie.poisoned_list.empty();
  return chance > 0 || listed || link.down_time > kTimeZero ||
         config.fabric.silent_host != config::kNoHost ||
         config.fabric.fatal_host != config::kNoHost ||
         config.workload.odp != config::OnDemand::kNone ||
         config.workload.registration != config::Registration::kAhead ||
         config.workload.reg_rate > 0 || config.workload.probe_size != config::kNoProbe ||
         config.workload.access != config::Access::kSequential ||
         config.workload.qp_order != config::QpOrder::kInTurn;
}

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#include "simulation/unmet_faults.h"

#include <algorithm>
#include <cstdint>

#include "base/sc_time.h"
#include "base/timeline.h"
#include "config/fault_list.h"
#include "report/format.h"

namespace rnic::testbench {
namespace {

using config::FaultTarget;

/// Of a cable's list.
void add_unmet(const char* key, const std::vector<FaultTarget>& list, std::size_t cable,
               const network::FaultInjector& injector, std::vector<std::string>& texts) {
  std::vector<FaultTarget> unmet;
  std::string counts;
  for (const FaultTarget& target : list) {
    const std::uint64_t seen = injector.seen(target.kind);
    if (target.number <= seen) continue;
    if (unmet.empty() || unmet.back().kind != target.kind) {
      counts += (counts.empty() ? "" : " and ") + std::to_string(seen) + " " +
                config::frame_kind_names()[static_cast<std::size_t>(target.kind)];
    }
    unmet.push_back(target);
  }
  if (unmet.empty()) return;
  texts.push_back(std::string(key) + "=" + config::fault_list_text(unmet) + ": cable " +
                  std::to_string(cable) + " carried only " + counts + " frames that count");
}

void add_unmet(const char* key, const std::vector<std::uint64_t>& list, std::uint64_t seen,
               std::vector<std::string>& texts) {
  std::string unmet;
  for (const std::uint64_t number : list) {
    if (number > seen) unmet += (unmet.empty() ? "" : ",") + std::to_string(number);
  }
  if (unmet.empty()) return;
  texts.push_back(std::string(key) + "=" + unmet + ": no device made more than " +
                  std::to_string(seen) + " read requests of pcie.fault.purpose");
}

/// Of a fault at a time: what makes it one that nobody saw; empty when somebody may have.
std::string missed(Time at, bool struck, const std::string& otherwise) {
  if (at >= sim_now()) return "the run was over before, after " + duration(to_ns(sim_now()));
  return struck ? std::string() : otherwise;
}

void add_missed(const std::string& setting, const std::string& why,
                std::vector<std::string>& texts) {
  if (!why.empty()) texts.push_back(setting + ": " + why);
}

/// Faults that begin at a time.
void add_late(const System& system, std::vector<std::string>& texts) {
  const config::LinkConfig& link = system.config().link;
  const config::FabricConfig& fabric = system.config().fabric;
  if (link.down_time > kTimeZero && link.down_cable < system.cables.size()) {
    const std::string cable = std::to_string(link.down_cable);
    add_missed("link.down_at=" + duration(to_ns(link.down_at)) +
                   " link.down_time=" + duration(to_ns(link.down_time)),
               missed(link.down_at, system.cables[link.down_cable]->outage_met(),
                      "no frame was on cable " + cable + " in that time, so none was lost"),
               texts);
  }
  if (fabric.silent_host != config::kNoHost) {
    const nic::Nic& nic = system.nodes[fabric.silent_host]->nic;
    add_missed(
        "fabric.silent_from=" + duration(to_ns(fabric.silent_from)),
        missed(fabric.silent_from, nic.rx_pipeline.drops().silent > 0,
               "no frame came to host" + std::to_string(fabric.silent_host) + " from then on"),
        texts);
  }
  if (fabric.fatal_host != config::kNoHost) {
    add_missed("fabric.fatal_at=" + duration(to_ns(fabric.fatal_at)),
               missed(fabric.fatal_at, true, ""), texts);
  }
}

}  // namespace

std::vector<std::string> unmet_faults(const System& system) {
  std::vector<std::string> texts;
  const config::LinkConfig& link = system.config().link;
  const std::size_t cable = link.fault_cable == config::kAllCables ? 0 : link.fault_cable;
  if (cable < system.cables.size()) {
    const network::FaultInjector& injector = system.cables[cable]->injector();
    add_unmet("link.drop_list", link.drop_list, cable, injector, texts);
    add_unmet("link.corrupt_list", link.corrupt_list, cable, injector, texts);
    add_unmet("link.duplicate_list", link.duplicate_list, cable, injector, texts);
    add_unmet("link.reorder_list", link.reorder_list, cable, injector, texts);
  }
  const config::PcieFaultConfig& pcie = system.config().pcie.fault;
  std::uint64_t reads = 0;
  for (const auto& node : system.nodes) reads = std::max(reads, node->pcie.faults().seen());
  if (system.dma_node) reads = std::max(reads, system.dma_node->pcie.faults().seen());
  add_unmet("pcie.fault.lost", pcie.lost_list, reads, texts);
  add_unmet("pcie.fault.poisoned", pcie.poisoned_list, reads, texts);
  add_late(system, texts);
  return texts;
}

}  // namespace rnic::testbench

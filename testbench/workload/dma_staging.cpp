// SPDX-License-Identifier: Apache-2.0
#include "workload/dma_staging.h"

#include <algorithm>

namespace rnic::testbench {

DmaStaging::DmaStaging(const sc_core::sc_module_name& name, const config::DmaDeviceConfig& config,
                       pcie::DmaIf& engine)
    : sc_module(name),
      engine_(engine),
      setup_time_(config.setup_time),
      reads_{config.read, Server(), stats::UnitStats(std::string(this->name()) + ".reads")},
      writes_{config.write, Server(), stats::UnitStats(std::string(this->name()) + ".writes")},
      memory_{config.memory, Server(), stats::UnitStats(std::string(this->name()) + ".memory")},
      reads_to_issue_("reads_to_issue", this, &DmaStaging::issue_read),
      writes_to_issue_("writes_to_issue", this, &DmaStaging::issue_write),
      storing_("storing", this, &DmaStaging::finish) {}

void DmaStaging::reset_statistics(Time now) {
  reads_.unit.reset(now);
  writes_.unit.reset(now);
  memory_.unit.reset(now);
}

Time DmaStaging::Path::pass(Time now, std::uint32_t length) {
  if (free()) return now;
  const std::uint32_t units = (length + config.unit - 1) / config.unit;
  const Time duration = config.request_time + config.unit_time * static_cast<std::int64_t>(units);
  unit.add_busy(duration);
  return server.reserve(now, duration).end;
}

void DmaStaging::read(std::uint64_t address, std::uint32_t bytes, std::uint8_t* into,
                      std::uint64_t token) {
  Transfer* transfer = pool_.take();
  *transfer = Transfer{address, bytes, into, nullptr, false, token};
  if (setup_time_ == kTimeZero) {
    issue_read(transfer);
  } else {
    reads_to_issue_.post(sim_now() + setup_time_, transfer);
  }
}

void DmaStaging::issue_read(Transfer*& transfer) {
  engine_.dma_read(sim_now(), transfer->address, transfer->bytes, transfer->into,
                   tlm_ext::Purpose::kPayload, this, reinterpret_cast<std::uintptr_t>(transfer));
}

void DmaStaging::write(std::uint64_t address, std::uint32_t bytes, const std::uint8_t* from,
                       std::uint64_t token) {
  Transfer* transfer = pool_.take();
  *transfer = Transfer{address, bytes, nullptr, from, true, token};
  const Time now = sim_now();
  // Way and memory work hand in hand: the slower of them counts.
  const Time ready = std::max(writes_.pass(now, bytes), memory_.pass(now, bytes)) + setup_time_;
  if (ready == now) {
    issue_write(transfer);
  } else {
    writes_to_issue_.post(ready, transfer);
  }
}

void DmaStaging::issue_write(Transfer*& transfer) {
  const std::uint64_t token = transfer->token;
  const Time left = engine_.dma_write(sim_now(), transfer->address, transfer->bytes, transfer->from,
                                      tlm_ext::Purpose::kPayload, this,
                                      reinterpret_cast<std::uintptr_t>(transfer));
  program_->write_leaves(token, left);
}

void DmaStaging::dma_done(std::uint64_t token) {
  auto* transfer = reinterpret_cast<Transfer*>(static_cast<std::uintptr_t>(token));
  const Time now = sim_now();
  const Time stored = transfer->is_write ? now
                                         : std::max(reads_.pass(now, transfer->bytes),
                                                    memory_.pass(now, transfer->bytes));
  if (stored == now) {
    finish(transfer);
  } else {
    storing_.post(stored, transfer);
  }
}

void DmaStaging::finish(Transfer*& transfer) {
  const std::uint64_t token = transfer->token;
  pool_.give(transfer);
  program_->transfer_done(token);
}

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#include "workload/dma_staging.h"

#include <algorithm>

namespace rnic::testbench {

DmaStaging::DmaStaging(const sc_core::sc_module_name& name, const config::DmaDeviceConfig& config,
                       pcie::DmaIf& engine)
    : sc_module(name),
      engine_(engine),
      reads_{config.request_time, config.read_unit, config.read_unit_time, Server(),
             stats::UnitStats(std::string(this->name()) + ".reads")},
      writes_{config.request_time, config.write_unit, config.write_unit_time, Server(),
              stats::UnitStats(std::string(this->name()) + ".writes")},
      storing_("storing", this, &DmaStaging::stored),
      collecting_("collecting", this, &DmaStaging::collected) {}

void DmaStaging::reset_statistics(Time now) {
  reads_.unit.reset(now);
  writes_.unit.reset(now);
}

Reservation DmaStaging::Path::pass(Time earliest, std::uint32_t length) {
  const std::uint32_t units = (length + bytes - 1) / bytes;
  const Time duration = request_time + unit_time * static_cast<std::int64_t>(units);
  unit.add_busy(duration);
  return server.reserve(earliest, duration);
}

void DmaStaging::dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes,
                          std::uint8_t* into, tlm_ext::Purpose purpose, pcie::DmaClient* client,
                          std::uint64_t token) {
  if (reads_.free()) {
    engine_.dma_read(earliest, address, bytes, into, purpose, client, token);
    return;
  }
  Read* read = pool_.take();
  *read = Read{bytes, client, token};
  engine_.dma_read(earliest, address, bytes, into, purpose, this,
                   reinterpret_cast<std::uintptr_t>(read));
}

Time DmaStaging::dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                           const std::uint8_t* from, tlm_ext::Purpose purpose,
                           pcie::DmaClient* client, std::uint64_t token) {
  if (writes_.free()) {
    return engine_.dma_write(earliest, address, bytes, from, purpose, client, token);
  }
  const Time now = sim_now();
  const Reservation slot = writes_.pass(std::max(earliest, now), bytes);
  if (slot.start <= now) {
    return engine_.dma_write(slot.end, address, bytes, from, purpose, client, token);
  }
  collecting_.post(slot.start, Write{slot.end, address, bytes, from, purpose, client, token});
  return slot.end;
}

void DmaStaging::collected(Write& write) {
  engine_.dma_write(write.ready, write.address, write.bytes, write.from, write.purpose,
                    write.client, write.token);
}

void DmaStaging::dma_done(std::uint64_t token) {
  auto* read = reinterpret_cast<Read*>(static_cast<std::uintptr_t>(token));
  storing_.post(reads_.pass(sim_now(), read->bytes).end, read);
}

void DmaStaging::stored(Read*& read) {
  const Read done = *read;
  pool_.give(read);
  if (done.client != nullptr) done.client->dma_done(done.token);
}

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
// Uses the installed library as a stranger would: arithmetic, formats, and a module on the kernel.
#include <iostream>
#include <systemc>

#include "base/rate_server.h"
#include "base/sc_time.h"
#include "config/loader.h"
#include "protocol/crc.h"
#include "protocol/psn.h"

namespace {

struct Sender : sc_core::sc_module {
  SC_HAS_PROCESS(Sender);
  explicit Sender(const sc_core::sc_module_name& name) : sc_module(name) { SC_THREAD(run); }
  void run() {
    const rnic::config::Config config = rnic::config::default_config();
    rnic::RateServer wire(config.link.rate);
    wait(rnic::to_sc_time(wire.reserve(rnic::sim_now(), 1000).end));
  }
};

}  // namespace

int sc_main(int, char*[]) {
  Sender sender("sender");
  sc_core::sc_start();
  const std::uint8_t text[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  // 8,000 bits at 100 Gb/s; the check value that CRC catalogues list for CRC-32.
  const bool good = rnic::sim_now() == rnic::Time{80'000} &&
                    rnic::protocol::crc32(text, sizeof text) == 0xCBF43926U &&
                    rnic::protocol::psn_add(rnic::protocol::kPsnMask, 1) == 0;
  std::cout << (good ? "consumer: good\n" : "consumer: wrong\n");
  return good ? 0 : 1;
}

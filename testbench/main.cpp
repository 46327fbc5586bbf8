// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <systemc>

#include "cli.h"
#include "huge_heap.h"

namespace {

// The library's main() prints its banner before sc_main; initialisers of the program run earlier.
const int banner_off = setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

/// SystemC's own messages never reach stdout, which is the report's; errors become exceptions.
void handle_report(const sc_core::sc_report& report, const sc_core::sc_actions&) {
  if (report.get_severity() >= sc_core::SC_ERROR) throw sc_core::sc_report(report);
  if (report.get_severity() == sc_core::SC_WARNING) {
    std::cerr << "rnicsim: warning: " << report.get_msg_type() << ": " << report.get_msg() << '\n';
  }
}

}  // namespace

int sc_main(int argc, char* argv[]) {
  static_cast<void>(banner_off);
  rnic::testbench::prefer_huge_heap();
  // A closed pipe is an output error like a full disk, not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  sc_core::sc_report_handler::set_handler(&handle_report);
  return rnic::testbench::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}

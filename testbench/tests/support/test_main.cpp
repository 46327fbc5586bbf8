// SPDX-License-Identifier: Apache-2.0
// libsystemc owns main(): tests enter through sc_main, or none of them would run.
#include <gtest/gtest.h>

#include <systemc>

int sc_main(int argc, char* argv[]) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

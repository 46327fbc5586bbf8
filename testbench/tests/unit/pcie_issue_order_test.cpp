// SPDX-License-Identifier: Apache-2.0
// Requests that a device hands over ahead of their time: which must keep their order while they
// wait. All times in ns; everything is handed over at 0 unless said otherwise.
#include <gtest/gtest.h>

#include "pcie/issue_order.h"
#include "tlm/pcie_extension.h"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kHere = 0x1000;
constexpr std::uint64_t kThere = 0x2000;

class IssueOrder : public ::testing::Test {
 protected:
  Time write(std::uint64_t address, std::int64_t due, bool relaxed, std::int64_t now = 0) {
    return admit(tlm::TLM_WRITE_COMMAND, address, due, relaxed, now);
  }
  Time read(std::uint64_t address, std::int64_t due, std::int64_t now = 0) {
    return admit(tlm::TLM_READ_COMMAND, address, due, true, now);
  }

 private:
  /// Of 64 bytes.
  Time admit(tlm::tlm_command command, std::uint64_t address, std::int64_t due, bool relaxed,
             std::int64_t now) {
    tlm::tlm_generic_payload request;
    tlm_ext::PcieExtension extension;
    extension.relaxed_ordering = relaxed;
    request.set_command(command);
    request.set_address(address);
    request.set_data_length(64);
    request.set_extension(&extension);
    const Time comes = order_.admit(request, nanoseconds(now), nanoseconds(due));
    request.clear_extension(&extension);
    return comes;
  }
  pcie::IssueOrder order_;
};

TEST_F(IssueOrder, ARelaxedWriteAndAReadPassWritesToOtherBytes) {
  write(kHere, 100, true);
  EXPECT_EQ(write(kThere, 40, true), nanoseconds(40));
  EXPECT_EQ(read(kThere + 64, 30), nanoseconds(30));
  EXPECT_EQ(read(kHere + 64, 30), nanoseconds(30)) << "it begins where the write ends";
  EXPECT_EQ(read(kHere - 64, 30), nanoseconds(30)) << "it ends where the write begins";
}

TEST_F(IssueOrder, NothingPassesAWriteToTheSameBytes) {
  write(kHere, 100, true);
  EXPECT_EQ(read(kHere + 63, 30), nanoseconds(100)) << "one byte is enough";
  EXPECT_EQ(write(kHere - 63, 40, true), nanoseconds(100));
  EXPECT_EQ(write(kHere, 120, true), nanoseconds(120));
  EXPECT_EQ(read(kHere, 50), nanoseconds(120)) << "the latest of several";
}

TEST_F(IssueOrder, AStrictWritePassesNoWrite) {
  write(kHere, 100, true);
  EXPECT_EQ(write(kThere, 40, false), nanoseconds(100)) << "a CQE stays behind payload";
  EXPECT_EQ(write(kThere + 64, 60, false), nanoseconds(100)) << "and behind another CQE";
  EXPECT_EQ(write(kThere + 128, 110, false), nanoseconds(110));
}

TEST_F(IssueOrder, ReadsHoldUpNobody) {
  read(kHere, 100);
  EXPECT_EQ(write(kHere, 40, true), nanoseconds(40));
  EXPECT_EQ(write(kThere, 20, false), nanoseconds(40));
}

TEST_F(IssueOrder, WhatHasComeIsForgotten) {
  write(kHere, 100, true);
  write(kThere, 150, true, 101);
  EXPECT_EQ(read(kHere, 110, 105), nanoseconds(110));
  EXPECT_EQ(read(kThere, 110, 105), nanoseconds(150));
}

}  // namespace
}  // namespace rnic::testbench

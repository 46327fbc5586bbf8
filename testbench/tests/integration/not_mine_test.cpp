// SPDX-License-Identifier: Apache-2.0
// Frames that reach a station they were not meant for are dropped and counted, and touch nothing.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

class NotMineTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// A WRITE over a connection whose path or peer number is wrong at side a.
  void write_astray(std::uint32_t wrong_qpn, const protocol::AddressVector& path) {
    VerbsRig rig({{"transport.protocol", GetParam()},
                  {"transport.ack_timeout", "1"},  // 8 us
                  {"transport.retry_count", "2"},
                  {"tcp.min_rto", "10us"}});
    rig.run([&] {
      rig.a.create();
      rig.b.create();
      rig.a.connect(wrong_qpn != 0 ? wrong_qpn : rig.b.qp->qpn, path, rig.config().transport);
      rig.b.connect(rig.a.qp->qpn, path_between(1, 0), rig.config().transport);
      const RigBuffer mine = rig.a.buffer(4096);
      const RigBuffer theirs = rig.b.buffer(4096);
      const Bytes before(4096, 0x33);
      rig.b.fill(theirs.address, before);
      rig.settle();
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 64, theirs.address,
                           theirs.region.rkey),
                host::Status::kOk);
      rig.settle(microseconds(200));
      EXPECT_GE(rig.b.node.nic.rx_pipeline.drops().not_mine, 1U);
      EXPECT_EQ(rig.b.bytes_at(theirs.address, 4096), before);
      EXPECT_EQ(rig.b.node.nic.transport().counters().rx_write_requests, 0U);
      if (GetParam() == "iwarp") return;  // TCP goes on trying for longer
      // The first try and two more, 4.096 us x 2^1 apart at least.
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kRetryExceededError);
      EXPECT_EQ(rig.b.node.nic.rx_pipeline.drops().not_mine, 3U);
    });
  }
};

TEST_P(NotMineTest, AnotherStationsAddress) {
  // Back to back the cable delivers whatever it is given, as a switch that floods would.
  write_astray(0, path_between(0, 5));
}

TEST_P(NotMineTest, AnUnknownQueuePair) { write_astray(0x777, path_between(0, 1)); }

INSTANTIATE_TEST_SUITE_P(Transports, NotMineTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
// Public cases of theme OR: ordering and visibility.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using Bytes = std::vector<std::uint8_t>;

TEST(CaseOR, OR10_AWriteTellsNobodyASendBehindItDoes) {
  constexpr std::uint32_t kBytes = 256 * 1024;
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.connect();
    RigBuffer mine = rig.a.buffer(kBytes);
    RigBuffer data = rig.b.buffer(kBytes);
    RigBuffer note = rig.b.buffer(4096);
    rig.a.fill(mine.address, Bytes(kBytes, 3));
    ASSERT_EQ(rig.b.post_recv(note.address, note.region.lkey, 64), host::Status::kOk);
    // The server reads at once: nothing has come.
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kBytes, data.address,
                         data.region.rkey),
              host::Status::kOk);
    EXPECT_EQ(rig.b.bytes_at(data.address, kBytes), Bytes(kBytes, 0));
    EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    rig.settle();
    host::verbs::Wc wc;
    EXPECT_EQ(rig.b.verbs().poll_cq(rig.b.core, *rig.b.recv_cq, 1, &wc), 0U) << "no notification";
    // With a SEND behind it the data are there when its completion is.
    rig.a.fill(mine.address, Bytes(kBytes, 4));
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kBytes, data.address,
                         data.region.rkey),
              host::Status::kOk);
    ASSERT_EQ(rig.a.post(WrOpcode::kSend, mine.address, mine.region.lkey, 8), host::Status::kOk);
    EXPECT_EQ(rig.b.await_recv().status, protocol::WcStatus::kSuccess);
    EXPECT_EQ(rig.b.bytes_at(data.address, kBytes), Bytes(kBytes, 4));
  });
}

}  // namespace
}  // namespace rnic::testbench

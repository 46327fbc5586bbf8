// SPDX-License-Identifier: Apache-2.0
// What RDMA promises and what it costs, as a story told with the verbs API: registration pins
// memory, keys guard it, the peer's CPU sleeps, and an address that was not pinned goes stale.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;

class PrimerTest : public ::testing::TestWithParam<std::string> {
 protected:
  Settings settings(const Settings& more = {}) const {
    return with({{"transport.protocol", GetParam()}, {"memory.page_size", "4KiB"}}, more);
  }
};

TEST_P(PrimerTest, RegistrationPinsPages) {
  VerbsRig rig(settings({{"memory.memlock_limit", "64KiB"}}));
  rig.run([&] {
    rig.a.create();
    host::AddressSpace& space = rig.a.space();
    const std::uint64_t before = space.pinned_bytes();
    const Time called = rig.a.core.now();
    // 3 pages and a byte: four pages are pinned.
    RigBuffer buffer = rig.a.buffer(3 * kPage + 1);
    EXPECT_EQ(space.pinned_bytes(), before + 4 * kPage);
    EXPECT_EQ(buffer.region.npages, 4U);
    // At least the call and its four pages, as configured.
    const config::MemoryConfig& memory = rig.config().memory;
    EXPECT_GE(rig.a.core.now() - called, memory.reg_call_cost + 4 * memory.reg_page_cost);
    // The operating system may neither move nor swap them, until the application lets go.
    EXPECT_EQ(space.migrate(buffer.address), Status::kEbusy);
    EXPECT_EQ(space.swap_out(buffer.address), Status::kEbusy);
    EXPECT_EQ(rig.a.verbs().dereg_mr(rig.a.core, buffer.region), Status::kOk);
    EXPECT_EQ(space.pinned_bytes(), before);
    EXPECT_EQ(space.migrate(buffer.address), Status::kOk);
  });
}

TEST_P(PrimerTest, TheMemlockLimitHolds) {
  VerbsRig rig(settings({{"memory.memlock_limit", "64KiB"}}));
  rig.run([&] {
    rig.a.create();
    host::AddressSpace& space = rig.a.space();
    rig.a.buffer(15 * kPage);  // fits
    const std::uint64_t pinned = space.pinned_bytes();
    const std::uint64_t address = space.map(2 * kPage);
    const auto refused = rig.a.verbs().reg_mr(rig.a.core, rig.a.pd, address, 2 * kPage, kAllAccess);
    EXPECT_EQ(refused.status, Status::kEnomem);
    EXPECT_EQ(space.pinned_bytes(), pinned) << "a call that fails pins nothing";
    rig.a.buffer(kPage);
    EXPECT_EQ(space.pinned_bytes(), 16 * kPage);
  });
}

TEST_P(PrimerTest, SendMeetsAReceiveByLocalKeys) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    // The receiver grants nothing to others: a RECV is its own request, by its lkey.
    RigBuffer from = rig.a.buffer(kPage, 0);
    RigBuffer to = rig.b.buffer(kPage, protocol::kAccessLocalWrite);
    const Bytes text = {'h', 'e', 'l', 'l', 'o'};
    rig.a.fill(from.address, text);
    ASSERT_EQ(rig.b.post_recv(to.address, to.region.lkey, 100), Status::kOk);
    const std::uint64_t request = rig.b.wr_ids;
    ASSERT_EQ(rig.a.post(WrOpcode::kSend, from.address, from.region.lkey, 5), Status::kOk);
    const host::verbs::Wc received = rig.b.await_recv();
    EXPECT_EQ(received.status, WcStatus::kSuccess);
    EXPECT_EQ(received.opcode, protocol::WcOpcode::kRecv);
    EXPECT_EQ(received.byte_len, 5U);
    EXPECT_EQ(received.wr_id, request);
    EXPECT_EQ(rig.b.bytes_at(to.address, 5), text);
    const host::verbs::Wc sent = rig.a.await_send();
    EXPECT_EQ(sent.status, WcStatus::kSuccess);
    EXPECT_EQ(sent.opcode, protocol::WcOpcode::kSend);
    EXPECT_EQ(sent.wr_id, rig.a.wr_ids);
  });
}

TEST_P(PrimerTest, WriteAndReadLeaveThePeersCpuAlone) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    RigBuffer mine = rig.a.buffer(2 * kPage);
    RigBuffer theirs = rig.b.buffer(2 * kPage);
    const Bytes data(1000, 0x5C);
    rig.a.fill(mine.address, data);
    rig.settle();
    rig.b.core.reset_statistics();
    const std::uint64_t polls = rig.b.verbs().stats().polls;
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 1000,
                         theirs.address + 11, theirs.region.rkey),
              Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaRead, mine.address + kPage, mine.region.lkey, 1000,
                         theirs.address + 11, theirs.region.rkey),
              Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.bytes_at(theirs.address + 11, 1000), data);
    EXPECT_EQ(rig.a.bytes_at(mine.address + kPage, 1000), data);
    EXPECT_EQ(rig.b.core.busy(), kTimeZero);
    EXPECT_EQ(rig.b.verbs().stats().polls, polls);
    EXPECT_GT(rig.a.core.busy(), kTimeZero);
  });
}

TEST_P(PrimerTest, AnAddressThatIsNotPinnedGoesStale) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    RigBuffer mine = rig.a.buffer(kPage);
    RigBuffer theirs = rig.b.buffer(kPage);
    host::AddressSpace& space = rig.b.space();
    const auto write = [&](std::uint8_t value) {
      rig.a.fill(mine.address, Bytes(64, value));
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 64, theirs.address,
                           theirs.region.rkey),
                Status::kOk);
      // The requester cannot tell: the NIC wrote to the physical address that it was given.
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
      rig.settle(microseconds(2));
    };
    write(1);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, 64), Bytes(64, 1));
    const std::uint64_t frame = *space.translate(theirs.address);

    // A device that asked for an address but not for the pin.
    ASSERT_EQ(space.unpin(theirs.address, kPage), Status::kOk);
    ASSERT_EQ(space.migrate(theirs.address), Status::kOk);
    ASSERT_NE(*space.translate(theirs.address), frame);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, 64), Bytes(64, 1)) << "a move is invisible to the CPU";
    write(2);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, 64), Bytes(64, 1))
        << "the application misses the data";
    Bytes old_frame(64);
    rig.b.node.host.memory.read(frame, old_frame.data(), old_frame.size());
    EXPECT_EQ(old_frame, Bytes(64, 2)) << "they went to whoever has that frame now";

    // Registered and pinned, the page stays and the data arrive.
    RigBuffer pinned = rig.b.buffer(kPage);
    EXPECT_EQ(space.migrate(pinned.address), Status::kEbusy);
    theirs = pinned;
    write(3);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, 64), Bytes(64, 3));
  });
}

/// A request that the responder must refuse: error at the requester, both queue pairs unusable for
/// it, memory untouched.
void expect_refused(VerbsRig& rig, WrOpcode opcode, const RigBuffer& mine, const RigBuffer& theirs,
                    std::uint64_t address, std::uint32_t rkey, std::uint32_t bytes) {
  const Bytes before(theirs.bytes, 0x11);
  rig.b.fill(theirs.address, before);
  const Bytes own(mine.bytes, 0x22);
  rig.a.fill(mine.address, own);
  ASSERT_EQ(rig.a.post(opcode, mine.address, mine.region.lkey, bytes, address, rkey), Status::kOk);
  const host::verbs::Wc wc = rig.a.await_send();
  EXPECT_EQ(wc.status, WcStatus::kRemoteAccessError);
  EXPECT_EQ(wc.wr_id, rig.a.wr_ids);
  rig.settle();
  EXPECT_EQ(rig.a.device_qp().state, QpState::kError);
  EXPECT_EQ(rig.b.bytes_at(theirs.address, theirs.bytes), before);
  EXPECT_EQ(rig.a.bytes_at(mine.address, mine.bytes), own);
  // What is posted from now on comes back unexecuted.
  if (rig.a.post(opcode, mine.address, mine.region.lkey, 8, theirs.address, theirs.region.rkey) ==
      Status::kOk) {
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kWrFlushError);
    rig.settle();
    EXPECT_EQ(rig.b.bytes_at(theirs.address, theirs.bytes), before);
  }
}

TEST_P(PrimerTest, AWrongRkeyIsRefused) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const RigBuffer theirs = rig.b.buffer(kPage);
    expect_refused(rig, WrOpcode::kRdmaWrite, mine, theirs, theirs.address,
                   theirs.region.rkey ^ 0x55, 64);
  });
}

TEST_P(PrimerTest, AReadWithAWrongRkeyIsRefused) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const RigBuffer theirs = rig.b.buffer(kPage);
    expect_refused(rig, WrOpcode::kRdmaRead, mine, theirs, theirs.address,
                   theirs.region.rkey ^ 0x55, 64);
  });
}

TEST_P(PrimerTest, AByteBeyondTheRegionIsRefused) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const RigBuffer theirs = rig.b.buffer(kPage);
    expect_refused(rig, WrOpcode::kRdmaWrite, mine, theirs, theirs.address + kPage - 63,
                   theirs.region.rkey, 64);
  });
}

TEST_P(PrimerTest, ARightThatWasNotGrantedIsRefused) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const RigBuffer readable =
        rig.b.buffer(kPage, protocol::kAccessLocalWrite | protocol::kAccessRemoteRead);
    expect_refused(rig, WrOpcode::kRdmaWrite, mine, readable, readable.address,
                   readable.region.rkey, 64);
  });
}

TEST_P(PrimerTest, AKeyEndsWithItsRegion) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const RigBuffer theirs = rig.b.buffer(kPage);
    // Used once, so that the NIC has the key and its translation on chip.
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 64, theirs.address,
                         theirs.region.rkey),
              Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    EXPECT_EQ(rig.b.verbs().dereg_mr(rig.b.core, theirs.region), Status::kOk);
    rig.settle();
    expect_refused(rig, WrOpcode::kRdmaWrite, mine, theirs, theirs.address, theirs.region.rkey, 64);
  });
}

TEST_P(PrimerTest, AWrongLkeyNeverReachesTheWire) {
  VerbsRig rig(settings());
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kPage);
    const RigBuffer theirs = rig.b.buffer(kPage);
    const Bytes before(kPage, 0x11);
    rig.b.fill(theirs.address, before);
    const std::uint64_t frames = rig.a.port().sent().frames;
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey ^ 0x55, 64,
                         theirs.address, theirs.region.rkey),
              Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kLocalProtectionError);
    rig.settle();
    // iWARP: the reset of the connection, which carries nothing.
    EXPECT_EQ(rig.a.port().sent().frames, frames + (GetParam() == "iwarp" ? 1 : 0));
    EXPECT_EQ(rig.a.device_qp().state, QpState::kError);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kPage), before);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, PrimerTest, ::testing::ValuesIn(all_protocols()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rnic::testbench

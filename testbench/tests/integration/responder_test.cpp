// SPDX-License-Identifier: Apache-2.0
// What a responder refuses, who learns of it and how, and what becomes of both queue pairs.
#include <gtest/gtest.h>

#include "protocol/atomic.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;

constexpr protocol::AccessFlags kAtomicAccess = kAllAccess | protocol::kAccessRemoteAtomic;

TEST(ResponderResources, TheNinthReadOfEightIsAnInvalidRequest) {
  // The requester may have 16 READs outstanding, the responder was set up for 8. Each is 64 KiB,
  // 5 us of answer at 100 Gb/s, so that all 16 requests arrive before the first is answered.
  constexpr std::uint32_t kReads = 16;
  constexpr std::uint32_t kBytes = 65536;
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    config::TransportConfig eight = rig.config().transport;
    eight.max_dest_rd_atomic = 8;
    rig.a.connect(rig.b.qp->qpn, path_between(0, 1), rig.config().transport);
    rig.b.connect(rig.a.qp->qpn, path_between(1, 0), eight);
    rig.settle();
    RigBuffer sink = rig.a.buffer(kReads * kBytes);
    RigBuffer source = rig.b.buffer(kReads * kBytes);
    std::vector<protocol::Sge> sges(kReads);
    std::vector<SendWr> wrs(kReads);
    for (std::uint32_t i = 0; i < kReads; ++i) {
      sges[i] = {sink.address + i * kBytes, kBytes, sink.region.lkey};
      wrs[i].wr_id = i + 1;
      wrs[i].opcode = WrOpcode::kRdmaRead;
      wrs[i].flags = SendFlags::kSignaled;
      wrs[i].sg_list = &sges[i];
      wrs[i].num_sge = 1;
      wrs[i].remote_addr = source.address + i * kBytes;
      wrs[i].rkey = source.region.rkey;
    }
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, wrs.data(), kReads),
              host::Status::kOk);
    for (std::uint64_t id = 1; id <= kReads; ++id) {
      const host::verbs::Wc wc = rig.a.await_send();
      EXPECT_EQ(wc.wr_id, id);
      EXPECT_EQ(wc.status, id < 9    ? WcStatus::kSuccess
                           : id == 9 ? WcStatus::kRemoteInvalidRequestError
                                     : WcStatus::kWrFlushError)
          << id;
    }
    rig.settle();
    EXPECT_EQ(rig.a.device_qp().state, QpState::kError);
    EXPECT_EQ(rig.b.device_qp().state, QpState::kError);
  });
}

/// A fetch-and-add with one condition missing.
struct Missing {
  const char* name;
  bool qp_right = true;
  bool region_right = true;
  std::uint32_t resources = 4;
  std::uint64_t offset = 64;
  WcStatus expected = WcStatus::kSuccess;
};

class AtomicConditions : public ::testing::TestWithParam<Missing> {};

TEST_P(AtomicConditions, DecideTheStatus) {
  const Missing& missing = GetParam();
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.a.create();
    rig.b.create();
    rig.b.qp = rig.b.make_qp(RigSide::qp_attr(),
                             missing.qp_right
                                 ? protocol::kAccessRemoteMask
                                 : protocol::kAccessRemoteMask & ~protocol::kAccessRemoteAtomic);
    config::TransportConfig responder = rig.config().transport;
    responder.max_dest_rd_atomic = missing.resources;
    rig.a.connect(rig.b.qp->qpn, path_between(0, 1), rig.config().transport);
    rig.b.connect(rig.a.qp->qpn, path_between(1, 0), responder);
    rig.settle();
    RigBuffer result = rig.a.buffer(4096);
    RigBuffer target = rig.b.buffer(4096, missing.region_right ? kAtomicAccess : kAllAccess);
    rig.b.fill(target.address + 64, {41, 0, 0, 0, 0, 0, 0, 0});
    const protocol::Sge sge{result.address, 8, result.region.lkey};
    SendWr wr;
    wr.opcode = WrOpcode::kAtomicFetchAndAdd;
    wr.flags = SendFlags::kSignaled;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.remote_addr = target.address + missing.offset;
    wr.rkey = target.region.rkey;
    wr.compare_add = 1;
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, missing.expected);
    rig.settle();
    const bool done = missing.expected == WcStatus::kSuccess;
    EXPECT_EQ(protocol::load_operand(rig.b.bytes_at(target.address + 64, 8).data()),
              done ? 42U : 41U);
    EXPECT_EQ(protocol::load_operand(rig.a.bytes_at(result.address, 8).data()), done ? 41U : 0U);
    EXPECT_EQ(rig.b.device_qp().state, done ? QpState::kRts : QpState::kError);
  });
}

INSTANTIATE_TEST_SUITE_P(
    FetchAdd, AtomicConditions,
    ::testing::Values(Missing{"None"},
                      Missing{"QpRight", false, true, 4, 64, WcStatus::kRemoteInvalidRequestError},
                      Missing{"RegionRight", true, false, 4, 64, WcStatus::kRemoteAccessError},
                      Missing{"Resources", true, true, 0, 64, WcStatus::kRemoteInvalidRequestError},
                      Missing{"Alignment", true, true, 4, 68,
                              WcStatus::kRemoteInvalidRequestError}),
    [](const auto& test) { return test.param.name; });

TEST(AtomicLength, OtherThanEightBytesIsALocalLengthError) {
  VerbsRig rig(Settings{{"transport.protocol", "ib"}});
  rig.run([&] {
    rig.connect();
    RigBuffer result = rig.a.buffer(4096);
    RigBuffer target = rig.b.buffer(4096, kAtomicAccess);
    ASSERT_EQ(rig.a.post(WrOpcode::kAtomicFetchAndAdd, result.address, result.region.lkey, 4,
                         target.address, target.region.rkey),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, WcStatus::kLocalLengthError);
    rig.settle();
    EXPECT_EQ(rig.a.device_qp().state, QpState::kError);
    EXPECT_EQ(rig.b.device_qp().state, QpState::kRts) << "nothing was sent";
  });
}

}  // namespace
}  // namespace rnic::testbench

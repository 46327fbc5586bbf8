// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {

/// Two connected hosts with four pages each.
struct CornerRig {
  using Status = host::Status;
  using SendWr = host::verbs::SendWr;
  using WrOpcode = host::verbs::WrOpcode;
  using SendFlags = host::verbs::SendFlags;
  using Sge = protocol::Sge;

  static constexpr std::uint64_t kPage = 4096;
  static constexpr protocol::AccessFlags kEverything = kAllAccess | protocol::kAccessRemoteAtomic;

  explicit CornerRig(const std::string& protocol, const Settings& more = {})
      : rig(with({{"transport.protocol", protocol}}, more)) {}

  void connect() {
    rig.connect();
    prepare();
  }
  void connect(protocol::QpType type) {
    rig.connect(type);
    prepare();
  }
  void prepare() {
    mine = rig.a.buffer(4 * kPage, kEverything);
    theirs = rig.b.buffer(4 * kPage, kEverything);
    rig.settle();
  }
  /// Of the requester's queue pair.
  Status to_state(protocol::QpState state) {
    host::verbs::QpAttr attr;
    attr.qp_state = state;
    return rig.a.verbs().modify_qp(rig.a.core, *rig.a.qp, attr, protocol::QpAttrMask::kState);
  }
  SendWr request(WrOpcode opcode, const Sge* list, std::uint32_t count) {
    SendWr wr;
    wr.wr_id = ++rig.a.wr_ids;
    wr.opcode = opcode;
    wr.flags = SendFlags::kSignaled;
    wr.sg_list = list;
    wr.num_sge = count;
    wr.remote_addr = theirs.address;
    wr.rkey = theirs.region.rkey;
    wr.ah = rig.a_to_b;
    wr.remote_qpn = rig.b.qp->qpn;
    wr.remote_qkey = kRigQkey;
    return wr;
  }
  Status post(const SendWr& wr) { return rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1); }
  Status post(WrOpcode opcode, const Sge& sge, std::uint32_t flags = 0) {
    SendWr wr = request(opcode, &sge, 1);
    wr.flags |= flags;
    return post(wr);
  }
  protocol::WcStatus outcome(WrOpcode opcode, const Sge& sge) {
    EXPECT_EQ(post(opcode, sge), Status::kOk);
    return rig.a.await_send().status;
  }
  Status post_recv(const Sge* list, std::uint32_t count) {
    const host::verbs::RecvWr wr{++rig.b.wr_ids, list, count};
    return rig.b.verbs().post_recv(rig.b.core, *rig.b.qp, &wr, 1);
  }
  std::uint32_t completions(host::verbs::CompletionQueue& cq, RigSide& side) {
    host::verbs::Wc wcs[64];
    return side.verbs().poll_cq(side.core, cq, 64, wcs);
  }

  VerbsRig rig;
  RigBuffer mine;
  RigBuffer theirs;
};

}  // namespace rnic::testbench

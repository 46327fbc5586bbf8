// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "reference/status_table.h"
#include "support/verbs_rig.h"
#include "support/wire_spy.h"

namespace rnic::testbench::status {

using host::Status;
using host::verbs::QueuePair;
using host::verbs::SendFlags;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::Sge;
using protocol::WcStatus;
using reference::Cause;
using reference::Consequence;
using reference::Service;
using reference::Wire;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kInline = 64;
constexpr std::uint32_t kSendDepth = 4;
constexpr std::uint32_t kMaxSge = 2;
constexpr std::uint64_t kTop = ~std::uint64_t{0} - 7;  ///< 8 bytes below the end of the space

inline bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
}

inline protocol::QpType type_of(Service service) {
  if (service == Service::kUc) return protocol::QpType::kUc;
  return service == Service::kUd ? protocol::QpType::kUd : protocol::QpType::kRc;
}

/// One mistake to be made on a connection of its own: the queue pairs, regions, keys and work
/// requests that it takes.
class Mistaken {
 protected:
  Mistaken(VerbsRig& rig, Cause cause, WrOpcode opcode, Service service)
      : rig_(rig), cause_(cause), opcode_(opcode), service_(service) {}

  void connect() {
    using Mask = protocol::QpAttrMask;
    host::verbs::QpInitAttr attr = RigSide::qp_attr();
    attr.qp_type = type_of(service_);
    attr.max_send_sge = kMaxSge;
    if (uses_srq()) attr.srq = srq_ = rig_.b.verbs().create_srq(rig_.b.core, rig_.b.pd, {});
    if (cause_ == Cause::kRecvCqFull) recv_cq_ = rig_.b.verbs().create_cq(rig_.b.core, 1);
    to_ = rig_.b.make_qp(attr, *rig_.b.send_cq, recv_cq_ != nullptr ? *recv_cq_ : *rig_.b.recv_cq,
                         cause_ == Cause::kQpNoRight ? 0 : protocol::kAccessRemoteMask);
    attr.srq = nullptr;
    attr.max_send_wr = kSendDepth;
    if (cause_ == Cause::kSendCqFull) send_cq_ = rig_.a.verbs().create_cq(rig_.a.core, 1);
    from_ =
        rig_.a.make_qp(attr, send_cq_ != nullptr ? *send_cq_ : *rig_.a.send_cq, *rig_.a.recv_cq);
    if (cause_ != Cause::kNotReadyToSend) join();
    if (cause_ == Cause::kPeerInError) {
      host::verbs::QpAttr error;
      error.qp_state = QpState::kError;
      EXPECT_EQ(rig_.b.verbs().modify_qp(rig_.b.core, *to_, error, Mask::kState), Status::kOk);
    }
  }

  bool uses_srq() const { return cause_ == Cause::kSrqEmpty || cause_ == Cause::kSrqUnreadable; }

  /// Both up to RTS, with what the responder has for READs as the mistake wants it.
  void join() {
    config::TransportConfig t = rig_.config().transport;
    if (cause_ == Cause::kTooManyReads) t.max_rd_atomic = 2;
    rig_.a.connect(*from_, to_->qpn, path_between(0, 1), t);
    if (cause_ == Cause::kTooManyReads) t.max_dest_rd_atomic = 1;
    if (cause_ == Cause::kNoResources) t.max_dest_rd_atomic = 0;
    rig_.b.connect(*to_, from_->qpn, path_between(1, 0), t);
  }

  /// A region on demand, of memory that the process has given back.
  static RigBuffer unmapped(RigSide& side) {
    const RigBuffer made = side.buffer(kPage, kAll | protocol::kAccessOnDemand);
    EXPECT_EQ(side.space().unmap(made.address), Status::kOk);
    return made;
  }

  /// What the device of the requester or responder cannot read, from now on, once.
  void break_read() {
    const auto poison = [](RigSide& side, tlm_ext::Purpose purpose) {
      side.node.pcie.faults().poison_next(purpose);
    };
    using tlm_ext::Purpose;
    if (cause_ == Cause::kWqeUnreadable) poison(rig_.a, Purpose::kWqe);
    if (cause_ == Cause::kContextUnreadable) poison(rig_.a, Purpose::kQpc);
    if (cause_ == Cause::kKeyUnreadable) poison(rig_.a, Purpose::kMpt);
    if (cause_ == Cause::kPeerKeyUnreadable) poison(rig_.b, Purpose::kMpt);
    if (cause_ == Cause::kPeerContextUnreadable) poison(rig_.b, Purpose::kQpc);
    if (cause_ == Cause::kRecvUnreadable || cause_ == Cause::kSrqUnreadable) {
      poison(rig_.b, Purpose::kRqWqe);
    }
  }

  /// A READ that is under way when the request comes.
  void keep_busy() {
    constexpr std::uint32_t kLong = 1U << 16;
    const RigBuffer into = rig_.a.buffer(kLong, kAll);
    const RigBuffer from = rig_.b.buffer(kLong, kAll);
    EXPECT_EQ(rig_.a.post(*from_, WrOpcode::kRdmaRead, into.address, into.region.lkey, kLong,
                          from.address, from.region.rkey, 0, 0),
              Status::kOk);
  }

  /// A message of no bytes, whose completion nobody takes out of the queue that it fills.
  void fill_cq() {
    Sge nothing{0, 0, 0};
    host::verbs::SendWr filler = wr_;
    const bool at_peer = cause_ == Cause::kRecvCqFull;
    filler.opcode = at_peer || service_ == Service::kUd ? WrOpcode::kSend : WrOpcode::kRdmaWrite;
    filler.flags = at_peer ? 0 : std::uint32_t{SendFlags::kSignaled};
    filler.sg_list = &nothing;
    filler.num_sge = 0;
    if (at_peer) {
      const host::verbs::RecvWr recv{77, &recv_sge_, 1};
      EXPECT_EQ(rig_.b.verbs().post_recv(rig_.b.core, *to_, &recv, 1), Status::kOk);
    } else {
      filler.remote_qpn = to_->qpn + 1000;
    }
    EXPECT_EQ(rig_.a.verbs().post_send(rig_.a.core, *from_, &filler, 1), Status::kOk);
    rig_.settle(microseconds(50));
  }

  /// A region of another protection domain.
  static RigBuffer foreign(RigSide& side, protocol::AccessFlags access = kAll) {
    const std::uint32_t own = side.pd;
    side.pd = side.verbs().alloc_pd();
    const RigBuffer made = side.buffer(kPage, access);
    side.pd = own;
    return made;
  }
  static RigBuffer gone(RigSide& side) {
    const RigBuffer made = side.buffer(kPage, kBindable);
    EXPECT_EQ(side.verbs().dereg_mr(side.core, made.region), Status::kOk);
    return made;
  }

  void prepare() {
    using protocol::kAccessLocalWrite;
    using protocol::kAccessOnDemand;
    local_ = rig_.a.buffer(kPage, cause_ == Cause::kLocalNoWrite ? 0
                                  : cause_ == Cause::kLocalPaged ? kAll | kAccessOnDemand
                                                                 : kAll);
    remote_ = rig_.b.buffer(kPage, cause_ == Cause::kRemoteNoRight ? kAccessLocalWrite
                                   : cause_ == Cause::kRemotePaged ? kAll | kAccessOnDemand
                                                                   : kBindable);
    inbox_ =
        rig_.b.buffer(kPage, cause_ == Cause::kRecvNoWrite ? 0
                             : cause_ == Cause::kRecvPaged ? kAccessLocalWrite | kAccessOnDemand
                                                           : kAccessLocalWrite);
    rig_.a.fill(local_.address, Bytes(kPage, 0x22));
    rig_.b.fill(remote_.address, Bytes(kPage, 0x11));
    rig_.b.fill(inbox_.address, Bytes(kPage, 0x33));
    sge_ = {local_.address, bytes(), local_.region.lkey};
    wr_.wr_id = 1;
    wr_.opcode = opcode_;
    wr_.flags = SendFlags::kSignaled;
    wr_.sg_list = &sge_;
    wr_.num_sge = 1;
    wr_.imm_data = 9;
    wr_.remote_addr = remote_.address;
    wr_.rkey = remote_.region.rkey;
    wr_.compare_add = 0x1111'1111'1111'1111;  // what is there: the swap happens
    wr_.swap = 0x4444'4444'4444'4444;
    recv_sge_ = {inbox_.address, bytes() + header_area(), inbox_.region.lkey};
    address();
    spoil_local();
    spoil_remote();
    spoil_recv();
    choose_object();
  }

  /// A request of a queue pair that has nothing to do with the attempt, or of the responder's.
  static void by_helper(RigSide& side, QueuePair& helper, host::verbs::SendWr& wr) {
    wr.flags = SendFlags::kSignaled;
    EXPECT_EQ(side.verbs().post_send(side.core, helper, &wr, 1), Status::kOk);
    EXPECT_EQ(side.await_send().status, WcStatus::kSuccess);
  }

  /// A region that work requests register, with pages mapped.
  static host::verbs::FastRegion fast_region(RigSide& side, std::uint32_t pd) {
    auto region = side.verbs().alloc_fast_mr(side.core, pd, 1);
    EXPECT_TRUE(region);
    EXPECT_EQ(side.verbs().map_fast_mr(side.core, *region, side.space().map(kPage, kPage), kPage),
              Status::kOk);
    return *region;
  }
  static void register_fast(RigSide& side, QueuePair& helper, host::verbs::FastRegion& region,
                            std::uint32_t access) {
    host::verbs::SendWr wr;
    wr.opcode = WrOpcode::kRegMr;
    wr.reg = {&region, host::verbs::next_key(region.key), access};
    by_helper(side, helper, wr);
  }
  static std::uint32_t fast_key(RigSide& side, std::uint32_t access) {
    host::verbs::FastRegion region = fast_region(side, side.pd);
    register_fast(side, *side.qp, region, access);
    return region.key;
  }
  std::uint32_t foreign_fast_key(RigSide& side) {
    const std::uint32_t own = side.pd;
    side.pd = side.verbs().alloc_pd();
    QueuePair* helper = side.make_qp(RigSide::qp_attr());
    side.pd = own;
    RigSide& other = &side == &rig_.a ? rig_.b : rig_.a;
    QueuePair* opposite = other.make_qp(RigSide::qp_attr());
    if (&side == &rig_.a) {
      rig_.join(*helper, *opposite);
    } else {
      rig_.join(*opposite, *helper);
    }
    host::verbs::FastRegion region = fast_region(side, helper->pd);
    register_fast(side, *helper, region, kAll);
    return region.key;
  }

  /// A window to `region` that is bound through `binder`.
  static host::verbs::MemoryWindow window_to(RigSide& side, QueuePair& binder,
                                             host::verbs::MwType type, const RigBuffer& region,
                                             std::uint64_t bytes, std::uint32_t access) {
    auto window = side.verbs().alloc_mw(side.core, side.pd, type);
    EXPECT_TRUE(window);
    host::verbs::SendWr wr;
    wr.opcode = WrOpcode::kBindMw;
    wr.bind = {
        &*window, host::verbs::next_key(window->rkey), region.region.lkey, region.address, bytes,
        access};
    by_helper(side, binder, wr);
    return *window;
  }
  static std::uint32_t helper_window(RigSide& side, host::verbs::MwType type) {
    const RigBuffer region = side.buffer(kPage, kBindable);
    return window_to(side, *side.qp, type, region, kPage, protocol::kAccessRemoteWrite).rkey;
  }

  /// The key that is to be ended, at `side`.
  void choose_key(RigSide& side) {
    switch (cause_) {
      case Cause::kInvalUnknownKey:
        wr_.invalidate_key = 0xFFFF'F000;
        break;
      case Cause::kInvalVariant:
        wr_.invalidate_key = fast_key(side, kAll) ^ 0x01;
        break;
      case Cause::kInvalOtherPd:
        wr_.invalidate_key = foreign_fast_key(side);
        break;
      case Cause::kInvalRegion:
        wr_.invalidate_key = (&side == &rig_.b ? remote_ : local_).region.rkey;
        break;
      case Cause::kInvalWindowType1:
        wr_.invalidate_key = helper_window(side, host::verbs::MwType::kType1);
        break;
      case Cause::kInvalOtherQp:
        wr_.invalidate_key = helper_window(side, host::verbs::MwType::kType2);
        break;
      case Cause::kInvalTwice: {
        wr_.invalidate_key = fast_key(side, kAll);
        host::verbs::SendWr first;
        first.opcode = WrOpcode::kLocalInv;
        first.invalidate_key = wr_.invalidate_key;
        by_helper(side, *side.qp, first);
        break;
      }
      case Cause::kInvalHidden:
        wr_.invalidate_key = fast_key(side, protocol::kAccessLocalWrite);
        break;
      default:
        wr_.invalidate_key = fast_key(side, kAll);
        break;
    }
  }

  /// The peer's page through a window of the responder's.
  void go_through_window() {
    const RigBuffer& region = remote_;
    const bool bounds = cause_ == Cause::kWindowBounds;
    const std::uint32_t rights = cause_ == Cause::kWindowNoRight ? 0 : protocol::kAccessRemoteMask;
    if (cause_ == Cause::kWindowUnbound) {
      wr_.rkey = rig_.b.verbs().alloc_mw(rig_.b.core, rig_.b.pd, host::verbs::MwType::kType2)->rkey;
      return;
    }
    QueuePair& binder = cause_ == Cause::kWindowOtherQp ? *rig_.b.qp : *to_;
    wr_.rkey = window_to(rig_.b, binder, host::verbs::MwType::kType2, region,
                         bounds ? bytes() - 1 : kPage, rights)
                   .rkey;
    if (cause_ != Cause::kWindowEnded) return;
    host::verbs::SendWr end;
    end.opcode = WrOpcode::kLocalInv;
    end.invalidate_key = wr_.rkey;
    by_helper(rig_.b, *to_, end);
  }

  /// The peer's page through a type 1 window, which belongs to no queue pair.
  void go_through_window1() {
    host::verbs::Context& verbs = rig_.b.verbs();
    auto window = verbs.alloc_mw(rig_.b.core, rig_.b.pd, host::verbs::MwType::kType1);
    ASSERT_TRUE(window);
    if (cause_ != Cause::kWindow1Unbound) {
      QueuePair& binder = cause_ == Cause::kWindow1OtherQp ? *rig_.b.qp : *to_;
      const host::verbs::MwBind what{&*window,        0,     remote_.region.lkey,
                                     remote_.address, kPage, protocol::kAccessRemoteMask};
      EXPECT_EQ(verbs.bind_mw(rig_.b.core, binder, what, 5, SendFlags::kSignaled), Status::kOk);
      EXPECT_EQ(rig_.b.await_send().status, WcStatus::kSuccess);
    }
    wr_.rkey = window->rkey;
  }

  void choose_window() {
    const std::uint32_t pd =
        cause_ == Cause::kObjectOtherPd ? rig_.a.verbs().alloc_pd() : rig_.a.pd;
    window_ = *rig_.a.verbs().alloc_mw(rig_.a.core, pd, host::verbs::MwType::kType2);
    protocol::AccessFlags access = kBindable;
    if (cause_ == Cause::kBindNotAllowed) access = kAll;
    if (cause_ == Cause::kBindNoWrite) {
      access = protocol::kAccessRemoteRead | protocol::kAccessMwBind;
    }
    if (cause_ == Cause::kBindZeroBased) access |= protocol::kAccessZeroBased;
    RigBuffer region = rig_.a.buffer(kPage, access);
    if (cause_ == Cause::kBindOtherPd) region = foreign(rig_.a, kBindable);
    if (cause_ == Cause::kBindDeregistered) region = gone(rig_.a);
    wr_.bind = {&window_, host::verbs::next_key(window_.rkey), region.region.lkey, region.address,
                kPage,    protocol::kAccessRemoteWrite};
    if (cause_ == Cause::kBindZeroBased) wr_.bind.address = 0;  // as the region names its bytes
    if (cause_ == Cause::kBindUnknownKey) wr_.bind.lkey = 0xFFFF'F000;
    if (cause_ == Cause::kBindVariant) wr_.bind.lkey ^= 0x01;
    if (cause_ == Cause::kBindBounds) ++wr_.bind.length;
    if (cause_ == Cause::kBindTop) wr_.bind.address = kTop;
    if (cause_ == Cause::kBindNothing) wr_.bind.length = 0;
    if (cause_ == Cause::kBindRights) wr_.bind.access |= protocol::kAccessLocalWrite;
    if (cause_ == Cause::kBindBound) {
      host::verbs::SendWr before = wr_;
      by_helper(rig_.a, *rig_.a.qp, before);
      wr_.bind.rkey = host::verbs::next_key(window_.rkey);
    }
    if (cause_ == Cause::kObjectGone) {
      EXPECT_EQ(rig_.a.verbs().dealloc_mw(rig_.a.core, window_), Status::kOk);
    }
  }

  void choose_region() {
    const std::uint32_t pd =
        cause_ == Cause::kObjectOtherPd ? rig_.a.verbs().alloc_pd() : rig_.a.pd;
    if (cause_ == Cause::kRegUnmapped) {
      fast_ = *rig_.a.verbs().alloc_fast_mr(rig_.a.core, pd, 1);
    } else {
      fast_ = fast_region(rig_.a, pd);
    }
    if (cause_ == Cause::kRegRegistered) register_fast(rig_.a, *rig_.a.qp, fast_, kAll);
    const std::uint32_t access =
        cause_ == Cause::kRegRights ? protocol::kAccessRemoteWrite : std::uint32_t{kAll};
    wr_.reg = {&fast_, host::verbs::next_key(fast_.key), access};
    if (cause_ != Cause::kObjectGone) return;
    host::verbs::FastRegion copy = fast_;
    EXPECT_EQ(rig_.a.verbs().dealloc_fast_mr(rig_.a.core, copy), Status::kOk);
  }

  void choose_object() {
    if (opcode_ == WrOpcode::kSendWithInv) choose_key(rig_.b);
    if (!reference::is_key_operation(opcode_)) return;
    if (cause_ != Cause::kTooManySges && cause_ != Cause::kInline) wr_.num_sge = 0;
    if (opcode_ == WrOpcode::kLocalInv) choose_key(rig_.a);
    if (opcode_ == WrOpcode::kBindMw) choose_window();
    if (opcode_ == WrOpcode::kRegMr) choose_region();
  }

  /// Where a datagram goes.
  void address() {
    if (service_ != Service::kUd) return;
    std::uint32_t pd = rig_.a.pd;
    if (cause_ == Cause::kHandleOtherPd) pd = rig_.a.verbs().alloc_pd();
    if (cause_ != Cause::kNoHandle) {
      wr_.ah = rig_.a.verbs().create_ah(rig_.a.core, pd, path_between(0, 1));
    }
    wr_.remote_qpn = cause_ == Cause::kNobody ? to_->qpn + 1000 : to_->qpn;
    wr_.remote_qkey = cause_ == Cause::kOtherQkey ? kRigQkey + 1 : kRigQkey;
  }

  /// The request names that memory at the peer.
  void use(const RigBuffer& memory) {
    wr_.remote_addr = memory.address;
    wr_.rkey = memory.region.rkey;
  }
  static void use(const RigBuffer& memory, Sge& sge) {
    sge.address = memory.address;
    sge.lkey = memory.region.lkey;
  }

  void spoil_local() {
    switch (cause_) {
      case Cause::kZeroLength:
        sge_ = {0, 0, 0xABCD'EF00};
        wr_.rkey = 0xABCD'EF00;
        break;
      case Cause::kLocalUnknownKey:
        sge_.lkey = 0xFFFF'F000;
        break;
      case Cause::kLocalVariant:
        sge_.lkey ^= 0x01;
        break;
      case Cause::kLocalOtherPd:
        use(foreign(rig_.a), sge_);
        break;
      case Cause::kLocalBounds:
        sge_.address += kPage - bytes() + 1;
        break;
      case Cause::kLocalTop:
        sge_.address = kTop + 4;
        break;
      case Cause::kLocalDeregistered:
        use(gone(rig_.a), sge_);
        break;
      case Cause::kLocalPagedGone:
        use(unmapped(rig_.a), sge_);
        break;
      case Cause::kTooLong:
        make_too_long();
        break;
      case Cause::kInline:
        wr_.flags |= SendFlags::kInline;
        break;
      case Cause::kInlineTooLong:
        wr_.flags |= SendFlags::kInline;
        sge_.length = kInline + 1;
        break;
      case Cause::kTooManySges:
        several_.assign(kMaxSge + 1, sge_);
        wr_.sg_list = several_.data();
        wr_.num_sge = kMaxSge + 1;
        break;
      default:
        break;
    }
  }

  /// Atomics have 8 bytes, datagrams one packet, other messages 2 GiB (IBTA vol 1, 9.7.2).
  void make_too_long() {
    if (is_atomic(opcode_)) {
      sge_.length = 9;
    } else if (service_ == Service::kUd) {
      sge_.length = rig_.config().transport.mtu + 1;
    } else {
      sge_.length = (1U << 30) + 1;
      several_.assign(kMaxSge, sge_);
      wr_.sg_list = several_.data();
      wr_.num_sge = kMaxSge;
    }
  }

  void spoil_remote() {
    switch (cause_) {
      case Cause::kRemoteUnknownKey:
        wr_.rkey = 0xFFFF'F000;
        break;
      case Cause::kRemoteVariant:
        wr_.rkey ^= 0x01;
        break;
      case Cause::kRemoteOtherPd:
        use(foreign(rig_.b));
        break;
      case Cause::kRemoteBounds:
        wr_.remote_addr += kPage - bytes() + 8;
        break;
      case Cause::kRemoteTop:
        wr_.remote_addr = is_atomic(opcode_) ? kTop : kTop + 4;
        break;
      case Cause::kRemoteDeregistered:
        use(gone(rig_.b));
        break;
      case Cause::kMisaligned:
        wr_.remote_addr += 4;
        break;
      case Cause::kRemotePagedGone:
        use(unmapped(rig_.b));
        break;
      case Cause::kWindow1:
      case Cause::kWindow1Unbound:
      case Cause::kWindow1OtherQp:
        go_through_window1();
        break;
      case Cause::kWindow:
      case Cause::kWindowUnbound:
      case Cause::kWindowEnded:
      case Cause::kWindowBounds:
      case Cause::kWindowNoRight:
      case Cause::kWindowOtherQp:
        go_through_window();
        break;
      default:
        break;
    }
  }

  void spoil_recv() {
    switch (cause_) {
      case Cause::kRecvSmall:
        --recv_sge_.length;
        break;
      case Cause::kRecvUnknownKey:
        recv_sge_.lkey = 0xFFFF'F000;
        break;
      case Cause::kRecvVariant:
        recv_sge_.lkey ^= 0x01;
        break;
      case Cause::kRecvOtherPd:
        use(foreign(rig_.b), recv_sge_);
        break;
      case Cause::kRecvBounds:
        recv_sge_.address += kPage - recv_sge_.length + 1;
        break;
      case Cause::kRecvPagedGone:
        use(unmapped(rig_.b), recv_sge_);
        break;
      case Cause::kRecvDeregistered:
        use(gone(rig_.b), recv_sge_);
        break;
      default:
        break;
    }
  }

  std::uint32_t bytes() const { return is_atomic(opcode_) ? 8 : 64; }
  /// In front of a datagram in its RECV's buffer.
  std::uint32_t header_area() const { return service_ == Service::kUd ? 40 : 0; }

  /// One for the request and one more, which is flushed when the responder breaks.
  void post_recv() {
    if (!has_recvs()) return;
    for (std::uint64_t id = 1; id <= 2; ++id) {
      const host::verbs::RecvWr recv{id, &recv_sge_, 1};
      const Status status = srq_ != nullptr
                                ? rig_.b.verbs().post_srq_recv(rig_.b.core, *srq_, &recv, 1)
                                : rig_.b.verbs().post_recv(rig_.b.core, *to_, &recv, 1);
      EXPECT_EQ(status, Status::kOk);
    }
  }
  bool has_recvs() const {
    return cause_ != Cause::kNoRecv && cause_ != Cause::kPeerInError && cause_ != Cause::kSrqEmpty;
  }

  void fill_queue() {
    host::verbs::SendWr filler = wr_;
    filler.opcode = service_ == Service::kUd ? WrOpcode::kSend : WrOpcode::kRdmaWrite;
    filler.flags = 0;
    filler.sg_list = &sge_;
    filler.num_sge = 1;
    for (std::uint32_t i = 0; i < kSendDepth; ++i) {
      EXPECT_EQ(rig_.a.verbs().post_send(rig_.a.core, *from_, &filler, 1), Status::kOk);
    }
  }

  static constexpr protocol::AccessFlags kAll =
      protocol::kAccessLocalWrite | protocol::kAccessRemoteMask;
  static constexpr protocol::AccessFlags kBindable = kAll | protocol::kAccessMwBind;

  VerbsRig& rig_;
  const Cause cause_;
  const WrOpcode opcode_;
  const Service service_;
  host::verbs::SharedReceiveQueue* srq_ = nullptr;   ///< of the responder; null: a queue of its own
  host::verbs::CompletionQueue* send_cq_ = nullptr;  ///< of the requester; null: the rig's
  host::verbs::CompletionQueue* recv_cq_ = nullptr;  ///< of the responder; likewise
  QueuePair* from_ = nullptr;
  QueuePair* to_ = nullptr;
  RigBuffer local_;
  RigBuffer remote_;
  RigBuffer inbox_;
  Sge sge_;
  std::vector<Sge> several_;
  Sge recv_sge_;
  host::verbs::SendWr wr_;
  host::verbs::MemoryWindow window_;
  host::verbs::FastRegion fast_;
};

}  // namespace rnic::testbench::status

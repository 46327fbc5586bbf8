// SPDX-License-Identifier: Apache-2.0
// Every mistake with every operation on every transport: the status at the requester, what becomes
// of the RECV, the refusal on the wire, the states of both queue pairs, and whether memory was
// touched.
#include "reference/status_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "support/verbs_rig.h"
#include "support/wire_spy.h"

namespace rnic::testbench {
namespace {

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
constexpr std::uint64_t kTop = ~std::uint64_t{0} - 7;  ///< 8 bytes below the end of the space

bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
}

WireSpy::Protocol spied(const std::string& protocol) {
  if (protocol == "ib") return WireSpy::Protocol::kIb;
  if (protocol == "rocev1") return WireSpy::Protocol::kRoceV1;
  return protocol == "rocev2" ? WireSpy::Protocol::kRoceV2 : WireSpy::Protocol::kIwarp;
}

/// One mistake made on a connection of its own.
class Attempt {
 public:
  Attempt(VerbsRig& rig, WireSpy& spy, Cause cause, WrOpcode opcode, const Consequence& expected)
      : rig_(rig), spy_(spy), cause_(cause), opcode_(opcode), expected_(expected) {}

  void run() {
    connect();
    prepare();
    if (cause_ == Cause::kQueueFull) fill_queue();
    post_recv();
    rig_.settle();
    spy_.forget();
    const Status posted = rig_.a.verbs().post_send(rig_.a.core, *from_, &wr_, 1);
    EXPECT_EQ(posted, expected_.post) << host::status_name(posted);
    if (posted != Status::kOk || expected_.post != Status::kOk) return;
    judge();
  }

 private:
  void connect() {
    using Mask = protocol::QpAttrMask;
    host::verbs::QpInitAttr attr = RigSide::qp_attr();
    attr.max_send_wr = kSendDepth;
    from_ = rig_.a.make_qp(attr);
    to_ = rig_.b.make_qp(RigSide::qp_attr(),
                         cause_ == Cause::kQpNoRight ? 0 : protocol::kAccessRemoteMask);
    if (cause_ != Cause::kNotReadyToSend) {
      rig_.join(*from_, *to_);
    }
    if (cause_ == Cause::kPeerInError) {
      host::verbs::QpAttr error;
      error.qp_state = QpState::kError;
      EXPECT_EQ(rig_.b.verbs().modify_qp(rig_.b.core, *to_, error, Mask::kState), Status::kOk);
    }
  }

  /// A region of another protection domain.
  RigBuffer foreign(RigSide& side) {
    const std::uint32_t own = side.pd;
    side.pd = side.verbs().alloc_pd();
    const RigBuffer made = side.buffer(kPage, kAll);
    side.pd = own;
    return made;
  }
  RigBuffer gone(RigSide& side) {
    const RigBuffer made = side.buffer(kPage, kAll);
    EXPECT_EQ(side.verbs().dereg_mr(side.core, made.region), Status::kOk);
    return made;
  }

  void prepare() {
    local_ = rig_.a.buffer(kPage, cause_ == Cause::kLocalNoWrite ? 0 : kAll);
    remote_ =
        rig_.b.buffer(kPage, cause_ == Cause::kRemoteNoRight ? protocol::kAccessLocalWrite : kAll);
    inbox_ = rig_.b.buffer(kPage, cause_ == Cause::kRecvNoWrite ? 0 : protocol::kAccessLocalWrite);
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
    recv_sge_ = {inbox_.address, bytes(), inbox_.region.lkey};
    spoil_local();
    spoil_remote();
    spoil_recv();
    if (opcode_ == WrOpcode::kSendWithInv) choose_key();
  }

  /// A request of a queue pair that has nothing to do with the attempt.
  void by_helper(QueuePair& helper, host::verbs::SendWr& wr) {
    wr.flags = SendFlags::kSignaled;
    EXPECT_EQ(rig_.b.verbs().post_send(rig_.b.core, helper, &wr, 1), Status::kOk);
    EXPECT_EQ(rig_.b.await_send().status, WcStatus::kSuccess);
  }

  /// A region that a work request registered.
  std::uint32_t fast_key(std::uint32_t access) { return fast_key(*rig_.b.qp, access); }
  std::uint32_t fast_key(QueuePair& helper, std::uint32_t access) {
    host::verbs::Context& verbs = rig_.b.verbs();
    auto region = verbs.alloc_fast_mr(rig_.b.core, helper.pd, 1);
    EXPECT_TRUE(region);
    EXPECT_EQ(verbs.map_fast_mr(rig_.b.core, *region, rig_.b.space().map(kPage, kPage), kPage),
              Status::kOk);
    host::verbs::SendWr wr;
    wr.opcode = WrOpcode::kRegMr;
    wr.reg = {&*region, host::verbs::next_key(region->key), access};
    by_helper(helper, wr);
    return region->key;
  }
  std::uint32_t foreign_fast_key() {
    const std::uint32_t own = rig_.b.pd;
    rig_.b.pd = rig_.b.verbs().alloc_pd();
    QueuePair* helper = rig_.b.make_qp(RigSide::qp_attr());
    rig_.b.pd = own;
    rig_.join(*rig_.a.make_qp(RigSide::qp_attr()), *helper);
    return fast_key(*helper, kAll);
  }

  /// A window that is bound through the helper queue pair.
  std::uint32_t window_key(host::verbs::MwType type) {
    using host::verbs::MwBind;
    host::verbs::Context& verbs = rig_.b.verbs();
    const RigBuffer region = rig_.b.buffer(kPage, kAll | protocol::kAccessMwBind);
    auto window = verbs.alloc_mw(rig_.b.core, rig_.b.pd, type);
    EXPECT_TRUE(window);
    host::verbs::SendWr wr;
    wr.opcode = WrOpcode::kBindMw;
    wr.bind =
        MwBind{&*window, host::verbs::next_key(window->rkey), region.region.lkey, region.address,
               kPage,    protocol::kAccessRemoteWrite};
    by_helper(*rig_.b.qp, wr);
    return window->rkey;
  }

  void choose_key() {
    switch (cause_) {
      case Cause::kInvalUnknownKey:
        wr_.invalidate_key = 0xFFFF'F000;
        break;
      case Cause::kInvalVariant:
        wr_.invalidate_key = fast_key(kAll) ^ 0x01;
        break;
      case Cause::kInvalOtherPd:
        wr_.invalidate_key = foreign_fast_key();
        break;
      case Cause::kInvalRegion:
        wr_.invalidate_key = remote_.region.rkey;
        break;
      case Cause::kInvalWindowType1:
        wr_.invalidate_key = window_key(host::verbs::MwType::kType1);
        break;
      case Cause::kInvalOtherQp:
        wr_.invalidate_key = window_key(host::verbs::MwType::kType2);
        break;
      case Cause::kInvalTwice: {
        wr_.invalidate_key = fast_key(kAll);
        host::verbs::SendWr first;
        first.opcode = WrOpcode::kLocalInv;
        first.invalidate_key = wr_.invalidate_key;
        by_helper(*rig_.b.qp, first);
        break;
      }
      case Cause::kInvalHidden:
        wr_.invalidate_key = fast_key(protocol::kAccessLocalWrite);
        break;
      default:
        wr_.invalidate_key = fast_key(kAll);
        break;
    }
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
      case Cause::kLocalOtherPd: {
        const RigBuffer other = foreign(rig_.a);
        sge_.address = other.address;
        sge_.lkey = other.region.lkey;
        break;
      }
      case Cause::kLocalBounds:
        sge_.address += kPage - bytes() + 1;
        break;
      case Cause::kLocalTop:
        sge_.address = kTop + 4;
        break;
      case Cause::kLocalDeregistered: {
        const RigBuffer old = gone(rig_.a);
        sge_.address = old.address;
        sge_.lkey = old.region.lkey;
        break;
      }
      case Cause::kInline:
        wr_.flags |= SendFlags::kInline;
        break;
      case Cause::kInlineTooLong:
        wr_.flags |= SendFlags::kInline;
        sge_.length = kInline + 1;
        break;
      case Cause::kTooManySges:
        wr_.sg_list = two_;
        wr_.num_sge = 2;
        two_[0] = two_[1] = sge_;
        break;
      default:
        break;
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
      case Cause::kRemoteOtherPd: {
        const RigBuffer other = foreign(rig_.b);
        wr_.remote_addr = other.address;
        wr_.rkey = other.region.rkey;
        break;
      }
      case Cause::kRemoteBounds:
        wr_.remote_addr += kPage - bytes() + 8;
        break;
      case Cause::kRemoteTop:
        wr_.remote_addr = is_atomic(opcode_) ? kTop : kTop + 4;
        break;
      case Cause::kRemoteDeregistered: {
        const RigBuffer old = gone(rig_.b);
        wr_.remote_addr = old.address;
        wr_.rkey = old.region.rkey;
        break;
      }
      case Cause::kMisaligned:
        wr_.remote_addr += 4;
        break;
      default:
        break;
    }
  }

  void spoil_recv() {
    switch (cause_) {
      case Cause::kRecvSmall:
        recv_sge_.length = bytes() - 1;
        break;
      case Cause::kRecvUnknownKey:
        recv_sge_.lkey = 0xFFFF'F000;
        break;
      case Cause::kRecvVariant:
        recv_sge_.lkey ^= 0x01;
        break;
      case Cause::kRecvOtherPd: {
        const RigBuffer other = foreign(rig_.b);
        recv_sge_.address = other.address;
        recv_sge_.lkey = other.region.lkey;
        break;
      }
      case Cause::kRecvBounds:
        recv_sge_.address += kPage - bytes() + 1;
        break;
      case Cause::kRecvDeregistered: {
        const RigBuffer old = gone(rig_.b);
        recv_sge_.address = old.address;
        recv_sge_.lkey = old.region.lkey;
        break;
      }
      default:
        break;
    }
  }

  std::uint32_t bytes() const { return is_atomic(opcode_) ? 8 : 64; }

  /// One for the request and one more, which is flushed when the responder breaks.
  void post_recv() {
    if (cause_ == Cause::kNoRecv || cause_ == Cause::kPeerInError) return;
    for (std::uint64_t id = 1; id <= 2; ++id) {
      const host::verbs::RecvWr recv{id, &recv_sge_, 1};
      EXPECT_EQ(rig_.b.verbs().post_recv(rig_.b.core, *to_, &recv, 1), Status::kOk);
    }
  }

  void fill_queue() {
    host::verbs::SendWr filler = wr_;
    filler.opcode = WrOpcode::kRdmaWrite;
    filler.flags = 0;
    for (std::uint32_t i = 0; i < kSendDepth; ++i) {
      EXPECT_EQ(rig_.a.verbs().post_send(rig_.a.core, *from_, &filler, 1), Status::kOk);
    }
  }

  std::vector<Wc> taken(RigSide& side, host::verbs::CompletionQueue& cq, const QueuePair& qp) {
    std::vector<Wc> result;
    Wc wc;
    while (side.verbs().poll_cq(side.core, cq, 1, &wc) > 0) {
      if (wc.qp_num == qp.qpn) result.push_back(wc);
    }
    return result;
  }

  void judge() {
    const Wc done = rig_.a.await_send();
    EXPECT_EQ(done.qp_num, from_->qpn);
    EXPECT_EQ(done.wr_id, 1U);
    EXPECT_EQ(done.status, expected_.requester)
        << protocol::wc_status_name(done.status) << " instead of "
        << protocol::wc_status_name(expected_.requester);
    rig_.settle(microseconds(50));
    EXPECT_TRUE(taken(rig_.a, *rig_.a.send_cq, *from_).empty());
    judge_recvs();
    judge_wire();
    EXPECT_EQ(rig_.a.device_qp(*from_).state,
              expected_.requester_breaks ? QpState::kError : QpState::kRts);
    EXPECT_EQ(rig_.b.device_qp(*to_).state,
              expected_.responder_breaks ? QpState::kError : QpState::kRts);
    judge_memory();
  }

  void judge_recvs() {
    const std::vector<Wc> recvs = taken(rig_.b, *rig_.b.recv_cq, *to_);
    std::size_t at = 0;
    if (expected_.takes_recv) {
      ASSERT_FALSE(recvs.empty()) << "the RECV does not complete";
      EXPECT_EQ(recvs[at].wr_id, 1U);
      const bool ended = opcode_ == WrOpcode::kSendWithInv && expected_.recv == WcStatus::kSuccess;
      EXPECT_EQ((recvs[at].wc_flags & Wc::kWithInv) != 0, ended);
      EXPECT_EQ(recvs[at].invalidated_rkey, ended ? wr_.invalidate_key : 0U);
      EXPECT_EQ(recvs[at++].status, expected_.recv);
    }
    const bool posted = cause_ != Cause::kNoRecv && cause_ != Cause::kPeerInError;
    const std::size_t left = posted ? 2 - at : 0;
    if (expected_.responder_breaks) {
      EXPECT_EQ(recvs.size(), at + left);
      for (; at < recvs.size(); ++at) EXPECT_EQ(recvs[at].status, WcStatus::kWrFlushError);
    } else {
      EXPECT_EQ(recvs.size(), at) << "no other RECV completes";
    }
  }

  void judge_wire() {
    const std::uint32_t seen = spy_.refusal();
    const auto expected = static_cast<std::uint32_t>(expected_.wire);
    switch (expected_.wire) {
      case Wire::kRnrNak:
        EXPECT_EQ(seen & 0xE0U, expected);
        break;
      case Wire::kRdmapProtection:
      case Wire::kRdmapOperation:
        EXPECT_EQ(seen & 0xFF00U, expected) << std::hex << seen;
        break;
      default:
        EXPECT_EQ(seen, expected) << std::hex << seen;
        break;
    }
  }

  void judge_memory() {
    const bool changed = rig_.b.bytes_at(remote_.address, kPage) != Bytes(kPage, 0x11) ||
                         rig_.b.bytes_at(inbox_.address, kPage) != Bytes(kPage, 0x33);
    EXPECT_EQ(changed, expected_.memory_changes);
    const bool brought = expected_.requester == WcStatus::kSuccess &&
                         (opcode_ == WrOpcode::kRdmaRead || is_atomic(opcode_)) &&
                         cause_ != Cause::kZeroLength;
    EXPECT_EQ(rig_.a.bytes_at(local_.address, kPage) != Bytes(kPage, 0x22), brought);
  }

  static constexpr protocol::AccessFlags kAll =
      protocol::kAccessLocalWrite | protocol::kAccessRemoteMask;

  VerbsRig& rig_;
  WireSpy& spy_;
  const Cause cause_;
  const WrOpcode opcode_;
  const Consequence expected_;
  QueuePair* from_ = nullptr;
  QueuePair* to_ = nullptr;
  RigBuffer local_;
  RigBuffer remote_;
  RigBuffer inbox_;
  Sge sge_;
  Sge two_[2];
  Sge recv_sge_;
  host::verbs::SendWr wr_;
};

class StatusTable : public ::testing::TestWithParam<std::tuple<std::string, WrOpcode>> {};

TEST_P(StatusTable, EveryCause) {
  const auto& [protocol, opcode] = GetParam();
  const Service service = protocol == "iwarp" ? Service::kIwarp : Service::kReliable;
  WireSpy spy("spy", spied(protocol));
  VerbsRig rig({{"transport.protocol", protocol},
                {"transport.mtu", protocol == "iwarp" ? "1500" : "1024"},
                {"transport.ack_timeout", "6"},
                {"transport.retry_count", "1"},
                {"transport.rnr_retry", "1"},
                {"transport.min_rnr_timer", "1"},
                {"memory.memlock_limit", "1GiB"}},
               &spy);
  const WrOpcode op = opcode;
  rig.run([&] {
    rig.connect();
    for (const Cause cause : reference::all_causes()) {
      const Consequence expected = reference::consequence_of(cause, op, service);
      if (!expected.applies) continue;
      SCOPED_TRACE(std::string(reference::cause_name(cause)) + ", " + reference::opcode_name(op));
      Attempt(rig, spy, cause, op, expected).run();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, StatusTable,
                         ::testing::Combine(::testing::ValuesIn(all_protocols()),
                                            ::testing::ValuesIn(reference::all_opcodes())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" +
                                  reference::opcode_name(std::get<1>(test.param));
                         });

/// The table in the documentation is this one. RNICSIM_WRITE_STATUS_TABLE=1 writes it anew.
TEST(StatusTableDocument, IsUpToDate) {
  const std::string path = data_path() + "/../reference/status_table.md";
  const std::string head =
      "# What every mistake leads to\n\nGenerated from `status_table.cpp`, whose every line a test "
      "runs. QP states: requester, responder.\n\n";
  const std::string text = head + reference::status_table_markdown();
  if (std::getenv("RNICSIM_WRITE_STATUS_TABLE") != nullptr) std::ofstream(path) << text;
  std::ostringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.str(), text);
}

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "base/sc_time.h"
#include "config/loader.h"
#include "network/cable.h"
#include "protocol/access.h"
#include "simulation/addresses.h"
#include "simulation/paths.h"
#include "simulation/system.h"
#include "support/program.h"
#include "support/wire_spy.h"

namespace rnic::testbench {

constexpr protocol::AccessFlags kAllAccess =
    protocol::kAccessLocalWrite | protocol::kAccessRemoteWrite | protocol::kAccessRemoteRead;

constexpr std::uint32_t kRigQkey = 0x0102'0304;

/// Registered memory of one side.
struct RigBuffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  host::MemoryRegion region;
};

/// One of two hosts with what a verbs program needs, all owned by the one test program.
class RigSide {
 public:
  RigSide(const char* name, const config::Config& config, std::uint32_t index,
          protocol::FramePool& frames)
      : node(name, config, index, frames), index_(index) {}

  void create() {
    pd = verbs().alloc_pd();
    send_cq = verbs().create_cq(core, 64);
    recv_cq = verbs().create_cq(core, 64);
    qp = make_qp(qp_attr());
  }

  /// What create() makes its queue pair of.
  static host::verbs::QpInitAttr qp_attr() {
    host::verbs::QpInitAttr attr;
    attr.max_send_wr = attr.max_recv_wr = 32;
    attr.max_inline_data = 64;
    return attr;
  }

  /// A further queue pair in INIT, on this side's completion queues.
  host::verbs::QueuePair* make_qp(const host::verbs::QpInitAttr& attr,
                                  std::uint32_t access = protocol::kAccessRemoteMask) {
    return make_qp(attr, *send_cq, *recv_cq, access);
  }
  host::verbs::QueuePair* make_qp(const host::verbs::QpInitAttr& attr,
                                  host::verbs::CompletionQueue& send,
                                  host::verbs::CompletionQueue& recv,
                                  std::uint32_t access = protocol::kAccessRemoteMask) {
    host::verbs::QueuePair* made = verbs().create_qp(core, pd, send, recv, attr);
    EXPECT_NE(made, nullptr);
    to_init(*made, access);
    return made;
  }

  /// From RESET.
  void to_init(host::verbs::QueuePair& made, std::uint32_t access = protocol::kAccessRemoteMask) {
    host::verbs::QpAttr init;
    init.qp_state = protocol::QpState::kInit;
    init.access_flags = access;
    init.qkey = kRigQkey;
    using Mask = protocol::QpAttrMask;
    const bool datagrams = made.cap.qp_type == protocol::QpType::kUd;
    EXPECT_EQ(verbs().modify_qp(core, made, init,
                                Mask::kState | Mask::kPkeyIndex | Mask::kPort |
                                    (datagrams ? Mask::kQkey : Mask::kAccessFlags)),
              host::Status::kOk);
  }

  void connect(std::uint32_t peer_qpn, const protocol::AddressVector& path,
               const config::TransportConfig& t) {
    connect(*qp, peer_qpn, path, t);
  }
  /// RTS towards `peer_qpn`.
  void connect(host::verbs::QueuePair& pair, std::uint32_t peer_qpn,
               const protocol::AddressVector& path, const config::TransportConfig& t) {
    using Mask = protocol::QpAttrMask;
    host::verbs::QpAttr attr;
    attr.qp_state = protocol::QpState::kRtr;
    attr.ah_attr = path;
    attr.path_mtu = t.mtu;
    attr.dest_qp_num = peer_qpn;
    attr.rq_psn = attr.sq_psn = 0xFF'FFF0;  // wraps soon
    attr.max_dest_rd_atomic = t.max_dest_rd_atomic;
    attr.max_rd_atomic = t.max_rd_atomic;
    attr.min_rnr_timer = t.min_rnr_timer;
    const bool reliable = pair.cap.qp_type == protocol::QpType::kRc;
    std::uint32_t ready = Mask::kState;
    if (pair.cap.qp_type != protocol::QpType::kUd) {
      ready |= Mask::kAv | Mask::kPathMtu | Mask::kDestQpn | Mask::kRqPsn;
    }
    if (reliable) ready |= Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer;
    ASSERT_EQ(verbs().modify_qp(core, pair, attr, ready), host::Status::kOk);
    attr.qp_state = protocol::QpState::kRts;
    attr.timeout = t.ack_timeout;
    attr.retry_cnt = t.retry_count;
    attr.rnr_retry = t.rnr_retry;
    std::uint32_t sending = Mask::kState | Mask::kSqPsn;
    if (reliable) {
      sending |= Mask::kTimeout | Mask::kRetryCnt | Mask::kRnrRetry | Mask::kMaxQpRdAtomic;
    }
    ASSERT_EQ(verbs().modify_qp(core, pair, attr, sending), host::Status::kOk);
  }

  RigBuffer buffer(std::uint64_t bytes, protocol::AccessFlags access = kAllAccess) {
    RigBuffer made;
    made.address = space().map(bytes);
    made.bytes = bytes;
    const auto result = verbs().reg_mr(core, pd, made.address, bytes, access);
    EXPECT_EQ(result.status, host::Status::kOk);
    made.region = result.region;
    return made;
  }

  host::Status post(host::verbs::WrOpcode opcode, std::uint64_t local, std::uint32_t lkey,
                    std::uint32_t bytes, std::uint64_t remote = 0, std::uint32_t rkey = 0,
                    std::uint32_t imm = 0) {
    return post(*qp, opcode, local, lkey, bytes, remote, rkey, imm);
  }
  host::Status post(host::verbs::QueuePair& pair, host::verbs::WrOpcode opcode, std::uint64_t local,
                    std::uint32_t lkey, std::uint32_t bytes, std::uint64_t remote = 0,
                    std::uint32_t rkey = 0, std::uint32_t imm = 0,
                    std::uint32_t flags = host::verbs::SendFlags::kSignaled) {
    const protocol::Sge sge{local, bytes, lkey};
    host::verbs::SendWr wr;
    wr.wr_id = ++wr_ids;
    wr.opcode = opcode;
    wr.flags = flags;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.remote_addr = remote;
    wr.rkey = rkey;
    wr.imm_data = imm;
    return verbs().post_send(core, pair, &wr, 1);
  }

  host::Status post_recv(std::uint64_t local, std::uint32_t lkey, std::uint32_t bytes) {
    return post_recv(*qp, local, lkey, bytes);
  }
  host::Status post_recv(host::verbs::QueuePair& pair, std::uint64_t local, std::uint32_t lkey,
                         std::uint32_t bytes) {
    const protocol::Sge sge{local, bytes, lkey};
    const host::verbs::RecvWr wr{++wr_ids, &sge, 1};
    return verbs().post_recv(core, pair, &wr, 1);
  }
  host::Status post_srq_recv(host::verbs::SharedReceiveQueue& srq, std::uint64_t local,
                             std::uint32_t lkey, std::uint32_t bytes) {
    const protocol::Sge sge{local, bytes, lkey};
    const host::verbs::RecvWr wr{++wr_ids, &sge, 1};
    return verbs().post_srq_recv(core, srq, &wr, 1);
  }

  /// Spins until `cq` has a completion and takes it.
  host::verbs::Wc await(host::verbs::CompletionQueue& cq) {
    host::verbs::Wc wc;
    do {
      verbs().wait_cq(core, cq);
    } while (verbs().poll_cq(core, cq, 1, &wc) == 0);
    core.sync();
    return wc;
  }
  host::verbs::Wc await_send() { return await(*send_cq); }
  host::verbs::Wc await_recv() { return await(*recv_cq); }

  std::vector<std::uint8_t> bytes_at(std::uint64_t address, std::uint64_t count) {
    std::vector<std::uint8_t> bytes(count);
    EXPECT_EQ(space().read(address, bytes.data(), bytes.size()), host::Status::kOk);
    return bytes;
  }
  void fill(std::uint64_t address, const std::vector<std::uint8_t>& bytes) {
    EXPECT_EQ(space().write(address, bytes.data(), bytes.size()), host::Status::kOk);
  }

  host::verbs::Context& verbs() { return node.host.verbs; }
  host::AddressSpace& space() { return node.host.space; }
  link::LinkPort& port() { return node.nic.port.link; }
  const nic::QpContext& device_qp() { return device_qp(*qp); }
  const nic::QpContext& device_qp(const host::verbs::QueuePair& pair) {
    return *node.nic.queue_pairs.find(pair.qpn);
  }
  protocol::QpState state() { return device_qp().state; }
  std::uint32_t index() const { return index_; }

  Node node;
  host::Core core;
  std::uint32_t pd = 0;
  host::verbs::CompletionQueue* send_cq = nullptr;
  host::verbs::CompletionQueue* recv_cq = nullptr;
  host::verbs::QueuePair* qp = nullptr;
  std::uint64_t wr_ids = 0;

 private:
  std::uint32_t index_;
};

/// Two hosts back to back, and one program that acts for both: what a test writes as a story.
class VerbsRig {
 public:
  /// `spy` sees what leaves side b.
  explicit VerbsRig(const Settings& settings, WireSpy* spy = nullptr)
      : timeline_(Timeline::instance()),
        loaded_(config::load_from(settings)),
        a("host0", loaded_.config, 0, frames_),
        b("host1", loaded_.config, 1, frames_),
        cable("cable", loaded_.config.link.delay, faults(loaded_.config.link),
              loaded_.config.sim.seed, frames_, nullptr) {
    use_paths(cable, loaded_.config, a.node.nic.encapsulation());
    if (spy == nullptr) {
      cable.connect(a.port(), b.port());
      return;
    }
    a.port().tx.bind(cable.from_a);
    b.port().tx.bind(spy->in);
    spy->out.bind(cable.from_b);
    cable.to_a.bind(a.port().rx);
    cable.to_b.bind(b.port().rx);
  }

  const config::Config& config() const { return loaded_.config; }

  /// Queue pairs of `type` on both sides, up to RTS; datagrams go along `a_to_b` and `b_to_a`.
  void connect(protocol::QpType type) {
    for (RigSide* side : {&a, &b}) {
      side->pd = side->verbs().alloc_pd();
      side->send_cq = side->verbs().create_cq(side->core, 64);
      side->recv_cq = side->verbs().create_cq(side->core, 64);
      host::verbs::QpInitAttr attr = RigSide::qp_attr();
      attr.qp_type = type;
      side->qp = side->make_qp(attr);
    }
    a.connect(b.qp->qpn, path_between(0, 1), config().transport);
    b.connect(a.qp->qpn, path_between(1, 0), config().transport);
    a_to_b = a.verbs().create_ah(a.core, a.pd, path_between(0, 1));
    b_to_a = b.verbs().create_ah(b.core, b.pd, path_between(1, 0));
    settle();
  }

  /// Queue pairs of both sides up to RTS.
  void connect() {
    a.create();
    b.create();
    a.connect(b.qp->qpn, path_between(0, 1), config().transport);
    b.connect(a.qp->qpn, path_between(1, 0), config().transport);
    settle();
  }

  /// Two more queue pairs, of either side, up to RTS.
  void join(host::verbs::QueuePair& of_a, host::verbs::QueuePair& of_b) {
    a.connect(of_a, of_b.qpn, path_between(0, 1), config().transport);
    b.connect(of_b, of_a.qpn, path_between(1, 0), config().transport);
  }

  /// Gives both sides a further connected queue pair, which is theirs from then on.
  void use_new_qps(const host::verbs::QpInitAttr& attr) {
    a.qp = a.make_qp(attr);
    b.qp = b.make_qp(attr);
    join(*a.qp, *b.qp);
    settle();
  }

  /// Both cores catch up, and whatever is under way arrives.
  void settle(Time time = microseconds(20)) {
    a.core.sync();
    b.core.sync();
    sc_core::wait(to_sc_time(time));
  }

  /// Runs `program` to its end; fails the test when it does not come to it in `longest`.
  void run(std::function<void()> program, Time longest = microseconds(1000000)) {
    bool done = false;
    sc_core::sc_spawn([this, &done, program = std::move(program)] {
      try {
        program();
        a.core.sync();
        b.core.sync();
      } catch (const sc_core::sc_unwind_exception&) {
        throw;
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      done = true;
      sc_core::sc_stop();
    });
    sc_core::sc_start(to_sc_time(longest));
    EXPECT_TRUE(done) << "the program waits for something that does not happen";
  }

 private:
  /// Without what damages frames, which needs their checksums too.
  static network::FaultConfig faults(const config::LinkConfig& link) {
    network::FaultConfig result;
    result.loss_rate = link.loss_rate;
    result.drop_list = link.drop_list;
    result.duplicate_rate = link.duplicate_rate;
    result.duplicate_list = link.duplicate_list;
    result.reorder_rate = link.reorder_rate;
    result.reorder_delay = link.reorder_delay;
    result.reorder_list = link.reorder_list;
    return result;
  }

  Timeline& timeline_;  ///< exists before any module
  config::LoadedConfig loaded_;
  protocol::FramePool frames_;

 public:
  RigSide a;
  RigSide b;
  network::Cable cable;
  host::verbs::AddressHandle* a_to_b = nullptr;  ///< of datagrams
  host::verbs::AddressHandle* b_to_a = nullptr;
};

}  // namespace rnic::testbench

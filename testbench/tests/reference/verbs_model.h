// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "host/verbs_types.h"
#include "protocol/access.h"
#include "reference/memory.h"

/// A second implementation of verbs, for tests: no time, no packets, no queues in hardware. Each
/// request is executed at once and whole, in the order in which it was posted to its queue pair;
/// what has to wait (a SEND for its RECV) waits. It shares nothing with the simulated device but
/// the names of opcodes, flags and statuses.
namespace rnic::reference {

using host::verbs::WrOpcode;
using protocol::AccessFlags;
using protocol::Sge;
using protocol::WcOpcode;
using protocol::WcStatus;

/// Whose rules of failure hold (InfiniBand volume 1 for IB and RoCE; RFC 5040, 5041 and 7306).
enum class Rules { kInfiniband, kIwarp };

/// Whom a datagram is addressed to.
enum class Addressee {
  kPeer,
  kOtherQkey,      ///< the peer, under a key that it does not take
  kNobody,         ///< a queue pair that does not exist
  kForeignHandle,  ///< the peer, by an address handle of another protection domain
  kGroup,          ///< the members of SendRequest::group
};

struct SendRequest {
  std::uint64_t wr_id = 0;
  WrOpcode opcode = WrOpcode::kSend;
  std::uint32_t flags = 0;
  std::vector<Sge> sges;
  std::uint32_t imm = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint32_t key = 0;          ///< that ends here or at the peer; of a bind or registration: new
  std::uint32_t bound_lkey = 0;   ///< bind: of the region
  std::uint64_t bound_bytes = 0;  ///< bind: from `remote_address`
  AccessFlags bound_access = 0;
  Addressee addressee = Addressee::kPeer;
  std::uint32_t group = 0;  ///< multicast group
};

struct RecvRequest {
  std::uint64_t wr_id = 0;
  std::vector<Sge> sges;
};

/// What ibv_poll_cq must return. Of a failure only wr_id and status are defined.
struct Completion {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  std::uint32_t byte_len = 0;
  bool has_length = false;  ///< byte_len means something: RECV, READ, atomics
  bool has_imm = false;
  std::uint32_t imm = 0;
  bool has_header = false;  ///< a network header lies in front of the data
  bool has_key = false;     ///< the peer ended a key of this side
  std::uint32_t key = 0;
};

/// What a key stands for: memory registered by the kernel or by a work request, or a window.
struct Region {
  enum class Kind { kKernel, kFast, kWindow };
  std::uint32_t pd = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  AccessFlags access = 0;
  std::uint32_t lkey = 0;  ///< 0: a window, which the owner has no use for
  std::uint32_t rkey = 0;
  Kind kind = Kind::kKernel;
  bool valid = true;
  std::uint32_t qp = 0;  ///< window: the only queue pair that may use it
};

/// Names a queue pair of a VerbsModel.
struct QpName {
  std::uint32_t host = 0;
  std::uint32_t qp = 0;
};

class VerbsModel {
 public:
  /// `early_placement`: WRITEs behind one that failed may have been placed all the same.
  VerbsModel(Rules rules, bool early_placement, std::uint32_t hosts)
      : rules_(rules), early_placement_(early_placement), hosts_(hosts) {}

  Memory& memory(std::uint32_t host) { return hosts_[host].memory; }
  void add_region(std::uint32_t host, const Region& region) {
    hosts_[host].regions.push_back(region);
  }
  void remove_region(std::uint32_t host, std::uint32_t lkey);

  struct QpAttributes {
    std::uint32_t pd = 0;
    AccessFlags access = 0;  ///< what the peer may do through this queue pair
    bool signal_all = false;
    bool connected_only = false;     ///< UC: no answers, what cannot be done is dropped
    bool datagram = false;           ///< UD: the same, and each message is one packet
    std::uint32_t packet = 0;        ///< UD: bytes of a message at most
    std::uint32_t header = 0;        ///< UD: bytes of a packet's network header that the RECV shows
    std::uint32_t group_header = 0;  ///< the same of a packet to a multicast group
    bool shared_recvs = false;       ///< they outlive an error of the queue pair
  };
  QpName add_qp(std::uint32_t host, const QpAttributes& attributes);
  /// Two queue pairs in RTS, facing each other, with empty queues.
  void connect(QpName a, QpName b);
  /// A queue pair in RTS with empty queues, which only receives.
  void restart(QpName name);
  /// ibv_attach_mcast: it gets what others send to the group.
  void attach(std::uint32_t group, QpName name) { groups_[group].push_back(name); }
  /// From now on nobody polls its send completions: when there is no room for one more than `room`,
  /// the completion queue is lost, and the queue pair with it.
  void limit_sent(QpName name, std::size_t room) {
    Qp& qp = at(name);
    qp.sent_limit = qp.sent.size() + room;
  }

  void post_send(QpName name, const SendRequest& request) { at(name).sends.push_back(request); }
  void post_recv(QpName name, const RecvRequest& request) { at(name).recvs.push_back(request); }
  /// Executes whatever can be executed.
  void run();
  /// The SEND or WRITE with immediate that waits for a RECV has waited too often.
  void give_up_waiting(QpName name);
  /// ibv_modify_qp to ERR.
  void break_qp(QpName name) { at(name).broken = true; }

  bool broken(QpName name) const { return at(name).broken; }
  /// Its send queue only has stopped (UC, SQE).
  bool stopped(QpName name) const { return at(name).stopped; }
  bool key_valid(std::uint32_t host, std::uint32_t key) {
    const Region* region = find_key(host, key);
    return region != nullptr && region->rkey == key && region->valid;
  }
  const std::vector<Completion>& sent(QpName name) const { return at(name).sent; }
  const std::vector<Completion>& received(QpName name) const { return at(name).received; }

 private:
  struct Qp {
    QpAttributes attributes;
    std::uint32_t host = 0;
    QpName peer;
    bool broken = false;                ///< in ERR
    bool stopped = false;               ///< in SQE
    bool flushed = false;               ///< what it held when it came to ERR
    std::size_t sent_limit = SIZE_MAX;  ///< completions that its queue has room for
    std::deque<SendRequest> sends;
    std::deque<RecvRequest> recvs;
    std::vector<Completion> sent;
    std::vector<Completion> received;
  };
  struct Host {
    Memory memory;
    std::vector<Region> regions;
    std::vector<Qp> qps;
  };
  /// How an attempt to execute a request ended.
  struct Outcome {
    bool waits = false;
    WcStatus status = WcStatus::kSuccess;
    bool peer_breaks = false;
    std::uint32_t bytes = 0;
  };

  Qp& at(QpName name) { return hosts_[name.host].qps[name.qp]; }
  const Qp& at(QpName name) const { return hosts_[name.host].qps[name.qp]; }
  const Region* local_region(const Qp& qp, const Sge& sge, AccessFlags needed) const;
  bool local_access(const Qp& qp, const std::vector<Sge>& sges, AccessFlags needed) const;
  bool remote_access(const Qp& peer, const SendRequest& request, std::uint64_t bytes,
                     AccessFlags needed) const;
  Bytes gather(const Qp& qp, const std::vector<Sge>& sges) const;
  Bytes gather_good(const Qp& qp, const SendRequest& request) const;
  void scatter(const Qp& qp, const std::vector<Sge>& sges, const Bytes& data);
  void perhaps_scatter(const Qp& qp, const std::vector<Sge>& sges, const Bytes& data);

  bool advance(Qp& qp);
  void flush(Qp& qp);
  void flush_sends(Qp& qp);
  /// Into the completion queue of sends, if that has room and is not lost.
  static void complete_send(Qp& qp, const Completion& done);
  Outcome execute(Qp& qp, const SendRequest& request);
  Outcome execute_send(Qp& qp, const SendRequest& request);
  Outcome execute_write(Qp& qp, const SendRequest& request);
  Outcome execute_read(Qp& qp, const SendRequest& request);
  Outcome execute_datagram(Qp& qp, const SendRequest& request);
  bool deliver_datagram(Qp& receiver, const SendRequest& request, const Bytes& data,
                        std::uint32_t header_bytes);
  Outcome execute_unacknowledged(Qp& qp, const SendRequest& request);
  Outcome execute_key_operation(Qp& qp, const SendRequest& request);
  bool bind(Qp& qp, Region& window, const SendRequest& request);
  Region* find_key(std::uint32_t host, std::uint32_t key);
  bool end_key(Qp& owner, std::uint32_t key);
  Outcome execute_atomic(Qp& qp, const SendRequest& request);
  void perhaps_place(const Qp& peer, const SendRequest& request, const Bytes& data);
  Outcome fail_recv(Qp& peer, WcStatus of_recv, WcStatus of_request);
  void complete_recv(Qp& peer, const SendRequest& request, std::uint32_t bytes);
  WcStatus not_allowed() const;
  static bool too_long(const Qp& qp, const SendRequest& request);

  Rules rules_;
  bool early_placement_;
  std::vector<Host> hosts_;
  std::map<std::uint32_t, std::vector<QpName>> groups_;
};

}  // namespace rnic::reference

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "reference/verbs_model.h"

namespace rnic::reference {

/// What the transport under test offers to a program.
struct Abilities {
  Rules rules = Rules::kInfiniband;
  std::vector<WrOpcode> opcodes;
  std::uint32_t mtu = 1024;
  std::uint32_t max_sge = 4;
  std::uint32_t max_read_sge = 4;
  std::uint32_t max_inline = 64;
  /// WRITEs may be placed before what was posted ahead of them, and even if that fails (RFC
  /// 5041, 5.4 leaves the order open): overlapping ones have no defined result, and programs have
  /// none.
  bool early_placement = false;
  bool late_recvs = true;  ///< a message without a RECV waits (RNR) instead of failing
};

/// Registered memory on one host.
struct Area {
  std::uint32_t host = 0;
  Region region;
};

/// A queue pair that only takes what its lane sends to a group, and the buffers of its RECVs.
struct GroupMember {
  QpName qp;
  Area inbox;
};

/// Another key for a part of a lane's exposed memory, made valid by its owner's work requests.
struct KeyArea {
  Area area;            ///< as the latest bind or registration made it
  bool window = false;  ///< else a region for fast registration
  bool valid = false;
};

/// One direction of a connection and the memory that only its requests touch, so that what happens
/// in other lanes cannot change its outcome.
struct Lane {
  QpName from;
  QpName to;
  AccessFlags allowed = 0;           ///< of the queue pair `to`
  bool patient = true;               ///< rnr_retry is infinite: RECVs may come late
  Area constant;                     ///< source; never written
  Area scratch;                      ///< source, and sink of READs and atomics
  Area exposed;                      ///< peer's, remote write and read
  Area counters;                     ///< peer's, remote read and atomic
  Area inbox;                        ///< peer's RECV buffers, no remote right
  Area foreign;                      ///< this host's, of another protection domain
  Area peer_foreign;                 ///< the peer's, of another protection domain
  std::vector<KeyArea> keys;         ///< the peer's, to its exposed memory; may be empty
  std::uint32_t unused_key = 0;      ///< of a window that is never bound; 0: none
  bool connected_only = false;       ///< UC
  bool datagram = false;             ///< UD
  bool shared_recvs = false;         ///< the peer's RECVs are a shared queue's
  bool own_send_cq = false;          ///< nobody else's completions go where its own do
  std::uint32_t group = 0;           ///< UD: that only this lane sends to
  std::vector<GroupMember> members;  ///< of the group, on either host; none: there is no group

  bool unacknowledged() const { return connected_only || datagram; }
};

/// Something a program does on one queue.
struct Step {
  QpName qp;
  std::vector<SendRequest> sends;  ///< one doorbell
  std::vector<RecvRequest> recvs;
};

/// How a connection comes to its end.
enum class Ending {
  kLocalKey,
  kLocalBounds,
  kLocalPd,
  kSinkNotWritable,
  kRemoteKey,
  kRemoteBounds,
  kRemoteTop,  ///< the range wraps around the end of the address space
  kRemoteRight,
  kRemotePd,
  kQpRight,
  kMisaligned,
  kRecvSmall,
  kRecvKey,
  kRnr,
  kPeerGone,
  kDeadKey,       ///< of a window or region that has been ended, or never was
  kEndWrong,      ///< SEND with invalidate of a key that no message may end
  kEndWrongHere,  ///< local invalidation of such a key
  kTooLong,       ///< more bytes than a message may have
  kCqFull,        ///< more completions than the send completion queue has room for
  kForeignHandle,
};
std::string ending_name(Ending ending);

/// Writes the steps of random programs for a lane. Requests whose order the specification leaves
/// open (a READ and what follows it) do not touch the same bytes unless a fence keeps them apart.
class ProgramWriter {
 public:
  ProgramWriter(const Abilities& abilities, std::uint64_t seed, const std::string& name)
      : abilities_(abilities), rng_(seed, name) {}

  /// About `count` requests that succeed, and the RECVs that they need.
  std::vector<Step> traffic(Lane& lane, std::uint32_t count);
  /// The peer makes its keys valid under new variants, some that are valid included.
  std::vector<Step> key_steps(Lane& lane);
  /// Requests that succeed, one that fails, and some behind it.
  std::vector<Step> finale(Lane& lane, Ending ending);
  /// A few requests of any kind, for a queue pair in ERR.
  std::vector<Step> late_posts(Lane& lane);
  bool can_end(const Lane& lane, Ending ending) const;

  Rng& rng() { return rng_; }
  bool chance(double probability) { return rng_.uniform() < probability; }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(rng_.below(high - low + 1));
  }

 private:
  struct Span {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    bool meets(const Span& other) const {
      return address < other.address + other.bytes && other.address < address + bytes;
    }
  };
  struct OpenRead {
    Span sink;
    Span source;
    bool atomic = false;
  };

  std::vector<WrOpcode> usable(const Lane& lane) const;
  bool offers(WrOpcode opcode) const;
  std::uint32_t size(const Lane& lane);
  Span place(const Area& area, std::uint64_t bytes, std::uint32_t alignment = 1);
  Span place_apart(const Area& area, std::uint64_t bytes);
  std::vector<Sge> pieces(const Area& area, const Span& span, std::uint32_t most);
  SendRequest request(Lane& lane, WrOpcode opcode, std::uint32_t bytes);
  KeyArea* valid_key(Lane& lane);
  /// Something that the peer of an unreliable connection drops without a word.
  void spoil(const Lane& lane, SendRequest& request);
  /// A SEND that the RECV which is next, of `room` bytes, cannot take.
  SendRequest overlong(Lane& lane, std::uint64_t room);
  /// Messages that find no RECV, because all have been taken.
  void starve(Lane& lane, std::vector<Step>& steps);
  RecvRequest recv_for(const Lane& lane, const Area& inbox, std::uint32_t bytes);
  void publish(Lane& lane, SendRequest made, std::vector<Step>& steps);
  std::vector<Step> overrun(Lane& lane);
  void order(SendRequest& request, const Span& local, const Span& remote);
  /// Adds a request, and its RECV, to the steps being written.
  void add(Lane& lane, const SendRequest& request, std::vector<Step>& steps);
  void flush(const Lane& lane, std::vector<Step>& steps);
  SendRequest failing(Lane& lane, Ending ending);
  WrOpcode any_of(const Lane& lane, const std::vector<WrOpcode>& wanted);
  RecvRequest bad_recv(const Lane& lane, Ending ending, std::uint32_t bytes);

  const Abilities abilities_;
  Rng rng_;
  std::vector<OpenRead> open_reads_;
  std::vector<Span> open_writes_;           ///< targets of WRITEs that may not have been placed
  std::vector<RecvRequest> waiting_recvs_;  ///< not yet posted, oldest first
  std::vector<SendRequest> batch_;
  std::vector<std::uint32_t> dead_keys_;
  std::uint32_t unsignaled_ = 0;
  bool fence_next_ = false;
  std::uint64_t wr_ids_ = 0;
};

}  // namespace rnic::reference

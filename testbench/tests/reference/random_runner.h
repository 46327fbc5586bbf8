// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/random_program.h"
#include "reference/verbs_model.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {

/// Runs random programs on two simulated hosts and on the reference, and compares: the completions
/// of every queue in their order, and every byte of registered memory.
class RandomRunner {
 public:
  struct Options {
    reference::Abilities abilities;
    std::vector<reference::Ending> endings;  ///< those that may be used
    std::uint32_t least_connections = 1;
    std::uint32_t most_connections = 8;
    std::uint32_t least_requests = 1;  ///< of a lane in one life
    std::uint32_t requests = 60;       ///< the same, at most
    bool unreliable = false;           ///< UC and UD, too: nothing may be lost then
    std::uint32_t header = 0;          ///< UD: bytes of the network header that a RECV shows
    std::uint32_t group_header = 0;    ///< the same, of what is sent to a group
    /// What changes no outcome happens meanwhile: completion queues get another size, send queues
    /// pause in SQD, paths migrate, queue pairs are queried; and some memory comes on demand.
    bool interferes = false;
    bool migrates = false;       ///< paths, too
    bool device_memory = false;  ///< some of what peers reach lies on the device
    bool groups = false;         ///< some datagrams go to multicast groups
  };

  RandomRunner(VerbsRig& rig, Options options) : rig_(rig), options_(std::move(options)) {}

  /// One program on new connections; from the rig's thread. False when something differed.
  bool run(std::uint64_t seed);

  /// How often it has happened, in all programs: `request` of a send queue, `resize`, `pause`,
  /// `migrate` and `query` of what interferes, `group`, `device` and `cq_full`.
  std::uint64_t count(const std::string& what) const {
    const auto found = done_.find(what);
    return found == done_.end() ? 0 : found->second;
  }

 private:
  /// A queue pair of the simulated system beside its name in the reference.
  struct Live {
    reference::QpName name;
    host::verbs::QueuePair* qp = nullptr;
    host::verbs::SharedReceiveQueue* srq = nullptr;  ///< or a receive queue of its own
    std::deque<reference::Step> backlog_sends;
    std::deque<reference::Step> backlog_recvs;
    std::vector<host::verbs::Wc> sent;
    std::vector<host::verbs::Wc> received;
    const Live* peer = nullptr;
    host::verbs::CompletionQueue* send_cq = nullptr;  ///< of its own; null: the host's
    bool unpolled = false;                            ///< that queue is to run over
    host::verbs::AddressHandle* group = nullptr;      ///< that it sends to
  };
  /// Takes what is sent to a group.
  struct Member {
    Live* live = nullptr;
    std::uint32_t group = 0;
  };
  struct Connection {
    std::array<Live*, 2> ends{};
    std::array<reference::Lane, 2> lanes;  ///< lanes[i] leads away from ends[i]
    reference::Ending ending{};
    std::uint32_t ending_lane = 0;
    bool ends_badly = false;
    protocol::QpType service = protocol::QpType::kRc;
  };

  static constexpr std::uint64_t kDeviceBytes = 1U << 20;  ///< of each host

  RigSide& side(std::uint32_t host) { return host == 0 ? rig_.a : rig_.b; }
  void set_up(std::uint64_t seed);
  reference::Area make_area(std::uint32_t host, std::uint32_t pd, std::uint64_t bytes,
                            protocol::AccessFlags access);
  reference::Area make_area_at(std::uint32_t host, std::uint32_t pd, std::uint64_t address,
                               std::uint64_t bytes, protocol::AccessFlags access);
  reference::Area make_peer_area(std::uint32_t host, std::uint64_t bytes,
                                 protocol::AccessFlags access);
  Live* make_qp(std::uint32_t host, protocol::AccessFlags access, protocol::QpType service);
  void make_group(Connection& connection, std::uint32_t from);
  void start_members();
  bool on_device(std::uint32_t host, std::uint64_t address) const {
    return device_[host] != 0 && address >= device_[host] && address < device_[host] + kDeviceBytes;
  }
  /// Whether more completions are to come than its queue has room for.
  static bool runs_over(const Connection& connection) {
    return connection.ends_badly && connection.ending == reference::Ending::kCqFull;
  }
  void stop_polling(Connection& connection);
  void await_overrun(Connection& connection);
  void poll_queue(std::uint32_t host, host::verbs::CompletionQueue& cq, bool of_sends);
  protocol::QpType any_service();
  void address(const Live& live, const reference::SendRequest& request, host::verbs::SendWr& wr);
  void make_connection();
  void make_lane(Connection& connection, std::uint32_t from, protocol::AccessFlags allowed,
                 bool patient);
  void make_keys(reference::Lane& lane);
  void choose_ending(Connection& connection);
  bool make_keys_valid();
  host::verbs::SendWr to_wr(const Live& live, const reference::SendRequest& request);
  void bring_up(Connection& connection);
  void modify(Live& live, protocol::QpState state);
  void break_end(Live& live);

  void perform(std::vector<std::vector<reference::Step>> programs);
  void interfere();
  void resize_queue(std::uint32_t host);
  void pause(Live& live);
  void migrate(Live& live);
  void query(Live& live);
  protocol::AccessFlags on_demand(bool possible);
  void begin(const reference::Step& step);
  void post_backlogs();
  bool post_backlog(Live& live);
  void poll();
  bool finish(const std::string& phase);
  bool complete() const;

  bool compare(const std::string& phase);
  bool compare_queue(const std::string& what, const std::vector<reference::Completion>& expected,
                     const std::vector<host::verbs::Wc>& found);
  bool compare_memory();
  /// The latest requests that named this address, for whoever has to find out.
  std::string history_of(std::uint32_t host, std::uint64_t address) const;
  void tear_down();

  VerbsRig& rig_;
  const Options options_;
  std::uint64_t seed_ = 0;
  bool undisturbed_ = true;  ///< nothing is to fail now: interference is possible
  std::unique_ptr<reference::ProgramWriter> dice_;
  std::unique_ptr<reference::VerbsModel> model_;
  std::array<std::uint32_t, 2> pd_{};
  std::array<std::uint32_t, 2> foreign_pd_{};
  std::array<host::verbs::AddressHandle*, 2> handle_{};  ///< to the other host
  std::array<host::verbs::AddressHandle*, 2> foreign_handle_{};
  std::array<host::verbs::CompletionQueue*, 2> send_cq_{};
  std::array<host::verbs::CompletionQueue*, 2> recv_cq_{};
  std::vector<std::unique_ptr<Live>> lives_;
  std::array<std::map<std::uint32_t, Live*>, 2> by_qpn_;
  std::vector<Connection> connections_;
  std::vector<Member> members_;
  std::uint32_t groups_ = 0;                     ///< made so far
  std::array<std::uint64_t, 2> device_{};        ///< memory on the device, mapped once
  std::array<std::uint64_t, 2> device_taken_{};  ///< bytes of it, by this program
  std::map<std::string, std::uint64_t> done_;    ///< how often something happened, by its name
  std::vector<reference::Step> history_;
  std::vector<std::pair<std::uint32_t, host::MemoryRegion>> regions_;
  // Windows and regions of work requests, by host and index of their keys.
  std::array<std::map<std::uint32_t, host::verbs::MemoryWindow>, 2> windows_;
  std::array<std::map<std::uint32_t, host::verbs::FastRegion>, 2> fast_;
};

}  // namespace rnic::testbench

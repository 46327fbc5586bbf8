// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <systemc>
#include <vector>

#include "programs/peer.h"
#include "workload/measurement.h"

namespace rnic::testbench {

/// A small application between host 0 (clients) and host 1 (a server process for each client),
/// which checks every byte it gets. One operation is one message in the report: its latency is what
/// the client waits for.
class Program : public sc_core::sc_module {
 public:
  Program(const sc_core::sc_module_name& name, const config::Config& config, host::Host& clients,
          host::Host& servers, Measurement& measurement, std::uint32_t client_count = 1);
  /// As above, but each server process has a host of its own.
  Program(const sc_core::sc_module_name& name, const config::Config& config, host::Host& clients,
          const std::vector<host::Host*>& servers, Measurement& measurement);

  const FlowMeasurement& measured() const { return measured_; }
  const std::vector<std::unique_ptr<Peer>>& peers() const { return peers_; }
  /// Why it is over before its last operation, in one line; empty: it is not.
  const std::string& ended_early() const { return ended_early_; }

 protected:
  /// Set up before the connection is made: buffers of this end.
  virtual void prepare(Peer& /*self*/, std::uint32_t /*number*/) {}
  virtual void client(Peer& self, std::uint32_t number) = 0;
  virtual void server(Peer& self, std::uint32_t number) = 0;

  /// Set up behind the connections, when all peers have theirs.
  virtual void prepare_connected(Peer& /*self*/, std::uint32_t /*number*/) {}

  /// The client pauses as workload.gap says; returns when its next operation begins.
  Time begin(Peer& self);
  /// Operations of client `number`, those before the measurement included.
  std::uint64_t operations(std::uint32_t number) const;
  /// An operation of a client that moved `bytes` and began at `started` is over.
  void done(const Peer& self, Time started, std::uint64_t bytes);
  /// Counts the bytes that differ; they fail the run.
  void compare(const Bytes& found, const Bytes& expected);
  /// `bytes` of which no two operations have the same.
  static Bytes pattern(std::uint64_t seed, std::uint64_t bytes);
  std::uint64_t message_bytes() const { return config_.workload.msg_size; }
  std::uint32_t clients() const { return static_cast<std::uint32_t>(peers_.size() / 2); }

  const config::Config& config_;

 private:
  void start();
  void run(std::uint32_t peer);
  void play(std::uint32_t peer);
  void end_early(const ProcessFailure& failure);
  /// All processes meet here, as over a TCP connection beside the RDMA one.
  void meet();

  Measurement& measurement_;
  FlowMeasurement measured_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< client 0, server 0, client 1, ...
  sc_core::sc_event met_;
  std::uint32_t arrived_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t begun_ = 0;
  std::uint32_t finished_ = 0;  ///< clients
  std::string ended_early_;
};

/// The program that workload.program names, with its clients on the first host and its servers on
/// the others.
std::unique_ptr<Program> make_program(const config::Config& config,
                                      const std::vector<host::Host*>& hosts,
                                      Measurement& measurement);

}  // namespace rnic::testbench

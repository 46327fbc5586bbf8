// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <systemc>
#include <vector>

#include "config/config.h"
#include "workload/address_pattern.h"
#include "workload/atomic_targets.h"
#include "workload/endpoint.h"
#include "workload/measurement.h"
#include "workload/mistakes.h"
#include "workload/turn_numbers.h"

namespace rnic::testbench {

/// Two endpoints and their programs, after perftest: set up and connect, then either ping-pong one
/// message at a time (latency) or keep `depth` messages in flight on every queue pair (bandwidth).
class Flow : public sc_core::sc_module {
 public:
  Flow(const sc_core::sc_module_name& name, const config::Config& config, Endpoint& client,
       Endpoint& server, const protocol::AddressVector& to_server,
       const protocol::AddressVector& to_client, Measurement& measurement);

  /// Of each direction that sends: the client's, and the server's when bidirectional.
  const std::vector<FlowMeasurement>& measured() const { return measured_; }
  std::vector<FlowMeasurement>& measured() { return measured_; }
  /// All directions are past their warm-up (bandwidth programs).
  bool measuring() const;
  FlowProgress progress() const;
  /// Payload bytes that the direction which is nearest to the end of its warm-up, or of what it
  /// measures, has still to deliver.
  std::uint64_t least_left() const;
  /// Takes `messages` off what each queue pair is still to post, in the order of progress().
  void shorten(const std::vector<std::uint64_t>& messages);
  /// Nothing happens any more: lets a latency program that waits for its peer's WRITE look whether
  /// its completion queue has failed. False when there is nothing new to look at.
  bool look_for_failure();
  /// Compares what arrived with what was sent; bytes that differ.
  std::uint64_t verify();

 private:
  /// One sender: where it posts from and to, and what it has in flight.
  struct Sender {
    Endpoint* local = nullptr;
    Endpoint* remote = nullptr;
    FlowMeasurement* result = nullptr;
    struct PerQp {
      std::uint64_t posted = 0;
      std::uint64_t done = 0;
      std::uint64_t quota = 0;
      std::uint64_t recvs = 0;    ///< that the receiver has posted so far
      bool failed = false;        ///< a message failed: no more will succeed
      std::vector<bool> touched;  ///< slots used, for the comparison at the end
      Ring<stats::MessageTrace*> traces;
      Ring<host::MemoryRegion> regions;  ///< of messages in flight (workload.registration=each)
    };
    std::vector<PerQp> qps;
    std::vector<AddressPattern> patterns;
    AtomicTargets targets;
    std::vector<host::verbs::SendWr> batch;  ///< scratch of post()
    std::vector<protocol::Sge> sges;
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    std::uint32_t next_qp = 0;  ///< whose turn it is when a window is shared
    AddressPattern choice{config::Access::kSequential, 1, Rng(0, {})};  ///< of the next QP
    stats::DeliveryMeter meter;  ///< of the payload at its destination
    std::uint64_t total = 0;
    std::uint64_t received = 0;  ///< messages of the other direction that took a RECV
    bool stopped = false;        ///< a queue pair failed
    bool receiver_gone = false;  ///< no more RECVs are to come
    Time warmed = kTimeNever;    ///< when its warm-up had been sent
    Time sent_all{0};            ///< when nothing was left to send
  };

  /// In which what a failure leads to comes to its end.
  static constexpr Time kQuiet = microseconds(100);

  void run_client();
  void run_server();
  /// Runs a program; an exception ends the simulation and is kept for the caller.
  template <typename Program>
  void guard(Program program);
  void client_program();
  void server_program();
  void set_up(Endpoint& self, Endpoint& peer, const protocol::AddressVector& path);
  /// Both programs meet here (out of band, as perftest's TCP connection).
  void meet();
  void fill_buffers(Endpoint& self, std::uint8_t salt);
  static void touch_buffers(Endpoint& self);
  bool is_source(const Endpoint& self) const;

  std::vector<protocol::Sge> sges_;  ///< scratch of hit()

  // Latency programs.
  struct Player {
    Endpoint* self = nullptr;
    Endpoint* peer = nullptr;
    host::PollSpot spot;
    AddressPattern pattern;
    std::uint64_t next_slot = 0;  ///< where the peer's next message will land
    host::PhysicalMemory::WatchId watch{};
    stats::MessageTrace* in_flight = nullptr;  ///< trace of this player's message
    stats::MessageTrace* arrived = nullptr;    ///< what in_flight was when the message was there
    std::uint64_t sent = 0;                    ///< turns that are over
    std::uint64_t spots_seen = 0;              ///< writes to the watched byte before it was armed
    bool waiting = false;                      ///< for the peer's WRITE
    bool poked = false;                        ///< by look_for_failure()
    Time turn_started{0};                      ///< when it saw the peer's last message
    std::uint64_t turn = 0;                    ///< that it asks or answers
    std::uint64_t in_flight_turn = 0;          ///< of in_flight
    TurnNumbers numbers{};                     ///< of the peer's messages
    std::uint32_t taken_qp = 0;                ///< whose RECV the peer's last message took
    std::uint64_t posted = 0;                  ///< messages
    std::uint64_t seen = 0;                    ///< of the peer's, each once
    std::uint64_t late = 0;                    ///< of `seen`, when their turn was over
    std::uint64_t again = 0;                   ///< further copies of those
  };
  /// What became of a turn.
  enum class Turn { kDone, kLost, kFailed };
  void serve(Player& me, Player& other);
  void play(Player& me, Player& other);
  Time gap_before(std::uint64_t number) const;
  /// Posts this player's message.
  void hit(Player& me);
  /// Waits for the peer's message. kFailed when a message or the RECV for one has failed, so that
  /// nothing more is to come; kLost when it is `deadline`.
  Turn await(Player& me, Player& other, Time deadline);
  Turn await_recv(Player& me, Time deadline);
  Turn await_write(Player& me, Time deadline);
  /// Bytes of its turn's number that a message carries (TurnNumbers).
  std::uint32_t number_bytes() const;
  /// A message names its place: the server waits at the one of the turn that comes next.
  bool placed_in_turn() const;
  void put_number(const Player& me, host::verbs::SendWr& wr);
  std::uint32_t number_at(const Player& me, std::uint64_t end) const;
  std::uint32_t received_number(const Player& me, const host::verbs::Wc& wc) const;
  /// Counts a message of the peer; whether it is what was waited for.
  bool is_current(Player& me, std::uint32_t number);
  std::uint32_t recv_qp(const Player& me, const host::verbs::Wc& wc) const;
  void collect_late(Player& me);
  void account();
  /// Which the client waits for an answer until.
  Time answer_deadline() const;
  void lose_turn(Player& me, Player& other);
  void count_turn(Player& me, Player& other, Time started);
  bool reap_own(Player& me);
  void finish();
  void arm(Player& me);
  void completion_latency();
  void record_latency(Time latency, std::uint64_t index, Time now);

  // Bandwidth programs.
  void stream(Sender& sender);
  /// Posts as much as the depth of each queue pair allows; false when nothing was posted.
  bool fill_queues(Sender& sender);
  /// Posts in turn on all queue pairs, as much as workload.outstanding allows in all.
  bool fill_window(Sender& sender);
  std::uint32_t choose_qp(Sender& sender) const;
  /// Posts one batch of at most `window` messages; false when there is nothing or no room for it.
  bool post(Sender& sender, std::uint32_t qp, std::uint64_t window);
  bool unacknowledged() const;
  /// Nothing on the wire says that a RECV is missing: senders must know.
  bool counts_recvs() const;
  /// RECVs at the receiver that no message of queue pair `qp` has been posted for.
  std::uint64_t recvs_left(const Sender& sender, std::uint32_t qp) const;
  /// What a sender that could not post needs before it can.
  enum class Need { kNothing, kRecv, kCompletion };
  Need need(const Sender& sender) const;
  void tell_of_recvs(const Endpoint& receiver, std::uint32_t qp);
  void await_progress(Sender& sender);
  bool placement_known(const Sender& sender) const;
  Time flight_time() const;
  void warm_by_sending(Sender& sender);
  void drain(Sender& sender);
  void collect_flushed(Sender& sender);
  void start_meter(Sender& sender);
  void read_meter(Sender& sender);
  void reap(Sender& sender, const host::verbs::Wc& wc);
  void complete(Sender& sender, std::uint32_t qp, Time now);
  /// When both sides send: serves the other direction's messages after its own are done.
  void receive_rest(Sender& sender);
  void receive_stream(Endpoint& self, Sender& sender);
  void post_receives(Endpoint& self, std::uint32_t qp, std::uint32_t count);
  void repost_receive(Endpoint& self, std::uint32_t qp);

  /// `pieces`: room for its scatter/gather entries, workload.sges of them.
  host::verbs::SendWr make_wr(Endpoint& local, Endpoint& remote, std::uint32_t qp,
                              std::uint64_t slot, protocol::Sge* pieces);
  AddressPattern slots_of_qp(const Endpoint& end, std::uint32_t qp) const;
  void prepare_sender(Sender& sender, Endpoint& local, Endpoint& remote, std::size_t result);
  bool two_sided() const;
  std::uint64_t total_messages() const;

  const config::Config& config_;
  Endpoint& client_;
  Endpoint& server_;
  protocol::AddressVector to_server_;
  protocol::AddressVector to_client_;
  Measurement& measurement_;
  Mistakes mistakes_;
  Time start_delay_;  ///< of this flow's streams behind the first flow's
  std::vector<FlowMeasurement> measured_;
  std::vector<Sender> senders_;
  TracePool traces_;
  LateTraces late_traces_;
  Player client_player_;
  Player server_player_;
  sc_core::sc_event met_;
  std::uint32_t meeting_ = 0;
  bool client_done_ = false;  ///< a latency program's client has had all its turns
  bool finished_ = false;     ///< a latency program has ended
};

}  // namespace rnic::testbench

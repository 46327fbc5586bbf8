// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/event_queue.h"
#include "config/loader.h"
#include "nic/interfaces.h"
#include "pcie/dma.h"

/// Neighbours of a NIC unit under test. Each writes down what it is asked.
namespace rnic::testbench {

/// One cycle is 1 ns; units that a test does not set have the defaults' cycles.
inline config::NicConfig nic_config() {
  config::NicConfig nic = config::default_config().nic;
  nic.clock_hz = 1e9;
  return nic;
}

/// Host memory behind a DMA engine of fixed latency and unlimited bandwidth. A read samples memory
/// when it is asked for; its answer comes after the latency, or, while `hold` is set, on release().
class FakeDma : public pcie::DmaIf {
 public:
  struct Request {
    Time at;
    std::uint64_t address;
    std::uint32_t bytes;
    tlm_ext::Purpose purpose;
  };

  explicit FakeDma(Time answer_latency = nanoseconds(100), std::size_t bytes = 1U << 16)
      : memory(bytes), latency(answer_latency), answers_("answers", this, &FakeDma::answer) {}

  void dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes, std::uint8_t* into,
                tlm_ext::Purpose purpose, pcie::DmaClient* client, std::uint64_t token) override {
    reads.push_back({earliest, address, bytes, purpose});
    Answer read{client, token, into, {}};
    const auto from = memory.begin() + static_cast<std::ptrdiff_t>(address);
    read.bytes.assign(from, from + bytes);
    if (hold) {
      held.push_back(std::move(read));
    } else {
      answers_.post(earliest + latency, std::move(read));
    }
  }

  Time dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                 const std::uint8_t* from, tlm_ext::Purpose purpose, pcie::DmaClient* client,
                 std::uint64_t token) override {
    writes.push_back({earliest, address, bytes, purpose});
    if (from != nullptr) std::memcpy(&memory.at(address), from, bytes);
    if (client != nullptr) answers_.post(earliest + latency, Answer{client, token, nullptr, {}});
    return earliest;
  }

  /// Answers the oldest held read now.
  void release() {
    Answer read = std::move(held.front());
    held.pop_front();
    answer(read);
  }

  /// The oldest held read cannot be answered.
  void fail() {
    const Answer lost = std::move(held.front());
    held.pop_front();
    pcie::DmaFault fault;
    fault.token = lost.token;
    lost.client->dma_failed(fault);
  }

  std::vector<std::uint8_t> memory;
  Time latency;
  bool hold = false;
  std::vector<Request> reads;
  std::vector<Request> writes;

 private:
  struct Answer {
    pcie::DmaClient* client;
    std::uint64_t token;
    std::uint8_t* into;
    std::vector<std::uint8_t> bytes;
  };

  void answer(Answer& read) {
    if (read.into != nullptr) std::memcpy(read.into, read.bytes.data(), read.bytes.size());
    read.client->dma_done(read.token);
  }

 public:
  std::deque<Answer> held;

 private:
  EventQueue<FakeDma, Answer> answers_;
};

/// A call about a queue pair, and the time it was for.
struct QpCall {
  std::uint32_t qpn;
  Time at;
  bool operator==(const QpCall& other) const { return qpn == other.qpn && at == other.at; }
};

struct FakeScheduler : nic::SchedulerIf {
  void activate(nic::QpContext& qp, Time t) override { activated.push_back({qp.qpn, t}); }
  void slot_freed(Time /*t*/, std::uint32_t /*lane*/) override { ++freed; }

  std::vector<QpCall> activated;
  int freed = 0;
};

struct FakeWqeFetch : nic::WqeFetchIf {
  void fetch(nic::QpContext& qp, Time t) override { fetches.push_back({qp.qpn, t}); }
  bool blueflame(nic::QpContext& qp, const std::uint8_t* blocks, std::uint32_t count,
                 Time t) override {
    pushes.push_back({qp.qpn, t});
    pushed.assign(blocks, blocks + std::size_t{count} * protocol::kWqeBlockBytes);
    return true;
  }
  void forsake(nic::QpContext& qp) override { forsaken.push_back(qp.qpn); }

  std::vector<QpCall> fetches;
  std::vector<std::uint32_t> forsaken;
  std::vector<QpCall> pushes;
  std::vector<std::uint8_t> pushed;  ///< bytes of the latest push
};

struct FakeCompletion : nic::CompletionIf {
  void retire(nic::QpContext& qp, Time t) override { retired.push_back({qp.qpn, t}); }
  void fail(nic::QpContext& qp, Time t) override { failed.push_back({qp.qpn, t}); }
  void fail_fatally(nic::QpContext& qp, Time t) override { fail(qp, t); }

  std::vector<QpCall> retired;
  std::vector<QpCall> failed;
};

struct FakeCq : nic::CompletionQueueIf {
  struct Post {
    std::uint32_t cqn;
    protocol::Cqe cqe;
    Time at;
  };

  void post(std::uint32_t cqn, const protocol::Cqe& cqe, stats::MessageTrace* /*trace*/,
            Time t) override {
    posts.push_back({cqn, cqe, t});
  }
  void create(const protocol::CreateCqCommand& /*create*/) override {}
  bool modify(const protocol::ModifyCqCommand& /*modify*/) override { return true; }
  bool resize(const protocol::ResizeCqCommand& /*resize*/) override { return true; }
  bool destroy(std::uint32_t /*cqn*/) override { return true; }
  void arm(const protocol::CqArmDoorbell& /*doorbell*/, Time /*t*/) override {}

  std::vector<Post> posts;
};

struct FakeEvents : nic::EventIf {
  void create(const protocol::CreateEqCommand& /*create*/) override {}
  void raise(const protocol::Event& event, Time t) override { raised.push_back({event, t}); }
  void notify(std::uint32_t eqn, std::uint32_t cqn, Time t) override {
    notified.push_back({eqn, cqn, t});
  }
  void arm(const protocol::EqArmDoorbell& /*doorbell*/, Time /*t*/) override {}

  struct Raised {
    protocol::Event event;
    Time at;
  };
  struct Notified {
    std::uint32_t eqn;
    std::uint32_t cqn;
    Time at;
  };
  std::vector<Raised> raised;
  std::vector<Notified> notified;
};

struct FakeCommands : nic::CommandIf {
  void execute(std::uint64_t mailbox_address, Time t) override {
    executed.emplace_back(mailbox_address, t);
  }

  std::vector<std::pair<std::uint64_t, Time>> executed;
};

struct FakeRecvQueues : nic::RecvQueueIf {
  Answer acquire(nic::QpContext& /*qp*/, Time& /*t*/, nic::Waiter* /*waiter*/,
                 bool /*again*/) override {
    return Answer::kEmpty;
  }
  void consume(nic::QpContext& /*qp*/, Time /*t*/) override {}
  void prefetch(nic::QpContext& /*qp*/, Time /*t*/) override {}
  void flush(nic::QpContext& qp, Time t) override { flushed.push_back({qp.qpn, t}); }
  void forget(nic::QpContext& /*qp*/, Time /*t*/) override {}
  void create_shared(const protocol::CreateSrqCommand& /*create*/) override {}
  bool resize_shared(const protocol::ResizeSrqCommand& /*resize*/) override { return false; }
  nic::RecvQueue* find_shared(std::uint32_t /*srqn*/) override { return nullptr; }
  void destroy_shared(std::uint32_t /*srqn*/) override {}
  void arm_limit(nic::RecvQueue& /*queue*/, std::uint32_t /*limit*/, Time /*t*/) override {}

  std::vector<QpCall> flushed;
};

struct FakeTimer : nic::TimerIf {
  void update(nic::QpContext& qp) override { updated.push_back({qp.qpn, sim_now()}); }

  std::vector<QpCall> updated;
};

/// Contexts are on chip, unless `miss` is set: the waiter is kept then.
struct FakeContexts : nic::ContextIf {
  bool acquire(nic::QpContext& qp, nic::ContextRole role, Time& t, nic::Waiter* waiter,
               bool again) override {
    asked.push_back({qp.qpn, t});
    roles.push_back(role);
    if (miss && !again) {
      waiting.push_back(waiter);
      return false;
    }
    t += lookup;
    return true;
  }

  bool miss = false;
  Time lookup{0};
  std::vector<QpCall> asked;
  std::vector<nic::ContextRole> roles;
  std::deque<nic::Waiter*> waiting;
};

/// Takes packets and keeps them.
struct FakeTransmit : nic::TransmitIf {
  void gather(nic::TxJob* job, Time t) override {
    sent.push_back({job->qp->qpn, t});
    jobs.push_back(job);
  }

  std::vector<QpCall> sent;
  std::deque<nic::TxJob*> jobs;
};

/// A transport with a given number of packets to send for each entry in the send queue, and
/// responses that are just counted down.
struct FakeTransport : transport::Transport {
  void connect(transport::QueuePair& /*qp*/) override {}
  void start_sending(transport::QueuePair& /*qp*/, Time /*now*/) override {}
  transport::PlanStatus plan_request(transport::QueuePair& qp, Time /*now*/,
                                     transport::TxPlan& plan) override {
    if (status != transport::PlanStatus::kPlanned) return status;
    if (idle(qp)) return transport::PlanStatus::kNoWqe;
    plan = transport::TxPlan{};
    plan.length = packet_bytes;
    ++qp.tx_number;
    return transport::PlanStatus::kPlanned;
  }
  bool plan_response(transport::QueuePair& qp, Time /*now*/, transport::TxPlan& plan) override {
    if (qp.responses.empty()) return false;
    plan = transport::TxPlan{};
    plan.is_response = true;
    qp.responses.pop_front();
    return true;
  }
  bool response_due(const transport::QueuePair& qp) const override { return !qp.responses.empty(); }
  void build(const transport::QueuePair& /*qp*/, const transport::TxPlan& /*plan*/,
             protocol::Frame& /*frame*/) const override {}
  std::uint32_t destination(const protocol::Frame& /*frame*/) override { return 0; }
  void receive(transport::QueuePair& /*qp*/, const protocol::Frame& /*frame*/, Time /*now*/,
               transport::RxPlan& /*plan*/) override {}
  void accept(transport::QueuePair& /*qp*/, const transport::RxPlan& /*plan*/, Time /*now*/,
              stats::MessageTrace* /*trace*/) override {}
  void answer_atomic(transport::QueuePair& /*qp*/, const transport::RxPlan& /*plan*/,
                     Time /*now*/) override {}
  void refuse(transport::QueuePair& /*qp*/, const transport::RxPlan& /*plan*/,
              transport::Refusal /*why*/, Time /*now*/) override {}
  void refuse_response(transport::QueuePair& /*qp*/, const transport::TxPlan& /*plan*/,
                       transport::Refusal /*why*/, Time /*now*/) override {}
  bool timeout(transport::QueuePair& qp, Time now) override {
    timeouts.push_back({qp.qpn, now});
    qp.retry_deadline = next_deadline;
    return true;
  }

  transport::PlanStatus status = transport::PlanStatus::kPlanned;
  std::uint32_t packet_bytes = 64;
  Time next_deadline = kTimeNever;  ///< what a timeout sets
  std::vector<QpCall> timeouts;
};

/// Appends a decoded work request to the send queue.
inline transport::SendEntry& add_entry(nic::QpContext& qp, std::uint16_t index, bool signaled,
                                       bool finished = false) {
  transport::SendEntry& entry = qp.sq.push_slot();
  entry.wqe.opcode = protocol::WqeOpcode::kWrite;
  entry.wqe.index = index;
  entry.wqe.signaled = signaled;
  entry.finished = finished;
  return entry;
}

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemc>

#include "nic/jobs.h"
#include "protocol/command.h"
#include "protocol/cqe.h"
#include "protocol/doorbell.h"
#include "protocol/event.h"

/// What the NIC's units ask of each other. Each unit implements its interface and reaches its
/// neighbours through sc_ports that nic.cpp binds, so that a test can put a fake in their place.
/// A `Time t` is when the request takes effect: now or, after fixed pipeline latencies, a little
/// later.
namespace rnic::nic {

inline constexpr std::uint32_t kTransmitLanes = 16;
/// Lane whose places in the transmit path the packet of entry `number` takes: a datagram has the
/// lane of its own address handle, everything else that of its queue pair.
inline std::uint32_t transmit_lane(const QpContext& qp, std::uint64_t number) {
  if (qp.type != protocol::QpType::kUd) return qp.av.lane % kTransmitLanes;
  const transport::SendEntry* entry = qp.entry(number);
  return (entry != nullptr ? entry->wqe.datagram.av.lane : qp.av.lane) % kTransmitLanes;
}
/// That of what `qp` sends next.
inline std::uint32_t transmit_lane(const QpContext& qp) { return transmit_lane(qp, qp.tx_number); }

/// SqScheduler: chooses which queue pair sends its next packet.
class SchedulerIf : public virtual sc_core::sc_interface {
 public:
  /// `qp` may have requests or responses to send.
  virtual void activate(QpContext& qp, Time t) = 0;
  /// A packet of `lane` left the transmit path; its place may be used again.
  virtual void slot_freed(Time t, std::uint32_t lane) = 0;
  /// For how long, up to now, nobody has had anything to send.
  virtual Time idle_time() const { return kTimeZero; }
};

/// QpContextCache: brings a QP's context on chip.
class ContextIf : public virtual sc_core::sc_interface {
 public:
  /// True: the context is here, `t` is advanced by the lookup. False: `waiter` is resumed when the
  /// fetch is over; `again` tells that this is the same request after a resume.
  virtual bool acquire(QpContext& qp, ContextRole role, Time& t, Waiter* waiter, bool again) = 0;
  /// An access that finds what it needs kept elsewhere; it takes its turn in the lookups alone.
  virtual Time pass(Time t) { return t; }
  /// A doorbell says that `qp` will be needed soon.
  virtual void expect(QpContext& /*qp*/, Time /*t*/) {}
};

/// WqeFetcher: brings WQEs from the send ring.
class WqeFetchIf : public virtual sc_core::sc_interface {
 public:
  /// Starts a fetch when WQEs are posted and none is under way.
  virtual void fetch(QpContext& qp, Time t) = 0;
  /// WQE blocks that came with a BlueFlame write; false when they can't be used (out of order).
  virtual bool blueflame(QpContext& qp, const std::uint8_t* blocks, std::uint32_t count,
                         Time t) = 0;
  /// What is being read of the ring belongs to a life of `qp` that is over: it is dropped when it
  /// comes.
  virtual void forsake(QpContext& qp) = 0;
};

/// TranslationUnit.
class TranslationIf : public virtual sc_core::sc_interface {
 public:
  virtual void translate(Translation& translation, Time t) = 0;
  /// These addresses will be asked for soon: what is missing of them may be fetched meanwhile.
  virtual void expect(const ExpectedAccess& /*access*/, Time /*t*/) {}
  /// Drops what is cached of a key (deregistration, invalidation).
  virtual void invalidate(std::uint32_t key, std::uint32_t first_mtt, std::uint32_t count) = 0;
  /// Pages of an on-demand region have come: who waited for them goes on.
  virtual void resume_faults(const protocol::FaultResumeDoorbell& resume, Time t) = 0;
};

/// Who has a key invalidated for a message of its peer.
class KeyClient {
 public:
  virtual ~KeyClient() = default;
  /// The key of `job`'s plan is gone, or could not be ended (`allowed` is false).
  virtual void key_invalidated(RxJob* job, bool allowed, Time t) = 0;
};

/// KeyUnit: operations on memory keys.
class KeyIf : public virtual sc_core::sc_interface {
 public:
  /// Carries out the operation of that entry of the send queue; the queue goes on behind it.
  virtual void execute(QpContext& qp, std::uint64_t entry_number, Time t) = 0;
  /// Ends the key that the SEND with invalidate of `job` names; `client` is told.
  virtual void invalidate_for_peer(RxJob* job, KeyClient& client, Time t) = 0;
};

/// PayloadGather: first stage of the transmit pipeline.
class TransmitIf : public virtual sc_core::sc_interface {
 public:
  virtual void gather(TxJob* job, Time t) = 0;
  /// No further packet of the QP's unfinished granule is coming for now: what waits may go.
  virtual void close_granule(QpContext& /*qp*/, Time /*t*/) {}
};

/// Packetizer.
class PacketizeIf : public virtual sc_core::sc_interface {
 public:
  virtual void packetize(TxJob* job, Time t) = 0;
};

/// Port, transmit side.
class PortIf : public virtual sc_core::sc_interface {
 public:
  virtual void send(protocol::Frame* frame, Time ready) = 0;
  /// The frame's place in the receive buffer is free from `when` on.
  virtual void release(const protocol::Frame& frame, Time when) = 0;
};

/// Responder: executes what an arriving frame asks.
class ResponderIf : public virtual sc_core::sc_interface {
 public:
  virtual void execute(RxJob* job, Time t) = 0;
  /// `job` waits behind others of its queue pair.
  virtual void expect(const RxJob& /*job*/, Time /*t*/) {}
  /// What `qp` has accepted and not yet written goes to memory.
  virtual void release_kept(QpContext& /*qp*/, Time /*t*/) {}
};

/// RxPipeline, as seen by the responder.
class RxPipelineIf : public virtual sc_core::sc_interface {
 public:
  /// The job's plan was carried out (or dropped) by `t`; the QP's next frame may go on from `next`.
  virtual void executed(RxJob* job, Time t, Time next) = 0;
  /// The frame's bytes are in memory: frame and job are free.
  virtual void retire(RxJob* job) = 0;
  /// The frame leaves the port's receive buffer; nothing when it has left it before.
  virtual void release_buffer(RxJob* job, Time t) = 0;
};

/// RqUnit: RECV WQEs.
class RecvQueueIf : public virtual sc_core::sc_interface {
 public:
  enum class Answer : std::uint8_t { kReady, kEmpty, kWait, kFailed };
  /// kReady: qp.recv() is the RECV to use, `t` advanced. kEmpty: none is posted. kWait:
  /// `waiter` is resumed when a fetch is over, and asks `again`. kFailed: the queue cannot be read,
  /// the application has been told; the queue pair is to fail.
  virtual Answer acquire(QpContext& qp, Time& t, Waiter* waiter, bool again) = 0;
  /// That RECV is used up.
  virtual void consume(QpContext& qp, Time t) = 0;
  /// Fetches ahead; called when a QP may start receiving.
  virtual void prefetch(QpContext& qp, Time t) = 0;
  /// Completes every RECV of the queue pair with a flush error: all of its own ring, or the one of
  /// a shared ring that it has taken.
  virtual void flush(QpContext& qp, Time t) = 0;
  /// The queue pair, in RESET by now, has no RECVs any more: those of its own ring are forgotten,
  /// with what is being read of it, and who waits for one goes on.
  virtual void forget(QpContext& qp, Time t) = 0;
  virtual void create_shared(const protocol::CreateSrqCommand& create) = 0;
  /// False: no such queue.
  virtual bool resize_shared(const protocol::ResizeSrqCommand& resize) = 0;
  /// Null: no such queue.
  virtual RecvQueue* find_shared(std::uint32_t srqn) = 0;
  virtual void destroy_shared(std::uint32_t srqn) = 0;
  /// One event when fewer than `limit` RECVs are left; 0: none.
  virtual void arm_limit(RecvQueue& queue, std::uint32_t limit, Time t) = 0;
};

/// AtomicUnit: read-modify-write of host memory.
class AtomicIf : public virtual sc_core::sc_interface {
 public:
  /// Executes the compare-and-swap or fetch-and-add `plan` (opcode, swap_or_add, compare) on the 8
  /// bytes at bus address `address`; operations of one address in the order of their calls.
  virtual void execute(QpContext& qp, const transport::RxPlan& plan, stats::MessageTrace* trace,
                       std::uint64_t address, Time t) = 0;
};

/// Responder, as seen by the atomic unit.
class AtomicClient : public virtual sc_core::sc_interface {
 public:
  /// The operation is over; `plan.original` holds the value before it.
  virtual void atomic_done(QpContext& qp, const transport::RxPlan& plan, stats::MessageTrace* trace,
                           Time t) = 0;
  /// The host's memory could not be read; nothing has changed.
  virtual void atomic_failed(QpContext& qp, const transport::RxPlan& plan, Time t) = 0;
};

/// CompletionUnit: retires send work in order.
class CompletionIf : public virtual sc_core::sc_interface {
 public:
  virtual void retire(QpContext& qp, Time t) = 0;
  /// Moves the QP to ERR and flushes its queues.
  virtual void fail(QpContext& qp, Time t) = 0;
  /// As fail(), because the device cannot go on with this QP: raises QP_FATAL, unless it is in
  /// RESET or ERR.
  virtual void fail_fatally(QpContext& qp, Time t) = 0;
};

/// EventUnit: tells the host of events, by entries in event queues and interrupts.
class EventIf : public virtual sc_core::sc_interface {
 public:
  virtual void create(const protocol::CreateEqCommand& create) = 0;
  /// Something happened to the object of that number.
  virtual void raise(const protocol::Event& event, Time t) = 0;
  /// An armed completion queue has what it waited for.
  virtual void notify(std::uint32_t eqn, std::uint32_t cqn, Time t) = 0;
  /// The driver has seen the queue's entries and waits for the next.
  virtual void arm(const protocol::EqArmDoorbell& doorbell, Time t) = 0;
};

/// CqUnit: writes completion queue entries.
class CompletionQueueIf : public virtual sc_core::sc_interface {
 public:
  virtual void post(std::uint32_t cqn, const protocol::Cqe& cqe, stats::MessageTrace* trace,
                    Time t) = 0;
  virtual void create(const protocol::CreateCqCommand& create) = 0;
  /// False: no such queue. Likewise below.
  virtual bool modify(const protocol::ModifyCqCommand& modify) = 0;
  virtual bool resize(const protocol::ResizeCqCommand& resize) = 0;
  virtual bool destroy(std::uint32_t cqn) = 0;
  virtual void arm(const protocol::CqArmDoorbell& doorbell, Time t) = 0;
};

/// RetransmissionTimer.
class TimerIf : public virtual sc_core::sc_interface {
 public:
  /// qp.retry_deadline or qp.rnr_until changed.
  virtual void update(QpContext& qp) = 0;
};

/// CommandUnit.
class CommandIf : public virtual sc_core::sc_interface {
 public:
  virtual void execute(std::uint64_t mailbox_address, Time t) = 0;
};

}  // namespace rnic::nic

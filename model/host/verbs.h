// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <systemc>
#include <unordered_map>
#include <vector>

#include "base/event_queue.h"
#include "base/rate_server.h"
#include "base/ring.h"
#include "config/host_config.h"
#include "config/nic_config.h"
#include "host/address_space.h"
#include "host/context_memory.h"
#include "host/cpu.h"
#include "host/memory_registrar.h"
#include "host/root_complex.h"
#include "host/status.h"
#include "host/verbs_types.h"
#include "protocol/command.h"
#include "protocol/cqe.h"
#include "protocol/doorbell.h"
#include "protocol/wqe.h"
#include "stats/instruments.h"
#include "stats/unit_stats.h"

namespace rnic::config {
struct Config;
}

namespace rnic::host::verbs {

/// Where the kernel puts events of completion queues for a thread that waits for them.
struct CompletionChannel {
  Ring<CompletionQueue*> events;  ///< not fetched yet
  std::uint32_t users = 0;        ///< queues that notify here
  bool waiting = false;
  sc_core::sc_event arrived;
};

/// Completion queue: a ring of CQEs in DMA-coherent memory and the driver's consumer index.
struct CompletionQueue {
  std::uint32_t cqn = 0;
  std::uint32_t log_entries = 0;
  std::uint64_t ring_address = 0;
  std::uint64_t doorbell_record = 0;
  std::uint32_t consumer = 0;
  PollSpot written;
  PhysicalMemory::WatchId watch{};
  CompletionChannel* channel = nullptr;
  std::uint32_t users = 0;           ///< queue pairs that complete here
  std::uint32_t events_unacked = 0;  ///< fetched by get_cq_event and not acknowledged
  bool failed = false;               ///< ran over, or the device lost it (CQ_ERR)
};

/// Shared receive queue: a ring whose slots form a list, because they are freed in any order.
struct SharedReceiveQueue {
  std::uint32_t srqn = 0;
  std::uint32_t pd = 0;
  SrqInitAttr cap;
  std::uint32_t limit = 0;  ///< armed; 0: none
  std::uint64_t ring_address = 0;
  std::uint32_t log_entries = 0;
  std::uint64_t doorbell_record = 0;
  std::uint16_t posted = 0;  ///< RECVs since creation, as the doorbell record holds it
  std::uint16_t head = 0;    ///< slot of the next RECV
  std::uint16_t tail = 0;    ///< last free slot
  std::uint32_t outstanding = 0;
  std::uint64_t next_ring = 0;        ///< while it is resized: what is posted goes there, too
  std::vector<std::uint64_t> wr_ids;  ///< by slot
  std::vector<std::uint16_t> next;    ///< by slot, as its WQE says
  std::uint32_t users = 0;            ///< queue pairs that take RECVs from it
};

/// Queue pair as the driver holds it: rings, indices, and what a CQE must be turned back into.
struct QueuePair {
  std::uint32_t qpn = 0;
  std::uint32_t pd = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  QpInitAttr cap;
  std::uint64_t sq_address = 0;
  std::uint64_t rq_address = 0;
  std::uint64_t doorbell_record = 0;
  std::uint16_t sq_head = 0;
  std::uint16_t rq_head = 0;
  std::uint8_t sq_log_blocks = 0;
  std::uint8_t rq_log_entries = 0;
  protocol::QpState state = protocol::QpState::kReset;  ///< as far as the driver knows

  struct PostedSend {
    std::uint64_t wr_id = 0;
    std::uint16_t index = 0;
    std::uint8_t blocks = 0;
  };
  Ring<PostedSend> sends;                 ///< posted and not yet known to be complete, oldest first
  Ring<std::uint64_t> recvs;              ///< wr_ids of posted RECVs
  stats::DeliveryMeter* meter = nullptr;  ///< of what arrives here; may stay null

  /// What an idle queue pair does without: there may be hundreds of thousands of them.
  struct Extras {
    std::unique_ptr<QpAttr> alternate;  ///< fields of the alternate path as they were loaded last
    std::vector<protocol::Gid> groups;  ///< multicast groups that it is attached to
    std::vector<stats::MessageTrace*> traces;  ///< by ring block; empty: nobody traces
  };
  std::unique_ptr<Extras> extras;  ///< null until one of them is needed

  /// The extras, made now if there are none.
  Extras& with_extras() {
    if (extras == nullptr) extras = std::make_unique<Extras>();
    return *extras;
  }
  /// The alternate path; null: none has been loaded.
  const QpAttr* alternate() const { return extras != nullptr ? extras->alternate.get() : nullptr; }
  bool in_group(const protocol::Gid& group) const {
    return extras != nullptr &&
           std::find(extras->groups.begin(), extras->groups.end(), group) != extras->groups.end();
  }
};

/// Cumulative cost of memory registration.
struct RegistrationStats {
  std::uint64_t calls = 0;
  std::uint64_t pages = 0;
  Time time{0};
};

/// Counts of the driver's work.
struct DriverStats {
  std::uint64_t doorbells = 0;
  std::uint64_t blueflames = 0;
  std::uint64_t polls = 0;
  std::uint64_t commands = 0;
  std::uint64_t interrupts = 0;
  std::uint64_t syscalls = 0;  ///< of waiting for events
  RegistrationStats registration;
  std::uint64_t completion_events = 0;
  std::array<std::uint64_t, protocol::kAsyncEventTypes> async_events{};  ///< by type
  std::uint64_t page_faults = 0;
  std::uint64_t pages_on_demand = 0;  ///< mapped for faults and by advise_mr
};

/// How multicast groups are named on the wire.
enum class GroupAddressing : std::uint8_t { kNone, kLid, kGid, kIpv4 };

/// What a device and its wire allow a work request to ask.
struct PostRules {
  bool iwarp = false;
};

/// An opened device: the user-space driver and the kernel's registration path. Every call spends
/// its caller's CPU time on the `Core` it is given and must come from an SC_THREAD. Results are
/// errno-like as in libibverbs.
class Context : public sc_core::sc_module, public stats::Instruments, public InterruptSink {
 public:
  Context(const sc_core::sc_module_name& name, const config::Config& config, PhysicalMemory& memory,
          AddressSpace& space, ContextMemory& context_memory, MmioPort& mmio);

  /// Why the latest post_send() was refused, one line; empty when it was not.
  const char* refusal() const { return refusal_; }

  /// Null (EINVAL): no such protection domain.
  AddressHandle* create_ah(Core& core, std::uint32_t pd, const protocol::AddressVector& av);
  Status destroy_ah(Core& core, AddressHandle* ah);

  std::uint32_t alloc_pd();
  /// EBUSY: something still belongs to it. EINVAL: no such domain.
  Status dealloc_pd(std::uint32_t pd);
  RegistrationResult reg_mr(Core& core, std::uint32_t pd, std::uint64_t addr, std::uint64_t length,
                            std::uint32_t access);
  /// EBUSY: a window is bound to it. EINVAL: no such region.
  Status dereg_mr(Core& core, const MemoryRegion& region);
  /// ibv_rereg_mr with IBV_REREG_MR_CHANGE_PD and IBV_REREG_MR_CHANGE_ACCESS: the keys stay.
  Status rereg_mr(Core& core, MemoryRegion& region, std::uint32_t pd, std::uint32_t access);
  /// ibv_rereg_mr with IBV_REREG_MR_CHANGE_TRANSLATION: other memory under the same keys. EBUSY: a
  /// window is bound to it; else as reg_mr. A call that fails changes nothing.
  Status rereg_mr_translation(Core& core, MemoryRegion& region, std::uint64_t addr,
                              std::uint64_t length);
  /// ibv_advise_mr, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE: pages of an on-demand region are brought
  /// in while the caller goes on. EINVAL: not such a region, or a range outside it.
  Status advise_mr(Core& core, const MemoryRegion& region, std::uint64_t address,
                   std::uint64_t length);

  /// A window that is bound to nothing; empty: ENOMEM.
  std::optional<MemoryWindow> alloc_mw(Core& core, std::uint32_t pd, MwType type);
  Status dealloc_mw(Core& core, const MemoryWindow& window);
  /// ibv_bind_mw: posts the bind of a type 1 window to `qp` and gives it its next key. EINVAL for
  /// another type; else as post_send.
  Status bind_mw(Core& core, QueuePair& qp, const MwBind& bind, std::uint64_t wr_id,
                 std::uint32_t flags);

  /// A region of up to `max_pages` 4 KiB pages that work requests register; empty: ENOMEM.
  std::optional<FastRegion> alloc_fast_mr(Core& core, std::uint32_t pd, std::uint32_t max_pages);
  /// What the next registration stands for: pins it and writes its list of pages. EINVAL: more
  /// pages than the region has; else as reg_mr.
  Status map_fast_mr(Core& core, FastRegion& region, std::uint64_t va, std::uint64_t length);
  Status dealloc_fast_mr(Core& core, FastRegion& region);

  /// EBUSY: a queue notifies here.
  CompletionChannel* create_comp_channel();
  Status destroy_comp_channel(CompletionChannel* channel);

  /// At least `entries` CQEs (rounded up to a power of two).
  CompletionQueue* create_cq(Core& core, std::uint32_t entries) {
    CqInitAttr attr;
    attr.entries = entries;
    return create_cq(core, attr);
  }
  /// EINVAL (null): no entries or more than 2^22.
  CompletionQueue* create_cq(Core& core, const CqInitAttr& attr);
  Status modify_cq(Core& core, CompletionQueue& cq, const CqModeration& moderation);
  /// Room for `entries` from now on. EINVAL: none, too many, or fewer than wait to be polled.
  Status resize_cq(Core& core, CompletionQueue& cq, std::uint32_t entries);
  /// EBUSY: queue pairs use it, or events are not acknowledged (libibverbs would wait for those).
  Status destroy_cq(Core& core, CompletionQueue* cq);
  /// Asks for one event on the queue's channel at the next completion (that is solicited or failed)
  /// after those that poll_cq could take now. EINVAL: it has no channel.
  Status req_notify_cq(Core& core, CompletionQueue& cq, bool solicited_only);
  /// Sleeps until a queue of the channel has an event; returns the queue, or null when it is
  /// `deadline` and there is none (poll() on the channel's descriptor with a time-out).
  CompletionQueue* get_cq_event(Core& core, CompletionChannel& channel, Time deadline = kTimeNever);
  void ack_cq_events(CompletionQueue& cq, std::uint32_t count);

  /// Null: EINVAL, no RECVs or segments, or more than the device has.
  SharedReceiveQueue* create_srq(Core& core, std::uint32_t pd, const SrqInitAttr& attr);
  /// ibv_modify_srq with IBV_SRQ_MAX_WR: room for `max_wr` RECVs from now on. EINVAL: none, too
  /// many, or fewer than are posted.
  Status resize_srq(Core& core, SharedReceiveQueue& srq, std::uint32_t max_wr);
  /// An event once fewer than `limit` RECVs are left; 0: none. EINVAL: more than the queue holds.
  Status modify_srq(Core& core, SharedReceiveQueue& srq, std::uint32_t limit);
  /// EBUSY: queue pairs use it.
  Status destroy_srq(Core& core, SharedReceiveQueue* srq);
  /// As post_recv. EINVAL: too many segments; ENOMEM: full.
  Status post_srq_recv(Core& core, SharedReceiveQueue& srq, const RecvWr* wrs, std::uint32_t count,
                       std::uint32_t* bad = nullptr);

  /// EINVAL (null) when a capability exceeds the device's.
  QueuePair* create_qp(Core& core, std::uint32_t pd, CompletionQueue& send_cq,
                       CompletionQueue& recv_cq, const QpInitAttr& attr);
  /// EINVAL: no such transition, an attribute missing, not allowed in it or out of range.
  Status modify_qp(Core& core, QueuePair& qp, const QpAttr& attr, std::uint32_t mask);
  /// State as the device has it.
  protocol::QpState query_qp(Core& core, QueuePair& qp);
  /// ibv_query_qp: all attributes as the device has them (PSNs: of the next packets), and what the
  /// queue pair was created with.
  Status query_qp(Core& core, QueuePair& qp, QpAttr& attr, QpInitAttr& init);
  /// ibv_query_srq: the limit is 0 once its event was raised.
  Status query_srq(Core& core, const SharedReceiveQueue& srq, SrqAttr& attr);
  /// What the device can do at most.
  DeviceAttr query_device() const;
  /// EINVAL: no such port.
  Status query_port(Core& core, std::uint8_t port_num, PortAttr& attr);
  /// The address of the port's frames: on InfiniBand and RoCEv1 its GID, on RoCEv2 over IPv4 the
  /// address mapped (::ffff:a.b.c.d), on iWARP its MAC address and zeros (as Linux' siw and irdma
  /// have it). EINVAL: no such port or entry.
  Status query_gid(Core& core, std::uint8_t port_num, std::uint32_t index, protocol::Gid& gid);
  /// The default partition (IBTA vol 1, 10.9.1.2), 0xFFFF with its membership bit. EINVAL: as
  /// above.
  Status query_pkey(Core& core, std::uint8_t port_num, std::uint32_t index, std::uint16_t& pkey);
  /// To be called before the simulation starts: what the port is called on the wire.
  void name_port(const protocol::Gid& gid, std::uint16_t lid);
  /// ibv_attach_mcast: `qp` gets a copy of each datagram to the group (but of its own). A second
  /// call changes nothing. EINVAL: not a datagram queue pair, or not a group of this port's kind
  /// (`group` FF00::/8 with a multicast `lid` on InfiniBand; RoCEv2 over IPv4:
  /// ::ffff:224.0.0.0/100). ENOMEM: the group is full.
  Status attach_mcast(Core& core, QueuePair& qp, const protocol::Gid& group, std::uint16_t lid);
  /// EINVAL: it is not attached.
  Status detach_mcast(Core& core, QueuePair& qp, const protocol::Gid& group, std::uint16_t lid);
  /// Its completions that were not polled are gone with it. EBUSY: it is attached to a group.
  Status destroy_qp(Core& core, QueuePair* qp);

  /// Takes the oldest asynchronous event; false: there is none.
  bool poll_async_event(Core& core, AsyncEvent& event);
  /// Sleeps until there is one.
  AsyncEvent get_async_event(Core& core);

  /// Posts `count` requests with one doorbell. On failure `*bad` is the index of the first that was
  /// not posted; earlier ones are. EINVAL: bad SGE count, inline size or state; ENOMEM: queue full.
  Status post_send(Core& core, QueuePair& qp, const SendWr* wrs, std::uint32_t count,
                   std::uint32_t* bad = nullptr);
  Status post_recv(Core& core, QueuePair& qp, const RecvWr* wrs, std::uint32_t count,
                   std::uint32_t* bad = nullptr);
  /// Takes up to `count` completions; returns how many.
  std::uint32_t poll_cq(Core& core, CompletionQueue& cq, std::uint32_t count, Wc* wcs);
  /// A completion can be taken (free of cost: for who spends the time of the look itself).
  bool has_completion(const CompletionQueue& cq) const {
    protocol::Cqe cqe;
    return peek_cqe(cq, cqe);
  }
  /// Spins until the CQ holds a completion, or never will (CQ_ERR); false when it is `deadline`
  /// before that.
  bool wait_cq(Core& core, CompletionQueue& cq, Time deadline = kTimeNever);

  /// Uncached load of the device's register at `offset` (protocol::BarLayout): the core waits for a
  /// request across PCIe and its completion.
  std::uint64_t read_register(Core& core, std::uint64_t offset);

  /// Event queues as the device is told of them at start.
  std::vector<protocol::CreateEqCommand> event_queues() const;
  void interrupt(std::uint64_t address, const std::uint8_t* data, std::uint32_t bytes) override;

  stats::MessageTrace* trace_of(std::uint32_t qpn, std::uint16_t wqe_index) override;
  stats::DeliveryMeter* meter_of(std::uint32_t qpn) override;
  /// Busy while at least one page fault of the device is being handled.
  const stats::UnitStats& page_fault_unit() const { return page_fault_unit_; }
  void reset_statistics(Time now) { page_fault_unit_.reset(now); }

  AddressSpace& space() { return space_; }
  PhysicalMemory& memory() { return memory_; }
  const DriverStats& stats() const { return stats_; }
  QueuePair* find_qp(std::uint32_t qpn);

 private:
  /// Values that the kernel looks at before the device does.
  static bool numbers_valid(const QpAttr& attr, std::uint32_t mask);
  /// Loads an alternate path and moves the state of path migration, as `mask` asks.
  Status modify_migration(Core& core, QueuePair& qp, const QpAttr& attr, std::uint32_t mask);
  Status check_send(const QueuePair& qp, const SendWr& wr);
  static Status check_key_operation(const QueuePair& qp, const SendWr& wr);
  void fill_key_operation(const SendWr& wr);
  Status fill_wqe(const SendWr& wr, const QueuePair& qp);
  void write_ring(std::uint64_t base, std::uint32_t ring_bytes, std::uint32_t offset,
                  const std::uint8_t* bytes, std::uint32_t count);
  static void note_trace(QueuePair& qp, std::uint32_t slot, stats::MessageTrace* trace);
  /// Spends `cost` storing to the queue pair's doorbell register, once that is free. A shared one
  /// is held until the stores have left (`stall`), which the caller spends.
  void use_register(Core& core, const QueuePair& qp, Time cost, Time stall);
  /// Whether this WQE is written to the device when it is posted alone (nic.blueflame*).
  bool may_push(const protocol::SendWqe& wqe) const;
  /// Tells the device of `posted` WQEs; a lone one of `push_blocks` (0: none) is written to it.
  void ring_doorbell(Core& core, QueuePair& qp, std::uint32_t posted, std::uint32_t push_blocks);
  /// When `lines` write-combined lines leave the host; the core waits for a free buffer.
  /// Stores a WQE without a lock: each block leaves as it is filled, the last at `last`.
  void store_blocks(const QueuePair& qp, Time last, const std::uint8_t* push, std::uint32_t blocks);
  Time combine_writes(Core& core, std::uint32_t lines);
  /// The IOMMU, and a device that keeps translations, forget the region's pages.
  void unmap_for_device(Core& core, const MemoryRegion& region);
  bool peek_cqe(const CompletionQueue& cq, protocol::Cqe& cqe) const {
    return peek_cqe(cq, cq.consumer, cqe);
  }
  bool peek_cqe(const CompletionQueue& cq, std::uint32_t index, protocol::Cqe& cqe) const;
  std::uint32_t visible_cqes(const CompletionQueue& cq) const;
  std::uint64_t make_cq_ring(std::uint32_t log_entries);
  void write_consumer(const CompletionQueue& cq);
  /// Takes the queue pair's completions out of `cq` (its numbers mean nothing any more).
  void clean_cq(CompletionQueue& cq, const QueuePair& qp);
  void free_srq_slot(SharedReceiveQueue& srq, std::uint16_t slot);
  void write_recv(std::uint64_t at, const RecvWr& wr, std::uint32_t max_sge);
  /// Drops what was posted, and its completions: the queue pair is in RESET or gone.
  void forget_work(QueuePair& qp);
  void ring_flush_doorbell(const QueuePair& qp, Time at);
  /// The queue pair turns out to be in ERR: RECVs that were posted without knowing are flushed.
  void learn_of_error(QueuePair& qp);
  void to_wc(const protocol::Cqe& cqe, Wc& wc);
  protocol::CommandStatus execute(Core& core, const protocol::CommandMailbox& mailbox);
  void create_event_rings();
  bool pd_exists(std::uint32_t pd) const;
  /// Whether datagrams of this port can have that destination.
  bool group_valid(const protocol::Gid& group, std::uint16_t lid) const;
  Status change_group(Core& core, protocol::CommandOpcode opcode, const QueuePair& qp,
                      const protocol::Gid& group);
  /// Tells a device that asks for them of address handles.
  void tell_address(Core& core, protocol::CommandOpcode opcode, const AddressHandle& ah);
  void use_pd(std::uint32_t pd) { ++pd_users_.at(pd - 1); }
  void leave_pd(std::uint32_t pd) { --pd_users_.at(pd - 1); }
  Status execute_status(Core& core, const protocol::CommandMailbox& mailbox);
  std::uint64_t allocate_ring(std::uint64_t bytes);
  void write_shared_recv(const SharedReceiveQueue& srq, std::uint64_t ring, const RecvWr& wr);
  bool has_windows(const MemoryRegion& region) const;
  /// Makes the device forget what it holds of the region's keys.
  void drop_cached_key(Core& core, const MemoryRegion& region);

  /// An event queue in host memory: 0 for asynchronous events, 1 for completions.
  struct EventRing {
    std::uint64_t address = 0;
    std::uint32_t consumer = 0;
  };
  void handle_interrupt(std::uint32_t& eqn);
  void handle_event(const protocol::Event& event);

  /// Pages that the driver brings in for the device.
  struct PageJob {
    std::uint32_t key = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    Time start{0};
    std::uint64_t number = 0;
  };
  /// A region of which pages come on demand. An implicit one has a region for each gigabyte that
  /// was touched.
  struct PagedRegion {
    MemoryRegion region;
    std::unordered_map<std::uint64_t, MemoryRegion> children;  ///< by number of the gigabyte
  };
  PagedRegion* find_paged(std::uint32_t key);
  /// The region whose translation holds the pages at `address`; null: no child yet.
  static const MemoryRegion* region_at(const PagedRegion& paged, std::uint64_t address);
  /// Pages of the range that are not entered yet; it lies in one region.
  std::uint32_t missing_pages(const PagedRegion& paged, std::uint64_t address,
                              std::uint64_t bytes) const;
  void start_page_job(PageJob job, Time start, Time ready);
  bool make_child(PagedRegion& paged, const PageJob& job);
  void resume_device(const protocol::FaultResumeDoorbell& resume);
  void drop_children(Core& core, PagedRegion& paged);
  void handle_page_fault(const protocol::Event& event);
  void pages_ready(PageJob& job);
  void notify_channel(const CompletionQueue& cq);
  AsyncEvent to_async_event(const protocol::Event& event);
  void enter_kernel(Core& core);
  /// The thread slept since `since`; its event has been handled now.
  void wake_up(Core& core, Time since);

  ContextMemory& context_memory_;
  const config::NicConfig nic_;
  const config::CpuConfig cpu_;
  const config::MemoryConfig memory_config_;
  PortAttr port_;  ///< but for its state
  protocol::Gid port_gid_{};
  const Time connection_setup_;  ///< iWARP: on the way to RTS
  PhysicalMemory& memory_;
  AddressSpace& space_;
  MemoryRegistrar registrar_;
  MmioPort& mmio_;
  StoreBuffer store_buffer_;
  const Time unmap_cost_;                              ///< of the IOMMU's driver
  Server write_combining_;                             ///< the host's way for write-combined lines
  std::vector<std::unique_ptr<CompletionQueue>> cqs_;  ///< by number, from 1
  std::vector<std::unique_ptr<SharedReceiveQueue>> srqs_;  ///< by number, from 1
  std::vector<std::unique_ptr<CompletionChannel>> channels_;
  std::vector<std::unique_ptr<QueuePair>> qps_;  ///< by number, from kFirstQpn
  std::vector<std::uint32_t> pd_users_;          ///< by domain: objects that belong to it
  std::set<std::uint32_t> windows_;              ///< indices of their keys
  std::array<EventRing, 2> event_rings_;         ///< asynchronous events, completions
  EventQueue<Context, std::uint32_t> handlers_;
  stats::UnitStats page_fault_unit_;
  Time page_faults_until_{0};  ///< end of the handling that has been counted
  std::unordered_map<std::uint32_t, std::shared_ptr<PagedRegion>> on_demand_;  ///< by key
  std::vector<PageJob> page_jobs_open_;                                        ///< not done yet
  std::uint64_t page_job_numbers_ = 0;
  std::vector<Time> fault_handlers_;  ///< when each is free
  Time prefetcher_{0};
  EventQueue<Context, PageJob> page_jobs_;
  Ring<protocol::Event> async_events_;
  bool async_waiting_ = false;
  sc_core::sc_event async_arrived_;
  std::uint64_t ring_chunk_ = 0;
  std::uint64_t ring_chunk_left_ = 0;
  std::uint64_t mailbox_address_ = 0;
  PollSpot mailbox_written_;
  bool mailbox_taken_ = false;
  sc_core::sc_event mailbox_free_;
  PostRules post_rules_;
  GroupAddressing group_addressing_;
  /// A doorbell register that threads share under a lock.
  struct DoorbellRegister {
    Server lock;
    const Core* last = nullptr;  ///< who had it last
    Ring<Time> ends;             ///< of those that hold or await it
  };
  std::vector<DoorbellRegister> doorbell_registers_;  ///< empty: each queue pair has its own
  const char* refusal_ = "";
  std::vector<std::unique_ptr<AddressHandle>> address_handles_;
  protocol::SendWqe scratch_;
  std::vector<std::uint8_t> scratch_bytes_;
  DriverStats stats_;
};

}  // namespace rnic::host::verbs

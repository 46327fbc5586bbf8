// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/address_vector.h"
#include "protocol/command.h"
#include "protocol/event.h"
#include "protocol/qp_state.h"
#include "protocol/work_request.h"
#include "stats/stage.h"

/// The verbs API's data types, shaped and named as in libibverbs (rdma-core, verbs.h).
namespace rnic::host::verbs {

enum class WrOpcode : std::uint8_t {
  kRdmaWrite = 0,
  kRdmaWriteWithImm = 1,
  kSend = 2,
  kSendWithImm = 3,
  kRdmaRead = 4,
  kAtomicCmpAndSwp = 5,
  kAtomicFetchAndAdd = 6,
  kLocalInv = 7,
  kBindMw = 8,
  kSendWithInv = 9,
  kRegMr = 32,  ///< fast registration (IB_WR_REG_MR of the kernel)
};

/// ibv_send_flags.
struct SendFlags {
  static constexpr std::uint32_t kFence = 1;
  static constexpr std::uint32_t kSignaled = 2;
  static constexpr std::uint32_t kSolicited = 4;
  static constexpr std::uint32_t kInline = 8;
};

enum class MwType : std::uint8_t { kType1 = 1, kType2 = 2 };

/// ibv_mw.
struct MemoryWindow {
  MwType type = MwType::kType1;
  std::uint32_t pd = 0;
  std::uint32_t rkey = 0;  ///< of the latest bind
};

/// ibv_mw_bind_info: what a window is to stand for.
struct MwBind {
  MemoryWindow* window = nullptr;
  std::uint32_t rkey = 0;  ///< type 2: the new key, see next_key()
  std::uint32_t lkey = 0;  ///< of the region
  std::uint64_t address = 0;
  std::uint64_t length = 0;  ///< 0: nothing (type 1)
  std::uint32_t access = 0;
};

/// A region that work requests register (ib_alloc_mr), and the list of pages of the next one.
struct FastRegion {
  std::uint32_t pd = 0;
  std::uint32_t key = 0;  ///< local and remote, of the latest registration
  std::uint32_t max_pages = 0;
  std::uint64_t mtt_base = 0;
  std::uint64_t page_list = 0;  ///< bus address
  std::uint64_t va = 0;         ///< what is mapped; its pages are pinned
  std::uint64_t length = 0;
};

/// Of a fast registration.
struct RegMr {
  FastRegion* region = nullptr;
  std::uint32_t key = 0;  ///< see next_key()
  std::uint32_t access = 0;
};

/// The same entry under another variant byte (ibv_inc_rkey).
constexpr std::uint32_t next_key(std::uint32_t key) { return (key & ~0xFFU) | ((key + 1) & 0xFFU); }

/// ibv_ah: where datagrams of a protection domain may go.
struct AddressHandle {
  std::uint32_t pd = 0;
  protocol::AddressVector av;
};

struct SendWr {
  std::uint64_t wr_id = 0;
  WrOpcode opcode = WrOpcode::kSend;
  std::uint32_t flags = 0;
  const protocol::Sge* sg_list = nullptr;
  std::uint32_t num_sge = 0;
  std::uint32_t imm_data = 0;
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint32_t invalidate_key = 0;   ///< kLocalInv: here; kSendWithInv: at the peer
  MwBind bind;                        ///< kBindMw
  RegMr reg;                          ///< kRegMr
  const AddressHandle* ah = nullptr;  ///< UD
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;         ///< bit 31 set: the sending queue pair's own is used
  stats::MessageTrace* trace = nullptr;  ///< instrumentation, not part of the API's model
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  const protocol::Sge* sg_list = nullptr;
  std::uint32_t num_sge = 0;
};

/// ibv_wc.
struct Wc {
  static constexpr std::uint32_t kGrh = 1;  ///< the buffer starts with a network header
  static constexpr std::uint32_t kWithImm = 2;
  static constexpr std::uint32_t kWithInv = 8;  ///< the peer's SEND ended `invalidated_rkey`
  /// Of the peer's WRITE with immediate, which took no RECV (efadv_wc_is_unsolicited): wr_id is 0.
  static constexpr std::uint32_t kUnsolicited = 1U << 31;

  std::uint64_t wr_id = 0;
  protocol::WcStatus status = protocol::WcStatus::kSuccess;
  std::uint32_t vendor_err = 0;  ///< the device's code of a failure (protocol::vendor_syndrome())
  protocol::WcOpcode opcode = protocol::WcOpcode::kSend;
  std::uint32_t byte_len = 0;
  std::uint32_t imm_data = 0;
  std::uint32_t invalidated_rkey = 0;
  std::uint32_t qp_num = 0;
  std::uint32_t src_qp = 0;
  std::uint32_t wc_flags = 0;
  std::uint16_t pkey_index = 0;     ///< of datagrams to QP 1 only, which the model has none of
  std::uint16_t slid = 0;           ///< of datagrams on InfiniBand
  std::uint8_t sl = 0;              ///< of datagrams
  std::uint8_t dlid_path_bits = 0;  ///< ports of the model have one LID
};

struct CompletionChannel;
struct CompletionQueue;
struct SharedReceiveQueue;
struct QueuePair;

/// ibv_create_cq_ex's attributes.
struct CqInitAttr {
  std::uint32_t entries = 1;  ///< at least so many completions fit (rounded up to a power of two)
  CompletionChannel* channel = nullptr;
  /// IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: the device does not look whether there is room; completions
  /// of a full queue overwrite the oldest.
  bool ignore_overrun = false;
};

/// ibv_modify_cq's moderation: one event for `count` completions (0 and 1: for each), but no later
/// than `period_us` after the first of them (0: no bound).
struct CqModeration {
  std::uint16_t count = 0;
  std::uint32_t period_us = 0;
};

struct SrqInitAttr {
  std::uint32_t max_wr = 128;
  std::uint32_t max_sge = 1;
};

/// ibv_srq_attr, as query_srq() has it.
struct SrqAttr {
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t srq_limit = 0;  ///< 0: not armed
};

/// An asynchronous event (ibv_async_event) and the object that it is about; the others are null.
struct AsyncEvent {
  protocol::EventType type = protocol::EventType::kDeviceFatal;
  std::uint32_t port_num = 0;  ///< of a port's events
  QueuePair* qp = nullptr;
  CompletionQueue* cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
};

/// ibv_qp_init_attr; each queue pair keeps one, hence the order of the fields.
struct QpInitAttr {
  SharedReceiveQueue* srq = nullptr;  ///< takes RECVs from it; max_recv_wr is ignored then
  std::uint32_t max_send_wr = 128;
  std::uint32_t max_recv_wr = 128;
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_recv_sge = 1;
  std::uint32_t max_inline_data = 0;
  protocol::QpType qp_type = protocol::QpType::kRc;
  bool sq_sig_all = false;
};

/// ibv_qp_attr with the fields that the model uses; `mask` bits as ibv_qp_attr_mask.
struct QpAttr {
  protocol::QpState qp_state = protocol::QpState::kReset;
  /// With kCurState: where the queue pair is, should the driver not know (SQE).
  protocol::QpState cur_qp_state = protocol::QpState::kReset;
  std::uint32_t access_flags = 0;
  std::uint32_t qkey = 0;
  std::uint32_t dest_qp_num = 0;
  std::uint32_t path_mtu = 1024;  ///< bytes
  std::uint32_t rq_psn = 0;
  std::uint32_t sq_psn = 0;
  std::uint32_t timeout = 0;
  std::uint32_t retry_cnt = 0;
  std::uint32_t rnr_retry = 0;
  std::uint32_t min_rnr_timer = 0;
  std::uint32_t max_rd_atomic = 1;
  std::uint32_t max_dest_rd_atomic = 1;
  bool en_sqd_async_notify = false;  ///< to SQD: raise SQ_DRAINED when the send queue is idle
  protocol::AddressVector ah_attr;
  std::uint16_t pkey_index = 0;
  std::uint8_t port_num = 1;
  protocol::AddressVector alt_ah_attr;
  std::uint16_t alt_pkey_index = 0;
  std::uint8_t alt_port_num = 1;
  std::uint8_t alt_timeout = 0;
  protocol::PathMigration path_mig_state = protocol::PathMigration::kMigrated;
  bool sq_draining = false;  ///< query: in SQD, work is under way
};

/// ibv_device_attr with the limits that the model has.
struct DeviceAttr {
  std::uint64_t max_mr_size = 0;    ///< bytes
  std::uint64_t page_size_cap = 0;  ///< bit mask of sizes in bytes
  std::uint32_t max_qp = 0;
  std::uint32_t max_qp_wr = 0;  ///< of the smallest requests
  std::uint32_t max_sge = 0;
  std::uint32_t max_sge_rd = 0;  ///< of a READ
  std::uint32_t max_inline = 0;  ///< bytes (verbs tell it by create_qp only)
  std::uint32_t max_cq = 0;
  std::uint32_t max_cqe = 0;
  std::uint32_t max_mr = 0;
  std::uint32_t max_qp_rd_atom = 0;       ///< as responder
  std::uint32_t max_qp_init_rd_atom = 0;  ///< as requester
  std::uint32_t max_res_rd_atom = 0;      ///< max_qp_rd_atom on all queue pairs
  std::uint32_t max_srq = 0;
  std::uint32_t max_srq_wr = 0;
  std::uint32_t max_srq_sge = 0;
  std::uint32_t max_mcast_qp_attach = 0;  ///< queue pairs of a multicast group
  std::uint16_t max_pkeys = 0;
  std::uint8_t phys_port_cnt = 0;
  bool atomic_hca = false;   ///< IBV_ATOMIC_HCA: atomic among requests to this device
  bool atomic_glob = false;  ///< IBV_ATOMIC_GLOB: with the CPU's, too
};

/// ibv_port_attr with what the model has of a port.
struct PortAttr {
  protocol::PortState state = protocol::PortState::kDown;
  std::uint32_t max_mtu = 0;     ///< bytes
  std::uint32_t active_mtu = 0;  ///< bytes
  std::uint32_t max_msg_sz = 0;  ///< bytes
  std::uint16_t pkey_tbl_len = 0;
  std::uint16_t lid = 0;          ///< InfiniBand; 0 on Ethernet
  std::uint32_t gid_tbl_len = 0;  ///< addresses that query_gid() has
  double active_gbps = 0;         ///< data rate (ibv has codes of lanes and speed)
  bool ethernet = false;          ///< IBV_LINK_LAYER_ETHERNET, else InfiniBand
};

}  // namespace rnic::host::verbs

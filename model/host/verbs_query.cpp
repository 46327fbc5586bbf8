// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "host/verbs.h"
#include "host/verbs_internal.h"
#include "protocol/multicast.h"

/// The query calls of verbs.
namespace rnic::host::verbs {

using protocol::CommandMailbox;
using protocol::CommandOpcode;

protocol::QpState Context::query_qp(Core& core, QueuePair& qp) {
  QpAttr attr;
  QpInitAttr init;
  query_qp(core, qp, attr, init);
  return qp.state;
}

Status Context::query_qp(Core& core, QueuePair& qp, QpAttr& attr, QpInitAttr& init) {
  CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kQueryQp;
  mailbox.object = {qp.qpn};
  const Status status = execute_status(core, mailbox);
  if (status != Status::kOk) return status;
  memory_.read(mailbox_address_ + protocol::kCommandDetailOffset, &mailbox.detail, 1);
  protocol::ModifyQpCommand m{};
  memory_.read(mailbox_address_ + offsetof(CommandMailbox, modify_qp), &m, sizeof m);
  qp.state = m.state;
  attr = QpAttr{};
  if (const QpAttr* alternate = qp.alternate()) attr = *alternate;
  attr.qp_state = attr.cur_qp_state = m.state;
  attr.access_flags = m.access;
  attr.qkey = m.qkey;
  attr.dest_qp_num = m.dest_qpn;
  attr.path_mtu = m.path_mtu;
  attr.rq_psn = m.rq_psn;
  attr.sq_psn = m.sq_psn;
  attr.timeout = m.timeout;
  attr.retry_cnt = m.retry_count;
  attr.rnr_retry = m.rnr_retry;
  attr.min_rnr_timer = m.min_rnr_timer;
  attr.max_rd_atomic = m.max_rd_atomic;
  attr.max_dest_rd_atomic = m.max_dest_rd_atomic;
  attr.ah_attr = m.av;
  attr.path_mig_state = static_cast<protocol::PathMigration>(
      mailbox.detail & protocol::QueryQpDetail::kMigrationMask);
  attr.sq_draining = (mailbox.detail & protocol::QueryQpDetail::kDraining) != 0;
  init = qp.cap;
  return Status::kOk;
}

Status Context::query_srq(Core& core, const SharedReceiveQueue& srq, SrqAttr& attr) {
  enter_kernel(core);
  attr = {srq.cap.max_wr, srq.cap.max_sge, srq.limit};
  return Status::kOk;
}

DeviceAttr Context::query_device() const {
  constexpr std::uint64_t k4KiB = 1U << 12;
  constexpr std::uint64_t k2MiB = 1U << 21;
  constexpr std::uint64_t k1GiB = 1U << 30;
  constexpr std::uint32_t kNumbers = (1U << 24) - 1;  // of 24 bits
  DeviceAttr attr;
  attr.max_mr_size = ~std::uint64_t{0};
  attr.page_size_cap = k4KiB | k2MiB | k1GiB;
  attr.max_qp = kNumbers - kFirstQpn;
  attr.max_qp_wr = kMaxSendBlocks;
  attr.max_sge = nic_.max_sge;
  attr.max_sge_rd = post_rules_.iwarp ? 1 : nic_.max_sge;
  attr.max_inline = nic_.max_inline;
  attr.max_cq = attr.max_srq = kNumbers;
  attr.max_cqe = kMaxCqEntries;
  attr.max_mr = nic_.max_mr;
  attr.max_qp_rd_atom = attr.max_qp_init_rd_atom = nic_.max_rd_atomic;
  attr.max_res_rd_atom = nic_.max_rd_atomic * attr.max_qp;
  attr.max_srq_wr = kMaxSrqWr;
  attr.max_srq_sge = nic_.max_sge;
  attr.max_mcast_qp_attach = post_rules_.iwarp ? 0 : protocol::kMostGroupMembers;
  attr.max_pkeys = port_.pkey_tbl_len;
  attr.phys_port_cnt = 1;
  attr.atomic_hca = true;
  attr.atomic_glob = nic_.pcie_atomics;
  return attr;
}

Status Context::query_port(Core& core, std::uint8_t port_num, PortAttr& attr) {
  if (port_num != 1) return Status::kEinval;
  CommandMailbox mailbox{};
  mailbox.opcode = CommandOpcode::kQueryPort;
  const Status status = execute_status(core, mailbox);
  if (status != Status::kOk) return status;
  std::uint8_t state = 0;
  memory_.read(mailbox_address_ + protocol::kCommandResultOffset, &state, 1);
  attr = port_;
  attr.state = static_cast<protocol::PortState>(state);
  return Status::kOk;
}

void Context::name_port(const protocol::Gid& gid, std::uint16_t lid) {
  port_gid_ = gid;
  port_.lid = port_.ethernet ? std::uint16_t{0} : lid;
}

/// Both tables have one entry, which the kernel keeps.
Status Context::query_gid(Core& core, std::uint8_t port_num, std::uint32_t index,
                          protocol::Gid& gid) {
  enter_kernel(core);
  if (port_num != 1 || index >= port_.gid_tbl_len) return Status::kEinval;
  gid = port_gid_;
  return Status::kOk;
}

Status Context::query_pkey(Core& core, std::uint8_t port_num, std::uint32_t index,
                           std::uint16_t& pkey) {
  constexpr std::uint16_t kDefault = 0xFFFF;
  enter_kernel(core);
  if (port_num != 1 || index >= port_.pkey_tbl_len) return Status::kEinval;
  pkey = kDefault;
  return Status::kOk;
}

}  // namespace rnic::host::verbs

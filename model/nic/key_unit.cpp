// SPDX-License-Identifier: Apache-2.0
#include "nic/key_unit.h"

#include "base/sc_time.h"
#include "protocol/mtt.h"

namespace rnic::nic {

using protocol::MptEntry;
using protocol::MptState;
using protocol::MptType;
using protocol::WqeOpcode;

KeyUnit::KeyUnit(const sc_core::sc_module_name& name, std::uint64_t mpt_base,
                 std::uint64_t mtt_base, std::uint32_t mpt_entries)
    : sc_module(name), mpt_base_(mpt_base), mtt_base_(mtt_base), mpt_entries_(mpt_entries) {
  keys.bind(*this);
}

void KeyUnit::execute(QpContext& qp, std::uint64_t entry_number, Time t) {
  const protocol::SendWqe& wqe = qp.entry(entry_number)->wqe;
  Job* job = jobs_.take();
  job->qp = &qp;
  job->number = entry_number;
  job->frame = nullptr;
  job->opcode = wqe.opcode;
  job->key = wqe.opcode == WqeOpcode::kLocalInval ? wqe.imm_or_rkey : wqe.rkey;
  job->region_key = wqe.imm_or_rkey;
  job->address = wqe.remote_address;
  job->length = wqe.compare;
  job->page_list = wqe.swap_or_add;
  job->access = wqe.key_access;
  job->log2_page_size = wqe.log2_page_size;
  read_entry(job, job->key, job->entry_bytes.data(), Step::kEntry, t);
}

void KeyUnit::invalidate_for_peer(RxJob* frame, KeyClient& client, Time t) {
  Job* job = jobs_.take();
  job->qp = frame->qp;
  job->frame = frame;
  job->client = &client;
  job->opcode = WqeOpcode::kLocalInval;
  job->key = frame->plan.imm;
  read_entry(job, job->key, job->entry_bytes.data(), Step::kEntry, t);
}

void KeyUnit::read_entry(Job* job, std::uint32_t key, std::uint8_t* into, Step step, Time t) {
  const std::uint32_t index = protocol::key_index(key);
  if (index >= mpt_entries_) {
    finish(job, false, t);
    return;
  }
  job->step = step;
  dma->dma_read(t, mpt_base_ + std::uint64_t{index} * MptEntry::kBytes, MptEntry::kBytes, into,
                tlm_ext::Purpose::kMpt, this, reinterpret_cast<std::uint64_t>(job));
}

void KeyUnit::dma_failed(const pcie::DmaFault& fault) {
  finish(reinterpret_cast<Job*>(fault.token), false, sim_now());
}

void KeyUnit::dma_done(std::uint64_t token) {
  auto* job = reinterpret_cast<Job*>(token);
  const Time now = sim_now();
  MptEntry entry = MptEntry::decode(job->entry_bytes.data());
  switch (job->step) {
    case Step::kEntry:
      if (entry.pd != job->qp->pd) {
        finish(job, false, now);
      } else if (job->opcode == WqeOpcode::kLocalInval) {
        invalidate(job, entry, now);
      } else if (job->opcode == WqeOpcode::kFastReg) {
        fast_register(job, entry, now);
      } else if (job->length == 0) {
        bind(job, entry, now);
      } else {
        read_entry(job, job->region_key, job->region_bytes.data(), Step::kRegion, now);
      }
      return;
    case Step::kRegion:
      bind(job, entry, now);
      return;
    case Step::kPages:
      write_pages(job, now);
      return;
    case Step::kPagesWritten:
      entry.state = MptState::kValid;
      entry.key = job->key;
      entry.access = job->access;
      entry.zero_based = (job->access & protocol::kAccessZeroBased) != 0;
      entry.start = entry.zero_based ? 0 : job->address;
      entry.length = job->length;
      entry.log2_page_size = job->log2_page_size;
      entry.page_offset = static_cast<std::uint32_t>(job->address & (entry.page_size() - 1));
      translation->invalidate(job->key, static_cast<std::uint32_t>(entry.mtt_base),
                              entry.mtt_count);
      write_entry(job, entry, now);
      return;
  }
}

void KeyUnit::invalidate(Job* job, MptEntry& entry, Time t) {
  // A region made by ibv_reg_mr, or a type 1 window, ends by a verb, not by a work request.
  const bool window = entry.type == MptType::kWindowType2 && entry.qpn == job->qp->qpn;
  const bool hidden = job->frame != nullptr && (entry.access & protocol::kAccessRemoteMask) == 0;
  if (entry.key != job->key || entry.state != MptState::kValid || hidden ||
      !(window || entry.type == MptType::kFastRegion)) {
    finish(job, false, t);
    return;
  }
  entry.state = MptState::kFree;
  write_entry(job, entry, t);
}

void KeyUnit::bind(Job* job, MptEntry& window, Time t) {
  const bool type1 = window.type == MptType::kWindowType1 && window.state != MptState::kInvalid;
  const bool type2 = window.type == MptType::kWindowType2 && window.state == MptState::kFree;
  if (!(type1 || (type2 && job->length > 0))) {
    finish(job, false, t);
    return;
  }
  if (job->length == 0) {  // type 1: bound to nothing
    window.state = MptState::kFree;
    window.key = job->key;
    write_entry(job, window, t);
    return;
  }
  const MptEntry region = MptEntry::decode(job->region_bytes.data());
  const bool writes =
      (job->access & (protocol::kAccessRemoteWrite | protocol::kAccessRemoteAtomic)) != 0;
  const protocol::AccessFlags needed =
      protocol::kAccessMwBind | (writes ? protocol::kAccessLocalWrite : 0);
  if (region.type == MptType::kWindowType1 || region.type == MptType::kWindowType2 ||
      region.zero_based ||
      protocol::check_access(region, job->region_key, job->qp->pd, job->address, job->length,
                             needed) != protocol::AccessResult::kOk) {
    finish(job, false, t);
    return;
  }
  const std::uint64_t offset = job->address - region.start + region.page_offset;
  window.state = MptState::kValid;
  window.key = job->key;
  window.access = job->access;
  window.zero_based = (job->access & protocol::kAccessZeroBased) != 0;
  window.start = window.zero_based ? 0 : job->address;
  window.length = job->length;
  window.log2_page_size = region.log2_page_size;
  window.mtt_base = region.mtt_base + (offset >> region.log2_page_size);
  window.page_offset = static_cast<std::uint32_t>(offset & (region.page_size() - 1));
  window.mtt_count = region.mtt_count;
  window.qpn = type2 ? job->qp->qpn : 0;
  write_entry(job, window, t);
}

void KeyUnit::fast_register(Job* job, const MptEntry& entry, Time t) {
  const std::uint64_t page = std::uint64_t{1} << job->log2_page_size;
  const std::uint64_t pages = ((job->address & (page - 1)) + job->length + page - 1) / page;
  if (entry.type != MptType::kFastRegion || entry.state != MptState::kFree || job->length == 0 ||
      pages > entry.mtt_count || !protocol::registration_flags_valid(job->access)) {
    finish(job, false, t);
    return;
  }
  job->pages.resize(pages * protocol::MttEntry::kBytes);
  job->step = Step::kPages;
  dma->dma_read(t, job->page_list, static_cast<std::uint32_t>(job->pages.size()), job->pages.data(),
                tlm_ext::Purpose::kMtt, this, reinterpret_cast<std::uint64_t>(job));
}

void KeyUnit::write_pages(Job* job, Time t) {
  const MptEntry entry = MptEntry::decode(job->entry_bytes.data());
  job->step = Step::kPagesWritten;
  dma->dma_write(t, mtt_base_ + entry.mtt_base * protocol::MttEntry::kBytes,
                 static_cast<std::uint32_t>(job->pages.size()), job->pages.data(),
                 tlm_ext::Purpose::kMtt, this, reinterpret_cast<std::uint64_t>(job));
}

void KeyUnit::write_entry(Job* job, const MptEntry& entry, Time t) {
  std::array<std::uint8_t, MptEntry::kBytes> bytes{};
  entry.encode(bytes.data());
  dma->dma_write(t, mpt_base_ + std::uint64_t{protocol::key_index(job->key)} * MptEntry::kBytes,
                 MptEntry::kBytes, bytes.data(), tlm_ext::Purpose::kMpt, nullptr, 0);
  translation->invalidate(job->key, 0, 0);
  finish(job, true, t);
}

void KeyUnit::finish(Job* job, bool allowed, Time t) {
  QpContext& qp = *job->qp;
  const std::uint64_t number = job->number;
  RxJob* const frame = job->frame;
  KeyClient* const client = job->client;
  const bool binds = job->opcode == WqeOpcode::kBindMw;
  jobs_.give(job);
  if (frame != nullptr) {
    client->key_invalidated(frame, allowed, t);
    return;
  }
  transport::SendEntry* entry = qp.entry(number);
  if (entry == nullptr || entry->finished) return;  // flushed meanwhile
  entry->finished = true;
  if (!allowed) {
    // Of local invalidation and fast registration: as Linux' rxe_req.c has it.
    entry->status =
        binds ? protocol::WcStatus::kMwBindError : protocol::WcStatus::kLocalQpOperationError;
  } else if (qp.tx_number == number) {
    ++qp.tx_number;
    qp.tx_offset = 0;
  }
  completion->retire(qp, t);
  scheduler->activate(qp, t);
}

}  // namespace rnic::nic

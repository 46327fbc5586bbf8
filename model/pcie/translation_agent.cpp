// SPDX-License-Identifier: Apache-2.0
#include "pcie/translation_agent.h"

#include <algorithm>

#include "base/error.h"
#include "base/sc_time.h"

namespace rnic::pcie {
namespace {

constexpr std::uint32_t kTranslationBytes = 8;  // one entry of a translation completion
constexpr std::uint32_t kMessageBytes = 4;      // an invalidate completion, besides its header

}  // namespace

TranslationAgent::TranslationAgent(const sc_core::sc_module_name& name,
                                   const config::AtcConfig& config, std::uint64_t page_size,
                                   DmaIf& engine)
    : sc_module(name),
      engine_(engine),
      latency_(config.latency),
      page_size_(page_size),
      cache_(config.entries, config.ways, ReplacementPolicy::kLru, Rng(0, "atc")),
      unit_(this->name()) {}

void TranslationAgent::reset_statistics(Time now) {
  cache_.reset_statistics();
  unit_.reset(now);
  waiting_since_ = now;
  invalidations_ = 0;
}

void TranslationAgent::ask(Time t, std::uint64_t page) {
  const auto same = [page](const Asked& asked) { return asked.page == page; };
  if (std::any_of(asked_.begin(), asked_.end(), same)) return;
  asked_.push_back({page, t});
  engine_.dma_read(t, page * page_size_, kTranslationBytes, nullptr, tlm_ext::Purpose::kTranslation,
                   this, page);
}

bool TranslationAgent::known(Time t, std::uint64_t address, std::uint32_t bytes, Held*& held) {
  const std::uint64_t last = (address + std::max(bytes, 1U) - 1) / page_size_;
  for (std::uint64_t page = address / page_size_; page <= last; ++page) {
    if (cache_.find(page) != nullptr) continue;
    if (held == nullptr) {
      held = pool_.take();
      held->missing = 0;
    }
    ++held->missing;
    waits_.push_back({page, held});
    ask(t, page);
  }
  return held == nullptr;
}

void TranslationAgent::note_waiting(Time now, int change) {
  if (waiting_ > 0) unit_.add_stall(stats::StallCause::kTranslation, now - waiting_since_);
  waiting_since_ = now;
  waiting_ = static_cast<std::uint32_t>(static_cast<int>(waiting_) + change);
  unit_.set_occupancy(now, waiting_);
}

void TranslationAgent::hold(Held* held, const Held& what, bool in_order) {
  if (held == nullptr) {
    held = pool_.take();
    held->missing = 0;
  }
  const std::uint32_t missing = held->missing;
  *held = what;
  held->missing = missing;
  held->in_order = in_order;
  if (held->kind == Kind::kWrite && held->client == nullptr && held->from != nullptr) {
    std::copy_n(what.from, what.bytes, held->copy.begin());
    held->from = held->copy.data();
  }
  note_waiting(sim_now(), 1);
  if (in_order) in_order_.push_back(held);
}

Time TranslationAgent::issue(const Held& held, Time t) {
  switch (held.kind) {
    case Kind::kRead:
      engine_.dma_read(t, held.address, held.bytes, held.into, held.purpose, held.client,
                       held.token);
      return t;
    case Kind::kAtomic:
      engine_.dma_atomic(t, held.address, held.operands, held.into, held.client, held.token);
      return t;
    case Kind::kWrite:
      break;
  }
  return engine_.dma_write(t, held.address, held.bytes, held.from, held.purpose, held.client,
                           held.token);
}

void TranslationAgent::dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes,
                                std::uint8_t* into, tlm_ext::Purpose purpose, DmaClient* client,
                                std::uint64_t token) {
  const Time t = std::max(earliest, sim_now()) + latency_;
  Held* held = nullptr;
  if (known(t, address, bytes, held) && in_order_.empty()) {
    engine_.dma_read(t, address, bytes, into, purpose, client, token);
    return;
  }
  Held what(Kind::kRead, address, bytes, purpose, client, token);
  what.into = into;
  hold(held, what, !in_order_.empty());
}

void TranslationAgent::dma_atomic(Time earliest, std::uint64_t address,
                                  const tlm_ext::AtomicOperands& operands, std::uint8_t* into,
                                  DmaClient* client, std::uint64_t token) {
  const Time t = std::max(earliest, sim_now()) + latency_;
  Held* held = nullptr;
  Held what(Kind::kAtomic, address, kTranslationBytes, tlm_ext::Purpose::kPayload, client, token);
  what.operands = operands;
  what.into = into;
  if (known(t, address, what.bytes, held) && in_order_.empty()) {
    issue(what, t);
  } else {
    hold(held, what, !in_order_.empty());
  }
}

Time TranslationAgent::dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                                 const std::uint8_t* from, tlm_ext::Purpose purpose,
                                 DmaClient* client, std::uint64_t token) {
  const Time t = std::max(earliest, sim_now()) + latency_;
  // Interrupts are messages to the host bridge: their address is not translated.
  const bool message = purpose == tlm_ext::Purpose::kMsix;
  Held* held = nullptr;
  if ((message || known(t, address, bytes, held)) && in_order_.empty()) {
    return engine_.dma_write(t, address, bytes, from, purpose, client, token);
  }
  if (from != nullptr && client == nullptr && bytes > tlm_ext::PooledPayload::kInlineBytes) {
    panic(name(), "a long write whose buffer nobody keeps");
  }
  Held what(Kind::kWrite, address, bytes, purpose, client, token);
  what.from = from;
  hold(held, what, true);
  return t + round_trip_;  // as long as the last page took to come
}

void TranslationAgent::release(Held* held, Time t) {
  note_waiting(sim_now(), -1);
  issue(*held, t);
  pool_.give(held);
}

void TranslationAgent::dma_done(std::uint64_t page) {
  const Time now = sim_now();
  const auto asked =
      std::find_if(asked_.begin(), asked_.end(), [page](const Asked& a) { return a.page == page; });
  round_trip_ = now - asked->at;
  asked_.erase(asked);
  cache_.insert(page);
  // Those that waited for this page, oldest first; the list may grow while they are issued.
  std::vector<Held*> ready;
  const auto served = [&](const Wait& wait) {
    if (wait.page != page) return false;
    if (--wait.held->missing == 0 && !wait.held->in_order) ready.push_back(wait.held);
    return true;
  };
  waits_.erase(std::remove_if(waits_.begin(), waits_.end(), served), waits_.end());
  for (Held* held : ready) release(held, now);
  while (!in_order_.empty() && in_order_.front()->missing == 0) {
    Held* held = in_order_.front();
    in_order_.pop_front();
    release(held, now);
  }
}

void TranslationAgent::invalidate(std::uint64_t address, std::uint64_t bytes, Time t) {
  ++invalidations_;
  if (bytes / page_size_ > cache_.entries()) {
    cache_.invalidate_all();
  } else if (bytes > 0) {
    const std::uint64_t last = (address + bytes - 1) / page_size_;
    for (std::uint64_t page = address / page_size_; page <= last; ++page) cache_.invalidate(page);
  }
  engine_.dma_write(t + latency_, 0, kMessageBytes, nullptr, tlm_ext::Purpose::kInvalidation,
                    nullptr, 0);
}

}  // namespace rnic::pcie

// SPDX-License-Identifier: Apache-2.0
#include "pcie/dma_engine.h"

#include <algorithm>
#include <string>

#include "base/sc_time.h"
#include "pcie/link_path.h"

namespace rnic::pcie {
namespace {

/// Tags are plentiful when this many bursts could be in flight besides what fills the round trip.
constexpr std::uint64_t kBurstsToSpare = 4;

/// Where credits are for less than this many whole bursts, a burst takes a small part of them: one
/// that needs credits of its own first packets for its last could not be sent at once.
constexpr std::uint32_t kBurstsOfCredits = 2;
constexpr std::uint32_t kPartsOfCredits = 64;

/// Packets in one write transaction; 0: any number.
std::uint32_t packets_in_a_write(const config::PcieConfig& config) {
  if (tlp_by_tlp(config)) return 1;
  const config::PcieCredits& credits = config.root_credits;
  if (credits.posted_headers == 0 && credits.posted_data == 0) return 0;
  std::uint32_t packets = credits.posted_headers;
  if (credits.posted_data > 0) {
    const std::uint32_t by_data = credits.posted_data * kCreditDataBytes / config.mps;
    packets = packets == 0 ? by_data : std::min(packets, by_data);
  }
  // One packet more where it does not begin at a boundary.
  const std::uint32_t burst = DmaEngine::kBurstBytes / config.mps + 1;
  if (packets >= kBurstsOfCredits * burst) return 0;
  return std::max(1U, packets / kPartsOfCredits);
}

DmaError error_of(const tlm_ext::PooledPayload& payload) {
  if (payload.extension.fate == tlm_ext::CompletionFate::kLost) {
    return DmaError::kCompletionTimeout;
  }
  if (payload.extension.fate == tlm_ext::CompletionFate::kPoisoned) return DmaError::kPoisoned;
  return payload.get_response_status() == tlm::TLM_ADDRESS_ERROR_RESPONSE
             ? DmaError::kUnsupportedRequest
             : DmaError::kCompleterAbort;
}

}  // namespace

DmaEngine::DmaEngine(const sc_core::sc_module_name& name, const config::PcieConfig& config,
                     Time latency, Time interval)
    : sc_core::sc_module(name),
      socket("socket"),
      rules_(rules_of(config)),
      relaxed_ordering_(config.relaxed_ordering),
      id_based_ordering_(config.id_based_ordering),
      translates_(config.atc.enabled),
      single_reads_(tlp_by_tlp(config)),
      write_packets_(packets_in_a_write(config)),
      full_burst_tags_((kBurstBytes + config.mrrs - 1) / config.mrrs),
      completion_timeout_(config.completion_timeout),
      rate_(protocol::tlp_rate(config.gen, config.lanes, config.mps, config.dllp_overhead)),
      latency_(latency),
      interval_(interval),
      total_tags_(config.read_tags),
      free_tags_(config.read_tags),
      unit_(this->name()),
      arrivals_("arrivals", this, &DmaEngine::finish) {
  if (total_tags_ == 0) throw ConfigError("pcie.read_tags must be at least 1");
  socket.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
}

void DmaEngine::reset_statistics(Time now) {
  unit_.reset(now);
  faults_ = 0;
  if (!waiting_.empty()) starved_since_ = now;
}

Time DmaEngine::pass_pipeline(Time earliest) {
  const Reservation slot = issue_.reserve(std::max(earliest, sim_now()), interval_);
  unit_.add_busy(slot.start, slot.end);
  return slot.start + latency_;
}

void DmaEngine::dma_read(Time earliest, std::uint64_t address, std::uint32_t bytes,
                         std::uint8_t* into, tlm_ext::Purpose purpose, DmaClient* client,
                         std::uint64_t token) {
  if (bytes == 0) panic(name(), "a read of no bytes");
  Request* request = requests_.take();
  *request = Request{address, into, bytes, bytes, purpose, client, token, pass_pipeline(earliest)};
  start_read(request);
}

void DmaEngine::dma_read_page(Time earliest, std::uint64_t address, std::uint8_t* into, Page& page,
                              tlm_ext::Purpose purpose, DmaClient* client, std::uint64_t token) {
  Request* request = requests_.take();
  *request = Request{address, into,   Page::kBytes, Page::kBytes,
                     purpose, client, token,        pass_pipeline(earliest)};
  request->page = &page;
  start_read(request);
}

void DmaEngine::start_read(Request* request) {
  if (waiting_.empty()) {
    if (issue_reads(*request, false)) return;
    starved_since_ = sim_now();
  }
  waiting_.push_back(request);
}

void DmaEngine::dma_atomic(Time earliest, std::uint64_t address,
                           const tlm_ext::AtomicOperands& operands, std::uint8_t* into,
                           DmaClient* client, std::uint64_t token) {
  constexpr std::uint32_t kBytes = 8;
  Request* request = requests_.take();
  *request = Request{address,
                     into,
                     kBytes,
                     kBytes,
                     tlm_ext::Purpose::kAtomic,
                     client,
                     token,
                     pass_pipeline(earliest)};
  request->is_atomic = true;
  request->operands = operands;
  start_read(request);
}

DmaEngine::Piece DmaEngine::next_piece(const Request& request, bool queued) const {
  if (single_reads_) {
    return {protocol::first_read_request(rules_, request.address, request.to_issue),
            free_tags_ > 0 ? 1U : 0U};
  }
  // A burst holds its tags a little longer than single requests would. It may, when the pool covers
  // the round trip with bursts to spare, or when much of the pool lies idle.
  const std::uint32_t whole = std::min(request.to_issue, kBurstBytes);
  const auto tags = [&](std::uint32_t bytes) {
    return static_cast<std::uint32_t>(
        protocol::read_request_tlps(rules_, request.address, bytes).tlps);
  };
  const bool plentiful = round_trip_ != kTimeNever &&
                         total_tags_ >= covering_tags_ + kBurstsToSpare * full_burst_tags_;
  const std::uint32_t whole_tags = tags(whole);
  if (plentiful || (!queued && free_tags_ >= 2 * whole_tags)) {
    // A longer read is cut where its requests have to be cut anyway.
    const auto past_boundary = static_cast<std::uint32_t>(request.address % kBurstBytes);
    const bool cut = request.to_issue > kBurstBytes && past_boundary != 0;
    const std::uint32_t burst = cut ? kBurstBytes - past_boundary : whole;
    const std::uint32_t burst_tags = cut ? tags(burst) : whole_tags;
    return {burst, burst_tags <= free_tags_ ? burst_tags : 0};
  }
  return {protocol::first_read_request(rules_, request.address, request.to_issue),
          free_tags_ > 0 ? 1U : 0U};
}

bool DmaEngine::issue_reads(Request& request, bool queued) {
  while (request.to_issue > 0) {
    const Piece piece = next_piece(request, queued);
    if (piece.tags == 0) return false;
    issue_read(request, piece);
  }
  return true;
}

void DmaEngine::issue_read(Request& request, Piece piece) {
  tlm_ext::PooledPayload* payload = payloads_.take(tlm::TLM_READ_COMMAND, request.address,
                                                   request.data, piece.bytes, request.purpose);
  payload->owner = &request;
  payload->extension.tags = piece.tags;
  payload->extension.token = request.token;
  if (request.is_atomic) {
    payload->extension.is_atomic = true;
    payload->extension.operands = request.operands;
  }
  if (piece.bytes == Page::kBytes) payload->extension.page = request.page;
  set_ordering(*payload);
  request.address += piece.bytes;
  if (request.data != nullptr) request.data += piece.bytes;
  request.to_issue -= piece.bytes;
  free_tags_ -= piece.tags;
  unit_.set_occupancy(sim_now(), tags_in_use());
  send(*payload, request.ready);
}

void DmaEngine::serve_waiting() {
  if (waiting_.empty()) return;
  const Time now = sim_now();
  while (!waiting_.empty() && issue_reads(*waiting_.front(), true)) waiting_.pop_front();
  unit_.add_stall(stats::StallCause::kNoTag, now - starved_since_);
  starved_since_ = now;
}

void DmaEngine::learn_round_trip(const tlm_ext::PooledPayload& payload) {
  const std::uint32_t bytes = payload.get_data_length();
  const Time streaming = rate_.time_for(bytes - std::min(bytes, rules_.mrrs));
  const Time round_trip = sim_now() - payload.sent - streaming;
  if (round_trip >= round_trip_) return;
  round_trip_ = round_trip;
  const Time request = std::max(rate_.time_for(rules_.mrrs), picoseconds(1));
  covering_tags_ = static_cast<std::uint64_t>(round_trip / request) + 1;
}

Time DmaEngine::dma_write(Time earliest, std::uint64_t address, std::uint32_t bytes,
                          const std::uint8_t* from, tlm_ext::Purpose purpose, DmaClient* client,
                          std::uint64_t token) {
  if (from != nullptr && client == nullptr && bytes > tlm_ext::PooledPayload::kInlineBytes) {
    panic(name(), "a long write whose buffer nobody keeps");
  }
  Request* request = requests_.take();
  *request = Request{address, nullptr, 0, bytes, purpose, client, token, pass_pipeline(earliest)};
  return start_write(request, from);
}

Time DmaEngine::dma_write_page(Time earliest, std::uint64_t address, Page& page,
                               tlm_ext::Purpose purpose, DmaClient* client, std::uint64_t token) {
  Request* request = requests_.take();
  *request =
      Request{address, nullptr, 0, Page::kBytes, purpose, client, token, pass_pipeline(earliest)};
  request->page = &page;
  return start_write(request, page.get());
}

Time DmaEngine::start_write(Request* request, const std::uint8_t* from) {
  std::uint32_t rest = request->to_arrive;
  if (write_packets_ == 0 && rest <= kBurstBytes) return issue_write(*request, {rest}, from);
  Time left{0};
  const std::uint32_t whole = rest;
  do {
    const std::uint32_t piece = write_piece(request->address, rest);
    left = issue_write(*request, {piece, rest < whole, piece < rest}, from);
    request->address += piece;
    if (from != nullptr) from += piece;
    rest -= piece;
  } while (rest > 0);
  return left;
}

std::uint32_t DmaEngine::write_piece(std::uint64_t address, std::uint32_t rest) const {
  if (write_packets_ == 0) {
    return std::min(rest, kBurstBytes - static_cast<std::uint32_t>(address % kBurstBytes));
  }
  std::uint32_t piece = 0;
  for (std::uint32_t i = 0; i < write_packets_ && piece < rest; ++i) {
    piece += protocol::first_write(rules_, address + piece, rest - piece);
  }
  return piece;
}

Time DmaEngine::issue_write(Request& request, WritePiece piece, const std::uint8_t* from) {
  const std::uint32_t bytes = piece.bytes;
  tlm_ext::PooledPayload* payload =
      payloads_.take(tlm::TLM_WRITE_COMMAND, request.address, nullptr, bytes, request.purpose);
  if (from != nullptr && request.client == nullptr) {
    std::copy_n(from, bytes, payload->inline_data.begin());
    payload->set_data_ptr(payload->inline_data.data());
  } else {
    // TLM has one pointer for both directions; a write's target only reads through it.
    payload->set_data_ptr(const_cast<std::uint8_t*>(from));
  }
  if (bytes == Page::kBytes) payload->extension.page = request.page;
  payload->extension.follows = piece.follows;
  payload->extension.followed = piece.followed;
  payload->owner = &request;
  payload->extension.token = request.token;
  set_ordering(*payload);
  return send(*payload, request.ready);
}

void DmaEngine::set_ordering(tlm_ext::PooledPayload& payload) const {
  // What reports payload, or is read to be acted upon, keeps its place in the order.
  const bool payload_itself = payload.extension.purpose == tlm_ext::Purpose::kPayload;
  payload.extension.relaxed_ordering = relaxed_ordering_ && payload_itself;
  payload.extension.id_based_ordering = id_based_ordering_;
  payload.extension.translated =
      translates_ && payload.extension.purpose != tlm_ext::Purpose::kTranslation;
}

Time DmaEngine::send(tlm_ext::PooledPayload& payload, Time at) {
  const Time now = sim_now();
  payload.sent = std::max(at, now);
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = to_sc_time(payload.sent - now);
  socket->nb_transport_fw(payload, phase, delay);
  return now + from_sc_time(delay);
}

tlm::tlm_sync_enum DmaEngine::nb_transport_bw(tlm::tlm_generic_payload& payload,
                                              tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_RESP) return tlm::TLM_ACCEPTED;
  // Every payload on this socket came out of payloads_.
  auto* pooled = static_cast<tlm_ext::PooledPayload*>(&payload);
  if (pooled->extension.fate == tlm_ext::CompletionFate::kLost) {
    arrivals_.post(std::max(sim_now(), pooled->sent + completion_timeout_), pooled);
  } else if (delay == sc_core::SC_ZERO_TIME) {
    finish(pooled);
  } else {
    arrivals_.post(sim_now() + from_sc_time(delay), pooled);
  }
  return tlm::TLM_COMPLETED;
}

void DmaEngine::finish(tlm_ext::PooledPayload*& payload) {
  auto* request = static_cast<Request*>(payload->owner);
  if (!payload->is_response_ok() || payload->extension.fate != tlm_ext::CompletionFate::kIntact) {
    note_fault(*request, *payload);
  }
  request->to_arrive -= payload->get_data_length();
  const bool read = payload->is_read();
  const bool over = request->to_arrive == 0;
  DmaClient* client = request->client;
  const std::uint64_t token = request->token;
  if (read) {
    free_tags_ += payload->extension.tags;
    unit_.set_occupancy(sim_now(), tags_in_use());
    learn_round_trip(*payload);
  }
  const bool failed = request->failed;
  payload->release();
  if (over) requests_.give(request);
  if (failed && over) {
    const DmaFault fault{request->error, read, request->purpose, request->fault_address, token};
    if (read) serve_waiting();
    tell_failure(client, fault);
    return;
  }
  if (read) serve_waiting();
  if (over && client != nullptr) client->dma_done(token);
}

void DmaEngine::note_fault(Request& request, const tlm_ext::PooledPayload& payload) {
  ++faults_;
  if (request.failed) return;
  request.failed = true;
  request.error = error_of(payload);
  request.fault_address = payload.get_address();
}

void DmaEngine::tell_failure(DmaClient* client, const DmaFault& fault) {
  struct Nobody : public DmaClient {
    void dma_done(std::uint64_t /*token*/) override {}
  } nobody;
  (client != nullptr ? *client : nobody).dma_failed(fault);
}

void DmaEngine::invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) {}

}  // namespace rnic::pcie

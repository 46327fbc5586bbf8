// SPDX-License-Identifier: Apache-2.0
#include "reference/random_runner.h"

#include <algorithm>
#include <sstream>

#include "protocol/multicast.h"
#include "reference/random_opcodes.h"

namespace rnic::testbench {

using host::Status;
using host::verbs::Wc;
using protocol::QpState;
using protocol::WcStatus;
using reference::Area;
using reference::Bytes;
using reference::Completion;
using reference::Ending;
using reference::Lane;
using reference::ProgramWriter;
using reference::Step;
using Mask = protocol::QpAttrMask;

namespace {

std::string text_of(const Completion& c) {
  std::ostringstream out;
  out << "wr " << c.wr_id << " " << protocol::wc_status_name(c.status) << " opcode "
      << static_cast<int>(c.opcode);
  if (c.has_length) out << " bytes " << c.byte_len;
  if (c.has_imm) out << " imm " << std::hex << c.imm;
  if (c.has_key) out << " key " << std::hex << c.key;
  return out.str();
}

std::string text_of(const Wc& wc) {
  std::ostringstream out;
  out << "wr " << wc.wr_id << " " << protocol::wc_status_name(wc.status) << " opcode "
      << static_cast<int>(wc.opcode) << " bytes " << wc.byte_len << " flags " << wc.wc_flags
      << " imm " << std::hex << wc.imm_data << " key " << wc.invalidated_rkey;
  return out.str();
}

bool agrees(const Completion& expected, const Wc& found) {
  if (expected.wr_id != found.wr_id || expected.status != found.status) return false;
  if (expected.status != WcStatus::kSuccess) return true;  // the rest is undefined then
  if (expected.opcode != found.opcode) return false;
  if (expected.has_length && expected.byte_len != found.byte_len) return false;
  if (expected.has_header != ((found.wc_flags & Wc::kGrh) != 0)) return false;
  if (expected.has_imm != ((found.wc_flags & Wc::kWithImm) != 0)) return false;
  if (expected.has_key != ((found.wc_flags & Wc::kWithInv) != 0)) return false;
  if (expected.has_key && expected.key != found.invalidated_rkey) return false;
  return !expected.has_imm || expected.imm == found.imm_data;
}

}  // namespace

bool RandomRunner::run(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  set_up(seed);
  // RECVs that are left in a shared queue would be another life's.
  const bool shared = std::any_of(lives_.begin(), lives_.end(),
                                  [](const auto& live) { return live->srq != nullptr; });
  // A completion queue that has run over is of no use to another life, either.
  const bool lost = std::any_of(connections_.begin(), connections_.end(), runs_over);
  const std::uint32_t lives = shared || lost ? 1 : dice_->between(1, 2);
  for (std::uint32_t life = 0; life < lives; ++life) {
    for (Connection& connection : connections_) bring_up(connection);
    start_members();
    if (!make_keys_valid()) return false;
    std::vector<std::vector<Step>> programs;
    for (Connection& connection : connections_) {
      for (Lane& lane : connection.lanes) {
        programs.push_back(
            dice_->traffic(lane, dice_->between(options_.least_requests, options_.requests)));
      }
    }
    undisturbed_ = !options_.interferes;
    perform(std::move(programs));
    undisturbed_ = true;
    if (!finish("traffic")) return false;

    programs.clear();
    for (Connection& connection : connections_) {
      if (!connection.ends_badly) continue;
      Lane& lane = connection.lanes[connection.ending_lane];
      if (connection.ending == Ending::kPeerGone) {
        break_end(*connection.ends[1 - connection.ending_lane]);
      }
      if (runs_over(connection)) stop_polling(connection);
      programs.push_back(dice_->finale(lane, connection.ending));
    }
    perform(std::move(programs));
    for (Connection& connection : connections_) {
      if (runs_over(connection)) await_overrun(connection);
      if (connection.ends_badly && connection.ending == Ending::kRnr) {
        model_->run();
        model_->give_up_waiting(connection.lanes[connection.ending_lane].from);
      }
    }
    if (!finish("failure")) return false;

    // Whoever has not noticed goes to ERR by hand; both then take posts only to flush them.
    programs.clear();
    for (std::uint32_t host = 0; host < 2; ++host) {
      host::verbs::AsyncEvent event;
      while (side(host).verbs().poll_async_event(side(host).core, event)) {
      }
    }
    for (Connection& connection : connections_) {
      if (!connection.ends_badly) continue;
      for (Live* end : connection.ends) {
        if (!model_->broken(end->name)) break_end(*end);
      }
      for (Lane& lane : connection.lanes) programs.push_back(dice_->late_posts(lane));
    }
    perform(std::move(programs));
    if (!finish("posts in ERR")) return false;
  }
  tear_down();
  return true;
}

/// Windows are bound and regions registered by their owners, while nothing else is under way.
bool RandomRunner::make_keys_valid() {
  std::vector<std::vector<Step>> programs;
  for (Connection& connection : connections_) {
    for (Lane& lane : connection.lanes) {
      for (reference::KeyArea& key : lane.keys) {  // a message that was flushed ended nothing
        key.valid = model_->key_valid(lane.to.host, key.area.region.rkey);
      }
      programs.push_back(dice_->key_steps(lane));
    }
  }
  perform(std::move(programs));
  return finish("keys");
}

// Execution ----------------------------------------------------------------------------------

/// Interleaves the programs at random; each keeps its own order.
void RandomRunner::perform(std::vector<std::vector<Step>> programs) {
  std::vector<std::size_t> next(programs.size(), 0);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!programs[i].empty()) open.push_back(i);
  }
  while (!open.empty()) {
    const std::size_t pick = dice_->rng().below(open.size());
    const std::size_t program = open[pick];
    begin(programs[program][next[program]++]);
    if (next[program] == programs[program].size()) {
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    post_backlogs();
    if (dice_->chance(0.3)) poll();
    if (dice_->chance(0.1)) rig_.settle(nanoseconds(dice_->between(1, 5000)));
    if (!undisturbed_ && dice_->chance(0.15)) interfere();
  }
}

void RandomRunner::begin(const Step& step) {
  history_.push_back(step);
  done_["request"] += step.sends.size();
  for (const std::unique_ptr<Live>& live : lives_) {
    if (live->name.host != step.qp.host || live->name.qp != step.qp.qp) continue;
    for (const auto& request : step.sends) model_->post_send(step.qp, request);
    for (const auto& request : step.recvs) model_->post_recv(step.qp, request);
    if (!step.sends.empty()) live->backlog_sends.push_back(step);
    if (!step.recvs.empty()) live->backlog_recvs.push_back(step);
    return;
  }
}

void RandomRunner::post_backlogs() {
  for (const std::unique_ptr<Live>& live : lives_) {
    while (post_backlog(*live)) {
    }
  }
}

void RandomRunner::address(const Live& live, const reference::SendRequest& request,
                           host::verbs::SendWr& wr) {
  using reference::Addressee;
  constexpr std::uint32_t kNobody = 0xFF'0000;
  const std::uint32_t host = live.name.host;
  if (request.addressee == Addressee::kGroup) {
    wr.ah = live.group;
    wr.remote_qpn = protocol::kMulticastQpn;
    wr.remote_qkey = kRigQkey;
    ++done_["group"];
    return;
  }
  const bool foreign = request.addressee == Addressee::kForeignHandle;
  wr.ah = foreign ? foreign_handle_[host] : handle_[host];
  wr.remote_qpn = request.addressee == Addressee::kNobody ? kNobody : live.peer->qp->qpn;
  wr.remote_qkey = kRigQkey + (request.addressee == Addressee::kOtherQkey ? 1 : 0);
}

host::verbs::SendWr RandomRunner::to_wr(const Live& live, const reference::SendRequest& request) {
  host::verbs::SendWr wr;
  wr.wr_id = request.wr_id;
  wr.opcode = request.opcode;
  wr.flags = request.flags;
  wr.sg_list = request.sges.data();
  wr.num_sge = static_cast<std::uint32_t>(request.sges.size());
  wr.imm_data = request.imm;
  wr.remote_addr = request.remote_address;
  wr.rkey = request.rkey;
  wr.compare_add = request.compare_add;
  wr.swap = request.swap;
  wr.invalidate_key = request.key;
  if (live.qp->cap.qp_type == protocol::QpType::kUd) address(live, request, wr);
  const std::uint32_t index = protocol::key_index(request.key);
  if (request.opcode == host::verbs::WrOpcode::kBindMw) {
    wr.bind = {&windows_[live.name.host].at(index),
               request.key,
               request.bound_lkey,
               request.remote_address,
               request.bound_bytes,
               request.bound_access};
  } else if (request.opcode == host::verbs::WrOpcode::kRegMr) {
    wr.reg = {&fast_[live.name.host].at(index), request.key, request.bound_access};
  }
  return wr;
}

/// Posts the oldest batches of a queue pair that have room; false when there is nothing to do.
bool RandomRunner::post_backlog(Live& live) {
  RigSide& here = side(live.name.host);
  bool moved = false;
  if (!live.backlog_recvs.empty()) {
    Step& step = live.backlog_recvs.front();
    std::vector<host::verbs::RecvWr> wrs;
    for (const auto& request : step.recvs) {
      wrs.push_back(
          {request.wr_id, request.sges.data(), static_cast<std::uint32_t>(request.sges.size())});
    }
    std::uint32_t posted = 0;
    const auto count = static_cast<std::uint32_t>(wrs.size());
    const Status status =
        live.srq != nullptr
            ? here.verbs().post_srq_recv(here.core, *live.srq, wrs.data(), count, &posted)
            : here.verbs().post_recv(here.core, *live.qp, wrs.data(), count, &posted);
    EXPECT_TRUE(status == Status::kOk || status == Status::kEnomem) << host::status_name(status);
    step.recvs.erase(step.recvs.begin(), step.recvs.begin() + posted);
    moved = moved || posted > 0;
    if (step.recvs.empty()) live.backlog_recvs.pop_front();
  }
  if (!live.backlog_sends.empty()) {
    Step& step = live.backlog_sends.front();
    std::vector<host::verbs::SendWr> wrs;
    for (const auto& request : step.sends) {
      wrs.push_back(to_wr(live, request));
    }
    std::uint32_t posted = 0;
    const Status status = here.verbs().post_send(here.core, *live.qp, wrs.data(),
                                                 static_cast<std::uint32_t>(wrs.size()), &posted);
    EXPECT_TRUE(status == Status::kOk || status == Status::kEnomem) << host::status_name(status);
    step.sends.erase(step.sends.begin(), step.sends.begin() + posted);
    moved = moved || posted > 0;
    if (step.sends.empty()) live.backlog_sends.pop_front();
  }
  return moved;
}

void RandomRunner::poll() {
  for (std::uint32_t host = 0; host < 2; ++host) {
    poll_queue(host, *send_cq_[host], true);
    poll_queue(host, *recv_cq_[host], false);
  }
  for (const std::unique_ptr<Live>& live : lives_) {
    if (live->send_cq != nullptr && !live->unpolled) {
      poll_queue(live->name.host, *live->send_cq, true);
    }
  }
}

void RandomRunner::poll_queue(std::uint32_t host, host::verbs::CompletionQueue& cq, bool of_sends) {
  constexpr std::uint32_t kAtOnce = 16;
  std::array<Wc, kAtOnce> wcs;
  RigSide& here = side(host);
  std::uint32_t taken = 0;
  do {
    taken = here.verbs().poll_cq(here.core, cq, kAtOnce, wcs.data());
    for (std::uint32_t i = 0; i < taken; ++i) {
      const auto live = by_qpn_[host].find(wcs[i].qp_num);
      if (live == by_qpn_[host].end()) {
        ADD_FAILURE() << "a completion of an unknown queue pair: " << text_of(wcs[i]);
        continue;
      }
      Live& of = *live->second;
      (of_sends ? of.sent : of.received).push_back(wcs[i]);
    }
  } while (taken == kAtOnce);
}

bool RandomRunner::complete() const {
  for (const std::unique_ptr<Live>& live : lives_) {
    if (!live->backlog_sends.empty() || !live->backlog_recvs.empty()) return false;
    if (live->sent.size() < model_->sent(live->name).size()) return false;
    if (live->received.size() < model_->received(live->name).size()) return false;
  }
  return true;
}

/// Waits until everything that the reference expects has come, and a while longer for what it does
/// not expect; then compares.
bool RandomRunner::finish(const std::string& phase) {
  constexpr Time kStep = microseconds(3);
  constexpr Time kLongest = microseconds(400000);
  model_->run();
  const Time start = sim_now();
  while (!complete() && sim_now() - start < kLongest) {
    poll();
    post_backlogs();
    rig_.settle(kStep);
  }
  rig_.settle(microseconds(30));
  poll();
  return compare(phase);
}

bool RandomRunner::compare(const std::string& phase) {
  bool same = true;
  for (const Member& member : members_) {
    const std::string what = phase + ", member of group " + std::to_string(member.group) +
                             " on host " + std::to_string(member.live->name.host);
    same = compare_queue(what, model_->received(member.live->name), member.live->received) && same;
  }
  for (const Connection& connection : connections_) {
    for (const Live* end : connection.ends) {
      const std::string what =
          phase +
          (connection.ends_badly ? " (" + ending_name(connection.ending) + " by host " +
                                       std::to_string(connection.ending_lane) + ")"
                                 : "") +
          ", host " + std::to_string(end->name.host) + " qp " + std::to_string(end->qp->qpn);
      same = compare_queue(what + ", send queue", model_->sent(end->name), end->sent) && same;
      same = compare_queue(what + ", receive queue", model_->received(end->name), end->received) &&
             same;
    }
  }
  return same && compare_memory();
}

bool RandomRunner::compare_queue(const std::string& what, const std::vector<Completion>& expected,
                                 const std::vector<Wc>& found) {
  const std::size_t most = std::max(expected.size(), found.size());
  for (std::size_t i = 0; i < most; ++i) {
    if (i < expected.size() && i < found.size() && agrees(expected[i], found[i])) continue;
    std::ostringstream around;
    for (std::size_t j = i < 2 ? 0 : i - 2; j < std::min(most, i + 5); ++j) {
      around << "\n  " << j << ": expected "
             << (j < expected.size() ? text_of(expected[j]) : "nothing") << "; found "
             << (j < found.size() ? text_of(found[j]) : "nothing");
    }
    ADD_FAILURE() << what << ": completion " << i << " differs; " << expected.size()
                  << " expected, " << found.size() << " found" << around.str();
    return false;
  }
  return true;
}

bool RandomRunner::compare_memory() {
  for (std::uint32_t host = 0; host < 2; ++host) {
    std::vector<std::pair<std::uint64_t, Bytes>> settled;
    for (const auto& [address, area] : model_->memory(host).areas()) {
      Bytes found = side(host).bytes_at(address, area.value.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (area.allows(i, found[i])) continue;
        ADD_FAILURE() << "host " << host << ", byte " << i << " of the area at " << std::hex
                      << address << ": expected " << int{area.value[i]} << " or "
                      << int{area.other[i]} << ", found " << int{found[i]}
                      << history_of(host, address + i);
        return false;
      }
      settled.emplace_back(address, std::move(found));
    }
    for (const auto& [address, bytes] : settled) model_->memory(host).settle(address, bytes);
  }
  return true;
}

std::string RandomRunner::history_of(std::uint32_t host, std::uint64_t address) const {
  std::vector<std::string> lines;
  const auto names = [address](std::uint64_t start, std::uint64_t bytes) {
    return address >= start && address - start < bytes;
  };
  const auto describe = [&](const Step& step, std::uint64_t wr_id,
                            const std::vector<protocol::Sge>& sges, const std::string& what,
                            std::uint64_t remote) {
    std::uint64_t bytes = 0;
    bool local = false;
    for (const protocol::Sge& sge : sges) {
      local = local || (step.qp.host == host && names(sge.address, sge.length));
      bytes += sge.length;
    }
    if (!local && (step.qp.host == host || !names(remote, bytes))) return;
    std::ostringstream out;
    out << "\n  host " << step.qp.host << " qp " << step.qp.qp << " wr " << wr_id << " " << what
        << " of " << bytes << " bytes" << std::hex << ", remote " << remote;
    for (const protocol::Sge& sge : sges) out << ", " << sge.address << "+" << sge.length;
    lines.push_back(out.str());
  };
  for (const Step& step : history_) {
    for (const auto& recv : step.recvs) describe(step, recv.wr_id, recv.sges, "RECV", 0);
    for (const auto& send : step.sends) {
      describe(step, send.wr_id, send.sges,
               "opcode " + std::to_string(static_cast<int>(send.opcode)) + " flags " +
                   std::to_string(send.flags),
               send.remote_address);
    }
  }
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t i = lines.size() < kMost ? 0 : lines.size() - kMost; i < lines.size(); ++i) {
    text += lines[i];
  }
  return text;
}

/// Its send completions stay where they are, in a queue of few places.
void RandomRunner::stop_polling(Connection& connection) {
  Live& live = *connection.ends[connection.ending_lane];
  RigSide& here = side(live.name.host);
  EXPECT_EQ(here.verbs().resize_cq(here.core, *live.send_cq, reference::kSmallCq), Status::kOk);
  live.unpolled = true;
  model_->limit_sent(live.name, reference::kSmallCq);
  ++done_["cq_full"];
}

void RandomRunner::await_overrun(Connection& connection) {
  Live& live = *connection.ends[connection.ending_lane];
  const Time start = sim_now();
  while (!live.send_cq->failed && sim_now() - start < microseconds(400000)) {
    post_backlogs();
    rig_.settle(microseconds(3));
  }
  EXPECT_TRUE(live.send_cq->failed);
  live.unpolled = false;
}

void RandomRunner::tear_down() {
  for (const Member& member : members_) {
    RigSide& here = side(member.live->name.host);
    const protocol::AddressVector path = path_to_group(rig_.config(), here.index(), member.group);
    EXPECT_EQ(here.verbs().detach_mcast(here.core, *member.live->qp, path.destination_gid,
                                        path.destination_lid),
              Status::kOk);
  }
  for (const std::unique_ptr<Live>& live : lives_) modify(*live, QpState::kReset);
  for (std::uint32_t host = 0; host < 2; ++host) {
    RigSide& here = side(host);
    for (const auto& [index, window] : windows_[host]) {
      EXPECT_EQ(here.verbs().dealloc_mw(here.core, window), Status::kOk);
    }
    for (auto& [index, region] : fast_[host]) {
      EXPECT_EQ(here.verbs().dealloc_fast_mr(here.core, region), Status::kOk);
    }
    windows_[host].clear();
    fast_[host].clear();
  }
  for (const auto& [host, region] : regions_) {
    EXPECT_EQ(side(host).verbs().dereg_mr(side(host).core, region), Status::kOk);
    if (!on_device(host, region.va)) {
      EXPECT_EQ(side(host).space().unmap(region.va), Status::kOk);
    }
  }
  regions_.clear();
}

}  // namespace rnic::testbench

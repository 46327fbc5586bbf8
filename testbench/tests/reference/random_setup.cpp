// SPDX-License-Identifier: Apache-2.0
// What random programs run on: memory, queue pairs, connections, keys.
#include <algorithm>

#include "reference/random_opcodes.h"
#include "reference/random_runner.h"

namespace rnic::testbench {

using host::Status;
using protocol::QpState;
using reference::Area;
using reference::Bytes;
using reference::Ending;
using reference::Lane;
using reference::ProgramWriter;
using Mask = protocol::QpAttrMask;

namespace {

constexpr std::uint64_t kAreaBytes = 12288;
constexpr std::uint64_t kCounterBytes = 64;
constexpr std::uint32_t kSendDepth = 48;
constexpr std::uint32_t kRecvDepth = 512;
constexpr std::uint32_t kCqEntries = 1U << 14;
constexpr std::uint32_t kInfiniteRnr = 7;

}  // namespace

void RandomRunner::set_up(std::uint64_t seed) {
  seed_ = seed;
  dice_ = std::make_unique<ProgramWriter>(options_.abilities, seed, "random_program");
  model_ = std::make_unique<reference::VerbsModel>(options_.abilities.rules,
                                                   options_.abilities.early_placement, 2);
  lives_.clear();
  connections_.clear();
  members_.clear();
  history_.clear();
  device_taken_ = {};
  for (std::uint32_t host = 0; host < 2; ++host) {
    RigSide& here = side(host);
    by_qpn_[host].clear();
    pd_[host] = here.verbs().alloc_pd();
    foreign_pd_[host] = here.verbs().alloc_pd();
    const protocol::AddressVector path = path_between(host, 1 - host);
    handle_[host] = here.verbs().create_ah(here.core, pd_[host], path);
    foreign_handle_[host] = here.verbs().create_ah(here.core, foreign_pd_[host], path);
    if (send_cq_[host] != nullptr) continue;  // one pair serves all programs of a process
    send_cq_[host] = here.verbs().create_cq(here.core, kCqEntries);
    recv_cq_[host] = here.verbs().create_cq(here.core, kCqEntries);
  }
  for (std::uint32_t i = dice_->between(options_.least_connections, options_.most_connections);
       i > 0; --i) {
    make_connection();
  }
}

Area RandomRunner::make_area(std::uint32_t host, std::uint32_t pd, std::uint64_t bytes,
                             protocol::AccessFlags access) {
  return make_area_at(host, pd, side(host).space().map(bytes), bytes, access);
}

/// Some of a lane's memory lies on the device, where that has any.
Area RandomRunner::make_peer_area(std::uint32_t host, std::uint64_t bytes,
                                  protocol::AccessFlags access) {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t rounded = (bytes + kPage - 1) / kPage * kPage;
  const bool on_demand = (access & protocol::kAccessOnDemand) != 0;
  if (!options_.device_memory || on_demand || !dice_->chance(0.5) ||
      device_taken_[host] + rounded > kDeviceBytes) {
    return make_area(host, pd_[host], bytes, access);
  }
  if (device_[host] == 0) device_[host] = side(host).node.host.map_device_memory(kDeviceBytes);
  const std::uint64_t address = device_[host] + device_taken_[host];
  device_taken_[host] += rounded;
  ++done_["device"];
  return make_area_at(host, pd_[host], address, bytes, access);
}

Area RandomRunner::make_area_at(std::uint32_t host, std::uint32_t pd, std::uint64_t address,
                                std::uint64_t bytes, protocol::AccessFlags access) {
  RigSide& here = side(host);
  Area area;
  area.host = host;
  const auto made = here.verbs().reg_mr(here.core, pd, address, bytes, access);
  EXPECT_EQ(made.status, Status::kOk);
  area.region = {pd, address, bytes, access, made.region.lkey, made.region.rkey};
  regions_.emplace_back(host, made.region);
  Bytes content(bytes);
  for (std::uint8_t& byte : content) byte = static_cast<std::uint8_t>(dice_->rng().next());
  // Counters start low, so that compare-and-swap meets what it expects.
  if (bytes == kCounterBytes) std::fill(content.begin(), content.end(), std::uint8_t{0});
  here.fill(address, content);
  model_->memory(host).map(address, content);
  model_->add_region(host, area.region);
  return area;
}

protocol::QpType RandomRunner::any_service() {
  using protocol::QpType;
  if (!options_.unreliable) return QpType::kRc;
  const QpType services[] = {QpType::kRc, QpType::kRc, QpType::kUc, QpType::kUd};
  return services[dice_->rng().below(std::size(services))];
}

RandomRunner::Live* RandomRunner::make_qp(std::uint32_t host, protocol::AccessFlags access,
                                          protocol::QpType service) {
  RigSide& here = side(host);
  auto live = std::make_unique<Live>();
  host::verbs::QpInitAttr attr;
  attr.qp_type = service;
  attr.max_send_wr = kSendDepth;
  attr.max_recv_wr = kRecvDepth;
  attr.max_send_sge = attr.max_recv_sge = options_.abilities.max_sge;
  attr.max_inline_data = options_.abilities.max_inline;
  attr.sq_sig_all = dice_->chance(0.2);
  if (dice_->chance(0.15)) {
    live->srq = here.verbs().create_srq(here.core, pd_[host], {kRecvDepth, attr.max_recv_sge});
    EXPECT_NE(live->srq, nullptr);
    attr.srq = live->srq;
  }
  const auto& endings = options_.endings;
  const bool may_run_over =
      std::find(endings.begin(), endings.end(), Ending::kCqFull) != endings.end();
  if (may_run_over && service == protocol::QpType::kRc && dice_->chance(0.7)) {
    live->send_cq = here.verbs().create_cq(here.core, 2 * kSendDepth);
  }
  live->qp = here.verbs().create_qp(here.core, pd_[host],
                                    live->send_cq != nullptr ? *live->send_cq : *send_cq_[host],
                                    *recv_cq_[host], attr);
  EXPECT_NE(live->qp, nullptr);
  reference::VerbsModel::QpAttributes attributes;
  attributes.pd = pd_[host];
  attributes.access = access;
  attributes.signal_all = attr.sq_sig_all;
  attributes.connected_only = service == protocol::QpType::kUc;
  attributes.datagram = service == protocol::QpType::kUd;
  attributes.packet = options_.abilities.mtu;
  attributes.header = options_.header;
  attributes.group_header = options_.group_header;
  attributes.shared_recvs = live->srq != nullptr;
  live->name = model_->add_qp(host, attributes);
  by_qpn_[host][live->qp->qpn] = live.get();
  lives_.push_back(std::move(live));
  return lives_.back().get();
}

void RandomRunner::make_connection() {
  using namespace protocol;
  Connection connection;
  connection.service = any_service();
  std::array<AccessFlags, 2> access{};
  for (std::uint32_t host = 0; host < 2; ++host) {
    access[host] = kAccessRemoteMask;
    if (dice_->chance(0.2)) access[host] &= ~kAccessRemoteWrite;
    if (dice_->chance(0.2)) access[host] &= ~kAccessRemoteRead;
    if (dice_->chance(0.2)) access[host] &= ~kAccessRemoteAtomic;
    connection.ends[host] = make_qp(host, access[host], connection.service);
  }
  connection.ends[0]->peer = connection.ends[1];
  connection.ends[1]->peer = connection.ends[0];
  const bool patient = dice_->chance(0.7);
  for (std::uint32_t from = 0; from < 2; ++from) {
    make_lane(connection, from, access[1 - from], patient);
  }
  choose_ending(connection);
  connections_.push_back(connection);
}

void RandomRunner::make_lane(Connection& connection, std::uint32_t from,
                             protocol::AccessFlags allowed, bool patient) {
  using namespace protocol;
  const std::uint32_t to = 1 - from;
  Lane& lane = connection.lanes[from];
  lane.from = connection.ends[from]->name;
  lane.to = connection.ends[to]->name;
  lane.allowed = allowed;
  lane.patient = patient;
  lane.connected_only = connection.service == protocol::QpType::kUc;
  lane.datagram = connection.service == protocol::QpType::kUd;
  lane.shared_recvs = connection.ends[to]->srq != nullptr;
  lane.own_send_cq = connection.ends[from]->send_cq != nullptr;
  // Missing pages of a RECV or counter are answered as RNR, which only the patient sit out.
  const bool may_wait = patient && !lane.unacknowledged();
  lane.constant = make_area(from, pd_[from], kAreaBytes, on_demand(true));
  lane.scratch = make_area(from, pd_[from], kAreaBytes,
                           kAccessLocalWrite | kAccessRemoteWrite | on_demand(true));
  lane.foreign = make_area(from, foreign_pd_[from], kAreaBytes, kAccessLocalWrite);
  lane.exposed = make_peer_area(
      to, kAreaBytes, kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead | kAccessMwBind);
  lane.counters = make_peer_area(
      to, kCounterBytes,
      kAccessLocalWrite | kAccessRemoteAtomic | kAccessRemoteRead | on_demand(may_wait));
  lane.inbox = make_area(to, pd_[to], kAreaBytes, kAccessLocalWrite | on_demand(may_wait));
  lane.peer_foreign =
      make_area(to, foreign_pd_[to], kAreaBytes, kAccessLocalWrite | kAccessRemoteMask);
  // A work request registers pages that are pinned, which memory on the device is not.
  const bool pinned = !on_device(to, lane.exposed.region.address);
  if (!lane.unacknowledged() && dice_->chance(0.7) && pinned) make_keys(lane);
  if (lane.datagram && options_.groups && dice_->chance(0.7)) make_group(connection, from);
}

/// Up to four queue pairs that take what the lane sends to a group of its own: on the peer's host,
/// and beside the sender.
void RandomRunner::make_group(Connection& connection, std::uint32_t from) {
  Lane& lane = connection.lanes[from];
  lane.group = ++groups_ % 200;
  const protocol::AddressVector path = path_to_group(rig_.config(), from, lane.group);
  connection.ends[from]->group = side(from).verbs().create_ah(side(from).core, pd_[from], path);
  for (std::uint32_t i = dice_->between(1, 4); i > 0; --i) {
    const std::uint32_t host = dice_->between(0, 1);
    Live* live = make_qp(host, 0, protocol::QpType::kUd);
    lane.members.push_back(
        {live->name, make_area(host, pd_[host], kAreaBytes, protocol::kAccessLocalWrite)});
    members_.push_back({live, lane.group});
    model_->attach(lane.group, live->name);
    EXPECT_EQ(side(host).verbs().attach_mcast(side(host).core, *live->qp, path.destination_gid,
                                              path.destination_lid),
              Status::kOk);
  }
}

/// Members are not connected: they need no more than a key of their own.
void RandomRunner::start_members() {
  for (const Member& member : members_) {
    Live& live = *member.live;
    RigSide& here = side(live.name.host);
    if (live.qp->state != QpState::kReset) modify(live, QpState::kReset);
    here.to_init(*live.qp);
    here.connect(*live.qp, 0, path_between(live.name.host, 1 - live.name.host),
                 rig_.config().transport);
    model_->restart(live.name);
  }
}

/// Two windows, one that is never bound, and a region for fast registration, all to the exposed
/// memory.
void RandomRunner::make_keys(Lane& lane) {
  using namespace protocol;
  using Kind = reference::Region::Kind;
  const std::uint32_t host = lane.to.host;
  RigSide& here = side(host);
  const reference::Region& exposed = lane.exposed.region;
  const auto add = [&](Kind kind, std::uint32_t key, AccessFlags access) {
    reference::KeyArea area;
    area.window = kind == Kind::kWindow;
    area.area.host = host;
    area.area.region = {exposed.pd, exposed.address, exposed.bytes, access, 0, key, kind, false, 0};
    model_->add_region(host, area.area.region);
    return area;
  };
  for (int i = 0; i < 3; ++i) {
    const auto window = here.verbs().alloc_mw(here.core, pd_[host], host::verbs::MwType::kType2);
    ASSERT_TRUE(window);
    windows_[host][key_index(window->rkey)] = *window;
    const auto area = add(Kind::kWindow, window->rkey, kAccessRemoteWrite | kAccessRemoteRead);
    if (i < 2) {
      lane.keys.push_back(area);
    } else {
      lane.unused_key = window->rkey;
    }
  }
  constexpr std::uint32_t kPages = static_cast<std::uint32_t>(kAreaBytes / 4096 + 1);
  auto region = here.verbs().alloc_fast_mr(here.core, pd_[host], kPages);
  ASSERT_TRUE(region);
  EXPECT_EQ(here.verbs().map_fast_mr(here.core, *region, exposed.address, exposed.bytes),
            Status::kOk);
  lane.keys.push_back(
      add(Kind::kFast, region->key, kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead));
  fast_[host][key_index(region->key)] = *region;
}

void RandomRunner::choose_ending(Connection& connection) {
  connection.ending_lane = dice_->between(0, 1);
  const Lane& lane = connection.lanes[connection.ending_lane];
  std::vector<Ending> possible;
  for (const Ending ending : options_.endings) {
    if (dice_->can_end(lane, ending)) possible.push_back(ending);
  }
  connection.ends_badly = !possible.empty() && dice_->chance(0.8);
  if (connection.ends_badly) connection.ending = possible[dice_->rng().below(possible.size())];
}

void RandomRunner::modify(Live& live, QpState state) {
  RigSide& here = side(live.name.host);
  host::verbs::QpAttr attr;
  attr.qp_state = state;
  EXPECT_EQ(here.verbs().modify_qp(here.core, *live.qp, attr, Mask::kState), Status::kOk);
}

void RandomRunner::break_end(Live& live) {
  modify(live, QpState::kError);
  model_->break_qp(live.name);
}

void RandomRunner::bring_up(Connection& connection) {
  const std::uint32_t rnr_retry =
      connection.lanes[0].patient ? kInfiniteRnr : dice_->between(0, kInfiniteRnr - 1);
  std::array<std::uint32_t, 2> psn{};
  for (std::uint32_t& first : psn) {
    first = static_cast<std::uint32_t>(dice_->rng().below(2)) * 0xFF'FFF0U;  // 0, or wraps soon
  }
  const config::TransportConfig& t = rig_.config().transport;
  for (std::uint32_t i = 0; i < 2; ++i) {
    Live& live = *connection.ends[i];
    RigSide& here = side(i);
    if (live.qp->state != QpState::kReset) modify(live, QpState::kReset);
    host::verbs::QpAttr attr;
    attr.qp_state = QpState::kInit;
    attr.access_flags = connection.lanes[1 - i].allowed;
    attr.qkey = kRigQkey;
    const bool reliable = connection.service == protocol::QpType::kRc;
    const bool datagrams = connection.service == protocol::QpType::kUd;
    EXPECT_EQ(here.verbs().modify_qp(here.core, *live.qp, attr,
                                     Mask::kState | Mask::kPkeyIndex | Mask::kPort |
                                         (datagrams ? Mask::kQkey : Mask::kAccessFlags)),
              Status::kOk);
    attr.qp_state = QpState::kRtr;
    attr.ah_attr = path_between(i, 1 - i);
    attr.path_mtu = t.mtu;
    attr.dest_qp_num = connection.ends[1 - i]->qp->qpn;
    attr.rq_psn = psn[1 - i];
    attr.sq_psn = psn[i];
    attr.max_dest_rd_atomic = t.max_dest_rd_atomic;
    attr.max_rd_atomic = dice_->between(1, t.max_rd_atomic);
    attr.min_rnr_timer = t.min_rnr_timer;
    std::uint32_t mask = Mask::kState;
    if (!datagrams) mask |= Mask::kAv | Mask::kPathMtu | Mask::kDestQpn | Mask::kRqPsn;
    if (reliable) mask |= Mask::kMaxDestRdAtomic | Mask::kMinRnrTimer;
    EXPECT_EQ(here.verbs().modify_qp(here.core, *live.qp, attr, mask), Status::kOk);
    attr.qp_state = QpState::kRts;
    attr.timeout = t.ack_timeout;
    attr.retry_cnt = t.retry_count;
    attr.rnr_retry = rnr_retry;
    mask = Mask::kState | Mask::kSqPsn;
    if (reliable) {
      mask |= Mask::kTimeout | Mask::kRetryCnt | Mask::kRnrRetry | Mask::kMaxQpRdAtomic;
    }
    EXPECT_EQ(here.verbs().modify_qp(here.core, *live.qp, attr, mask), Status::kOk);
  }
  model_->connect(connection.ends[0]->name, connection.ends[1]->name);
}

}  // namespace rnic::testbench

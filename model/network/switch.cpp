// SPDX-License-Identifier: Apache-2.0
#include "network/switch.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/timelines.h"
#include "link/credit_flow_control.h"
#include "protocol/ecn.h"
#include "protocol/ib_headers.h"
#include "protocol/multicast.h"
#include "protocol/pfc_headroom.h"

namespace rnic::network {

using protocol::Frame;

namespace {

/// Ingress of frames that hold no receive buffer.
constexpr std::uint32_t kNowhere = 0xFFFF'FFFF;

link::LinkPortConfig port_config(link::LinkPortConfig port, const config::SwitchConfig& config,
                                 std::uint32_t ports) {
  port.wait_stage = stats::Stage::kSwitch;
  port.egress_frames = 0;  // bounded by the buffer, not by frames
  port.cut_through = {};
  switch (port.flow_control) {
    case config::FlowControl::kPause:
    case config::FlowControl::kPfc: {
      port.pfc_xoff = config.pfc_xoff;
      port.pfc_xon = config.pfc_xon;
      port.rx_buffer =
          config.pfc_xoff + protocol::above_xoff(port.pfc_headroom != 0 ? port.pfc_headroom
                                                                        : link::pfc_headroom(port),
                                                 port.max_frame_bytes);
      break;  // a shared buffer that does not hold this for each port loses frames, and says so
    }
    case config::FlowControl::kCredit:
      port.rx_buffer = std::min<std::uint64_t>(config.buffer / ports / port.lanes,
                                               std::uint64_t{link::CreditFlowControl::kMaxBlocks} *
                                                   link::CreditFlowControl::kBlockBytes);
      if (port.rx_buffer < port.max_frame_bytes) {
        throw ConfigError("switch.buffer must hold a frame for each lane of each port: " +
                          std::to_string(std::uint64_t{port.max_frame_bytes} * ports * port.lanes) +
                          " bytes");
      }
      break;
    case config::FlowControl::kNone:
    case config::FlowControl::kAuto:
      port.rx_buffer = config.buffer;
      break;
  }
  return port;
}

}  // namespace

/// A port, and where the frames that wait in it came from.
struct Switch::Side : public link::FrameReceiver, public link::EgressClient {
  Side(Switch& the_owner, std::uint32_t the_index, const link::LinkPortConfig& config,
       link::RxBuffer& the_buffer)
      : owner(the_owner),
        index(the_index),
        buffer(the_buffer),
        port(("port" + std::to_string(the_index)).c_str(), config, the_owner.frames_),
        ingress(port.config().lanes),
        queued(port.config().lanes) {
    port.set_receiver(this);
    port.set_egress_client(this);
  }

  void frame_arrived(Frame* frame, Time now) override { owner.forward(index, frame, now); }
  void egress_space(Time /*at*/) override {}
  void frame_sent(std::uint32_t lane, std::uint32_t bytes, std::uint32_t /*answers_qpn*/,
                  Time /*start*/, Time end) override {
    const std::uint32_t from = ingress[lane].front();
    ingress[lane].pop_front();
    queued[lane] -= bytes;
    owner.left(*this, from, lane, bytes, end);
  }

  Switch& owner;
  std::uint32_t index;
  link::RxBuffer& buffer;
  link::LinkPort port;
  std::vector<Ring<std::uint32_t>> ingress;  ///< of each lane's waiting frames, in their order
  std::vector<std::uint64_t> queued;         ///< bytes of them
  std::uint64_t longest = 0;                 ///< of these
  std::uint64_t marked = 0;
  std::uint64_t dropped_full = 0;
};

std::uint64_t route_key(const protocol::MacAddress& mac) {
  std::uint64_t key = 0;
  for (const std::uint8_t byte : mac) key = key << 8 | byte;
  return key;
}

Switch::Switch(const sc_core::sc_module_name& name, const config::SwitchConfig& config,
               const link::LinkPortConfig& port, std::uint32_t ports, Addressing addressing,
               protocol::FramePool& frames, const FrameChecksums* checksums, std::uint64_t seed,
               const std::function<Timeline&(std::uint32_t)>& timeline_of)
    : sc_module(name),
      latency_(config.latency),
      addressing_(addressing),
      frames_(frames),
      checksums_(checksums),
      corrupt_rate_(config.corrupt_rate),
      rng_(seed, std::string(this->name()) + ".corruption"),
      ecn_kmin_(config.ecn_kmin),
      ecn_kmax_(config.ecn_kmax),
      ecn_pmax_(config.ecn_pmax),
      ecn_rng_(seed, std::string(this->name()) + ".ecn") {
  if (corrupt_rate_ > 0 && checksums_ == nullptr) {
    throw ConfigError("corrupting frames in a switch needs their checksums");
  }
  link::LinkPortConfig side_config = port_config(port, config, ports);
  for (std::uint32_t i = 0; i < ports; ++i) {
    // Locally administered, apart from those of hosts.
    side_config.mac = {
        0x06, 0, 0, 0, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)};
    Timeline& timeline = timeline_of ? timeline_of(i) : Timeline::instance();
    const Timelines::Scope scope(timeline);
    link::RxBuffer& buffer = buffers_.try_emplace(&timeline, config.buffer).first->second;
    sides_.push_back(std::make_unique<Side>(*this, i, side_config, buffer));
  }
}

Switch::~Switch() = default;

void Switch::set_route(std::uint64_t key, std::uint32_t port_index) {
  if (port_index >= sides_.size()) panic(name(), "a route leads to a port that does not exist");
  routes_[key] = port_index;
}

link::LinkPort& Switch::port(std::uint32_t index) { return sides_[index]->port; }
const link::LinkPort& Switch::port(std::uint32_t index) const { return sides_[index]->port; }

std::uint64_t Switch::destination(const Frame& frame) const {
  if (addressing_ == Addressing::kLid) {
    return frame.header_bytes >= protocol::Lrh::kBytes
               ? protocol::Lrh::decode(frame.header).destination_lid
               : 0;
  }
  return frame.header_bytes >= protocol::EthernetHeader::kBytes
             ? route_key(protocol::EthernetHeader::decode(frame.header).destination)
             : 0;
}

void Switch::forward(std::uint32_t ingress, Frame* frame, Time now) {
  if (checksums_ != nullptr && !frame->checksums_deferred && !checksums_->intact(*frame)) {
    discard(ingress, frame, dropped_damaged_, now);
    return;
  }
  const std::uint64_t to = destination(*frame);
  const auto route = routes_.find(to);
  if (route == routes_.end()) {
    if (to_group(to)) {
      flood(ingress, frame, now);
      return;
    }
    discard(ingress, frame, dropped_unknown_, now);
    return;
  }
  if (!sides_[ingress]->buffer.take(frame->frame_bytes(), now)) {
    ++sides_[ingress]->dropped_full;
    discard(ingress, frame, dropped_full_, now);
    return;
  }
  if (corrupt_rate_ > 0 && rng_.uniform() < corrupt_rate_) corrupt(*frame);
  if (frame->uncounted) {
    frame->uncounted = false;  // an ordinary frame from here on
    ingress = kNowhere;
  }
  queue(*sides_[route->second], ingress, frame, now);
}

bool Switch::to_group(std::uint64_t destination) const {
  constexpr std::uint64_t kGroupBit = std::uint64_t{1} << 40;  // first bit of an Ethernet address
  return addressing_ == Addressing::kLid
             ? protocol::is_multicast_lid(static_cast<std::uint16_t>(destination))
             : (destination & kGroupBit) != 0;
}

void Switch::flood(std::uint32_t ingress, Frame* frame, Time now) {
  for (std::uint32_t i = 0; i < ports(); ++i) {
    if (i == ingress) continue;
    if (!sides_[ingress]->buffer.take(frame->frame_bytes(), now)) {
      ++sides_[ingress]->dropped_full;
      ++dropped_full_;
      continue;
    }
    Frame* copy = frames_.take();
    protocol::copy_frame(*frame, *copy);
    copy->uncounted = false;
    queue(*sides_[i], kNowhere, copy, now);
  }
  if (!frame->uncounted) {
    sides_[ingress]->port.release_rx(frame->lane, frame->frame_bytes(), now);
  }
  frames_.give(frame);
}

void Switch::queue(Side& egress, std::uint32_t ingress, Frame* frame, Time now) {
  std::uint64_t& waiting = egress.queued[frame->lane];
  if (waiting > ecn_kmin_) mark(egress, *frame, waiting);
  waiting += frame->frame_bytes();
  egress.longest = std::max(egress.longest, waiting);
  egress.ingress[frame->lane].push_back(ingress);
  egress.port.send(frame, now + latency_);
}

void Switch::mark(Side& egress, Frame& frame, std::uint64_t queue) {
  if (addressing_ == Addressing::kLid) return;
  if (queue <= ecn_kmax_) {
    const double share = static_cast<double>(queue - ecn_kmin_) /
                         static_cast<double>(std::max<std::uint64_t>(1, ecn_kmax_ - ecn_kmin_));
    if (ecn_rng_.uniform() >= ecn_pmax_ * share) return;
  }
  if (!protocol::mark_congestion(frame.header, frame.header_bytes)) return;
  frame.ecn_marked = true;
  ++egress.marked;
  if (!frame.checksums_deferred && checksums_ != nullptr) checksums_->reseal(frame);
}

std::uint64_t Switch::ecn_marked(std::uint32_t index) const { return sides_[index]->marked; }
std::uint64_t Switch::dropped_full(std::uint32_t index) const {
  return sides_[index]->dropped_full;
}
std::uint64_t Switch::longest_queue(std::uint32_t index) const { return sides_[index]->longest; }

/// A bit flips while the frame is in memory; the link CRC that is computed on the way out covers it
/// up, and only an end-to-end checksum can find it.
void Switch::corrupt(Frame& frame) {
  ++corrupted_;
  checksums_->materialize(frame);
  // Not in the addresses that the switch itself needs.
  const std::uint32_t bit = static_cast<std::uint32_t>(rng_.below(8));
  const auto mask = static_cast<std::uint8_t>(1U << bit);
  const std::uint32_t spared = protocol::EthernetHeader::kBytes;
  const std::uint64_t bytes =
      frame.header_bytes - spared + (frame.has_payload_data ? frame.payload_bytes : 0);
  const std::uint64_t at = rng_.below(bytes) + spared;
  if (at < frame.header_bytes) {
    frame.header[at] ^= mask;
  } else {
    frame.payload.writable()[at - frame.header_bytes] ^= mask;
  }
  checksums_->reseal(frame);
}

void Switch::discard(std::uint32_t ingress, Frame* frame, std::uint64_t& counter, Time now) {
  ++counter;
  if (!frame->uncounted) {
    sides_[ingress]->port.release_rx(frame->lane, frame->frame_bytes(), now);
  }
  frames_.give(frame);
}

void Switch::left(Side& egress, std::uint32_t ingress, std::uint32_t lane, std::uint32_t bytes,
                  Time end) {
  egress.buffer.release(bytes, end);
  if (ingress != kNowhere) sides_[ingress]->port.release_rx(lane, bytes, end);
}

std::uint64_t Switch::highest_fill() const {
  std::uint64_t fill = 0;
  for (const auto& [timeline, buffer] : buffers_) fill += buffer.highest();
  return fill;
}

void Switch::reset_statistics(Time now) {
  for (auto& [timeline, buffer] : buffers_) {
    buffer.settle(now);
    buffer.reset_highest();
  }
  dropped_full_ = dropped_unknown_ = dropped_damaged_ = corrupted_ = 0;
  for (auto& side : sides_) {
    side->port.reset_statistics(now);
    side->longest = side->marked = side->dropped_full = 0;
  }
}

}  // namespace rnic::network

// SPDX-License-Identifier: Apache-2.0
#include "link/credit_flow_control.h"

#include <algorithm>

#include "base/error.h"
#include "protocol/crc.h"
#include "protocol/link_packet.h"

namespace rnic::link {
namespace {

using protocol::LinkPacket;

constexpr std::uint32_t kMask = CreditFlowControl::kModulus - 1;
/// Longest time between two flow-control packets of a lane that carries traffic: 65,536 symbols;
/// the usual cable has four physical lanes, so four times as many bytes pass meanwhile.
constexpr std::uint64_t kPeriodBytes = 262'144;

}  // namespace

CreditFlowControl::CreditFlowControl(const LinkPortConfig& config, ControlChannel& channel)
    : channel_(channel), lanes_(config.lanes), period_(config.rate.time_for(kPeriodBytes)) {
  total_blocks_ = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(config.rx_buffer / kBlockBytes, kMaxBlocks));
  const std::uint32_t frame_blocks = blocks_of(config.max_frame_bytes);
  if (total_blocks_ < frame_blocks) {
    throw ConfigError("a receive buffer of " + std::to_string(config.rx_buffer) +
                      " bytes gives no credit for one frame of " +
                      std::to_string(config.max_frame_bytes));
  }
  // Blocks freed but not yet announced must never be what the next frame waits for.
  const auto wanted = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(config.credit_update / kBlockBytes, kMaxBlocks));
  update_blocks_ = std::max<std::uint32_t>(1, std::min(wanted, total_blocks_ - frame_blocks + 1));
  for (Lane& lane : lanes_) lane.free = lane.lowest_free = total_blocks_;
}

void CreditFlowControl::link_up() {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) tell(i, LinkPacket::kOpInit, kTimeZero);
}

void CreditFlowControl::apply_grants(Time now) {
  while (!grants_.empty() && grants_.front().at <= now) {
    lanes_[grants_.front().lane].limit = grants_.front().limit;
    grants_.pop_front();
  }
}

bool CreditFlowControl::may_send(std::uint32_t lane_index, std::uint32_t bytes, Time now) {
  apply_grants(now);
  Lane& lane = lanes_[lane_index];
  const std::uint32_t needed = (lane.sent + blocks_of(bytes)) & kMask;
  if (((lane.limit - needed) & kMask) <= kMaxBlocks) return true;
  if (!lane.waiting) {
    lane.waiting = true;
    if (lane.sent != lane.told_sent) channel_.wake_at(std::max(now, lane.told_at + period_));
  }
  return false;
}

void CreditFlowControl::sent(std::uint32_t lane_index, std::uint32_t bytes, Time start) {
  Lane& lane = lanes_[lane_index];
  lane.sent = (lane.sent + blocks_of(bytes)) & kMask;
  lane.waiting = false;
  if (start - lane.told_at >= period_) tell(lane_index, LinkPacket::kOpNormal, start);
}

Time CreditFlowControl::next_change(Time now) const {
  return grants_.empty() ? kTimeNever : std::max(grants_.front().at, now);
}

void CreditFlowControl::expect(const protocol::Frame& frame) {
  Lane& lane = lanes_[frame.lane];
  const std::uint32_t blocks = blocks_of(frame.frame_bytes());
  if (blocks > lane.free) panic("link credits", "the peer sent more than it had credits for");
  lane.received = (lane.received + blocks) & kMask;
  lane.free -= blocks;
  lane.lowest_free = std::min(lane.lowest_free, lane.free);
}

void CreditFlowControl::release(std::uint32_t lane_index, std::uint32_t bytes, Time when,
                                Time /*now*/) {
  Lane& lane = lanes_[lane_index];
  const std::uint32_t blocks = blocks_of(bytes);
  lane.free += blocks;
  lane.freed += blocks;
  lane.freed_at = std::max(lane.freed_at, when);
  if (lane.freed >= update_blocks_) tell(lane_index, LinkPacket::kOpNormal, when);
}

void CreditFlowControl::control_received(const protocol::Frame& frame, Time arrival) {
  if (protocol::lpcrc(frame.header) != protocol::load_le16(frame.trailer)) return;
  const LinkPacket packet = LinkPacket::decode(frame.header);
  if (packet.vl >= lanes_.size()) return;
  Lane& lane = lanes_[packet.vl];
  if (packet.op == LinkPacket::kOpInit) {
    lane.limit = packet.fccl;
    lane.received = packet.fctbs;
    // What was told before a training counts no more. The grant makes the port look again.
    grants_.clear();
    grants_.push_back(Grant{arrival, packet.vl, packet.fccl});
    return;
  }
  grants_.push_back(Grant{arrival, packet.vl, packet.fccl});
  if (packet.fctbs != lane.received) {
    // Packets were lost on the way: their credits come back at once.
    lane.received = packet.fctbs;
    tell(packet.vl, LinkPacket::kOpNormal, arrival);
  }
}

void CreditFlowControl::tell(std::uint32_t lane_index, std::uint8_t op, Time ready) {
  Lane& lane = lanes_[lane_index];
  LinkPacket packet;
  packet.op = op;
  packet.vl = static_cast<std::uint8_t>(lane_index);
  packet.fctbs = static_cast<std::uint16_t>(lane.sent);
  packet.fccl = static_cast<std::uint16_t>((lane.received + lane.free) & kMask);
  ready = std::max(ready, lane.freed_at);
  lane.freed = 0;
  lane.told_at = std::max(lane.told_at, ready);
  protocol::Frame* frame = channel_.take_control_frame();
  packet.encode(frame->header);
  frame->header_bytes = LinkPacket::kBytes;
  frame->trailer_bytes = LinkPacket::kCrcBytes;
  frame->lane = packet.vl;
  frame->wire_bytes = kLinkPacketWireBytes;
  if (op == LinkPacket::kOpInit) {
    stamp(*frame);
    channel_.send_training(frame);
  } else {
    channel_.send_control(frame, ready);
  }
}

void CreditFlowControl::stamp(protocol::Frame& frame) {
  // The receiver takes FCTBS for what has arrived before this packet, so it is the count of now.
  LinkPacket packet = LinkPacket::decode(frame.header);
  Lane& lane = lanes_[packet.vl];
  packet.fctbs = static_cast<std::uint16_t>(lane.sent);
  packet.encode(frame.header);
  protocol::store_le16(frame.trailer, protocol::lpcrc(frame.header));
  frame.checksums_deferred = false;
  lane.told_sent = lane.sent;
}

void CreditFlowControl::wake(Time now) {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    if (!lane.waiting || lane.sent == lane.told_sent) continue;
    if (lane.told_at + period_ <= now) {
      tell(i, LinkPacket::kOpNormal, now);
    } else {
      channel_.wake_at(lane.told_at + period_);
    }
  }
}

std::uint64_t CreditFlowControl::highest_fill() const {
  std::uint64_t highest = 0;
  for (const Lane& lane : lanes_) {
    highest = std::max<std::uint64_t>(highest, total_blocks_ - lane.lowest_free);
  }
  return highest * kBlockBytes;
}

void CreditFlowControl::reset_statistics(Time /*now*/) {
  for (Lane& lane : lanes_) lane.lowest_free = lane.free;
}

}  // namespace rnic::link

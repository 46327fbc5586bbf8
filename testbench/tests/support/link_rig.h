// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <systemc>
#include <vector>

#include "base/event_queue.h"
#include "base/rng.h"
#include "base/sc_time.h"
#include "link/link_port.h"
#include "tlm/frame_types.h"

namespace rnic::testbench {

/// A frame of `wire_bytes` line bytes, 24 of them outside the frame (as preamble and gap would be);
/// no payload data. `number` travels in `sequence`.
inline protocol::Frame* make_frame(protocol::FramePool& pool, std::uint32_t wire_bytes,
                                   std::uint8_t lane = 0, std::uint64_t number = 0,
                                   protocol::FrameClass kind = protocol::FrameClass::kData) {
  protocol::Frame* frame = pool.take();
  std::memset(frame->header, 0, sizeof(frame->header));
  frame->header_bytes = 14;
  frame->payload_bytes = wire_bytes - 24 - 14 - 4;
  frame->pad_bytes = 0;
  frame->trailer_bytes = 4;
  frame->wire_bytes = wire_bytes;
  frame->frame_class = kind;
  frame->lane = lane;
  frame->checksums_deferred = true;
  frame->has_payload_data = false;
  frame->ecn_marked = false;
  frame->trace = nullptr;
  frame->sequence = number;
  return frame;
}

/// Round numbers: 100 Gb/s is 80 ps a byte, 50 ns in each PHY.
inline link::LinkPortConfig port_config(
    config::FlowControl flow_control = config::FlowControl::kNone) {
  link::LinkPortConfig config;
  config.rate = BitRate::gbps(100);
  config.phy_latency = nanoseconds(50);
  config.cable_delay = nanoseconds(10);
  config.flow_control = flow_control;
  config.lanes = 2;
  return config;
}

/// The far end of a cable without a link layer of its own: notes what arrives and when.
class FakePeer : public sc_core::sc_module,
                 private tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>,
                 private tlm::tlm_bw_transport_if<tlm_ext::FrameTypes> {
 public:
  struct Arrival {
    Time at;  ///< last bit at the end of the cable
    std::uint64_t number;
    protocol::FrameClass kind;
    std::uint8_t lane;
    std::vector<std::uint8_t> header;
  };

  FakePeer(const sc_core::sc_module_name& name, protocol::FramePool& pool)
      : sc_module(name), pool_(pool) {
    tx.bind(static_cast<tlm::tlm_bw_transport_if<tlm_ext::FrameTypes>&>(*this));
    rx.bind(static_cast<tlm::tlm_fw_transport_if<tlm_ext::FrameTypes>&>(*this));
  }

  tlm_ext::FrameInitiatorSocket tx{"tx"};
  tlm_ext::FrameTargetSocket rx{"rx"};
  std::vector<Arrival> arrivals;

  /// Hands over a frame whose last bit arrives in `delay`.
  void send(protocol::Frame* frame, Time delay) {
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time annotated = to_sc_time(delay);
    EXPECT_EQ(tx->nb_transport_fw(*frame, phase, annotated), tlm::TLM_COMPLETED);
  }

 private:
  tlm::tlm_sync_enum nb_transport_fw(protocol::Frame& frame, tlm::tlm_phase& /*phase*/,
                                     sc_core::sc_time& delay) override {
    arrivals.push_back(
        {sim_now() + from_sc_time(delay), frame.sequence, frame.frame_class, frame.lane,
         std::vector<std::uint8_t>(frame.header, frame.header + frame.header_bytes)});
    pool_.give(&frame);
    return tlm::TLM_COMPLETED;
  }
  tlm::tlm_sync_enum nb_transport_bw(protocol::Frame& /*frame*/, tlm::tlm_phase& /*phase*/,
                                     sc_core::sc_time& /*delay*/) override {
    return tlm::TLM_ACCEPTED;
  }
  void b_transport(protocol::Frame& /*frame*/, sc_core::sc_time& /*delay*/) override {}
  bool get_direct_mem_ptr(protocol::Frame& /*frame*/, tlm::tlm_dmi& /*dmi*/) override {
    return false;
  }
  unsigned transport_dbg(protocol::Frame& /*frame*/) override { return 0; }
  void invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) override {}

  protocol::FramePool& pool_;
};

/// Takes what arrives at a port; holds each frame's receive buffer for a while.
class Sink : public link::FrameReceiver {
 public:
  struct Arrival {
    Time at;
    std::uint64_t number;
    std::uint8_t lane;
  };

  Sink(link::LinkPort& port, protocol::FramePool& pool) : port_(port), pool_(pool) {
    port.set_receiver(this);
  }

  /// Buffers are held for `least` and, with `most` above it, a random time up to `most`.
  void hold(Time least, Time most, std::uint64_t seed = 1) {
    least_ = least;
    most_ = most;
    rng_ = Rng(seed, "sink");
  }
  /// Buffers are never released.
  void keep() { release_ = false; }

  void frame_arrived(protocol::Frame* frame, Time now) override {
    arrivals.push_back({now, frame->sequence, frame->lane});
    if (release_ && !frame->uncounted) {
      Time held = least_;
      if (most_ > least_) {
        held += picoseconds(static_cast<std::int64_t>(
            rng_.below(static_cast<std::uint64_t>((most_ - least_).count()))));
      }
      port_.release_rx(frame->lane, frame->frame_bytes(), now + held);
    }
    pool_.give(frame);
  }

  std::vector<Arrival> arrivals;

 private:
  link::LinkPort& port_;
  protocol::FramePool& pool_;
  Rng rng_{1, "sink"};
  Time least_{0};
  Time most_{0};
  bool release_ = true;
};

/// Keeps a port's queues full: frames of random or fixed size over `lanes`, numbered from 1 on each
/// lane.
class Source : public link::EgressClient {
 public:
  Source(link::LinkPort& port, protocol::FramePool& pool) : port_(port), pool_(pool) {
    port.set_egress_client(this);
  }

  /// Sends `count` frames in all; `largest` above `smallest`: random sizes.
  void start(std::uint32_t count, std::uint32_t smallest, std::uint32_t largest,
             std::uint32_t lanes = 1, std::uint64_t seed = 1) {
    left_ = count;
    smallest_ = smallest;
    largest_ = largest;
    numbers_.assign(lanes, 0);
    rng_ = Rng(seed, "source");
    fill();
  }
  /// Called for each frame before it is sent.
  void (*prepare)(protocol::Frame&) = nullptr;

  void egress_space(Time at) override {
    starts.push_back(at);
    fill();
  }
  std::vector<Time> starts;

 private:
  void fill() {
    while (left_ > 0) {
      const auto lane = static_cast<std::uint8_t>(left_ % numbers_.size());
      if (!port_.can_send(lane)) return;
      --left_;
      const std::uint32_t bytes =
          smallest_ + static_cast<std::uint32_t>(rng_.below(largest_ - smallest_ + 1));
      protocol::Frame* frame = make_frame(pool_, bytes, lane, ++numbers_[lane]);
      if (prepare != nullptr) prepare(*frame);
      port_.send(frame, sim_now());
    }
  }

  link::LinkPort& port_;
  protocol::FramePool& pool_;
  Rng rng_{1, "source"};
  std::uint32_t left_ = 0;
  std::uint32_t smallest_ = 0;
  std::uint32_t largest_ = 0;
  std::vector<std::uint64_t> numbers_;
};

/// The numbers of `arrivals` on each of `lanes` lanes are 1, 2, 3, ... : nothing lost, duplicated
/// or overtaken.
template <class Arrivals>
void expect_in_order(const Arrivals& arrivals, std::uint32_t lanes, std::uint64_t total) {
  std::vector<std::uint64_t> last(lanes, 0);
  for (const auto& arrival : arrivals) {
    ASSERT_LT(arrival.lane, lanes);
    ASSERT_EQ(arrival.number, last[arrival.lane] + 1) << "lane " << int{arrival.lane};
    ++last[arrival.lane];
  }
  EXPECT_EQ(arrivals.size(), total);
}

}  // namespace rnic::testbench

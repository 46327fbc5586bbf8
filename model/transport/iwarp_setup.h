// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace rnic::transport {

/// Segments of a connection's set-up: TCP's three-way handshake (RFC 9293, 3.5) and MPA's start-up
/// frames (RFC 5044, 7.1), each in a segment of its own; and the reset that ends a connection.
enum class SetupSegment : std::uint8_t { kNone, kSyn, kSynAck, kAck, kRequest, kReply, kReset };

/// What a segment acknowledges of what this end has sent before its first FPDU.
enum class SetupAck : std::uint8_t { kNothing, kSyn, kAll };

/// How far the set-up of one connection has come. The initiator sends SYN and the MPA request, the
/// responder SYN-ACK and the MPA reply; what is not answered is sent again, twice as late each
/// time. Pure decisions: sequence numbers and bytes are the transport's.
class IwarpSetup {
 public:
  /// Begins. Until then, or for connections that are set up out of band, everything is done.
  /// What is not answered within `retry` is sent again; at `give_up` the set-up has failed.
  void start(bool initiator, Time retry, Time give_up) {
    started_ = true;
    initiator_ = initiator;
    retry_ = retry;
    give_up_ = give_up;
    retries_ = 0;
    acknowledge_ = false;
    deadline_ = kTimeNever;
    state_ = initiator ? State::kSynSent : State::kListen;
    due_ = initiator;
  }

  /// TCP knows the round trip: from now on what is not answered is sent again after `retry`.
  void set_retry(Time retry) { retry_ = retry; }

  /// start() was called.
  bool started() const { return started_; }
  /// Data may be sent.
  bool done() const { return state_ == State::kDone; }
  /// A segment waits to be sent.
  bool due() const { return due_ || acknowledge_; }
  /// The segment to send now; its answer is expected within the retry time.
  SetupSegment take(Time now) {
    if (acknowledge_) {
      acknowledge_ = false;
      return SetupSegment::kAck;
    }
    due_ = false;
    deadline_ = now + retry_ * (1 << std::min(retries_, kMaxDoublings));
    asked_at_ = now;
    switch (state_) {
      case State::kSynSent:
        return SetupSegment::kSyn;
      case State::kSynReceived:
        return SetupSegment::kSynAck;
      case State::kRequestSent:
        return SetupSegment::kRequest;
      case State::kReplySent:
        return SetupSegment::kReply;
      case State::kListen:
      case State::kRequestAwaited:
      case State::kDone:
        break;
    }
    deadline_ = kTimeNever;
    return SetupSegment::kNone;
  }

  /// When the segment that waits for its answer was sent; kTimeNever: nothing waits, or it was sent
  /// more than once, so that an answer tells no round trip (RFC 6298, 3).
  Time asked_at() const { return done() || retries_ > 0 ? kTimeNever : asked_at_; }
  /// Counts what was answered.
  std::uint32_t steps() const { return steps_; }

  /// A set-up segment arrived, of the first time or again.
  void received(SetupSegment segment, SetupAck acknowledged) {
    switch (segment) {
      case SetupSegment::kSyn:
        if (state_ == State::kListen) enter(State::kSynReceived);
        due_ = due_ || state_ == State::kSynReceived;
        acknowledge_ = acknowledge_ || state_ == State::kRequestAwaited;
        break;
      case SetupSegment::kSynAck:
        if (!initiator_) break;
        if (state_ == State::kSynSent) enter(State::kRequestSent);
        acknowledge_ = true;
        break;
      case SetupSegment::kRequest:
        if (state_ == State::kSynReceived || state_ == State::kRequestAwaited) {
          enter(State::kReplySent);
        }
        due_ = due_ || state_ == State::kReplySent;
        break;
      case SetupSegment::kReply:
        if (!initiator_) break;
        if (state_ == State::kRequestSent) enter(State::kDone);
        acknowledge_ = true;
        break;
      case SetupSegment::kAck:
      case SetupSegment::kReset:
      case SetupSegment::kNone:
        break;
    }
    if (state_ == State::kSynReceived && acknowledged != SetupAck::kNothing) {
      enter(State::kRequestAwaited);
    }
    if (state_ == State::kReplySent && acknowledged == SetupAck::kAll) enter(State::kDone);
  }

  /// How far it has come, for messages.
  const char* stage_name() const {
    constexpr const char* kNames[] = {"set up",
                                      "waits for SYN",
                                      "SYN sent",
                                      "SYN-ACK sent",
                                      "waits for the MPA request",
                                      "MPA request sent",
                                      "MPA reply sent"};
    return kNames[static_cast<std::size_t>(state_)];
  }

  /// Of the next retry, or of giving up; kTimeNever: none.
  Time deadline() const { return done() ? kTimeNever : std::min(deadline_, give_up_); }
  /// The answer did not come; false when `limit` retries in a row did not help, or there is no
  /// more time.
  bool timeout(std::uint32_t limit, Time now) {
    deadline_ = kTimeNever;
    if (now >= give_up_ || retries_ >= limit) {
      give_up_ = kTimeNever;
      return false;
    }
    ++retries_;
    due_ = true;
    return true;
  }

 private:
  enum class State : std::uint8_t {
    kDone,
    kListen,
    kSynSent,
    kSynReceived,
    kRequestAwaited,  ///< SYN-ACK acknowledged: the peer's request is the peer's to send again
    kRequestSent,
    kReplySent
  };
  static constexpr std::uint32_t kMaxDoublings = 6;

  void enter(State state) {
    state_ = state;
    retries_ = 0;
    deadline_ = kTimeNever;
    asked_at_ = kTimeNever;
    ++steps_;
    due_ = state != State::kDone && state != State::kRequestAwaited;
  }

  State state_ = State::kDone;
  bool started_ = false;
  bool initiator_ = false;
  bool due_ = false;
  bool acknowledge_ = false;
  std::uint32_t retries_ = 0;
  std::uint32_t steps_ = 0;
  Time asked_at_ = kTimeNever;
  Time retry_{0};
  Time deadline_ = kTimeNever;
  Time give_up_ = kTimeNever;
};

}  // namespace rnic::transport

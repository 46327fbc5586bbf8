// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/bit_rate.h"
#include "base/time.h"

namespace rnic::transport {

/// What DCQCN depends on (Zhu et al., SIGCOMM 2015), as transport::RcConfig has it.
struct DcqcnParameters {
  bool notifies = false;  ///< notification point
  bool reacts = false;    ///< reaction point
  Time cnp_interval{0};
  double gain = 1.0 / 256;
  Time alpha_period = microseconds(55);
  Time increase_time = microseconds(55);
  std::uint64_t increase_bytes = 10'000'000;
  std::uint32_t fast_recovery = 5;
  double line_gbps = 100;
  double additive_gbps = 0.04;
  double hyper_gbps = 0.4;
  double min_gbps = 0.1;
  std::uint32_t overhead_bytes = 0;  ///< of a packet on the wire, besides its payload
};

/// Reaction point of one queue pair: the rate at which it may send. Its timers are looked at when
/// something happens, which is when the rate matters.
class DcqcnReactionPoint {
 public:
  explicit DcqcnReactionPoint(const DcqcnParameters& parameters)
      : p_(parameters), rate_(parameters.line_gbps), target_(parameters.line_gbps) {}

  /// A CNP arrived: the rate falls by alpha / 2.
  void on_cnp(Time now) {
    advance(now);
    target_ = rate_;
    rate_ = std::max(p_.min_gbps, rate_ * (1 - alpha_ / 2));
    alpha_ = (1 - p_.gain) * alpha_ + p_.gain;
    limited_ = true;
    timer_stage_ = byte_stage_ = 0;
    bytes_ = 0;
    alpha_at_ = now + p_.alpha_period;
    increase_at_ = now + p_.increase_time;
  }

  /// A packet with `payload` bytes is sent; returns the time that must pass before the next one.
  Time send(std::uint32_t payload, Time now) {
    if (!limited_) return kTimeZero;
    advance(now);
    if (!limited_) return kTimeZero;
    const std::uint32_t bytes = payload + p_.overhead_bytes;
    for (bytes_ += bytes; bytes_ >= p_.increase_bytes && limited_; bytes_ -= p_.increase_bytes) {
      ++byte_stage_;
      increase();
    }
    return BitRate::gbps(rate_).time_for(bytes);
  }

  /// Of the last look, Gb/s.
  double rate() const { return rate_; }
  double target() const { return target_; }
  double alpha() const { return alpha_; }
  /// Below line rate.
  bool limited() const { return limited_; }

 private:
  void advance(Time now) {
    if (alpha_at_ <= now) {
      const auto periods = 1 + (now - alpha_at_) / p_.alpha_period;
      alpha_ *= std::pow(1 - p_.gain, static_cast<double>(periods));
      alpha_at_ += periods * p_.alpha_period;
    }
    for (; limited_ && increase_at_ <= now; increase_at_ += p_.increase_time) {
      ++timer_stage_;
      increase();
    }
  }

  void increase() {
    const std::uint32_t most = std::max(timer_stage_, byte_stage_);
    const std::uint32_t least = std::min(timer_stage_, byte_stage_);
    if (least > p_.fast_recovery) {
      target_ += p_.hyper_gbps * (least - p_.fast_recovery);
    } else if (most >= p_.fast_recovery) {
      target_ += p_.additive_gbps;
    }
    target_ = std::min(target_, p_.line_gbps);
    rate_ = (target_ + rate_) / 2;
    constexpr double kAsGoodAsLine = 0.999;
    if (rate_ < kAsGoodAsLine * p_.line_gbps) return;
    rate_ = target_ = p_.line_gbps;
    limited_ = false;
  }

  DcqcnParameters p_;
  double rate_;
  double target_;
  double alpha_ = 1;
  bool limited_ = false;
  std::uint32_t timer_stage_ = 0;
  std::uint32_t byte_stage_ = 0;
  std::uint64_t bytes_ = 0;
  Time alpha_at_ = kTimeNever;
  Time increase_at_ = kTimeNever;
};

}  // namespace rnic::transport

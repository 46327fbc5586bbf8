// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/congestion_window.h"

#include <algorithm>
#include <cmath>

namespace rnic::transport {

using config::CongestionControl;

namespace {

constexpr double kCubicC = 0.4;     // segments / s^3 (RFC 9438, 4.1.2)
constexpr double kCubicBeta = 0.7;  // multiplicative decrease (RFC 9438, 4.6)
/// Additive increase that is as fast as Reno's with this decrease (RFC 9438, 4.3).
constexpr double kRenoAlpha = 3 * (1 - kCubicBeta) / (1 + kCubicBeta);
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;

}  // namespace

void CongestionWindow::open() {
  cwnd_ = kind_ == CongestionControl::kNone ? kUnlimited : std::uint64_t{initial_} * mss_;
  ssthresh_ = ~std::uint64_t{0};
  acked_in_avoidance_ = 0;
  w_max_ = estimate_ = fraction_ = k_ = 0;
  epoch_ = kTimeNever;
}

void CongestionWindow::set_threshold(std::uint64_t flight) {
  const std::uint64_t least = 2 * std::uint64_t{mss_};
  acked_in_avoidance_ = 0;
  if (kind_ != CongestionControl::kCubic) {
    ssthresh_ = std::max(flight / 2, least);  // RFC 5681, equation 4
    return;
  }
  const double window = static_cast<double>(cwnd_) / mss_;
  // Fast convergence (RFC 9438, 4.7): a window that shrinks leaves room for new flows.
  w_max_ = window < w_max_ ? window * (1 + kCubicBeta) / 2 : window;
  ssthresh_ = std::max(static_cast<std::uint64_t>(static_cast<double>(flight) * kCubicBeta), least);
  epoch_ = kTimeNever;
}

void CongestionWindow::reduce(std::uint64_t flight) {
  set_threshold(flight);
  if (kind_ != CongestionControl::kNone) cwnd_ = ssthresh_;
}

void CongestionWindow::collapse(std::uint64_t flight, bool first) {
  if (first) set_threshold(flight);
  acked_in_avoidance_ = 0;
  epoch_ = kTimeNever;
  if (kind_ != CongestionControl::kNone) cwnd_ = mss_;
}

void CongestionWindow::grow(std::uint64_t acknowledged, Time now, Time rtt) {
  if (kind_ == CongestionControl::kNone) return;
  if (cwnd_ < ssthresh_) {
    cwnd_ += std::min<std::uint64_t>(acknowledged, mss_);
  } else if (kind_ == CongestionControl::kCubic) {
    grow_cubic(acknowledged, now, rtt);
  } else {
    grow_newreno(acknowledged);
  }
}

void CongestionWindow::grow_newreno(std::uint64_t acknowledged) {
  acked_in_avoidance_ += acknowledged;
  if (acked_in_avoidance_ < cwnd_) return;
  acked_in_avoidance_ -= cwnd_;
  cwnd_ += mss_;
}

void CongestionWindow::grow_cubic(std::uint64_t acknowledged, Time now, Time rtt) {
  const double window = static_cast<double>(cwnd_) / mss_;
  const double segments = static_cast<double>(acknowledged) / mss_;
  if (epoch_ == kTimeNever) {
    epoch_ = now;
    estimate_ = window;
    w_max_ = std::max(w_max_, window);
    k_ = std::cbrt((w_max_ - window) / kCubicC);
  }
  const double t = to_seconds(now - epoch_ + rtt) - k_;
  // At most half as much again within a round trip (RFC 9438, 4.4).
  const double target = std::clamp(kCubicC * t * t * t + w_max_, window, 1.5 * window);
  estimate_ += kRenoAlpha * segments / window;
  const double next = std::max(window + (target - window) / window * segments, estimate_);
  const double bytes = (next - window) * mss_ + fraction_;
  const auto whole = static_cast<std::uint64_t>(bytes);
  fraction_ = bytes - static_cast<double>(whole);
  cwnd_ += whole;
}

}  // namespace rnic::transport

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/rate_server.h"
#include "base/rng.h"
#include "config/transport_config.h"
#include "nic/qp_context.h"

namespace rnic::nic {

/// Dynamically connected send queues (dc.targets): each message goes to a peer drawn at random. One
/// to another peer than the last waits until everything before it is answered, then for a
/// connection. Plain arithmetic; the scheduler asks.
class DcUnit {
 public:
  /// `stream`: names the random numbers of this device.
  DcUnit(const config::DcConfig& config, std::uint64_t seed, const std::string& stream);

  /// When the next message of `qp` may be sent, as known at `now`; kTimeNever: not before what is
  /// under way is answered, ask again then.
  Time ready(QpContext& qp, Time now);

  /// Connections made.
  std::uint64_t connects() const { return count_; }

 private:
  std::uint32_t targets_;
  Time connect_time_;
  Time connect_interval_;
  Rng rng_;
  Server connections_;
  std::uint64_t count_ = 0;
};

}  // namespace rnic::nic

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stats/stage.h"

namespace rnic::stats {

/// Where the NIC finds the trace of a work request: instrumentation, not part of the hardware.
class TraceSource {
 public:
  virtual ~TraceSource() = default;
  /// Trace of the WQE at ring index `wqe_index` of queue `qpn`, or null.
  virtual MessageTrace* trace_of(std::uint32_t qpn, std::uint16_t wqe_index) = 0;
};

}  // namespace rnic::stats

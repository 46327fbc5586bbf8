// SPDX-License-Identifier: Apache-2.0
#include "stats/unit_stats.h"

namespace rnic::stats {

const char* stall_cause_name(StallCause cause) {
  static constexpr const char* kNames[] = {"no_credit",   "paused", "no_tag", "context",
                                           "translation", "wqe",    "window", "downstream_full"};
  return kNames[static_cast<std::size_t>(cause)];
}

}  // namespace rnic::stats

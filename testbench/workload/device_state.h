// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/host.h"

namespace rnic::testbench {

/// The device of `host` has failed for good (fabric.fatal_at): its commands end with EIO.
inline bool device_failed(const host::Host& host) {
  constexpr auto kFatal = static_cast<std::size_t>(protocol::EventType::kDeviceFatal);
  return host.verbs.stats().async_events.at(kFatal) > 0;
}

}  // namespace rnic::testbench

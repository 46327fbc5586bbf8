// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/fault_list.h"
#include "config/transport_config.h"
#include "protocol/frame.h"
#include "transport/encapsulation.h"

namespace rnic::transport {

/// The kinds that `frame` of `protocol` is of, by its bytes; none for link control.
config::FrameKinds kinds_of(config::Protocol protocol, const Encapsulation& encapsulation,
                            const protocol::Frame& frame);

}  // namespace rnic::transport

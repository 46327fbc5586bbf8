// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"
#include "network/cable.h"
#include "transport/encapsulation.h"

namespace rnic::testbench {

/// Makes `cable` the network of several paths that link.paths asks for, if it does.
void use_paths(network::Cable& cable, const config::Config& config,
               const transport::Encapsulation& encapsulation);

}  // namespace rnic::testbench

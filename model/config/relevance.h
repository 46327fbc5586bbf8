// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "config/loader.h"

namespace rnic::config {

/// Keys among the command line's `settings` that change nothing in this run, each with what it
/// would need: "tcp.window (needs transport.protocol=iwarp)". A file may say more than one run
/// uses, as every preset does, so keys of files are left out. Sorted by the order of `settings`.
std::vector<std::string> without_effect(const std::vector<Setting>& settings, const Config& config);

/// Throws ConfigError for an option of the command line that says when a fault begins, where the
/// run has nobody who fails: a silent host's time without one.
void refuse_without_effect(const std::vector<Setting>& settings, const Config& config);

}  // namespace rnic::config

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "config/config.h"

/// What the checks across keys share; private to them.
namespace rnic::config {

constexpr bool is_roce(Protocol protocol) {
  return protocol == Protocol::kRoceV1 || protocol == Protocol::kRoceV2;
}

/// The longest headers and trailers of a packet, in bytes, generously: RoCEv2 over IPv6 with a VLAN
/// tag has 106 of them.
inline constexpr std::uint32_t kLongestHeaders = 128;

/// "key=value", as in messages.
std::string equals(const std::string& key, std::uint64_t value);

/// `key` must not exceed `limit_key`: ConfigError.
void at_most(const std::string& key, std::uint64_t value, const std::string& limit_key,
             std::uint64_t limit);

/// Checks of the section workload, alone and against others.
void check_program(const Config& config);
void check_workload(const Config& config);
/// What would be without effect though the experiment is about it.
void check_silent(const Config& config);

/// Something on the way may lose a packet, or bring it out of turn.
bool loses_packets(const Config& config);
/// workload.answer_timeout=auto.
Time automatic_answer_timeout(const Config& config);

}  // namespace rnic::config

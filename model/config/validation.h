// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "config/config.h"

namespace rnic::config {

/// What `auto` means for `key`, given every other key; the text is assigned like one a user wrote.
std::string automatic_text(std::string_view key, const Config& config);

/// Bytes of posted writes that a root complex buffers unless told otherwise: twice what its link
/// carries from the departure of a write until the UpdateFC that returns its credits.
std::uint64_t automatic_write_buffer(const Config& config);

/// Checks what no key can tell alone. Throws ConfigError with one line that names the keys.
void validate(const Config& config);

}  // namespace rnic::config

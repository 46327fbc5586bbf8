// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"

namespace rnic::config {

/// What `auto` means for `key`, given every other key; the text is assigned like one a user wrote.
std::string automatic_text(std::string_view key, const Config& config);

/// Checks what no key can tell alone. Throws ConfigError with one line that names the keys.
void validate(const Config& config);

}  // namespace rnic::config

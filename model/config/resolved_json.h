// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "config/loader.h"

namespace rnic::config {

/// A reported value as JSON: number, string or boolean.
inline nlohmann::ordered_json to_json(const Value& value) {
  return std::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}

/// `config` of result.json: every key as resolved; numbers in the key's unit.
inline nlohmann::ordered_json resolved_json(const LoadedConfig& loaded) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [key, value] : loaded.resolved) object[key] = to_json(value);
  return object;
}

}  // namespace rnic::config

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "report/result.h"

namespace rnic::testbench {

/// Version of result.json's shape; changes when a key changes its meaning or goes away.
inline constexpr int kResultSchema = 1;

/// The contents of result.json, keys in fixed order. Times in ns, shares 0..1, rates in Gb/s.
nlohmann::ordered_json to_json(const Result& result);

/// The latency distribution: low_ns,high_ns,count,cumulative for each bucket with something in it.
std::string latency_csv(const stats::Histogram& latency);

/// Writes latency.csv and, last, result.json to `directory`, which is created. Each file is whole
/// or absent. Throws OutputError.
void write_result_files(const Result& result, const std::filesystem::path& directory);

}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace rnic::config {

enum class PayloadMode { kBytes, kNone };
enum class SimDetail { kFull, kAuto };
enum class HostGroups { kApart, kTogether };
enum class ProgressMode { kAuto, kOn, kOff };

struct SimConfig {
  std::uint64_t seed;
  std::uint64_t warmup;  ///< messages a flow completes before measuring starts
  Time max_time;
  PayloadMode payload;
  SimDetail detail;
  HostGroups host_groups;
};

struct OutputConfig {
  std::string dir;                  ///< empty: stdout only
  std::vector<std::string> traces;  ///< subset of pcap, perfetto, vcd
  ProgressMode progress;
};

}  // namespace rnic::config

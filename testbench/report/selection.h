// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "report/result.h"

namespace rnic::testbench {

/// Which hosts of many the text report tells of, when all of them would bury what matters: those
/// of the slowest and the fastest flow, and those that hold the limit and the next one.
class Selection {
 public:
  /// Up to this many hosts are always told of.
  static constexpr std::size_t kFew = 4;

  explicit Selection(const Result& result);

  bool complete() const { return complete_; }
  bool shows_host(std::size_t host) const { return complete_ || hosts_.count(host) > 0; }
  /// Whether the row of `name` is shown: "hostN.…" as host N; anything else, such as the port of a
  /// switch, when it is a limit itself.
  bool shows(const std::string& name) const;
  /// Which hosts are shown, as a sentence; empty when all are.
  std::string note() const;

 private:
  void add_flow(const FlowResult& flow);

  std::size_t count_;
  bool complete_;
  std::set<std::size_t> hosts_;
  std::set<std::string> limits_;
};

}  // namespace rnic::testbench

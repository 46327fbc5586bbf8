// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "config/config.h"
#include "host/verbs_types.h"

namespace rnic::testbench {

class Endpoint;

/// Makes one work request wrong, as workload.mistake says, to see how it and what is behind it end.
class Mistakes {
 public:
  /// `active`: in this flow.
  Mistakes(const config::Config& config, bool active)
      : config_(config),
        kind_(active ? config.workload.mistake : config::Mistake::kNone),
        at_(config.workload.mistake_at) {}

  /// `number`: of the message, from 1.
  void spoil_send(std::uint64_t number, const Endpoint& local, const Endpoint& remote,
                  host::verbs::SendWr& wr, protocol::Sge& sge) const {
    if (kind_ != config::Mistake::kNone && number == at_) spoil(local, remote, wr, sge);
  }
  /// `number`: of the RECV, from 1.
  void spoil_recv(std::uint64_t number, protocol::Sge& sge) const;

 private:
  void spoil(const Endpoint& local, const Endpoint& remote, host::verbs::SendWr& wr,
             protocol::Sge& sge) const;

  const config::Config& config_;
  const config::Mistake kind_;
  const std::uint64_t at_;
};

}  // namespace rnic::testbench

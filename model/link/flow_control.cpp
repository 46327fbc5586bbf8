// SPDX-License-Identifier: Apache-2.0
#include "link/flow_control.h"

#include <algorithm>

#include "link/credit_flow_control.h"
#include "link/pause_flow_control.h"

namespace rnic::link {

std::uint64_t OpenFlowControl::highest_fill() const {
  std::uint64_t highest = 0;
  for (const RxBuffer& buffer : buffers_) highest = std::max(highest, buffer.highest());
  return highest;
}

void OpenFlowControl::reset_statistics(Time now) {
  for (RxBuffer& buffer : buffers_) {
    buffer.settle(now);
    buffer.reset_highest();
  }
}

std::unique_ptr<FlowControl> make_flow_control(const LinkPortConfig& config,
                                               ControlChannel& channel) {
  switch (config.flow_control) {
    case config::FlowControl::kCredit:
      return std::make_unique<CreditFlowControl>(config, channel);
    case config::FlowControl::kPfc:
    case config::FlowControl::kPause:
      return std::make_unique<PauseFlowControl>(config, channel);
    case config::FlowControl::kNone:
    case config::FlowControl::kAuto:
      break;
  }
  return std::make_unique<OpenFlowControl>(config);
}

}  // namespace rnic::link

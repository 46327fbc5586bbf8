// SPDX-License-Identifier: Apache-2.0
#include "stats/stage.h"

namespace rnic::stats {

std::string_view stage_name(Stage stage) {
  static constexpr std::array<std::string_view, kStageCount> kNames = {"post",
                                                                       "doorbell",
                                                                       "sq_wait",
                                                                       "sq_schedule",
                                                                       "qp_context",
                                                                       "wqe_fetch",
                                                                       "local_translation",
                                                                       "payload_fetch",
                                                                       "segmentation",
                                                                       "packetize",
                                                                       "port_wait",
                                                                       "serialize",
                                                                       "propagate",
                                                                       "switch",
                                                                       "reorder",
                                                                       "rx_parse",
                                                                       "rq_fetch",
                                                                       "remote_translation",
                                                                       "atomic_lock",
                                                                       "responder_read",
                                                                       "response",
                                                                       "placement",
                                                                       "ack",
                                                                       "completion",
                                                                       "poll"};
  return kNames[static_cast<std::size_t>(stage)];
}

}  // namespace rnic::stats

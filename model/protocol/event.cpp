// SPDX-License-Identifier: Apache-2.0
#include "protocol/event.h"

namespace rnic::protocol {
namespace {

struct Names {
  const char* name;
  const char* description;
};

/// By number of ibv_event_type; descriptions as rdma-core's enum_strs.c has them.
constexpr Names kNames[kAsyncEventTypes] = {
    {"cq_err", "CQ error"},
    {"qp_fatal", "local work queue catastrophic error"},
    {"qp_req_err", "invalid request local work queue error"},
    {"qp_access_err", "local access violation work queue error"},
    {"comm_est", "communication established"},
    {"sq_drained", "send queue drained"},
    {"path_mig", "path migrated"},
    {"path_mig_err", "path migration request error"},
    {"device_fatal", "local catastrophic error"},
    {"port_active", "port active"},
    {"port_err", "port error"},
    {"lid_change", "LID changed"},
    {"pkey_change", "P_Key changed"},
    {"sm_change", "SM changed"},
    {"srq_err", "SRQ catastrophic error"},
    {"srq_limit_reached", "SRQ limit reached"},
    {"qp_last_wqe_reached", "last WQE reached"},
    {"client_reregister", "client reregistration"},
    {"gid_change", "GID changed"},
    {"wq_fatal", "WQ fatal error"},
};

constexpr Names kUnknown{"unknown", "unknown"};

const Names& names_of(EventType type) {
  const auto number = static_cast<std::size_t>(type);
  return number < kAsyncEventTypes ? kNames[number] : kUnknown;
}

}  // namespace

const char* event_name(EventType type) { return names_of(type).name; }

const char* event_type_str(EventType type) { return names_of(type).description; }

}  // namespace rnic::protocol

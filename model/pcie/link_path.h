// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tlm>

#include "base/time.h"
#include "pcie/lane.h"
#include "protocol/tlp.h"
#include "protocol/tlp_ordering.h"
#include "tlm/pcie_extension.h"

namespace rnic::pcie {

enum class Direction : std::uint8_t { kToHost, kToDevice, kCount };

/// What a path needs of the link around it: the two wires, and the units behind both ends.
class LinkEnds {
 public:
  virtual ~LinkEnds() = default;
  virtual Lane& lane(Direction direction) = 0;
  virtual const protocol::TlpRules& rules() const = 0;
  virtual Time one_way() const = 0;
  /// Hands a request that arrives at `arrival` to the far end of `direction`. Returns TLM_COMPLETED
  /// when that end keeps nothing of it; `freed` is when its receive buffer is free again.
  virtual tlm::tlm_sync_enum deliver_request(Direction direction, tlm::tlm_generic_payload& payload,
                                             Time arrival, Time& freed) = 0;
  /// Hands a response that arrives at `arrival` to the far end of `direction`.
  virtual tlm::tlm_sync_enum deliver_response(Direction direction,
                                              tlm::tlm_generic_payload& payload, Time arrival) = 0;
};

/// How transactions cross a link.
class LinkPath {
 public:
  virtual ~LinkPath() = default;
  /// Takes a request that reaches the link at `at`, not in the past. `left` is when its last byte
  /// leaves the sender (TLP by TLP: unless it has to wait for credits).
  virtual tlm::tlm_sync_enum request(Direction direction, tlm::tlm_generic_payload& payload,
                                     Time at, Time& left) = 0;
  /// Takes the answer to a request, whose data are ready at `at`.
  virtual tlm::tlm_sync_enum respond(Direction direction, tlm::tlm_generic_payload& payload,
                                     Time at) = 0;
  /// The far end serves requests of the device in the order in which it is told of them, so that
  /// has to be the order in which they reach the link.
  virtual void deliver_in_order() {}
  /// The measured window starts.
  virtual void reset_statistics(Time /*now*/) {}
};

/// Is every packet of such a link an event? Also while non-posted credits are finite: a read that
/// has to wait lets others pass, and a reservation in the far future would keep these out.
inline bool tlp_by_tlp(const config::PcieConfig& config) {
  const config::PcieCredits& root = config.root_credits;
  const config::PcieCredits& device = config.device_credits;
  return config.detail == config::PcieDetail::kTlp || root.nonposted_headers > 0 ||
         root.nonposted_data > 0 || device.nonposted_headers > 0 || device.nonposted_data > 0;
}

/// How a configured link cuts transfers into packets.
protocol::TlpRules rules_of(const config::PcieConfig& config);

/// Operands that a request carries besides its header: of an AtomicOp.
inline std::uint32_t operand_bytes(const tlm_ext::PcieExtension& extension) {
  return extension.is_atomic ? extension.operands.bytes() : 0;
}

/// Packets of a request, whose extension is `extension`.
inline protocol::TlpCount request_tlps(const protocol::TlpRules& rules,
                                       const tlm::tlm_generic_payload& payload,
                                       const tlm_ext::PcieExtension& extension) {
  if (!payload.is_read()) {
    return protocol::write_tlps(rules, payload.get_address(), payload.get_data_length());
  }
  const std::uint64_t address = payload.get_address();
  // A packet holds one tag.
  protocol::TlpCount tlps =
      extension.tags > 0 ? protocol::TlpCount{extension.tags, 0,
                                              extension.tags * rules.request_overhead_at(address)}
                         : protocol::read_request_tlps(rules, address, payload.get_data_length());
  const std::uint32_t operands = operand_bytes(extension);
  tlps.payload_bytes += operands;
  tlps.wire_bytes += operands;
  return tlps;
}

/// Packets that answer a read; an error is answered by one completion without data.
inline protocol::TlpCount completion_tlps(const protocol::TlpRules& rules,
                                          const tlm::tlm_generic_payload& payload) {
  return payload.is_response_ok()
             ? protocol::completion_tlps(rules, payload.get_address(), payload.get_data_length())
             : protocol::TlpCount{1, 0, rules.completion_overhead};
}

/// Ordering attributes of the packets of the transaction `payload` with `extension`. A completion
/// takes them from its request.
inline protocol::TlpAttributes attributes_of(const tlm::tlm_generic_payload& payload,
                                             const tlm_ext::PcieExtension& extension,
                                             protocol::TlpClass kind) {
  protocol::TlpAttributes attributes;
  attributes.kind = kind;
  attributes.relaxed_ordering = extension.relaxed_ordering;
  attributes.id_based_ordering = extension.id_based_ordering;
  attributes.requester = extension.requester;
  attributes.transaction = reinterpret_cast<std::uintptr_t>(&payload);
  return attributes;
}

inline protocol::TlpClass request_class(const tlm::tlm_generic_payload& payload) {
  return payload.is_read() ? protocol::TlpClass::kRead : protocol::TlpClass::kPosted;
}

}  // namespace rnic::pcie

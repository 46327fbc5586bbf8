// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

namespace rnic::pcie {

/// One end of a link that several functions share, each with what belongs to it: their requests
/// leave through one socket, and what comes goes to the function that it is for, by requester
/// (PcieExtension). Takes no time: the link's lanes are where functions wait for each other.
class FunctionMux : public sc_core::sc_module {
 public:
  FunctionMux(const sc_core::sc_module_name& name, std::size_t functions);
  ~FunctionMux() override;

  /// From function `k`'s initiator / to its target.
  tlm::tlm_target_socket<>& from(std::size_t k);
  tlm::tlm_initiator_socket<>& to(std::size_t k);

  tlm::tlm_initiator_socket<> link_out{"link_out"};  ///< requests of all functions
  tlm::tlm_target_socket<> link_in{"link_in"};       ///< requests to any of them

 private:
  struct Function;
  struct LinkEnd;

  Function& function_of(const tlm::tlm_generic_payload& payload);

  std::vector<std::unique_ptr<Function>> functions_;
  std::unique_ptr<LinkEnd> link_end_;
};

}  // namespace rnic::pcie

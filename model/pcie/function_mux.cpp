// SPDX-License-Identifier: Apache-2.0
#include "pcie/function_mux.h"

#include <string>

#include "tlm/pcie_extension.h"

namespace rnic::pcie {

/// The sockets of one function.
struct FunctionMux::Function : public tlm::tlm_fw_transport_if<>,
                               public tlm::tlm_bw_transport_if<> {
  Function(FunctionMux& owner, std::size_t k)
      : mux(owner),
        number(static_cast<std::uint16_t>(k)),
        from(("from" + std::to_string(k)).c_str()),
        to(("to" + std::to_string(k)).c_str()) {
    from.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
    to.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
  }

  void mark(tlm::tlm_generic_payload& payload) const {
    if (auto* extension = payload.get_extension<tlm_ext::PcieExtension>()) {
      extension->requester = number;
    }
  }
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override {
    mark(payload);
    return mux.link_out->nb_transport_fw(payload, phase, delay);
  }
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override {
    mark(payload);
    mux.link_out->b_transport(payload, delay);
  }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& /*payload*/, tlm::tlm_dmi& /*dmi*/) override {
    return false;
  }
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override {
    mark(payload);
    return mux.link_out->transport_dbg(payload);
  }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override {
    return mux.link_in->nb_transport_bw(payload, phase, delay);
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) override {}

  FunctionMux& mux;
  std::uint16_t number;
  tlm::tlm_target_socket<> from;
  tlm::tlm_initiator_socket<> to;
};

/// The sockets towards the link.
struct FunctionMux::LinkEnd : public tlm::tlm_fw_transport_if<>, public tlm::tlm_bw_transport_if<> {
  explicit LinkEnd(FunctionMux& owner) : mux(owner) {}

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override {
    return mux.function_of(payload).to->nb_transport_fw(payload, phase, delay);
  }
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override {
    mux.function_of(payload).to->b_transport(payload, delay);
  }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& /*payload*/, tlm::tlm_dmi& /*dmi*/) override {
    return false;
  }
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override {
    return mux.function_of(payload).to->transport_dbg(payload);
  }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override {
    return mux.function_of(payload).from->nb_transport_bw(payload, phase, delay);
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64 /*start*/, sc_dt::uint64 /*end*/) override {}

  FunctionMux& mux;
};

FunctionMux::FunctionMux(const sc_core::sc_module_name& name, std::size_t functions)
    : sc_module(name), link_end_(std::make_unique<LinkEnd>(*this)) {
  for (std::size_t k = 0; k < functions; ++k) {
    functions_.push_back(std::make_unique<Function>(*this, k));
  }
  link_out.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*link_end_));
  link_in.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*link_end_));
}

FunctionMux::~FunctionMux() = default;

tlm::tlm_target_socket<>& FunctionMux::from(std::size_t k) { return functions_.at(k)->from; }
tlm::tlm_initiator_socket<>& FunctionMux::to(std::size_t k) { return functions_.at(k)->to; }

FunctionMux::Function& FunctionMux::function_of(const tlm::tlm_generic_payload& payload) {
  const auto* extension = payload.get_extension<tlm_ext::PcieExtension>();
  const std::size_t number = extension != nullptr ? extension->requester : 0;
  return *functions_.at(number);
}

}  // namespace rnic::pcie

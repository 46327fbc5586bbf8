// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tlm>

#include "protocol/frame.h"

namespace rnic::tlm_ext {

/// Protocol traits of a cable: frames travel by nb_transport_fw with phase BEGIN_REQ and the delay
/// after which their last bit arrives. The receiver owns the frame from then on and answers
/// TLM_COMPLETED: a wire never refuses (flow control is the link layer's business, and frames of
/// its own). Frames on one wire arrive in the order of the calls.
struct FrameTypes {
  using tlm_payload_type = protocol::Frame;
  using tlm_phase_type = tlm::tlm_phase;
};

inline constexpr unsigned kWireWidth = 32;
using FrameInitiatorSocket = tlm::tlm_initiator_socket<kWireWidth, FrameTypes>;
using FrameTargetSocket = tlm::tlm_target_socket<kWireWidth, FrameTypes>;

}  // namespace rnic::tlm_ext

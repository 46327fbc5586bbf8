// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/status.h"
#include "host/verbs_types.h"
#include "protocol/qp_state.h"
#include "reference/verbs_model.h"

/// What every mistake leads to: cause x operation x transport.
namespace rnic::reference {

enum class Cause {
  kNone,
  kZeroLength,  ///< no bytes, and keys that do not exist: nobody looks at them
  // Elements of the requester's list.
  kLocalUnknownKey,
  kLocalVariant,  ///< the index exists, the key byte differs
  kLocalOtherPd,
  kLocalBounds,
  kLocalTop,  ///< address + length wraps around
  kLocalDeregistered,
  kLocalNoWrite,  ///< region without LOCAL_WRITE
  // The region that the request names at the peer.
  kRemoteUnknownKey,
  kRemoteVariant,
  kRemoteOtherPd,
  kRemoteBounds,
  kRemoteTop,
  kRemoteNoRight,
  kRemoteDeregistered,
  kQpNoRight,  ///< the peer's queue pair does not allow the operation
  kMisaligned,
  // The RECV that the request takes.
  kNoRecv,
  kRecvSmall,
  kRecvUnknownKey,
  kRecvVariant,
  kRecvOtherPd,
  kRecvBounds,
  kRecvNoWrite,
  kRecvDeregistered,
  // The key that a SEND ends at the peer.
  kInvalUnknownKey,
  kInvalVariant,
  kInvalOtherPd,
  kInvalRegion,       ///< of ibv_reg_mr, which no message may end
  kInvalWindowType1,  ///< bound, and ended by a verb only
  kInvalOtherQp,      ///< type 2 window of another queue pair
  kInvalTwice,        ///< ended before
  kInvalHidden,       ///< gives the peer no right
  kPeerInError,
  // Refused when posted.
  kInline,  ///< inline data with an operation that takes none
  kInlineTooLong,
  kTooManySges,
  kNotReadyToSend,  ///< queue pair in RTR
  kQueueFull,
};

enum class Service { kReliable, kIwarp };

enum class Wire : std::uint32_t {
  kNothing = 0,
  kRnrNak = 0x20,  ///< and the timer code
  kNakInvalidRequest = 0x61,
  kNakRemoteAccess = 0x62,
  kNakOperational = 0x63,
  // Terminate messages: layer, type, code.
  kRdmapProtection = 0x0100,  ///< any code
  kRdmapOperation = 0x0200,   ///< any code
  kDdpNoBuffer = 0x1202,
  kDdpTooLong = 0x1205,
};

struct Consequence {
  bool applies = true;  ///< false: there is no such combination
  host::Status post = host::Status::kOk;
  WcStatus requester = WcStatus::kSuccess;
  bool takes_recv = false;
  WcStatus recv = WcStatus::kSuccess;
  Wire wire = Wire::kNothing;
  bool requester_breaks = false;
  bool responder_breaks = false;
  bool memory_changes = false;  ///< of the peer's region or the RECV's buffer
};

struct StatusRow {
  Cause cause;
  WrOpcode opcode;
  Service service;
  Consequence consequence;
};

std::vector<Cause> all_causes();
std::vector<WrOpcode> all_opcodes();
/// One combination, by the rules of IBTA volume 1 (9.7.5.2, 10.3, 11.6) and RFC 5040, 5041, 7306.
Consequence consequence_of(Cause cause, WrOpcode opcode, Service service);
/// Every combination.
std::vector<StatusRow> status_table();

const char* cause_name(Cause cause);
const char* opcode_name(WrOpcode opcode);
std::string wire_name(Wire wire);
/// The table as Markdown.
std::string status_table_markdown();

}  // namespace rnic::reference

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/status.h"
#include "host/verbs_types.h"
#include "protocol/event.h"
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
  kTooLong,       ///< more than a message of the service may have; atomics: not 8 bytes
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
  // The peer's memory through a type 2 window.
  kWindow,  ///< nothing wrong with it
  kWindowUnbound,
  kWindowEnded,   ///< by local invalidation
  kWindowBounds,  ///< inside the region, outside the window
  kWindowNoRight,
  kWindowOtherQp,  ///< bound through another queue pair
  // The RECV that the request takes.
  kNoRecv,
  kRecvSmall,
  kRecvUnknownKey,
  kRecvVariant,
  kRecvOtherPd,
  kRecvBounds,
  kRecvNoWrite,
  kRecvDeregistered,
  // The key that a SEND ends at the peer, or local invalidation here.
  kInvalUnknownKey,
  kInvalVariant,
  kInvalOtherPd,
  kInvalRegion,       ///< of ibv_reg_mr, which no message may end
  kInvalWindowType1,  ///< bound, and ended by a verb only
  kInvalOtherQp,      ///< type 2 window of another queue pair
  kInvalTwice,        ///< ended before
  kInvalHidden,       ///< gives the peer no right
  // The region that a window is bound to, and the window.
  kBindUnknownKey,
  kBindVariant,
  kBindOtherPd,
  kBindBounds,
  kBindTop,
  kBindDeregistered,
  kBindNotAllowed,  ///< region without MW_BIND
  kBindNoWrite,     ///< the window allows WRITEs, the region lacks LOCAL_WRITE
  kBindZeroBased,   ///< region
  kBindBound,       ///< a type 2 window that has not been ended
  kBindNothing,     ///< a type 2 window to no bytes
  kBindRights,      ///< other rights than remote ones
  // Fast registration.
  kRegRegistered,  ///< not ended since the last time
  kRegRights,      ///< REMOTE_WRITE without LOCAL_WRITE
  kRegUnmapped,    ///< no pages named
  // Both.
  kObjectOtherPd,
  kObjectGone,  ///< deallocated
  kPeerInError,
  // Where a datagram goes.
  kOtherQkey,
  kNobody,  ///< no such queue pair
  kHandleOtherPd,
  kNoHandle,
  // Memory whose pages come on demand and are not there; gone: the process has none.
  kLocalPaged,
  kLocalPagedGone,
  kRemotePaged,
  kRemotePagedGone,
  kRecvPaged,
  kRecvPagedGone,
  // The peer's memory through a type 1 window.
  kWindow1,
  kWindow1Unbound,
  kWindow1OtherQp,  ///< bound through another queue pair, which does not matter
  // READs and atomics that the responder keeps.
  kNoResources,   ///< max_dest_rd_atomic is 0
  kTooManyReads,  ///< one under way, and max_dest_rd_atomic is 1
  // Queues.
  kSrqEmpty,
  kSendCqFull,
  kRecvCqFull,
  // What the device cannot read of its host's memory.
  kWqeUnreadable,
  kContextUnreadable,
  kKeyUnreadable,      ///< the entry of the key that the requester names for itself
  kPeerKeyUnreadable,  ///< the entry of the key at the peer, of its RECV's buffer
  kPeerContextUnreadable,
  kRecvUnreadable,
  kSrqUnreadable,
  // Refused when posted.
  kInline,  ///< inline data with an operation that takes none
  kInlineTooLong,
  kTooManySges,
  kNotReadyToSend,  ///< queue pair in RTR
  kQueueFull,
};

enum class Service { kReliable, kUc, kUd, kIwarp };

enum class Wire : std::uint32_t {
  kNothing = 0,
  kRnrNak = 0x20,  ///< and the timer code
  kNakInvalidRequest = 0x61,
  kNakRemoteAccess = 0x62,
  kNakOperational = 0x63,
  // Terminate messages: layer, type, code.
  kRdmapProtection = 0x0100,  ///< any code
  kRdmapOperation = 0x0200,   ///< any code
  kDdpTagged = 0x1100,        ///< any code
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
  bool requester_breaks = false;  ///< goes to ERR; UC, UD: to SQE
  bool responder_breaks = false;
  bool memory_changes = false;  ///< of the peer's region or the RECV's buffer
  bool silent = false;          ///< no completion tells the requester of its end
  using Events = std::vector<protocol::EventType>;
  Events requester_events;  ///< asynchronous ones, in their order
  Events responder_events;
};

struct StatusRow {
  Cause cause;
  WrOpcode opcode;
  Service service;
  Consequence consequence;
};

std::vector<Cause> all_causes();
std::vector<WrOpcode> all_opcodes();
std::vector<Service> all_services();
/// Local invalidation, bind, fast registration: the device's own business.
bool is_key_operation(WrOpcode opcode);
/// One combination, by the rules of IBTA volume 1 (9.7.5.2, 10.3, 11.6) and RFC 5040, 5041, 7306.
Consequence consequence_of(Cause cause, WrOpcode opcode, Service service);
/// Where a requester that breaks ends: UC's and UD's send queues stop in SQE, but where the device
/// has lost the queue pair.
bool stops_in_error(const Consequence& consequence, Service service);
/// Every combination.
std::vector<StatusRow> status_table();

const char* cause_name(Cause cause);
const char* opcode_name(WrOpcode opcode);
const char* service_name(Service service);
std::string wire_name(Wire wire);
/// The table as Markdown.
std::string status_table_markdown();

}  // namespace rnic::reference

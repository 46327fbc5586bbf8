// SPDX-License-Identifier: Apache-2.0
#include "reference/status_table.h"

#include <sstream>

namespace rnic::reference {
namespace {

using host::Status;

bool is_send(WrOpcode opcode) {
  return opcode == WrOpcode::kSend || opcode == WrOpcode::kSendWithImm ||
         opcode == WrOpcode::kSendWithInv;
}

bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
}

/// Brings data to the requester, so that its list is written to.
bool fetches(WrOpcode opcode) { return opcode == WrOpcode::kRdmaRead || is_atomic(opcode); }

bool takes_recv(WrOpcode opcode) {
  return is_send(opcode) || opcode == WrOpcode::kRdmaWriteWithImm;
}

Consequence no_such_case() {
  Consequence c;
  c.applies = false;
  return c;
}

Consequence success(WrOpcode opcode) {
  Consequence c;
  c.takes_recv = takes_recv(opcode);
  c.memory_changes = opcode != WrOpcode::kRdmaRead && !is_key_operation(opcode);
  return c;
}

bool is_datagram(Service service) { return service == Service::kUd; }

bool is_acknowledged(Service service) {
  return service == Service::kReliable || service == Service::kIwarp;
}

/// IBTA vol 1, table 75; RDMAP has no SEND with immediate data (RFC 5040; RFC 7306 adds immediate
/// data to WRITEs only).
bool offers(Service service, WrOpcode opcode) {
  const bool plain_send = opcode == WrOpcode::kSend || opcode == WrOpcode::kSendWithImm;
  switch (service) {
    case Service::kReliable:
      return true;
    case Service::kIwarp:
      return opcode != WrOpcode::kSendWithImm;
    case Service::kUc:
      return !fetches(opcode) && opcode != WrOpcode::kSendWithInv;
    case Service::kUd:
      return plain_send;
  }
  return false;
}

Consequence refused(Status status) {
  Consequence c;
  c.post = status;
  return c;
}

/// The requester finds out by itself; the peer hears nothing of it.
Consequence local_protection(WrOpcode opcode) {
  Consequence c;
  c.requester = WcStatus::kLocalProtectionError;
  c.requester_breaks = true;
  // The answer of an atomic has no place to go, but the atomic has been executed.
  c.memory_changes = is_atomic(opcode);
  return c;
}

/// The requester's device refuses the request.
Consequence refused_here(WcStatus status) {
  Consequence c;
  c.requester = status;
  c.requester_breaks = true;
  return c;
}

/// The responder refuses: both ends are in ERR afterwards.
Consequence remote(WcStatus status, Wire wire) {
  Consequence c;
  c.requester = status;
  c.wire = wire;
  c.requester_breaks = c.responder_breaks = true;
  return c;
}

Consequence remote_access(Service service) {
  return remote(WcStatus::kRemoteAccessError,
                service == Service::kIwarp ? Wire::kRdmapProtection : Wire::kNakRemoteAccess);
}

/// Whether a WRITE may be placed there is DDP's to say, who may do so RDMAP's (RFC 5041, 7.1; RFC
/// 5040, 7.1).
Consequence remote_access(Service service, Cause cause, WrOpcode opcode) {
  Consequence c = remote_access(service);
  const bool writes = opcode == WrOpcode::kRdmaWrite || opcode == WrOpcode::kRdmaWriteWithImm;
  const bool rights = cause == Cause::kRemoteNoRight || cause == Cause::kWindowNoRight;
  if (service == Service::kIwarp && writes && !rights) c.wire = Wire::kDdpTagged;
  return c;
}

/// RDMAP knows no invalid request: what must not be done is a protection error there.
Consequence invalid_request(Service service) {
  if (service == Service::kIwarp) return remote_access(service);
  return remote(WcStatus::kRemoteInvalidRequestError, Wire::kNakInvalidRequest);
}

Consequence no_recv(WrOpcode opcode, Service service) {
  if (service == Service::kIwarp) {
    Consequence c = remote(WcStatus::kRemoteOperationError, Wire::kDdpNoBuffer);
    c.memory_changes = !is_send(opcode);  // the WRITE came before the immediate
    return c;
  }
  Consequence c;
  c.requester = WcStatus::kRnrRetryExceededError;
  c.wire = Wire::kRnrNak;
  c.requester_breaks = true;
  return c;
}

Consequence recv_fails(WcStatus recv, WcStatus requester, Wire wire) {
  Consequence c = remote(requester, wire);
  c.takes_recv = true;
  c.recv = recv;
  return c;
}

Consequence bad_recv(Service service) {
  return recv_fails(WcStatus::kLocalProtectionError, WcStatus::kRemoteOperationError,
                    service == Service::kIwarp ? Wire::kRdmapOperation : Wire::kNakOperational);
}

Consequence small_recv(Service service) {
  return recv_fails(WcStatus::kLocalLengthError, WcStatus::kRemoteInvalidRequestError,
                    service == Service::kIwarp ? Wire::kDdpTooLong : Wire::kNakInvalidRequest);
}

/// The data is there, but the RECV fails (IBTA vol 1, 9.9.3, class J) and the key's refusal is an
/// access violation; RFC 5040, 4.8: remote protection error, cannot be invalidated.
Consequence not_invalidated(Service service) {
  Consequence c = remote_access(service);
  c.takes_recv = true;
  c.recv = WcStatus::kRemoteInvalidRequestError;
  c.memory_changes = true;
  return c;
}

Consequence peer_in_error(Service service) {
  Consequence c;
  // The reset of the connection came first; InfiniBand knows nothing of the peer's error.
  c.requester =
      service == Service::kIwarp ? WcStatus::kWrFlushError : WcStatus::kRetryExceededError;
  c.requester_breaks = c.responder_breaks = true;
  return c;
}

/// What the peer cannot answer, where nothing is acknowledged: it drops the message (IBTA vol 1,
/// 9.8.2, 9.8.3). A receive queue that does not work is its own error all the same.
Consequence unacknowledged(Consequence c) {
  const bool answered = c.wire != Wire::kNothing || c.requester == WcStatus::kRetryExceededError;
  if (!answered) return c;
  const bool recv_fails = c.takes_recv && c.recv == WcStatus::kLocalProtectionError;
  const bool was_in_error = c.wire == Wire::kNothing;
  Consequence dropped;
  dropped.takes_recv = recv_fails;
  dropped.recv = recv_fails ? c.recv : WcStatus::kSuccess;
  dropped.responder_breaks = recv_fails || was_in_error;
  return dropped;
}

std::string states(const Consequence& c, Service service) {
  const char* stopped = is_acknowledged(service) ? "ERR" : "SQE";
  return std::string(c.requester_breaks ? stopped : "RTS") + ", " +
         (c.responder_breaks ? "ERR" : "RTS");
}

}  // namespace

std::vector<Cause> all_causes() {
  std::vector<Cause> causes;
  for (int i = 0; i <= static_cast<int>(Cause::kQueueFull); ++i) {
    causes.push_back(static_cast<Cause>(i));
  }
  return causes;
}

std::vector<WrOpcode> all_opcodes() {
  return {WrOpcode::kSend,
          WrOpcode::kSendWithImm,
          WrOpcode::kSendWithInv,
          WrOpcode::kRdmaWrite,
          WrOpcode::kRdmaWriteWithImm,
          WrOpcode::kRdmaRead,
          WrOpcode::kAtomicCmpAndSwp,
          WrOpcode::kAtomicFetchAndAdd,
          WrOpcode::kLocalInv,
          WrOpcode::kBindMw,
          WrOpcode::kRegMr};
}

std::vector<Service> all_services() {
  return {Service::kReliable, Service::kUc, Service::kUd, Service::kIwarp};
}

bool is_key_operation(WrOpcode opcode) {
  return opcode == WrOpcode::kLocalInv || opcode == WrOpcode::kBindMw || opcode == WrOpcode::kRegMr;
}

namespace {

/// Local invalidation fails as Linux' rxe_req.c has it; a bind that breaks a rule: IBTA vol 1,
/// 10.6.7.2. The peer hears nothing of either.
Consequence of_key_operation(Cause cause, WrOpcode opcode) {
  const bool binds = opcode == WrOpcode::kBindMw;
  const bool registers = opcode == WrOpcode::kRegMr;
  const WcStatus failure = binds ? WcStatus::kMwBindError : WcStatus::kLocalQpOperationError;
  switch (cause) {
    case Cause::kNone:
    case Cause::kPeerInError:
      return success(opcode);
    case Cause::kInvalHidden:  // its owner may end it
      return opcode == WrOpcode::kLocalInv ? success(opcode) : no_such_case();
    case Cause::kInvalUnknownKey:
    case Cause::kInvalVariant:
    case Cause::kInvalOtherPd:
    case Cause::kInvalRegion:
    case Cause::kInvalWindowType1:
    case Cause::kInvalOtherQp:
    case Cause::kInvalTwice:
      return opcode == WrOpcode::kLocalInv ? refused_here(failure) : no_such_case();
    case Cause::kBindUnknownKey:
    case Cause::kBindVariant:
    case Cause::kBindOtherPd:
    case Cause::kBindBounds:
    case Cause::kBindTop:
    case Cause::kBindDeregistered:
    case Cause::kBindNotAllowed:
    case Cause::kBindNoWrite:
    case Cause::kBindZeroBased:
    case Cause::kBindBound:
      return binds ? refused_here(failure) : no_such_case();
    case Cause::kBindNothing:
    case Cause::kBindRights:
      return binds ? refused(Status::kEinval) : no_such_case();
    case Cause::kRegRegistered:
    case Cause::kRegRights:
      return registers ? refused_here(failure) : no_such_case();
    case Cause::kRegUnmapped:
      return registers ? refused(Status::kEinval) : no_such_case();
    case Cause::kObjectOtherPd:
      return binds || registers ? refused(Status::kEinval) : no_such_case();
    case Cause::kObjectGone:
      return binds || registers ? refused_here(failure) : no_such_case();
    case Cause::kInline:
    case Cause::kTooManySges:
    case Cause::kNotReadyToSend:
      return refused(Status::kEinval);
    case Cause::kQueueFull:
      return refused(Status::kEnomem);
    default:
      return no_such_case();
  }
}

Consequence of_datagram(Cause cause) {
  Consequence sent;  // and nobody takes it
  switch (cause) {
    case Cause::kOtherQkey:
    case Cause::kNobody:
      return sent;
    case Cause::kHandleOtherPd:
      return refused_here(WcStatus::kLocalQpOperationError);
    default:
      return refused(Status::kEinval);
  }
}

/// Up to the end of the connection, which iWARP's peers learn of and InfiniBand's do not.
Consequence of_message(Cause cause, WrOpcode opcode, Service service) {
  switch (cause) {
    case Cause::kNone:
      return success(opcode);
    case Cause::kZeroLength: {
      if (is_atomic(opcode)) return no_such_case();
      Consequence c = success(opcode);
      c.memory_changes = false;
      return c;
    }
    case Cause::kLocalUnknownKey:
    case Cause::kLocalVariant:
    case Cause::kLocalOtherPd:
    case Cause::kLocalBounds:
    case Cause::kLocalTop:
    case Cause::kLocalDeregistered:
      return local_protection(opcode);
    case Cause::kLocalNoWrite:
      return fetches(opcode) ? local_protection(opcode) : success(opcode);
    case Cause::kTooLong:
      // iWARP's READ has one element, which holds less (RFC 5040, 4.4).
      if (service == Service::kIwarp && opcode == WrOpcode::kRdmaRead) return no_such_case();
      return refused_here(WcStatus::kLocalLengthError);
    case Cause::kRemoteUnknownKey:
    case Cause::kRemoteVariant:
    case Cause::kRemoteOtherPd:
    case Cause::kRemoteBounds:
    case Cause::kRemoteTop:
    case Cause::kRemoteNoRight:
    case Cause::kRemoteDeregistered:
    case Cause::kWindowUnbound:
    case Cause::kWindowEnded:
    case Cause::kWindowBounds:
    case Cause::kWindowNoRight:
    case Cause::kWindowOtherQp:
      return is_send(opcode) ? no_such_case() : remote_access(service, cause, opcode);
    case Cause::kWindow:
      return is_send(opcode) ? no_such_case() : success(opcode);
    case Cause::kQpNoRight:
      return is_send(opcode) ? no_such_case() : invalid_request(service);
    case Cause::kMisaligned:
      return is_atomic(opcode) ? invalid_request(service) : no_such_case();
    case Cause::kNoRecv:
      return takes_recv(opcode) ? no_recv(opcode, service) : success(opcode);
    case Cause::kRecvSmall:
      return is_send(opcode) ? small_recv(service) : success(opcode);
    case Cause::kRecvUnknownKey:
    case Cause::kRecvVariant:
    case Cause::kRecvOtherPd:
    case Cause::kRecvBounds:
    case Cause::kRecvNoWrite:
    case Cause::kRecvDeregistered:
      return is_send(opcode) ? bad_recv(service) : success(opcode);
    case Cause::kInvalUnknownKey:
    case Cause::kInvalVariant:
    case Cause::kInvalOtherPd:
    case Cause::kInvalRegion:
    case Cause::kInvalWindowType1:
    case Cause::kInvalOtherQp:
    case Cause::kInvalTwice:
    case Cause::kInvalHidden:
      return opcode == WrOpcode::kSendWithInv ? not_invalidated(service) : no_such_case();
    case Cause::kPeerInError:
      return peer_in_error(service);
    case Cause::kOtherQkey:
    case Cause::kNobody:
    case Cause::kHandleOtherPd:
    case Cause::kNoHandle:
      return is_datagram(service) ? of_datagram(cause) : no_such_case();
    case Cause::kInline:
      return fetches(opcode) ? refused(Status::kEinval) : success(opcode);
    case Cause::kInlineTooLong:
    case Cause::kTooManySges:
    case Cause::kNotReadyToSend:
      return refused(Status::kEinval);
    case Cause::kQueueFull:
      return refused(Status::kEnomem);
    default:
      return no_such_case();
  }
}

}  // namespace

Consequence consequence_of(Cause cause, WrOpcode opcode, Service service) {
  if (!offers(service, opcode)) {
    return cause == Cause::kNone ? refused(Status::kEinval) : no_such_case();
  }
  Consequence c;
  if (is_key_operation(opcode)) {
    c = of_key_operation(cause, opcode);
    if (service == Service::kIwarp && cause == Cause::kPeerInError) c = peer_in_error(service);
    if (cause == Cause::kPeerInError) c.responder_breaks = true;
  } else {
    c = of_message(cause, opcode, service);
  }
  if (!is_acknowledged(service)) return unacknowledged(c);
  // A queue pair in ERR resets its connection (RFC 9293, 3.10.5).
  if (service == Service::kIwarp && c.requester_breaks) c.responder_breaks = true;
  return c;
}

std::vector<StatusRow> status_table() {
  std::vector<StatusRow> rows;
  for (const Cause cause : all_causes()) {
    for (const WrOpcode opcode : all_opcodes()) {
      for (const Service service : all_services()) {
        rows.push_back({cause, opcode, service, consequence_of(cause, opcode, service)});
      }
    }
  }
  return rows;
}

const char* cause_name(Cause cause) {
  static constexpr const char* kNames[] = {"nothing wrong",
                                           "no bytes, keys unknown",
                                           "lkey unknown",
                                           "lkey, other key byte",
                                           "lkey of another PD",
                                           "local address out of bounds",
                                           "local address wraps around",
                                           "local region deregistered",
                                           "local region without LOCAL_WRITE",
                                           "message too long, atomic not of 8 bytes",
                                           "rkey unknown",
                                           "rkey, other key byte",
                                           "rkey of another PD",
                                           "remote address out of bounds",
                                           "remote address wraps around",
                                           "remote region lacks the right",
                                           "remote region deregistered",
                                           "remote QP lacks the right",
                                           "atomic not aligned",
                                           "through a window, nothing wrong",
                                           "window never bound",
                                           "window ended",
                                           "outside the window",
                                           "window lacks the right",
                                           "window of another QP",
                                           "no RECV",
                                           "RECV too small",
                                           "RECV, lkey unknown",
                                           "RECV, other key byte",
                                           "RECV, lkey of another PD",
                                           "RECV out of bounds",
                                           "RECV region without LOCAL_WRITE",
                                           "RECV region deregistered",
                                           "key to end unknown",
                                           "key to end, other key byte",
                                           "key to end of another PD",
                                           "key to end is an ordinary region's",
                                           "key to end is a type 1 window's",
                                           "key to end is another QP's window",
                                           "key to end has been ended before",
                                           "key to end gives no remote right",
                                           "bind, lkey unknown",
                                           "bind, other key byte",
                                           "bind, lkey of another PD",
                                           "bind out of bounds",
                                           "bind, address wraps around",
                                           "bind, region deregistered",
                                           "bind, region without MW_BIND",
                                           "bind for WRITEs, region without LOCAL_WRITE",
                                           "bind to a zero-based region",
                                           "bind of a window that is bound",
                                           "bind to no bytes",
                                           "bind with a local right",
                                           "registered and not ended",
                                           "registered for WRITEs without LOCAL_WRITE",
                                           "registered without pages",
                                           "window or region of another PD",
                                           "window or region deallocated",
                                           "peer in ERR",
                                           "other Q_Key",
                                           "no such QP there",
                                           "address handle of another PD",
                                           "no address handle",
                                           "inline flag",
                                           "inline data too long",
                                           "too many SGEs",
                                           "QP not in RTS",
                                           "send queue full"};
  return kNames[static_cast<int>(cause)];
}

const char* opcode_name(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kRdmaWrite:
      return "WRITE";
    case WrOpcode::kRdmaWriteWithImm:
      return "WRITE_IMM";
    case WrOpcode::kSend:
      return "SEND";
    case WrOpcode::kSendWithImm:
      return "SEND_IMM";
    case WrOpcode::kSendWithInv:
      return "SEND_INV";
    case WrOpcode::kRdmaRead:
      return "READ";
    case WrOpcode::kAtomicCmpAndSwp:
      return "CMP_SWAP";
    case WrOpcode::kAtomicFetchAndAdd:
      return "FETCH_ADD";
    case WrOpcode::kLocalInv:
      return "LOCAL_INV";
    case WrOpcode::kBindMw:
      return "BIND_MW";
    case WrOpcode::kRegMr:
      return "REG_MR";
  }
  return "?";
}

const char* service_name(Service service) {
  switch (service) {
    case Service::kReliable:
      return "RC";
    case Service::kUc:
      return "UC";
    case Service::kUd:
      return "UD";
    case Service::kIwarp:
      return "iWARP";
  }
  return "?";
}

std::string wire_name(Wire wire) {
  switch (wire) {
    case Wire::kNothing:
      return "";
    case Wire::kRnrNak:
      return "RNR NAK";
    case Wire::kNakInvalidRequest:
      return "NAK 0x61 invalid request";
    case Wire::kNakRemoteAccess:
      return "NAK 0x62 remote access";
    case Wire::kNakOperational:
      return "NAK 0x63 operational";
    case Wire::kRdmapProtection:
      return "Terminate, RDMAP protection";
    case Wire::kRdmapOperation:
      return "Terminate, RDMAP operation";
    case Wire::kDdpTagged:
      return "Terminate, DDP tagged buffer";
    case Wire::kDdpNoBuffer:
      return "Terminate, DDP no buffer";
    case Wire::kDdpTooLong:
      return "Terminate, DDP message too long";
  }
  return "?";
}

std::string status_table_markdown() {
  std::ostringstream out;
  out << "| cause | operation | transport | requester | RECV | on the wire | QP states | peer's "
         "memory |\n|---|---|---|---|---|---|---|---|\n";
  for (const StatusRow& row : status_table()) {
    const Consequence& c = row.consequence;
    if (!c.applies) continue;
    out << "| " << cause_name(row.cause) << " | " << opcode_name(row.opcode) << " | "
        << service_name(row.service) << " | ";
    if (c.post != Status::kOk) {
      out << "post: " << host::status_name(c.post) << " | | | RTS, RTS | untouched |\n";
      continue;
    }
    out << protocol::wc_status_name(c.requester) << " | "
        << (c.takes_recv ? protocol::wc_status_name(c.recv) : "") << " | " << wire_name(c.wire)
        << " | " << states(c, row.service) << " | " << (c.memory_changes ? "changed" : "untouched")
        << " |\n";
  }
  return out.str();
}

}  // namespace rnic::reference

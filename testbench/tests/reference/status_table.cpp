// SPDX-License-Identifier: Apache-2.0
#include "reference/status_table.h"

#include <algorithm>

namespace rnic::reference {
namespace {

using host::Status;
using protocol::EventType;

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

/// The requester finds out by itself; the peer hears nothing of it. An atomic changes the peer's
/// word all the same: what an element of the list allows is looked at when the device accesses it
/// (IBTA vol 1, 9.9.2: the local protection error of a response as well as of a request), which for
/// an atomic is when its answer is to be written. By then the responder has executed it (9.4.5): it
/// swaps or adds before it answers, and cannot take it back. READs, likewise, have been served.
Consequence local_protection(WrOpcode opcode) {
  Consequence c;
  c.requester = WcStatus::kLocalProtectionError;
  c.requester_breaks = true;
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
  Consequence c = service == Service::kIwarp
                      ? remote_access(service)
                      : remote(WcStatus::kRemoteInvalidRequestError, Wire::kNakInvalidRequest);
  c.responder_events = {EventType::kQpRequestError};
  return c;
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
  const bool lost = std::find(c.responder_events.begin(), c.responder_events.end(),
                              EventType::kQpFatal) != c.responder_events.end();
  dropped.responder_breaks = recv_fails || was_in_error || lost;
  if (lost) dropped.responder_events = c.responder_events;
  return dropped;
}

}  // namespace

bool stops_in_error(const Consequence& c, Service service) {
  return is_acknowledged(service) || !c.requester_events.empty();
}

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

/// The requester's device loses its queue pair before the work is begun.
Consequence lost_here() {
  Consequence c;
  c.requester = WcStatus::kWrFlushError;
  c.requester_breaks = true;
  c.requester_events = {EventType::kQpFatal};
  return c;
}

/// The responder cannot carry it out: class C of IBTA vol 1, 9.9.3.
Consequence operational(Service service) {
  Consequence c =
      remote(WcStatus::kRemoteOperationError,
             service == Service::kIwarp ? Wire::kRdmapOperation : Wire::kNakOperational);
  c.responder_events = {EventType::kQpFatal};
  return c;
}

/// A page that is not there: the responder asks to wait where it can, and the request is sent
/// again; who only waits for data (READ, atomics) is not told.
Consequence paged(WrOpcode opcode, Service service) {
  Consequence c = success(opcode);
  const bool puts_off = service != Service::kIwarp && !fetches(opcode);
  if (puts_off) c.wire = Wire::kRnrNak;
  return c;
}

/// The fault is answered as any other first; only then the driver finds that there is no page. RNR
/// NAKs go before the refusal, and who is not acknowledged is dropped at the first.
Consequence gone_on_demand(Consequence c, WrOpcode opcode, Service service) {
  const bool dropped = service == Service::kUc || service == Service::kUd;
  if (dropped && !fetches(opcode)) {
    c = Consequence{};
    c.memory_changes = false;
  }
  return c;
}

/// What the device cannot read of its tables or rings.
Consequence of_unreadable(Cause cause, WrOpcode opcode, Service service) {
  switch (cause) {
    case Cause::kWqeUnreadable:
      return lost_here();
    case Cause::kContextUnreadable:
      // iWARP's has been in use since the connection was made.
      return service == Service::kIwarp ? no_such_case() : lost_here();
    case Cause::kKeyUnreadable:
      return local_protection(opcode);
    case Cause::kPeerKeyUnreadable:
      return is_send(opcode) ? bad_recv(service) : operational(service);
    case Cause::kRecvUnreadable: {
      if (!takes_recv(opcode)) return success(opcode);
      Consequence c = operational(service);
      c.memory_changes = service == Service::kIwarp && !is_send(opcode);  // before the immediate
      return c;
    }
    case Cause::kSrqUnreadable: {
      if (service == Service::kUc) return no_such_case();
      if (!takes_recv(opcode)) return success(opcode);
      Consequence c = operational(service);
      c.memory_changes = service == Service::kIwarp && !is_send(opcode);
      c.responder_events = {EventType::kSrqError, EventType::kQpFatal,
                            EventType::kQpLastWqeReached};
      return c;
    }
    default: {  // the peer's context
      if (service == Service::kIwarp) return no_such_case();
      Consequence c = peer_in_error(service);
      c.responder_events = {EventType::kQpFatal};
      return c;
    }
  }
}

Consequence of_full_cq(Cause cause, WrOpcode opcode, Service service) {
  Consequence c = success(opcode);
  if (cause == Cause::kSendCqFull) {
    c.silent = c.requester_breaks = true;
    c.requester_events = {EventType::kCqError, EventType::kQpFatal};
    return c;
  }
  if (!takes_recv(opcode)) return c;
  c.takes_recv = false;  // nobody is told
  c.responder_breaks = true;
  if (service == Service::kIwarp) {
    // Its reset comes instead of the acknowledgement; that of the WRITE had gone before.
    c.requester_breaks = true;
    if (is_send(opcode)) c.requester = WcStatus::kWrFlushError;
  }
  c.responder_events = {EventType::kCqError, EventType::kQpFatal};
  return c;
}

/// Local invalidation fails as Linux' rxe_req.c has it; a bind that breaks a rule: IBTA vol 1,
/// 10.6.7.2. The peer hears nothing of either.
Consequence of_key_operation(Cause cause, WrOpcode opcode, Service service) {
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
    case Cause::kKeyUnreadable:
      return refused_here(failure);
    case Cause::kWqeUnreadable:
    case Cause::kContextUnreadable:
      return of_unreadable(cause, opcode, service);
    case Cause::kSendCqFull:
      return of_full_cq(cause, opcode, service);
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
    case Cause::kLocalPaged:
      return success(opcode);
    case Cause::kLocalPagedGone:
      return local_protection(opcode);
    case Cause::kRemotePaged:
      return is_send(opcode) ? no_such_case() : paged(opcode, service);
    case Cause::kRemotePagedGone:
      if (is_send(opcode)) return no_such_case();
      return gone_on_demand(remote_access(service, cause, opcode), opcode, service);
    case Cause::kRecvPaged:
      return is_send(opcode) ? paged(opcode, service) : success(opcode);
    case Cause::kRecvPagedGone:
      if (!is_send(opcode)) return success(opcode);
      return gone_on_demand(bad_recv(service), opcode, service);
    case Cause::kWindow1:
    case Cause::kWindow1OtherQp:
      return is_send(opcode) ? no_such_case() : success(opcode);
    case Cause::kWindow1Unbound:
      return is_send(opcode) ? no_such_case() : remote_access(service, cause, opcode);
    case Cause::kNoResources:
      if (!fetches(opcode)) return success(opcode);
      // The queue of READ requests has as many buffers (RFC 5040, 6.2; RFC 5041, 7.1).
      return service == Service::kIwarp
                 ? remote(WcStatus::kRemoteOperationError, Wire::kDdpNoBuffer)
                 : invalid_request(service);
    case Cause::kTooManyReads:
      if (!fetches(opcode) || !is_acknowledged(service)) return no_such_case();
      // Of MPA's revision 1, which does not negotiate ORD and IRD (RFC 5044): the request finds no
      // buffer in the queue of READ requests. What is owed for the one under way comes first.
      return service == Service::kIwarp
                 ? remote(WcStatus::kRemoteOperationError, Wire::kDdpNoBuffer)
                 : invalid_request(service);
    case Cause::kSrqEmpty: {
      if (service == Service::kUc) return no_such_case();  // IBTA vol 1, 10.2.9.1: RC and UD
      Consequence c = takes_recv(opcode) ? no_recv(opcode, service) : success(opcode);
      if (c.responder_breaks) {
        c.responder_events = {EventType::kQpRequestError, EventType::kQpLastWqeReached};
      }
      return c;
    }
    case Cause::kSendCqFull:
    case Cause::kRecvCqFull:
      return of_full_cq(cause, opcode, service);
    case Cause::kWqeUnreadable:
    case Cause::kContextUnreadable:
    case Cause::kKeyUnreadable:
    case Cause::kPeerKeyUnreadable:
    case Cause::kPeerContextUnreadable:
    case Cause::kRecvUnreadable:
    case Cause::kSrqUnreadable:
      return of_unreadable(cause, opcode, service);
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

/// What the responder's application hears of a refusal that no completion of its own reports
/// (IBTA vol 1, 11.6.3.2).
Consequence::Events told_of_refusal(const Consequence& c) {
  if (!c.responder_breaks || c.takes_recv) return {};
  switch (c.wire) {
    case Wire::kNakInvalidRequest:
    case Wire::kDdpNoBuffer:
      return {EventType::kQpRequestError};
    case Wire::kNakRemoteAccess:
    case Wire::kDdpTagged:
    case Wire::kRdmapProtection:
      return {EventType::kQpAccessError};
    default:
      return {};
  }
}

}  // namespace

Consequence consequence_of(Cause cause, WrOpcode opcode, Service service) {
  if (!offers(service, opcode)) {
    return cause == Cause::kNone ? refused(Status::kEinval) : no_such_case();
  }
  Consequence c;
  if (is_key_operation(opcode)) {
    c = of_key_operation(cause, opcode, service);
    if (service == Service::kIwarp && cause == Cause::kPeerInError) c = peer_in_error(service);
    if (cause == Cause::kPeerInError) c.responder_breaks = true;
  } else {
    c = of_message(cause, opcode, service);
  }
  if (!is_acknowledged(service)) return unacknowledged(c);
  // A queue pair in ERR resets its connection (RFC 9293, 3.10.5).
  if (service == Service::kIwarp && c.requester_breaks) c.responder_breaks = true;
  if (c.responder_events.empty()) c.responder_events = told_of_refusal(c);
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

}  // namespace rnic::reference

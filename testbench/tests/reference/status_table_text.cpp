// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <sstream>

#include "reference/status_table.h"

/// The status table as text.
namespace rnic::reference {

using host::Status;
using protocol::EventType;

namespace {

std::string states(const Consequence& c, Service service) {
  const char* stopped = stops_in_error(c, service) ? "ERR" : "SQE";
  return std::string(c.requester_breaks ? stopped : "RTS") + ", " +
         (c.responder_breaks ? "ERR" : "RTS");
}

}  // namespace

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
                                           "local page on demand",
                                           "local page on demand, gone",
                                           "remote page on demand",
                                           "remote page on demand, gone",
                                           "RECV's page on demand",
                                           "RECV's page on demand, gone",
                                           "through a type 1 window, nothing wrong",
                                           "type 1 window bound to nothing",
                                           "type 1 window bound through another QP",
                                           "responder without READ resources",
                                           "more READs than the responder keeps",
                                           "SRQ empty",
                                           "CQ of the send queue full",
                                           "CQ of the receive queue full",
                                           "WQE unreadable",
                                           "QP context unreadable",
                                           "MPT entry unreadable",
                                           "MPT entry unreadable at the peer",
                                           "QP context unreadable at the peer",
                                           "RECV's WQE unreadable",
                                           "WQE of the SRQ unreadable",
                                           "inline flag",
                                           "inline data too long",
                                           "too many SGEs",
                                           "QP not in RTS",
                                           "send queue full"};
  constexpr auto kCauses = static_cast<std::size_t>(Cause::kQueueFull) + 1;  // the last of them
  static_assert(std::size(kNames) == kCauses, "each cause has its name");
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

namespace {

std::string events(const Consequence& c) {
  std::string text;
  const auto add = [&text](const Consequence::Events& list, const char* whose) {
    for (const EventType type : list) {
      text += (text.empty() ? "" : ", ") + std::string(whose) + " " + protocol::event_name(type);
    }
  };
  add(c.requester_events, "requester");
  add(c.responder_events, "responder");
  return text;
}

}  // namespace

std::string status_table_markdown() {
  std::ostringstream out;
  out << "| cause | operation | transport | requester | RECV | on the wire | QP states | peer's "
         "memory | events |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const StatusRow& row : status_table()) {
    const Consequence& c = row.consequence;
    if (!c.applies) continue;
    out << "| " << cause_name(row.cause) << " | " << opcode_name(row.opcode) << " | "
        << service_name(row.service) << " | ";
    if (c.post != Status::kOk) {
      out << "post: " << host::status_name(c.post) << " | | | RTS, RTS | untouched | |\n";
      continue;
    }
    out << (c.silent ? "" : protocol::wc_status_name(c.requester)) << " | "
        << (c.takes_recv ? protocol::wc_status_name(c.recv) : "") << " | " << wire_name(c.wire)
        << " | " << states(c, row.service) << " | " << (c.memory_changes ? "changed" : "untouched")
        << " | " << events(c) << " |\n";
  }
  return out.str();
}

}  // namespace rnic::reference

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/ring.h"
#include "base/time.h"
#include "protocol/iwarp_headers.h"
#include "stats/stage.h"
#include "transport/iwarp_setup.h"
#include "transport/mpa_negotiation.h"
#include "transport/queue_pair.h"
#include "transport/tcp/connection_table.h"
#include "transport/tcp/keep_alive.h"
#include "transport/tcp/tcp_connection.h"

namespace rnic::transport {

/// A DDP message in the outgoing stream, kept until TCP has acknowledged its last byte: what is
/// resent is built again from the work request or from memory.
struct DdpMessage {
  protocol::RdmapOpcode opcode = protocol::RdmapOpcode::kWrite;
  bool is_response = false;
  bool ends_entry = false;         ///< last message of its work request
  std::uint64_t start = 0;         ///< stream sequence of its first byte
  std::uint64_t end = 0;           ///< just behind its last byte
  std::uint64_t entry_number = 0;  ///< work request of a request
  std::uint32_t length = 0;        ///< payload bytes; 0 for messages that are all header
  std::uint32_t msn = 0;           ///< untagged, and of the READ request that a response answers
  ResponseEntry response;          ///< of a response
};

/// What iWARP keeps for a queue pair: the TCP connection, the outgoing stream in messages, and the
/// message numbers of the untagged queues.
struct IwarpConnection : ConnectionState {
  static constexpr std::uint32_t kMaxUntaggedQueue = 4;
  /// Terminate control, segment length, DDP header and READ request.
  static constexpr std::uint32_t kMaxTerminateBytes = 52;

  explicit IwarpConnection(const TcpParameters& parameters)
      : tcp(parameters),
        keep_alive(parameters.keepalive_time, parameters.keepalive_interval,
                   parameters.keepalive_probes) {}

  TcpConnection tcp;
  KeepAlive keep_alive;  ///< in effect while READs or atomics are unanswered
  std::uint16_t local_port = 0;
  std::uint16_t peer_port = 0;
  ConnectionKey key;                 ///< under which arriving segments find it
  bool initiator = false;            ///< this end sends the SYN
  std::uint64_t first_sequence = 0;  ///< of this end's first FPDU
  std::uint32_t peer_sequence = 0;   ///< of the peer's first FPDU
  IwarpSetup setup;
  protocol::MpaEnhanced enhanced;  ///< of this end's MPA frame, with revision 2
  ReadyGate gate;                  ///< peer-to-peer responder
  bool ready_read = false;         ///< initiator: the READ that opens the gate is not answered yet

  // Outgoing. Messages before `cursor` are completely planned; `cursor_offset` bytes of the
  // message there are. A retransmission moves the cursor back.
  Ring<DdpMessage> messages;
  std::size_t cursor = 0;
  std::uint32_t cursor_offset = 0;
  std::uint64_t stream_end = 0;  ///< end of the last message
  std::array<std::uint32_t, kMaxUntaggedQueue> next_msn{};
  Ring<std::uint64_t> reads;  ///< entry numbers of unanswered READs and atomics

  // Incoming.
  std::array<std::uint32_t, kMaxUntaggedQueue> expected_msn{};
  std::uint32_t expected_offset = 0;  ///< MO in the SEND being received
  std::uint32_t arriving_bytes = 0;   ///< stream bytes of the segment that the NIC executes now
  std::uint32_t write_bytes = 0;      ///< of the WRITE being received
  std::uint32_t last_write = 0;       ///< bytes of the WRITE that ended last
  std::uint32_t timestamp_recent = 0;
  std::array<std::uint8_t, 46> arriving_ddp{};  ///< copy for a terminate message
  std::uint16_t arriving_ddp_bytes = 0;
  std::uint16_t arriving_ulpdu_bytes = 0;

  // Teardown.
  bool terminate_pending = false;
  bool reset_pending = false;  ///< a reset is to tell the peer that the connection is over
  bool fin_received = false;
  bool closed = false;  ///< nothing is sent or received any more
  std::uint16_t terminate_bytes = 0;
  std::array<std::uint8_t, kMaxTerminateBytes> terminate{};

  bool mid_message() const { return cursor < messages.size(); }
};

}  // namespace rnic::transport

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace rnic::config {

enum class Protocol { kIb, kRoceV1, kRoceV2, kIwarp };
enum class TransportType { kRc, kUc, kUd };
enum class Recovery { kGoBackN, kSelectiveRepeat };

struct TransportConfig {
  Protocol protocol;
  TransportType type;
  std::uint32_t mtu;
  Recovery recovery;
  std::uint32_t ack_timeout;  ///< exponent: 4.096 us * 2^n, 0 = no timer
  std::uint32_t retry_count;
  std::uint32_t rnr_retry;
  std::uint32_t min_rnr_timer;
  std::uint32_t max_rd_atomic;
  std::uint32_t max_dest_rd_atomic;
  std::uint32_t ack_every;  ///< AckReq every n packets inside a long message
  Time ack_coalesce_time;   ///< least time between two ACKs of a QP; those between are merged
};

struct TcpConfig {
  std::uint64_t window;        ///< receive window, bytes
  std::uint32_t initial_cwnd;  ///< segments
  std::uint32_t delayed_ack;   ///< full segments per ACK
  Time delayed_ack_time;
  Time min_rto;
  bool timestamps;
  bool mpa_crc;
  bool mpa_markers;
};

}  // namespace rnic::config

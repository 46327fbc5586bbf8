// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ring.h"
#include "nic/waiter.h"
#include "protocol/wqe.h"

namespace rnic::nic {

struct QpContext;

/// A receive queue as the device keeps it: a queue pair's own, or one that several share (SRQ).
/// 16-bit counters wrap as in hardware.
struct RecvQueue {
  QpContext* owner = nullptr;  ///< null: shared
  std::uint32_t number = 0;    ///< of a shared queue
  std::uint64_t ring_address = 0;
  std::uint64_t doorbell_record = 0;
  std::uint32_t log_entries = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t pd = 0;        ///< shared: that its buffers must belong to
  std::uint16_t producer = 0;  ///< RECVs posted, as last seen in the doorbell record
  std::uint16_t fetched = 0;   ///< RECVs read from the ring
  std::uint16_t position = 0;  ///< shared: ring slot of the next WQE to read
  bool fetching = false;
  bool forsaken = false;  ///< reset since that read was sent: what it brings is of no use
  bool failed = false;    ///< a read of its ring or record failed: the application has been told
  std::uint32_t read_failures = 0;
  bool record_fresh = false;     ///< the record has just been read for a waiting frame
  bool record_outdated = false;  ///< somebody joined after that read was sent: read again
  Ring<protocol::RecvWqe> wqes;  ///< fetched and not consumed, oldest first
  WaitList waiters;

  std::uint32_t limit = 0;   ///< shared: fewer RECVs than this raise an event, once; 0: not armed
  bool limit_check = false;  ///< the count fell below `limit` as far as the device knows

  bool shared() const { return owner == nullptr; }
  bool known_posted() const { return fetched != producer; }
  /// RECVs that nobody has taken, as far as the device knows.
  std::uint32_t available() const {
    return static_cast<std::uint16_t>(producer - fetched) + static_cast<std::uint32_t>(wqes.size());
  }
};

}  // namespace rnic::nic

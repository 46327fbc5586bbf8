// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "nic/waiter.h"
#include "protocol/mpt.h"

namespace rnic::nic {

/// A run of bus addresses.
struct BusSegment {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
};

/// Addresses that a request will ask for.
struct ExpectedAccess {
  std::uint32_t key = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  bool responder = false;  ///< for the peer, not for own work
};

class TranslationClient;

/// One request to the translation unit: check `check_length` bytes from `check_address` against the
/// region of `key`, then translate `length` bytes from `address`.
struct Translation : public Waiter {
  static constexpr std::uint32_t kMaxSegments = 8;

  // Asked.
  std::uint32_t key = 0;
  std::uint32_t pd = 0;
  std::uint32_t qpn = 0;
  std::uint32_t needed_access = 0;  ///< access flags that the region must grant
  std::uint64_t check_address = 0;
  std::uint64_t check_length = 0;
  std::uint64_t address = 0;
  std::uint32_t length = 0;    ///< 0: check only
  bool refuse_faults = false;  ///< a page that is missing is an answer; else it is waited for
  bool responder = false;      ///< asked for the peer, not for own work
  /// Its key was looked up when the READ came that it answers, and its first page with it: it takes
  /// no turn of its own, nor does its look-up count again.
  bool follows_check = false;
  TranslationClient* client = nullptr;
  void* owner = nullptr;  ///< the client's job

  // Answered.
  protocol::AccessResult result{};
  std::uint32_t segment_count = 0;
  std::array<BusSegment, kMaxSegments> segments{};

  // In progress.
  class TranslationUnit* unit = nullptr;
  std::uint32_t done = 0;
  std::uint32_t pages = 0;  ///< MTT entries used
  bool queued = false;      ///< must be answered in order
  bool resolved = false;    ///< known, but not answered before older ones are
  Time resolved_at{0};
  bool counted = false;      ///< a resumed request: its MPT lookup was counted before
  bool mtt_counted = false;  ///< likewise of the MTT line at hand
  bool mpt_kept = false;     ///< checks are passed, `mpt` goes on
  std::uint32_t child = 0;   ///< implicit region: key of the child at hand; 0: not known yet
  protocol::MptEntry mpt;
  Time started{0};

  void resume(Time now) override;
};

/// Told when a translation is over; may be called from within translate() when all hits.
class TranslationClient {
 public:
  virtual ~TranslationClient() = default;
  virtual void translated(Translation& translation, Time t) = 0;
};

}  // namespace rnic::nic

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Ordering of transaction-layer packets within one traffic class (PCI Express Base, 2.4.1, table
/// "Ordering Rules Summary"). No time, no kernel.
namespace rnic::protocol {

/// Rows and columns of the table, and the three kinds of flow-control credit.
enum class TlpClass : std::uint8_t {
  kPosted,         ///< memory writes and messages
  kRead,           ///< memory reads
  kNonPostedData,  ///< atomics, I/O and configuration writes
  kCompletion,
  kCount
};

/// What decides whether a packet may overtake another.
struct TlpAttributes {
  TlpClass kind = TlpClass::kPosted;
  bool relaxed_ordering = false;   ///< RO attribute
  bool id_based_ordering = false;  ///< IDO attribute
  std::uint16_t requester = 0;     ///< requester ID; of a completion: the completer's
  std::uint64_t transaction = 0;   ///< equal for the completions of one request
};

/// Whether the later packet may overtake the earlier one.
enum class Passing : std::uint8_t {
  kNo,   ///< it must not
  kMay,  ///< it may or may not
  kMust  ///< it must be able to when the earlier one is blocked, else the link could deadlock
};

/// May `later` pass `earlier`, which has been waiting in the same queue?
Passing may_pass(const TlpAttributes& later, const TlpAttributes& earlier);

}  // namespace rnic::protocol

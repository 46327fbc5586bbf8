// SPDX-License-Identifier: Apache-2.0
#include "protocol/tlp_ordering.h"

namespace rnic::protocol {
namespace {

bool of_other_requester(const TlpAttributes& later, const TlpAttributes& earlier) {
  return later.id_based_ordering && later.requester != earlier.requester;
}

/// Entries A2, B2, C2 and D2: nothing passes a posted request unless an attribute allows it.
Passing past_posted(const TlpAttributes& later, const TlpAttributes& earlier) {
  // A plain read has no business with RO here: it would read what the write has not written (B2).
  const bool relaxed = later.relaxed_ordering && later.kind != TlpClass::kRead;
  return relaxed || of_other_requester(later, earlier) ? Passing::kMay : Passing::kNo;
}

}  // namespace

Passing may_pass(const TlpAttributes& later, const TlpAttributes& earlier) {
  if (earlier.kind == TlpClass::kPosted) return past_posted(later, earlier);
  const bool earlier_is_completion = earlier.kind == TlpClass::kCompletion;
  switch (later.kind) {
    case TlpClass::kPosted:
      return earlier_is_completion ? Passing::kMay : Passing::kMust;  // A5a; A3, A4
    case TlpClass::kCompletion:
      if (!earlier_is_completion) return Passing::kMust;                               // D3, D4
      return later.transaction == earlier.transaction ? Passing::kNo : Passing::kMay;  // D5b, D5a
    default:
      return Passing::kMay;  // B3 to B5, C3 to C5
  }
}

}  // namespace rnic::protocol

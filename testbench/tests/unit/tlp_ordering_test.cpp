// SPDX-License-Identifier: Apache-2.0
// PCI Express Base, 2.4.1, table "Ordering Rules Summary": may the row's packet pass the column's?
// Entries are named as in the table: rows A to D (posted request, read request, non-posted request
// with data, completion), columns 2 to 5 (the same).
#include "protocol/tlp_ordering.h"

#include <gtest/gtest.h>

namespace rnic::protocol {
namespace {

constexpr TlpClass kPosted = TlpClass::kPosted;
constexpr TlpClass kRead = TlpClass::kRead;
constexpr TlpClass kData = TlpClass::kNonPostedData;
constexpr TlpClass kCompletion = TlpClass::kCompletion;

struct Entry {
  const char* name;
  TlpClass row;
  TlpClass column;
  Passing plain;     ///< no attribute set
  Passing relaxed;   ///< RO set in the row's packet
  Passing id_based;  ///< IDO set in the row's packet, requesters differ
};

constexpr Passing kNo = Passing::kNo;
constexpr Passing kMay = Passing::kMay;
constexpr Passing kMust = Passing::kMust;

constexpr Entry kTable[] = {
    {"A2", kPosted, kPosted, kNo, kMay, kMay},
    {"A3", kPosted, kRead, kMust, kMust, kMust},
    {"A4", kPosted, kData, kMust, kMust, kMust},
    {"A5", kPosted, kCompletion, kMay, kMay, kMay},
    {"B2", kRead, kPosted, kNo, kNo, kMay},
    {"B3", kRead, kRead, kMay, kMay, kMay},
    {"B4", kRead, kData, kMay, kMay, kMay},
    {"B5", kRead, kCompletion, kMay, kMay, kMay},
    {"C2", kData, kPosted, kNo, kMay, kMay},
    {"C3", kData, kRead, kMay, kMay, kMay},
    {"C4", kData, kData, kMay, kMay, kMay},
    {"C5", kData, kCompletion, kMay, kMay, kMay},
    {"D2", kCompletion, kPosted, kNo, kMay, kMay},
    {"D3", kCompletion, kRead, kMust, kMust, kMust},
    {"D4", kCompletion, kData, kMust, kMust, kMust},
    {"D5", kCompletion, kCompletion, kMay, kMay, kMay},  // of different transactions
};

class TlpOrdering : public ::testing::TestWithParam<Entry> {
 protected:
  TlpAttributes later() const {
    TlpAttributes tlp;
    tlp.kind = GetParam().row;
    tlp.transaction = 1;
    return tlp;
  }
  TlpAttributes earlier() const {
    TlpAttributes tlp;
    tlp.kind = GetParam().column;
    tlp.transaction = 2;
    return tlp;
  }
};

TEST_P(TlpOrdering, Plain) { EXPECT_EQ(may_pass(later(), earlier()), GetParam().plain); }

TEST_P(TlpOrdering, Relaxed) {
  TlpAttributes relaxed = later();
  relaxed.relaxed_ordering = true;
  EXPECT_EQ(may_pass(relaxed, earlier()), GetParam().relaxed);
}

TEST_P(TlpOrdering, RelaxedOrderingOfTheEarlierOneDoesNotCount) {
  TlpAttributes relaxed = earlier();
  relaxed.relaxed_ordering = true;
  EXPECT_EQ(may_pass(later(), relaxed), GetParam().plain);
}

TEST_P(TlpOrdering, IdBasedOfAnotherRequester) {
  TlpAttributes other = later();
  other.id_based_ordering = true;
  other.requester = 7;
  EXPECT_EQ(may_pass(other, earlier()), GetParam().id_based);
}

TEST_P(TlpOrdering, IdBasedOfTheSameRequesterChangesNothing) {
  TlpAttributes same = later();
  same.id_based_ordering = true;
  EXPECT_EQ(may_pass(same, earlier()), GetParam().plain);
}

INSTANTIATE_TEST_SUITE_P(Table, TlpOrdering, ::testing::ValuesIn(kTable),
                         [](const auto& entry) { return std::string(entry.param.name); });

TEST(TlpOrderingOfOneTransaction, D5bItsCompletionsStayInOrder) {
  TlpAttributes first;
  first.kind = kCompletion;
  first.transaction = 9;
  TlpAttributes second = first;
  second.relaxed_ordering = true;
  EXPECT_EQ(may_pass(second, first), Passing::kNo);
}

}  // namespace
}  // namespace rnic::protocol

// SPDX-License-Identifier: Apache-2.0
// The table of RC transitions of ibv_modify_qp(3), as bit numbers of enum ibv_qp_attr_mask.
#include "protocol/qp_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace rnic::testbench {
namespace {

using protocol::qp_transition_allowed;
using protocol::QpState;
using protocol::QpType;

std::uint32_t bits(std::initializer_list<int> numbers) {
  std::uint32_t mask = 0;
  for (const int n : numbers) mask |= 1U << n;
  return mask;
}

struct Row {
  QpState from;
  QpState to;
  std::uint32_t required;
  std::uint32_t optional;
};

// 1 CUR_STATE, 3 ACCESS_FLAGS, 4 PKEY_INDEX, 5 PORT, 7 AV, 8 PATH_MTU, 9 TIMEOUT, 10 RETRY_CNT,
// 11 RNR_RETRY, 12 RQ_PSN, 13 MAX_QP_RD_ATOMIC, 14 ALT_PATH, 15 MIN_RNR_TIMER, 16 SQ_PSN, 17
// MAX_DEST_RD_ATOMIC, 18 PATH_MIG_STATE, 20 DEST_QPN.
std::vector<Row> table() {
  return {
      {QpState::kReset, QpState::kInit, bits({3, 4, 5}), 0},
      {QpState::kInit, QpState::kInit, 0, bits({3, 4, 5})},
      {QpState::kInit, QpState::kRtr, bits({7, 8, 20, 12, 17, 15}), bits({3, 4, 14})},
      {QpState::kRtr, QpState::kRts, bits({16, 9, 10, 11, 13}), bits({1, 3, 14, 15, 18})},
      {QpState::kRts, QpState::kRts, 0, bits({1, 3, 14, 15, 18})},
      {QpState::kRts, QpState::kSqd, 0, bits({2})},
      {QpState::kSqd, QpState::kSqd, 0, bits({5, 7, 9, 10, 11, 13, 17, 3, 4, 14, 15, 18})},
      {QpState::kSqd, QpState::kRts, 0, bits({1, 3, 14, 15, 18})},
  };
}

const Row* find(const std::vector<Row>& rows, QpState from, QpState to) {
  for (const Row& row : rows) {
    if (row.from == from && row.to == to) return &row;
  }
  return nullptr;
}

TEST(QpState, EveryPairOfStates) {
  const auto rows = table();
  for (std::uint8_t f = 0; f <= 6; ++f) {
    for (std::uint8_t t = 0; t <= 6; ++t) {
      const auto from = static_cast<QpState>(f);
      const auto to = static_cast<QpState>(t);
      const Row* row = find(rows, from, to);
      const bool always = to == QpState::kReset || (to == QpState::kError && f != 0);
      const std::uint32_t mask = row != nullptr ? row->required : 0;
      EXPECT_EQ(qp_transition_allowed(QpType::kRc, from, to, mask | 1U), row != nullptr || always)
          << int{f} << " to " << int{t};
    }
  }
}

TEST(QpState, EveryBitOfEveryTransition) {
  for (const Row& row : table()) {
    for (int bit = 1; bit < 32; ++bit) {  // 0 is STATE: always welcome
      const std::uint32_t one = 1U << bit;
      const bool required = (row.required & one) != 0;
      const bool optional = (row.optional & one) != 0;
      if (required) {
        EXPECT_FALSE(qp_transition_allowed(QpType::kRc, row.from, row.to, row.required & ~one))
            << bit;
      } else {
        EXPECT_EQ(qp_transition_allowed(QpType::kRc, row.from, row.to, row.required | one),
                  optional)
            << qp_state_name(row.from) << " to " << qp_state_name(row.to) << " bit " << bit;
      }
    }
    EXPECT_TRUE(
        qp_transition_allowed(QpType::kRc, row.from, row.to, row.required | row.optional | 1U));
  }
}

TEST(QpState, ResetAndErrorTakeNoAttributes) {
  EXPECT_FALSE(qp_transition_allowed(QpType::kRc, QpState::kRts, QpState::kReset, bits({3})));
  EXPECT_FALSE(qp_transition_allowed(QpType::kRc, QpState::kRts, QpState::kError, bits({15})));
}

}  // namespace
}  // namespace rnic::testbench

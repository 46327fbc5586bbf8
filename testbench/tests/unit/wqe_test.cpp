// SPDX-License-Identifier: Apache-2.0
// Layout by hand from mlx5's segments (rdma-core providers/mlx5, wqe.h): control 16 B = opcode and
// index, QPN and segment count, flags, immediate; remote address 16 B; data segments 16 B.
#include "protocol/wqe.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "protocol/byte_order.h"
#include "protocol/cqe.h"

namespace rnic::testbench {
namespace {

using protocol::Cqe;
using protocol::SendWqe;
using protocol::WcStatus;
using protocol::WqeOpcode;

std::vector<std::uint8_t> encode(SendWqe& wqe, std::uint32_t qpn = 0x12'3456) {
  wqe.blocks = static_cast<std::uint8_t>(protocol::wqe_blocks(wqe));
  std::vector<std::uint8_t> bytes(std::size_t{wqe.blocks} * protocol::kWqeBlockBytes, 0xEE);
  protocol::encode_wqe(wqe, qpn, bytes.data());
  return bytes;
}

SendWqe make(WqeOpcode opcode, std::uint32_t sges) {
  SendWqe wqe;
  wqe.opcode = opcode;
  wqe.index = 0xABCD;
  wqe.signaled = true;
  wqe.sge_count = sges;
  for (std::uint32_t i = 0; i < sges; ++i) {
    wqe.sge.at(i) = {0x1122'3344'5566'0000U + i, 10 + i, 0x700 + i};
  }
  return wqe;
}

TEST(Wqe, BytesOfAWrite) {
  SendWqe wqe = make(WqeOpcode::kWrite, 1);
  wqe.remote_address = 0x0102'0304'0506'0708;
  wqe.rkey = 0xA0B0'C0D0;
  const auto bytes = encode(wqe);
  const std::array<std::uint8_t, 64> expected = {0x00, 0xAB, 0xCD, 0x08, 0x12, 0x34, 0x56,
                                                 0x03, 0,    0,    0,    0x08, 0,    0,
                                                 0,    0,  // control
                                                 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
                                                 0x08, 0xA0, 0xB0, 0xC0, 0xD0, 0,    0,
                                                 0,    0,    0,    0,    0,    10,   0,
                                                 0,    0x07, 0x00, 0x11, 0x22, 0x33, 0x44,
                                                 0x55, 0x66, 0,    0};  // data segment
  ASSERT_EQ(bytes.size(), 64U);
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), 64), 0);
}

TEST(Wqe, Sizes) {
  // Segments: 1 control, 1 remote (WRITE, READ), 1 more (atomics), data; four to a block.
  EXPECT_EQ(protocol::wqe_blocks(make(WqeOpcode::kSend, 3)), 1U);
  EXPECT_EQ(protocol::wqe_blocks(make(WqeOpcode::kSend, 4)), 2U);
  EXPECT_EQ(protocol::wqe_blocks(make(WqeOpcode::kWrite, 2)), 1U);
  EXPECT_EQ(protocol::wqe_blocks(make(WqeOpcode::kRead, 30)), 8U);
  EXPECT_EQ(protocol::wqe_blocks(make(WqeOpcode::kAtomicCas, 1)), 1U);
  SendWqe wqe = make(WqeOpcode::kWrite, 0);
  wqe.inline_data = true;
  wqe.length = 28;  // with its 4 B length 32 B: two segments
  EXPECT_EQ(protocol::wqe_blocks(wqe), 1U);
  wqe.length = 29;
  EXPECT_EQ(protocol::wqe_blocks(wqe), 2U);
}

TEST(Wqe, RoundTripsOfEveryOpcode) {
  for (const auto opcode :
       {WqeOpcode::kSendInval, WqeOpcode::kWrite, WqeOpcode::kWriteImm, WqeOpcode::kSend,
        WqeOpcode::kSendImm, WqeOpcode::kRead, WqeOpcode::kAtomicCas, WqeOpcode::kAtomicFadd}) {
    SendWqe wqe = make(opcode, 5);
    wqe.fence = true;
    wqe.solicited = true;
    wqe.imm_or_rkey = 0xCAFE'F00D;
    wqe.remote_address = 0x9000;
    wqe.rkey = 0x55;
    wqe.swap_or_add = 0x1111'0000'2222;
    wqe.compare = 77;
    const auto bytes = encode(wqe);
    EXPECT_EQ(protocol::peek_wqe_blocks(bytes.data()), wqe.blocks);
    SendWqe back;
    ASSERT_TRUE(protocol::decode_wqe(bytes.data(), bytes.size(), back));
    EXPECT_EQ(back.opcode, opcode);
    EXPECT_EQ(back.index, 0xABCD);
    EXPECT_TRUE(back.signaled && back.fence && back.solicited);
    EXPECT_EQ(back.imm_or_rkey, 0xCAFE'F00DU);
    const bool remote = !back.is_send();
    EXPECT_EQ(back.remote_address, remote ? 0x9000U : 0U);
    EXPECT_EQ(back.rkey, remote ? 0x55U : 0U);
    EXPECT_EQ(back.compare, back.is_atomic() ? 77U : 0U);
    EXPECT_EQ(back.swap_or_add, back.is_atomic() ? 0x1111'0000'2222U : 0U);
    ASSERT_EQ(back.sge_count, 5U);
    EXPECT_EQ(back.sge[4].address, wqe.sge[4].address);
    EXPECT_EQ(back.sge[4].lkey, 0x704U);
    EXPECT_EQ(back.length, 10U + 11 + 12 + 13 + 14);
  }
}

TEST(Wqe, InlineDataTravelsInTheWqe) {
  SendWqe wqe = make(WqeOpcode::kSend, 0);
  wqe.inline_data = true;
  wqe.length = 100;
  wqe.inline_bytes.reserve(100);
  for (std::uint8_t i = 0; i < 100; ++i) wqe.inline_bytes.writable()[i] = i;
  const auto bytes = encode(wqe);
  EXPECT_EQ(protocol::load_be32(&bytes[16]), 0x8000'0064U);
  SendWqe back;
  ASSERT_TRUE(protocol::decode_wqe(bytes.data(), bytes.size(), back));
  ASSERT_TRUE(back.inline_data);
  ASSERT_EQ(back.length, 100U);
  EXPECT_EQ(std::memcmp(back.inline_bytes.data(), wqe.inline_bytes.data(), 100), 0);
}

TEST(Wqe, MalformedOnesAreRefused) {
  SendWqe wqe = make(WqeOpcode::kWrite, 6);
  const auto good = encode(wqe);
  SendWqe back;
  EXPECT_FALSE(protocol::decode_wqe(good.data(), 64, back));  // two blocks, one available
  auto bytes = good;
  bytes[3] = 0x7F;  // no such opcode
  EXPECT_FALSE(protocol::decode_wqe(bytes.data(), bytes.size(), back));
  bytes = good;
  bytes[7] = 0;  // no segments
  EXPECT_FALSE(protocol::decode_wqe(bytes.data(), bytes.size(), back));
  bytes[7] = 1;  // a WRITE without its remote address
  EXPECT_FALSE(protocol::decode_wqe(bytes.data(), bytes.size(), back));
  bytes = good;
  protocol::store_be32(&bytes[32], 0x8000'0000U + 93);  // 6 x 16 - 4 = 92 bytes fit
  EXPECT_FALSE(protocol::decode_wqe(bytes.data(), bytes.size(), back));
  protocol::store_be32(&bytes[32], 0x8000'0000U + 92);
  EXPECT_TRUE(protocol::decode_wqe(bytes.data(), bytes.size(), back));
}

TEST(RecvWqe, RoundTripEndsAtTheInvalidKey) {
  const std::array<protocol::Sge, 2> list = {{{0x1000, 5, 1}, {0x2000, 7, 2}}};
  std::array<std::uint8_t, 64> bytes{};
  protocol::encode_recv_wqe(list.data(), 2, 4, bytes.data());
  protocol::RecvWqe wqe;
  protocol::decode_recv_wqe(bytes.data(), 4, wqe);
  EXPECT_EQ(wqe.sge_count, 2U);
  EXPECT_EQ(wqe.length, 12U);
  EXPECT_EQ(wqe.sge[1].address, 0x2000U);
  EXPECT_EQ(protocol::load_be32(&bytes[36]), protocol::kInvalidLkey);
}

TEST(Cqe, RoundTripOfSuccess) {
  Cqe cqe;
  cqe.kind = Cqe::Kind::kRespSendImm;
  cqe.opcode = WqeOpcode::kSendImm;
  cqe.qpn = 0xAB'CDEF;
  cqe.src_qp = 0x12'3456;
  cqe.imm = 0xDEAD'BEEF;
  cqe.byte_count = 4096;
  cqe.wqe_counter = 0xFFFE;
  cqe.solicited = true;
  cqe.owner = true;
  std::array<std::uint8_t, protocol::kCqeBytes> bytes{};
  protocol::encode_cqe(cqe, bytes.data());
  EXPECT_EQ(bytes[protocol::kCqeOwnerOffset], 0x33);  // kind 3, solicited, owner
  const Cqe back = protocol::decode_cqe(bytes.data());
  EXPECT_EQ(back.kind, cqe.kind);
  EXPECT_EQ(back.status, WcStatus::kSuccess);
  EXPECT_EQ(back.qpn, 0xAB'CDEFU);
  EXPECT_EQ(back.src_qp, 0x12'3456U);
  EXPECT_EQ(back.imm, 0xDEAD'BEEFU);
  EXPECT_EQ(back.byte_count, 4096U);
  EXPECT_EQ(back.wqe_counter, 0xFFFEU);
  EXPECT_TRUE(back.solicited && back.owner && back.is_responder());
}

TEST(Cqe, ErrorsCarrySyndromes) {
  // mlx5dv.h: MLX5_CQE_SYNDROME_...; each comes back as the status it went in as.
  const std::pair<WcStatus, int> table[] = {
      {WcStatus::kLocalLengthError, 0x01},     {WcStatus::kLocalQpOperationError, 0x02},
      {WcStatus::kLocalProtectionError, 0x04}, {WcStatus::kWrFlushError, 0x05},
      {WcStatus::kMwBindError, 0x06},          {WcStatus::kBadResponseError, 0x10},
      {WcStatus::kLocalAccessError, 0x11},     {WcStatus::kRemoteInvalidRequestError, 0x12},
      {WcStatus::kRemoteAccessError, 0x13},    {WcStatus::kRemoteOperationError, 0x14},
      {WcStatus::kRetryExceededError, 0x15},   {WcStatus::kRnrRetryExceededError, 0x16},
      {WcStatus::kRemoteAbortedError, 0x22}};
  for (const auto& [status, syndrome] : table) {
    Cqe cqe;
    cqe.kind = Cqe::Kind::kRequesterError;
    cqe.status = status;
    cqe.vendor_syndrome = 0x52;
    std::array<std::uint8_t, protocol::kCqeBytes> bytes{};
    protocol::encode_cqe(cqe, bytes.data());
    EXPECT_EQ(bytes[54], 0x52);  // mlx5dv.h: vendor_err_synd
    EXPECT_EQ(bytes[55], syndrome);
    EXPECT_EQ(bytes[63] >> 4, 13);
    EXPECT_EQ(protocol::decode_cqe(bytes.data()).status, status);
    EXPECT_EQ(protocol::decode_cqe(bytes.data()).vendor_syndrome, 0x52);
  }
}

}  // namespace
}  // namespace rnic::testbench

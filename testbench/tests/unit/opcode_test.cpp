// SPDX-License-Identifier: Apache-2.0
#include "protocol/opcode.h"

#include <gtest/gtest.h>

#include <string>

namespace rnic::protocol {
namespace {

/// Transcribed from IBTA vol 1, table 38 (as Linux include/rdma/ib_pack.h lists it), independently
/// of the code: position F/M/L/O, extended headers in wire order, services that define it.
struct Row {
  unsigned op;
  const char* name;
  OpcodeKind kind;
  char position;
  const char* headers;
  const char* services;
};

constexpr Row kRows[] = {
    {0x00, "SEND_FIRST", OpcodeKind::kSend, 'F', "", "RC UC XRC"},
    {0x01, "SEND_MIDDLE", OpcodeKind::kSend, 'M', "", "RC UC XRC"},
    {0x02, "SEND_LAST", OpcodeKind::kSend, 'L', "", "RC UC XRC"},
    {0x03, "SEND_LAST_IMM", OpcodeKind::kSend, 'L', "ImmDt", "RC UC XRC"},
    {0x04, "SEND_ONLY", OpcodeKind::kSend, 'O', "", "RC UC UD XRC"},
    {0x05, "SEND_ONLY_IMM", OpcodeKind::kSend, 'O', "ImmDt", "RC UC UD XRC"},
    {0x06, "WRITE_FIRST", OpcodeKind::kWrite, 'F', "RETH", "RC UC XRC"},
    {0x07, "WRITE_MIDDLE", OpcodeKind::kWrite, 'M', "", "RC UC XRC"},
    {0x08, "WRITE_LAST", OpcodeKind::kWrite, 'L', "", "RC UC XRC"},
    {0x09, "WRITE_LAST_IMM", OpcodeKind::kWrite, 'L', "ImmDt", "RC UC XRC"},
    {0x0A, "WRITE_ONLY", OpcodeKind::kWrite, 'O', "RETH", "RC UC XRC"},
    {0x0B, "WRITE_ONLY_IMM", OpcodeKind::kWrite, 'O', "RETH ImmDt", "RC UC XRC"},
    {0x0C, "READ_REQUEST", OpcodeKind::kReadRequest, 'O', "RETH", "RC XRC"},
    {0x0D, "READ_RESPONSE_FIRST", OpcodeKind::kReadResponse, 'F', "AETH", "RC XRC"},
    {0x0E, "READ_RESPONSE_MIDDLE", OpcodeKind::kReadResponse, 'M', "", "RC XRC"},
    {0x0F, "READ_RESPONSE_LAST", OpcodeKind::kReadResponse, 'L', "AETH", "RC XRC"},
    {0x10, "READ_RESPONSE_ONLY", OpcodeKind::kReadResponse, 'O', "AETH", "RC XRC"},
    {0x11, "ACKNOWLEDGE", OpcodeKind::kAck, 'O', "AETH", "RC XRC"},
    {0x12, "ATOMIC_ACKNOWLEDGE", OpcodeKind::kAtomicAck, 'O', "AETH AtomicAckETH", "RC XRC"},
    {0x13, "COMPARE_SWAP", OpcodeKind::kAtomic, 'O', "AtomicETH", "RC XRC"},
    {0x14, "FETCH_ADD", OpcodeKind::kAtomic, 'O', "AtomicETH", "RC XRC"},
    {0x16, "SEND_LAST_INV", OpcodeKind::kSend, 'L', "IETH", "RC XRC"},
    {0x17, "SEND_ONLY_INV", OpcodeKind::kSend, 'O', "IETH", "RC XRC"},
};

struct Service {
  const char* name;
  unsigned prefix;
};
constexpr Service kServices[] = {{"RC", 0x00}, {"UC", 0x20}, {"UD", 0x60}, {"XRC", 0xA0}};

bool lists(const std::string& words, const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

std::string headers_of(const OpcodeInfo& info) {
  std::string text;
  const auto add = [&text](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(info.has_xrceth, "XRCETH");
  add(info.has_deth, "DETH");
  add(info.has_reth, "RETH");
  add(info.has_atomiceth, "AtomicETH");
  add(info.has_aeth, "AETH");
  add(info.has_atomicacketh, "AtomicAckETH");
  add(info.has_immdt, "ImmDt");
  add(info.has_ieth, "IETH");
  return text;
}

unsigned bytes_of(const std::string& headers) {
  return (lists(headers, "XRCETH") ? 4U : 0U) + (lists(headers, "DETH") ? 8U : 0U) +
         (lists(headers, "RETH") ? 16U : 0U) + (lists(headers, "AtomicETH") ? 28U : 0U) +
         (lists(headers, "AETH") ? 4U : 0U) + (lists(headers, "AtomicAckETH") ? 8U : 0U) +
         (lists(headers, "ImmDt") ? 4U : 0U) + (lists(headers, "IETH") ? 4U : 0U);
}

TEST(Opcode, TableAgreesWithTheStandard) {
  for (const Row& row : kRows) {
    for (const Service& service : kServices) {
      const auto opcode = static_cast<std::uint8_t>(service.prefix | row.op);
      const OpcodeInfo& info = opcode_info(opcode);
      SCOPED_TRACE(std::string(service.name) + " " + row.name);
      if (!lists(row.services, service.name)) {
        EXPECT_FALSE(info.valid());
        continue;
      }
      ASSERT_TRUE(info.valid());
      EXPECT_EQ(info.kind, row.kind);
      EXPECT_EQ(static_cast<unsigned>(info.transport), service.prefix);
      EXPECT_EQ(info.first, row.position == 'F');
      EXPECT_EQ(info.middle, row.position == 'M');
      EXPECT_EQ(info.last, row.position == 'L');
      EXPECT_EQ(info.only, row.position == 'O');
      std::string headers = row.headers;
      const bool response = row.op >= 0x0D && row.op <= 0x12;
      const char* front = service.prefix == 0x60                ? "DETH"
                          : service.prefix == 0xA0 && !response ? "XRCETH"
                                                                : "";
      if (*front != 0) headers.insert(0, headers.empty() ? front : std::string(front) + " ");
      EXPECT_EQ(headers_of(info), headers);
      EXPECT_EQ(info.extension_bytes, bytes_of(headers));
      EXPECT_EQ(info.is_response(), response);
      EXPECT_EQ(info.is_request(), !response);
      EXPECT_EQ(opcode_name(opcode), std::string(service.name) + " " + row.name);
    }
  }
}

TEST(Opcode, EverythingElseIsReserved) {
  // Defined: 23 RC, 12 UC, 2 UD, 23 XRC and the CNP.
  int valid = 0;
  for (unsigned i = 0; i < 256; ++i) {
    if (opcode_info(static_cast<std::uint8_t>(i)).valid()) ++valid;
  }
  EXPECT_EQ(valid, 23 + 12 + 2 + 23 + 1);
  EXPECT_FALSE(opcode_info(std::uint8_t{0x15}).valid());
  EXPECT_EQ(opcode_name(std::uint8_t{0x15}), "reserved 0x15");
  EXPECT_EQ(opcode_name(std::uint8_t{0xFF}), "reserved 0xFF");
}

TEST(Opcode, CongestionNotification) {
  const OpcodeInfo& info = opcode_info(BthOpcode::kCnp);
  EXPECT_EQ(info.kind, OpcodeKind::kCnp);
  EXPECT_FALSE(info.is_request());
  EXPECT_FALSE(info.is_response());
  EXPECT_EQ(info.extension_bytes, 16);  // zeros
  EXPECT_EQ(opcode_name(BthOpcode::kCnp), "CNP");
}

TEST(Opcode, TransportPrefix) {
  EXPECT_EQ(static_cast<unsigned>(with_transport(BthTransport::kUd, BthOpcode::kSendOnlyImm)),
            0x65U);
  EXPECT_EQ(static_cast<unsigned>(with_transport(BthTransport::kUc, BthOpcode::kWriteFirst)),
            0x26U);
}

TEST(Opcode, PayloadIsForDataPacketsOnly) {
  EXPECT_TRUE(opcode_info(BthOpcode::kSendOnly).may_carry_payload());
  EXPECT_TRUE(opcode_info(BthOpcode::kReadRespMiddle).may_carry_payload());
  EXPECT_FALSE(opcode_info(BthOpcode::kReadRequest).may_carry_payload());
  EXPECT_FALSE(opcode_info(BthOpcode::kAcknowledge).may_carry_payload());
  EXPECT_FALSE(opcode_info(BthOpcode::kFetchAdd).may_carry_payload());
}

}  // namespace
}  // namespace rnic::protocol

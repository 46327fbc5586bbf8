// SPDX-License-Identifier: Apache-2.0
#include "protocol/cqe.h"

#include <cstring>

#include "protocol/byte_order.h"

namespace rnic::protocol {
namespace {

// mlx5 CQE error syndromes (rdma-core mlx5dv.h), indexed by what the driver turns them into.
struct Syndrome {
  WcStatus status;
  std::uint8_t code;
};
constexpr Syndrome kSyndromes[] = {
    {WcStatus::kLocalLengthError, 0x01},     {WcStatus::kLocalQpOperationError, 0x02},
    {WcStatus::kLocalProtectionError, 0x04}, {WcStatus::kWrFlushError, 0x05},
    {WcStatus::kMwBindError, 0x06},          {WcStatus::kBadResponseError, 0x10},
    {WcStatus::kLocalAccessError, 0x11},     {WcStatus::kRemoteInvalidRequestError, 0x12},
    {WcStatus::kRemoteAccessError, 0x13},    {WcStatus::kRemoteOperationError, 0x14},
    {WcStatus::kRetryExceededError, 0x15},   {WcStatus::kRnrRetryExceededError, 0x16},
    {WcStatus::kRemoteAbortedError, 0x22},
};

constexpr std::uint32_t kSlShift = 24;
constexpr std::uint32_t kGrhBit = 1U << 28;
constexpr std::uint32_t kUnsolicitedBit = 1U << 30;

std::uint8_t syndrome_of(WcStatus status) {
  for (const auto& s : kSyndromes) {
    if (s.status == status) return s.code;
  }
  return status == WcStatus::kSuccess ? 0 : 0xFF;
}

WcStatus status_of(std::uint8_t syndrome) {
  for (const auto& s : kSyndromes) {
    if (s.code == syndrome) return s.status;
  }
  return WcStatus::kGeneralError;
}

}  // namespace

std::uint8_t vendor_syndrome(WcStatus status, bool fetched) {
  switch (status) {
    case WcStatus::kLocalQpOperationError:
      return 0x68;
    case WcStatus::kLocalProtectionError:
      return fetched ? 0x33 : 0x52;
    case WcStatus::kWrFlushError:
      return 0xF9;
    case WcStatus::kRemoteInvalidRequestError:
      return 0x8A;
    case WcStatus::kRemoteAccessError:
      return 0x88;
    case WcStatus::kRetryExceededError:
      return 0x81;
    default:
      return 0;
  }
}

void encode_cqe(const Cqe& cqe, std::uint8_t* out) {
  std::memset(out, 0, kCqeBytes);
  store_be16(out + 22, cqe.slid);
  store_be32(out + 24, (static_cast<std::uint32_t>(cqe.sl & 0xF) << kSlShift) |
                           (cqe.grh ? kGrhBit : 0U) | (cqe.unsolicited ? kUnsolicitedBit : 0U) |
                           (cqe.src_qp & 0xFF'FFFF));
  store_be32(out + 36, cqe.imm);
  store_be32(out + 44, cqe.byte_count);
  if (cqe.is_error()) {
    out[54] = cqe.vendor_syndrome;
    out[55] = syndrome_of(cqe.status);
  }
  store_be32(out + 56, (static_cast<std::uint32_t>(cqe.opcode) << 24) | (cqe.qpn & 0xFF'FFFF));
  store_be16(out + 60, cqe.wqe_counter);
  out[kCqeOwnerOffset] = static_cast<std::uint8_t>(
      (static_cast<unsigned>(cqe.kind) << 4) | (cqe.solicited ? 2U : 0U) | (cqe.owner ? 1U : 0U));
}

Cqe decode_cqe(const std::uint8_t* in) {
  Cqe cqe;
  cqe.grh = (load_be32(in + 24) & kGrhBit) != 0;
  cqe.unsolicited = (load_be32(in + 24) & kUnsolicitedBit) != 0;
  cqe.slid = load_be16(in + 22);
  cqe.sl = static_cast<std::uint8_t>((load_be32(in + 24) >> kSlShift) & 0xF);
  cqe.src_qp = load_be32(in + 24) & 0xFF'FFFF;
  cqe.imm = load_be32(in + 36);
  cqe.byte_count = load_be32(in + 44);
  const std::uint32_t word = load_be32(in + 56);
  cqe.opcode = static_cast<WqeOpcode>(word >> 24);
  cqe.qpn = word & 0xFF'FFFF;
  cqe.wqe_counter = load_be16(in + 60);
  cqe.kind = static_cast<Cqe::Kind>(in[kCqeOwnerOffset] >> 4);
  cqe.solicited = (in[kCqeOwnerOffset] & 2) != 0;
  cqe.owner = (in[kCqeOwnerOffset] & 1) != 0;
  if (cqe.is_error()) {
    cqe.vendor_syndrome = in[54];
    cqe.status = status_of(in[55]);
  }
  return cqe;
}

}  // namespace rnic::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnic::transport {

/// Error types of terminate messages, by layer (RFC 5040, 4.8; RFC 5041, 8.2).
inline constexpr std::uint8_t kRdmapCatastrophic = 0;
inline constexpr std::uint8_t kRdmapProtection = 1;
inline constexpr std::uint8_t kRdmapOperation = 2;
inline constexpr std::uint8_t kDdpTagged = 1;
inline constexpr std::uint8_t kDdpUntagged = 2;
inline constexpr std::uint8_t kLlpMpa = 0;  ///< RFC 5044, section 8

/// Their error codes: of RDMAP protection and operation errors, and of DDP's untagged model.
inline constexpr std::uint8_t kInvalidStag = 0x00;  ///< and of DDP's tagged model
inline constexpr std::uint8_t kOutOfBounds = 0x01;  ///< and of DDP's tagged model
inline constexpr std::uint8_t kAccessRights = 0x02;
inline constexpr std::uint8_t kStagNotAssociated = 0x03;
inline constexpr std::uint8_t kCannotInvalidate = 0x09;
inline constexpr std::uint8_t kUnexpectedOpcode = 0x06;
inline constexpr std::uint8_t kUnspecified = 0xFF;
inline constexpr std::uint8_t kTaggedNotAssociated = 0x02;  ///< of DDP's tagged model
inline constexpr std::uint8_t kBadQueue = 0x01;
inline constexpr std::uint8_t kNoBuffer = 0x02;
inline constexpr std::uint8_t kBadMsn = 0x03;
inline constexpr std::uint8_t kBadOffset = 0x04;
inline constexpr std::uint8_t kTooLong = 0x05;
/// Of MPA (RFC 6581, 9.3): the ready-to-receive message is not the agreed one, or there is none.
inline constexpr std::uint8_t kNoMatchingReady = 0x07;

}  // namespace rnic::transport

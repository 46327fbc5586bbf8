// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/transport_config.h"
#include "protocol/address_vector.h"
#include "protocol/frame.h"
#include "protocol/ib_headers.h"
#include "protocol/multicast.h"

namespace rnic::transport {

using protocol::AddressVector;

/// Addresses of a port, or the addresses found in a frame; unused ones are zero.
struct PortIdentity {
  protocol::MacAddress mac{};
  std::uint32_t ipv4 = 0;  ///< host order
  protocol::Gid gid{};     ///< also the IPv6 address
  std::uint16_t lid = 0;
};

enum class ParseStatus : std::uint8_t {
  kOk,
  kMalformed,      ///< wrong version, length or IPv4 checksum: dropped
  kOtherProtocol,  ///< not this encapsulation's traffic
};

/// What a receiver learns from the headers before the BTH (or TCP header).
struct ParsedOuter {
  ParseStatus status = ParseStatus::kMalformed;
  std::uint8_t ecn = 0;            ///< IP ECN codepoint; 0 on InfiniBand and RoCEv1 (see BTH FECN)
  std::uint8_t lane = 0;           ///< VL, or Ethernet priority
  std::uint32_t inner_offset = 0;  ///< of the BTH or TCP header
  std::uint32_t inner_bytes = 0;   ///< BTH .. ICRC, or TCP header .. payload, by the length fields
  PortIdentity source;
  PortIdentity destination;

  bool ok() const { return status == ParseStatus::kOk; }
};

/// Result of checking a frame's checksums, outermost layer first.
enum class TrailerStatus : std::uint8_t {
  kOk,
  kLinkCrc,     ///< VCRC, LPCRC or FCS
  kIpChecksum,  ///< IPv4 header, under a correct link CRC; likewise what follows
  kTcpChecksum,
  kInnerCrc,  ///< ICRC, or MPA CRC
};

/// Choices of an encapsulation that are the same for all connections of a port.
struct EncapsulationOptions {
  bool vlan = false;    ///< 802.1Q tag on Ethernet
  bool ipv6 = false;    ///< RoCEv2 and iWARP: IPv6 instead of IPv4; addresses are the GIDs
  bool grh = false;     ///< InfiniBand: GRH on every packet
  bool mpa_crc = true;  ///< iWARP: the CRC field is computed and checked
};

/// A datagram's receive buffer starts with a place for the GRH (IBTA vol 1, 11.4.1.2). An IPv4
/// header lies at its end (annex A17, RoCEv2); without a header it is left as it was.
inline constexpr std::uint32_t kNetworkHeaderArea = 40;
struct NetworkHeader {
  const std::uint8_t* bytes = nullptr;
  std::uint32_t length = 0;
  std::uint16_t source_lid = 0;    ///< InfiniBand
  std::uint8_t service_level = 0;  ///< Ethernet: priority of the VLAN tag
};

/// Everything around the transport headers: what differs between InfiniBand, RoCEv1, RoCEv2 and
/// iWARP before the BTH (or TCP header) and behind the payload. Stateless and kernel-free.
///
/// A frame's `trailer_bytes` says what it ends with: trailer_bytes() for a transport packet (inner
/// CRC and link CRC), link_crc_bytes() for one without inner CRC (pure TCP segment, PFC frame, IB
/// link packet). Bytes that pad Ethernet's minimum frame are in no Frame field: they follow the
/// inner CRC on the wire, are covered by the FCS only, and are counted by wire_bytes().
class Encapsulation {
 public:
  virtual ~Encapsulation() = default;

  /// Header bytes before the BTH (or TCP header).
  std::uint32_t outer_bytes() const { return outer_bytes_; }
  /// As above, of packets of `av`: on InfiniBand those to a group have a GRH in any case.
  std::uint32_t outer_bytes(const AddressVector& av) const {
    return outer_bytes_ + (grh_for_groups_ && protocol::is_multicast_lid(av.destination_lid)
                               ? protocol::Grh::kBytes
                               : 0);
  }
  /// As above, of a frame that parse() accepted.
  std::uint32_t outer_bytes(const protocol::Frame& frame) const {
    constexpr std::uint8_t kNextHeader = 3;
    const bool grh = (frame.header[1] & kNextHeader) ==
                     static_cast<std::uint8_t>(protocol::LinkNextHeader::kGrh);
    return outer_bytes_ + (grh_for_groups_ && grh ? protocol::Grh::kBytes : 0);
  }
  /// Inner CRC and link CRC: IB 6, RoCE and iWARP 8.
  std::uint32_t trailer_bytes() const { return kInnerCrcBytes + link_crc_bytes_; }
  /// VCRC 2, FCS 4.
  std::uint32_t link_crc_bytes() const { return link_crc_bytes_; }

  /// Writes outer_bytes() bytes for a packet of `inner_bytes`: BTH .. ICRC inclusive (iWARP: TCP
  /// header .. end of TCP payload, MPA CRC included).
  virtual void write_outer(const AddressVector& av, std::uint32_t inner_bytes,
                           std::uint8_t* out) const = 0;
  /// Lane that packets of `av` use, as a receiver of their bytes finds it.
  virtual std::uint8_t lane_of(const AddressVector& av) const = 0;

  /// Reads the headers in front. `bytes` is the number of valid bytes at `header`.
  virtual ParsedOuter parse_outer(const std::uint8_t* header, std::size_t bytes) const = 0;
  /// As parse_outer(), and the length fields must agree with the frame.
  ParsedOuter parse(const protocol::Frame& frame) const;
  /// The header of `frame` that a datagram's receiver gets to see.
  virtual NetworkHeader network_header(const protocol::Frame& /*frame*/) const { return {}; }
  /// The frame is for the port of `identity`.
  virtual bool addressed_to(const ParsedOuter& outer, const PortIdentity& identity) const = 0;

  /// The multicast group that the frame is for; all zeros when it is for none.
  virtual protocol::Gid group_of(const ParsedOuter& /*outer*/) const { return {}; }

  /// Line time of a frame of `frame_bytes` (first header byte to last trailer byte) in byte times:
  /// with preamble, gap and minimum frame on Ethernet, start and end symbols on InfiniBand.
  virtual std::uint32_t wire_bytes(std::uint32_t frame_bytes) const = 0;

  /// Computes the `frame.trailer_bytes` bytes of the trailer. Payload without data counts as
  /// zeros. iWARP: as if the TCP checksum of a deferred frame were already right.
  void compute_trailer(const protocol::Frame& frame, std::uint8_t* out) const;
  /// Makes a deferred frame's checksums real, TCP checksum included; nothing otherwise.
  void materialize(protocol::Frame& frame) const;
  /// Recomputes the link CRC after a hop changed header bytes that the inner CRC does not cover.
  void refresh_link_crc(protocol::Frame& frame) const;

  /// First checksum that fails; a deferred frame has none that could.
  TrailerStatus check_trailer(const protocol::Frame& frame) const;
  /// What a switch checks: the link CRC alone. True for a deferred frame.
  bool link_crc_ok(const protocol::Frame& frame) const;
  bool trailer_ok(const protocol::Frame& frame) const {
    return check_trailer(frame) == TrailerStatus::kOk;
  }

  /// Appends the whole frame as it is on the wire, checksums and minimum-frame padding included.
  void linearize(const protocol::Frame& frame, std::vector<std::uint8_t>& out) const;

 protected:
  static constexpr std::uint32_t kInnerCrcBytes = 4;

  /// A frame with the header and inner CRC that its link CRC is computed over.
  struct Pieces {
    const protocol::Frame& frame;
    const std::uint8_t* header;
    const std::uint8_t* inner_crc;
    std::uint32_t inner_crc_bytes;

    /// Null stands for zeros.
    const std::uint8_t* payload() const {
      return frame.has_payload_data ? frame.payload.data() : nullptr;
    }
  };

  /// `grh_for_groups`: InfiniBand without a GRH on other packets.
  Encapsulation(std::uint32_t outer_bytes, std::uint32_t link_crc_bytes,
                bool grh_for_groups = false)
      : outer_bytes_(outer_bytes),
        link_crc_bytes_(link_crc_bytes),
        grh_for_groups_(grh_for_groups) {}

  /// Zero bytes that bring the frame to the link's minimum.
  virtual std::uint32_t minimum_pad(const protocol::Frame& frame) const = 0;
  virtual std::uint32_t inner_crc(const protocol::Frame& frame) const = 0;
  /// Appends header, payload and pad of a frame with MPA markers, with `header` for its header.
  virtual void append_marked(const protocol::Frame& /*frame*/, const std::uint8_t* /*header*/,
                             std::vector<std::uint8_t>& /*out*/) const {}
  virtual bool checks_inner_crc() const { return true; }
  virtual std::uint32_t link_crc(const Pieces& pieces) const = 0;
  virtual bool ip_checksum_ok(const protocol::Frame&) const { return true; }
  /// Where the TCP checksum is in the header; 0 when there is none.
  virtual std::size_t tcp_checksum_offset(const protocol::Frame&) const { return 0; }
  /// Checksum for these bytes with the field as it is: 0 when the field is right.
  virtual std::uint16_t tcp_checksum(const Pieces&) const { return 0; }

 private:
  std::uint32_t inner_crc_bytes(const protocol::Frame& frame) const {
    return frame.trailer_bytes > link_crc_bytes_ ? kInnerCrcBytes : 0;
  }
  void seal(const protocol::Frame& frame, std::uint8_t* header, std::uint8_t* trailer) const;
  void store_link_crc(const Pieces& pieces, std::uint8_t* out) const;
  bool link_crc_ok(const Pieces& pieces) const;

  std::uint32_t outer_bytes_;
  std::uint32_t link_crc_bytes_;
  bool grh_for_groups_;
};

/// The encapsulation of a wire protocol.
std::unique_ptr<Encapsulation> make_encapsulation(config::Protocol protocol,
                                                  const EncapsulationOptions& options = {});

}  // namespace rnic::transport

// SPDX-License-Identifier: Apache-2.0
#include "transport/encapsulation.h"

#include <cstring>

#include "protocol/crc.h"
#include "protocol/multicast.h"
#include "transport/ethernet_encapsulation.h"

namespace rnic::transport {

using protocol::Frame;

ParsedOuter Encapsulation::parse(const Frame& frame) const {
  ParsedOuter outer = parse_outer(frame.header, frame.header_bytes);
  if (!outer.ok()) return outer;
  const std::uint32_t inner_bytes = frame.header_bytes - outer.inner_offset + frame.payload_bytes +
                                    frame.pad_bytes + frame.marker_bytes() + inner_crc_bytes(frame);
  if (outer.inner_bytes != inner_bytes) outer.status = ParseStatus::kMalformed;
  return outer;
}

void Encapsulation::store_link_crc(const Pieces& pieces, std::uint8_t* out) const {
  const std::uint32_t crc = link_crc(pieces);
  for (std::uint32_t i = 0; i < link_crc_bytes_; ++i) {
    out[i] = static_cast<std::uint8_t>(crc >> (8 * i));
  }
}

bool Encapsulation::link_crc_ok(const Pieces& pieces) const {
  std::uint8_t expected[Frame::kMaxTrailerBytes];
  store_link_crc(pieces, expected);
  return std::memcmp(expected, pieces.frame.trailer + pieces.inner_crc_bytes, link_crc_bytes_) == 0;
}

void Encapsulation::seal(const Frame& frame, std::uint8_t* header, std::uint8_t* trailer) const {
  const std::uint32_t inner = inner_crc_bytes(frame);
  if (inner > 0) protocol::store_le32(trailer, inner_crc(frame));
  const Pieces pieces{frame, header, trailer, inner};
  const std::size_t tcp = tcp_checksum_offset(frame);
  if (tcp != 0 && frame.checksums_deferred) {
    std::memset(header + tcp, 0, 2);
    protocol::store_be16(header + tcp, tcp_checksum(pieces));
  }
  store_link_crc(pieces, trailer + inner);
}

void Encapsulation::compute_trailer(const Frame& frame, std::uint8_t* out) const {
  std::uint8_t header[Frame::kMaxHeaderBytes];
  std::memcpy(header, frame.header, frame.header_bytes);
  seal(frame, header, out);
}

void Encapsulation::materialize(Frame& frame) const {
  if (!frame.checksums_deferred) return;
  seal(frame, frame.header, frame.trailer);
  frame.checksums_deferred = false;
}

void Encapsulation::refresh_link_crc(Frame& frame) const {
  if (frame.checksums_deferred) return;
  const std::uint32_t inner = inner_crc_bytes(frame);
  store_link_crc(Pieces{frame, frame.header, frame.trailer, inner}, frame.trailer + inner);
}

TrailerStatus Encapsulation::check_trailer(const Frame& frame) const {
  if (frame.checksums_deferred) return TrailerStatus::kOk;
  const std::uint32_t inner = inner_crc_bytes(frame);
  const Pieces pieces{frame, frame.header, frame.trailer, inner};
  if (!link_crc_ok(pieces)) return TrailerStatus::kLinkCrc;
  if (!ip_checksum_ok(frame)) return TrailerStatus::kIpChecksum;
  if (tcp_checksum_offset(frame) != 0 && tcp_checksum(pieces) != 0) {
    return TrailerStatus::kTcpChecksum;
  }
  if (inner > 0 && checks_inner_crc() && protocol::load_le32(frame.trailer) != inner_crc(frame)) {
    return TrailerStatus::kInnerCrc;
  }
  return TrailerStatus::kOk;
}

bool Encapsulation::link_crc_ok(const Frame& frame) const {
  if (frame.checksums_deferred) return true;
  return link_crc_ok(Pieces{frame, frame.header, frame.trailer, inner_crc_bytes(frame)});
}

void Encapsulation::linearize(const Frame& frame, std::vector<std::uint8_t>& out) const {
  std::uint8_t header[Frame::kMaxHeaderBytes];
  std::uint8_t trailer[Frame::kMaxTrailerBytes];
  std::memcpy(header, frame.header, frame.header_bytes);
  std::memcpy(trailer, frame.trailer, sizeof trailer);
  if (frame.checksums_deferred) seal(frame, header, trailer);
  if (frame.marker_count > 0) {
    append_marked(frame, header, out);
  } else {
    out.insert(out.end(), header, header + frame.header_bytes);
    if (frame.has_payload_data && frame.payload_bytes > 0) {
      out.insert(out.end(), frame.payload.data(), frame.payload.data() + frame.payload_bytes);
    } else {
      out.insert(out.end(), frame.payload_bytes, 0);
    }
    out.insert(out.end(), frame.pad_bytes, 0);
  }
  const std::uint32_t inner = inner_crc_bytes(frame);
  out.insert(out.end(), trailer, trailer + inner);
  out.insert(out.end(), minimum_pad(frame), 0);
  out.insert(out.end(), trailer + inner, trailer + inner + link_crc_bytes_);
}

namespace {

class IbEncapsulation final : public Encapsulation {
 public:
  explicit IbEncapsulation(bool grh)
      : Encapsulation(protocol::Lrh::kBytes + (grh ? protocol::Grh::kBytes : 0),
                      protocol::kVcrcBytes, !grh),
        grh_(grh) {}

  void write_outer(const AddressVector& av, std::uint32_t inner_bytes,
                   std::uint8_t* out) const override {
    protocol::Lrh lrh;
    lrh.vl = av.lane;
    lrh.service_level = av.service_level;
    const bool grh = grh_ || protocol::is_multicast_lid(av.destination_lid);
    lrh.next_header = grh ? protocol::LinkNextHeader::kGrh : protocol::LinkNextHeader::kBth;
    lrh.destination_lid = av.destination_lid;
    lrh.source_lid = av.source_lid;
    lrh.packet_words = static_cast<std::uint16_t>((outer_bytes(av) + inner_bytes) / 4);
    lrh.encode(out);
    if (grh) write_grh(av, inner_bytes, out + protocol::Lrh::kBytes);
  }

  std::uint8_t lane_of(const AddressVector& av) const override { return av.lane & 0x0F; }

  NetworkHeader network_header(const Frame& frame) const override {
    const auto next = static_cast<protocol::LinkNextHeader>(frame.header[1] & 3);
    const auto lrh = protocol::Lrh::decode(frame.header);
    if (next != protocol::LinkNextHeader::kGrh) {
      return {nullptr, 0, lrh.source_lid, lrh.service_level};
    }
    return {frame.header + protocol::Lrh::kBytes, protocol::Grh::kBytes, lrh.source_lid,
            lrh.service_level};
  }

  ParsedOuter parse_outer(const std::uint8_t* header, std::size_t bytes) const override {
    ParsedOuter outer;
    if (bytes < protocol::Lrh::kBytes) return outer;
    const auto lrh = protocol::Lrh::decode(header);
    if (lrh.link_version != 0) return outer;
    outer.lane = lrh.vl;
    outer.source.lid = lrh.source_lid;
    outer.destination.lid = lrh.destination_lid;
    outer.inner_offset = protocol::Lrh::kBytes;
    if (lrh.next_header == protocol::LinkNextHeader::kGrh) {
      if (bytes < protocol::Lrh::kBytes + protocol::Grh::kBytes) return outer;
      if (!parse_grh(header + protocol::Lrh::kBytes, outer)) return outer;
      outer.inner_offset += protocol::Grh::kBytes;
    } else if (lrh.next_header != protocol::LinkNextHeader::kBth) {
      outer.status = ParseStatus::kOtherProtocol;
      return outer;
    }
    const std::uint32_t packet_bytes = 4U * lrh.packet_words;
    constexpr std::uint32_t kLeastInner = protocol::Bth::kBytes + protocol::kIcrcBytes;
    if (packet_bytes < outer.inner_offset + kLeastInner) return outer;
    const std::uint32_t by_lrh = packet_bytes - outer.inner_offset;
    if (outer.inner_bytes != 0 && outer.inner_bytes != by_lrh) return outer;
    outer.inner_bytes = by_lrh;
    outer.status = ParseStatus::kOk;
    return outer;
  }

  bool addressed_to(const ParsedOuter& outer, const PortIdentity& identity) const override {
    if (outer.destination.lid != identity.lid) return false;
    const bool has_grh = outer.inner_offset > protocol::Lrh::kBytes;
    return !has_grh || outer.destination.gid == identity.gid;
  }

  protocol::Gid group_of(const ParsedOuter& outer) const override {
    const bool group = protocol::is_multicast_lid(outer.destination.lid) &&
                       protocol::is_multicast_gid(outer.destination.gid);
    return group ? outer.destination.gid : protocol::Gid{};
  }

  std::uint32_t wire_bytes(std::uint32_t frame_bytes) const override {
    constexpr std::uint32_t kStartAndEndSymbols = 2;
    return frame_bytes + kStartAndEndSymbols;
  }

 private:
  std::uint32_t minimum_pad(const Frame&) const override { return 0; }

  std::uint32_t inner_crc(const Frame& frame) const override {
    const auto next = static_cast<protocol::LinkNextHeader>(frame.header[1] & 3);
    const auto layout = next == protocol::LinkNextHeader::kGrh ? protocol::IcrcLayout::kIbGlobal
                                                               : protocol::IcrcLayout::kIbLocal;
    return protocol::icrc(layout, frame.header, frame.header_bytes,
                          frame.has_payload_data ? frame.payload.data() : nullptr,
                          frame.payload_bytes, frame.pad_bytes);
  }

  std::uint32_t link_crc(const Pieces& pieces) const override {
    std::uint16_t crc = protocol::vcrc(pieces.header, pieces.frame.header_bytes);
    crc = protocol::vcrc(pieces.payload(), pieces.frame.payload_bytes, crc);
    crc = protocol::vcrc(nullptr, pieces.frame.pad_bytes, crc);
    return protocol::vcrc(pieces.inner_crc, pieces.inner_crc_bytes, crc);
  }

  bool grh_;
};

}  // namespace

void write_grh(const AddressVector& av, std::uint32_t inner_bytes, std::uint8_t* out) {
  protocol::Grh grh;
  grh.traffic_class = av.traffic_class;
  grh.flow_label = av.flow_label;
  grh.payload_bytes = static_cast<std::uint16_t>(inner_bytes);
  grh.next_header = protocol::kNextHeaderBth;
  grh.hop_limit = av.hop_limit;
  grh.source = av.source_gid;
  grh.destination = av.destination_gid;
  grh.encode(out);
}

bool parse_grh(const std::uint8_t* in, ParsedOuter& outer) {
  const auto grh = protocol::Grh::decode(in);
  if (grh.version != 6 || grh.next_header != protocol::kNextHeaderBth) return false;
  if (grh.payload_bytes < protocol::Bth::kBytes + protocol::kIcrcBytes) return false;
  outer.inner_bytes = grh.payload_bytes;
  outer.source.gid = grh.source;
  outer.destination.gid = grh.destination;
  return true;
}

std::unique_ptr<Encapsulation> make_encapsulation(config::Protocol protocol,
                                                  const EncapsulationOptions& options) {
  switch (protocol) {
    case config::Protocol::kIb:
      return std::make_unique<IbEncapsulation>(options.grh);
    case config::Protocol::kRoceV1:
      return std::make_unique<RoceV1Encapsulation>(options.vlan);
    case config::Protocol::kRoceV2:
      return std::make_unique<RoceV2Encapsulation>(options.vlan, options.ipv6);
    case config::Protocol::kIwarp:
      return std::make_unique<TcpEncapsulation>(options.vlan, options.ipv6, options.mpa_crc);
  }
  return nullptr;
}

}  // namespace rnic::transport

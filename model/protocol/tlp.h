// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bit_rate.h"

/// PCI Express transaction-layer arithmetic: how many packets and wire bytes a transfer takes, and
/// what a link of some generation and width carries. No time, no kernel.
///
/// Conventions: lengths are bytes without padding to double words; `address` is a bus address; a
/// transfer of zero bytes is one packet without payload (the flush that PCIe defines).
namespace rnic::protocol {

/// No request may cross a boundary of this many bytes (PCIe base specification).
inline constexpr std::uint64_t kTlpBoundary = 4096;

/// End-to-end CRC (TLP digest), where both ends use it.
inline constexpr std::uint32_t kEcrcBytes = 4;

/// How transfers are cut into TLPs on one link.
struct TlpRules {
  std::uint32_t mps = 256;   ///< maximum payload size of a write or completion, 128..4096 B
  std::uint32_t mrrs = 512;  ///< maximum read request size, 128..4096 B
  std::uint32_t rcb = 64;    ///< read completion boundary, 64 or 128 B
  /// Largest completion the host sends, at most `mps`; 0: `mps`. Some hosts use their cache line.
  std::uint32_t completion_size = 0;
  /// Request with a 64-bit address: 16 B header and 8 B framing, sequence number and LCRC.
  std::uint32_t request_overhead = 24;
  /// Completion: 12 B header and the same 8 B.
  std::uint32_t completion_overhead = 20;
  /// Requests below 4 GiB have a 12 B header, as the specification wants; else all have 16 B.
  bool short_headers = false;

  std::uint32_t request_overhead_at(std::uint64_t address) const {
    return short_headers && address < (std::uint64_t{1} << 32) ? request_overhead - 4
                                                               : request_overhead;
  }
};

/// Rules of a link: generation 6 moves TLPs in FLITs, where framing, sequence number and CRC belong
/// to the FLIT and not to the packet.
TlpRules tlp_rules(std::uint32_t gen, std::uint32_t mps, std::uint32_t mrrs, std::uint32_t rcb);

/// Packets of one transfer.
struct TlpCount {
  std::uint64_t tlps = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t wire_bytes = 0;
};

/// Posted writes of `bytes` at `address`: at most MPS each, cut at 4 KiB boundaries.
TlpCount write_tlps(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes);

/// Read requests for `bytes` at `address`: at most MRRS each, cut at 4 KiB boundaries. One tag
/// each.
TlpCount read_request_tlps(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes);

/// Bytes the first write of such a transfer carries.
std::uint32_t first_write(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes);

/// Bytes the first read request of such a transfer asks for.
std::uint32_t first_read_request(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes);

/// Completions with data that answer the requests of read_request_tlps(): for each request, one up
/// to the next RCB boundary when it starts between two, then as large as allowed.
TlpCount completion_tlps(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes);

/// Bytes of the first completion of a read request for `bytes` at `address`.
std::uint32_t first_completion(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes);

/// Calls `visit(bytes)` for each of the completions that completion_tlps() counts, in order.
template <typename Visitor>
void for_each_completion(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes,
                         Visitor&& visit) {
  if (bytes == 0) visit(std::uint32_t{0});
  while (bytes > 0) {
    std::uint32_t request = first_read_request(rules, address, bytes);
    bytes -= request;
    while (request > 0) {
      const std::uint32_t completion = first_completion(rules, address, request);
      visit(completion);
      address += completion;
      request -= completion;
    }
  }
}

/// Bits per second of a link after line coding; in generation 6 also after the FLIT's own DLP, CRC
/// and FEC bytes (236 of 256 carry TLPs). `gen` 1..6, `lanes` 1..32; else ConfigError.
BitRate coded_rate(std::uint32_t gen, std::uint32_t lanes);

/// Share of coded_rate() taken by Ack and UpdateFC DLLPs and by SKP ordered sets, when each DLLP
/// kind is sent once every Ack latency limit of the base specification (8 B per limit in symbol
/// times, as the published pcie-model does). 8.1 % for Gen 3 x8 with MPS 256, 9.8 % for x16.
/// Generation 6: SKP sets only, since DLLPs have their place in every FLIT.
double dllp_overhead(std::uint32_t gen, std::uint32_t lanes, std::uint32_t mps);

/// The same with the limit in symbol times as the base specification has it: in a symbol time each
/// lane carries a byte, so that a limit is `lanes` times as many bytes of the link. 0.95 % for
/// Gen 3 x16 with MPS 128.
double dllp_overhead_by_symbols(std::uint32_t gen, std::uint32_t lanes, std::uint32_t mps);

/// Values of `overhead` that stand for dllp_overhead() and dllp_overhead_by_symbols().
inline constexpr double kDllpsAsPublished = -1;
inline constexpr double kDllpsBySymbols = -2;

/// Rate left to TLPs. `overhead` is a share, 0..1, or one of the two above.
BitRate tlp_rate(std::uint32_t gen, std::uint32_t lanes, std::uint32_t mps, double overhead);

/// Payload bandwidth of a device that repeats one kind of transfer at aligned addresses, in bits
/// per second, limited by the link alone (no latency, tags or credits).
struct EffectiveBandwidth {
  double write = 0;
  double read = 0;
  double read_and_write = 0;  ///< both at the same pace: payload in each direction
};

EffectiveBandwidth effective_bandwidth(const TlpRules& rules, BitRate rate, std::uint64_t bytes);

}  // namespace rnic::protocol

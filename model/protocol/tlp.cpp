// SPDX-License-Identifier: Apache-2.0
#include "protocol/tlp.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace rnic::protocol {
namespace {

constexpr std::uint32_t kFlitGeneration = 6;

/// Sizes of packets are powers of two but for some hosts' completions.
std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  if ((b & (b - 1)) == 0) return (a + b - 1) >> __builtin_ctzll(b);
  return (a + b - 1) / b;
}

/// `a % b`; boundaries are powers of two.
std::uint64_t past(std::uint64_t a, std::uint64_t b) {
  return (b & (b - 1)) == 0 ? a & (b - 1) : a % b;
}

/// Packets of at most `limit` bytes, none across a 4 KiB boundary.
std::uint64_t packets(std::uint64_t address, std::uint64_t bytes, std::uint64_t limit) {
  if (bytes == 0) return 1;
  const std::uint64_t to_boundary = kTlpBoundary - address % kTlpBoundary;
  if (bytes <= to_boundary) return ceil_div(bytes, limit);
  const std::uint64_t rest = bytes - to_boundary;
  return ceil_div(to_boundary, limit) + rest / kTlpBoundary * ceil_div(kTlpBoundary, limit) +
         ceil_div(rest % kTlpBoundary, limit);
}

std::uint64_t completion_limit(const TlpRules& rules) {
  return rules.completion_size != 0 ? rules.completion_size : rules.mps;
}

/// Completions of one read request.
std::uint64_t completions(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t limit = completion_limit(rules);
  const std::uint64_t past_boundary = past(address, rules.rcb);
  if (past_boundary == 0) return std::max<std::uint64_t>(1, ceil_div(bytes, limit));
  const std::uint64_t to_boundary = rules.rcb - past_boundary;
  if (bytes <= to_boundary) return 1;
  return 1 + ceil_div(bytes - to_boundary, limit);
}

/// AckFactor of the base specification's table of Ack transmission latency limits.
double ack_factor(std::uint32_t lanes, std::uint32_t mps) {
  if (mps <= 256) return lanes <= 4 ? 1.4 : lanes <= 8 ? 2.5 : 3.0;
  return lanes <= 8 ? 1.0 : 2.0;
}

}  // namespace

TlpRules tlp_rules(std::uint32_t gen, std::uint32_t mps, std::uint32_t mrrs, std::uint32_t rcb) {
  TlpRules rules;
  rules.mps = mps;
  rules.mrrs = mrrs;
  rules.rcb = rcb;
  if (gen >= kFlitGeneration) {
    rules.request_overhead = 16;
    rules.completion_overhead = 12;
  }
  return rules;
}

TlpCount write_tlps(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t count = packets(address, bytes, rules.mps);
  return {count, bytes, bytes + count * rules.request_overhead_at(address)};
}

TlpCount read_request_tlps(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t count = packets(address, bytes, rules.mrrs);
  return {count, 0, count * rules.request_overhead_at(address)};
}

std::uint32_t first_write(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes) {
  return static_cast<std::uint32_t>(
      std::min({bytes, std::uint64_t{rules.mps}, kTlpBoundary - address % kTlpBoundary}));
}

std::uint32_t first_completion(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t past_boundary = past(address, rules.rcb);
  const std::uint64_t limit =
      past_boundary != 0 ? rules.rcb - past_boundary : completion_limit(rules);
  return static_cast<std::uint32_t>(std::min(bytes, limit));
}

std::uint32_t first_read_request(const TlpRules& rules, std::uint64_t address,
                                 std::uint64_t bytes) {
  return static_cast<std::uint32_t>(
      std::min({bytes, std::uint64_t{rules.mrrs}, kTlpBoundary - address % kTlpBoundary}));
}

TlpCount completion_tlps(const TlpRules& rules, std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t count = bytes == 0 ? 1 : 0;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t start = address + done;
    // Requests that begin at a multiple of MRRS never meet a 4 KiB boundary.
    const bool aligned = past(start, rules.mrrs) == 0;
    const std::uint64_t room =
        aligned ? bytes - done : std::min(bytes - done, kTlpBoundary - start % kTlpBoundary);
    if (room < rules.mrrs) {
      count += completions(rules, start, room);
      done += room;
      continue;
    }
    // MRRS is a multiple of RCB: full requests in a row are answered alike.
    const std::uint64_t alike = room / rules.mrrs;
    count += alike * completions(rules, start, rules.mrrs);
    done += alike * rules.mrrs;
  }
  return {count, bytes, bytes + count * rules.completion_overhead};
}

BitRate coded_rate(std::uint32_t gen, std::uint32_t lanes) {
  if (lanes < 1 || lanes > 32) {
    throw ConfigError("pcie.lanes must be 1..32, not " + std::to_string(lanes));
  }
  constexpr double kLongCoding = 128.0 / 130.0;
  double per_lane = 0;
  switch (gen) {
    case 1:
      per_lane = 2.5e9 * 8 / 10;
      break;
    case 2:
      per_lane = 5e9 * 8 / 10;
      break;
    case 3:
      per_lane = 8e9 * kLongCoding;
      break;
    case 4:
      per_lane = 16e9 * kLongCoding;
      break;
    case 5:
      per_lane = 32e9 * kLongCoding;
      break;
    case 6:
      per_lane = 64e9 * 236 / 256;
      break;
    default:
      throw ConfigError("pcie.gen must be 1..6, not " + std::to_string(gen));
  }
  return BitRate(per_lane * lanes);
}

namespace {

constexpr double kSkip = 4.0 / 1538.0;  // a SKP ordered set at the longest interval allowed

/// Ack latency limit in symbol times.
std::uint32_t ack_limit(std::uint32_t gen, std::uint32_t lanes, std::uint32_t mps) {
  // (MPS + TLP overhead) x AckFactor / lanes + internal delay, rounded down as the specification's
  // tables are; the delay grows with the signalling rate.
  constexpr double kTlpOverhead = 28;
  constexpr std::uint32_t kGen1Delay = 19;
  const std::uint32_t table = static_cast<std::uint32_t>(
      (mps + kTlpOverhead) * ack_factor(lanes, mps) / lanes + kGen1Delay);
  return table + (gen == 1 ? 0U : gen == 2 ? 51U : 96U);
}

constexpr double kDllpBytes = 8;

}  // namespace

double dllp_overhead(std::uint32_t gen, std::uint32_t lanes, std::uint32_t mps) {
  if (gen >= kFlitGeneration) return kSkip;
  return 2 * kDllpBytes / ack_limit(gen, lanes, mps) + kSkip;
}

double dllp_overhead_by_symbols(std::uint32_t gen, std::uint32_t lanes, std::uint32_t mps) {
  if (gen >= kFlitGeneration) return kSkip;
  return 2 * kDllpBytes / (ack_limit(gen, lanes, mps) * lanes) + kSkip;
}

BitRate tlp_rate(std::uint32_t gen, std::uint32_t lanes, std::uint32_t mps, double overhead) {
  if (overhead >= 1) throw ConfigError("pcie.dllp_overhead leaves nothing to TLPs");
  const double share = overhead >= 0                 ? overhead
                       : overhead == kDllpsBySymbols ? dllp_overhead_by_symbols(gen, lanes, mps)
                                                     : dllp_overhead(gen, lanes, mps);
  return BitRate(coded_rate(gen, lanes).bits_per_second() * (1 - share));
}

EffectiveBandwidth effective_bandwidth(const TlpRules& rules, BitRate rate, std::uint64_t bytes) {
  const double payload = static_cast<double>(bytes) * rate.bits_per_second();
  const auto write = static_cast<double>(write_tlps(rules, 0, bytes).wire_bytes);
  const auto request = static_cast<double>(read_request_tlps(rules, 0, bytes).wire_bytes);
  const auto completion = static_cast<double>(completion_tlps(rules, 0, bytes).wire_bytes);
  // Requests and writes share one direction, completions have the other for themselves.
  return {payload / write, payload / std::max(request, completion),
          payload / std::max(write + request, completion)};
}

}  // namespace rnic::protocol

// SPDX-License-Identifier: Apache-2.0
#include "support/tshark.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace rnic::testbench {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return text;
  }
  std::array<char, 4096> piece;
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), got);
  }
  EXPECT_EQ(pclose(pipe), 0) << command << " fails (scripts/setup installs tshark)";
  return text;
}

/// Checksums are off by default. The heuristics that would claim test data for upper protocols go,
/// all that tshark has for payloads of InfiniBand and iWARP: on datagrams of 0 and 1 byte some of
/// them find a malformed packet.
std::string tshark(const std::string& capture) {
  static constexpr const char* kHeuristics[] = {"eth_over_ib",
                                                "mellanox_eoib",
                                                "fc_infiniband",
                                                "sdp_infiniband",
                                                "rpcrdma_infiniband",
                                                "rpcrdma_iwarp",
                                                "smb_direct_infiniband",
                                                "smb_direct_iwarp",
                                                "iser_infiniband",
                                                "smcr_infiniband",
                                                "lnet_ib",
                                                "nvme_rdma"};
  std::string command =
      "tshark -n -r '" + capture +
      "' -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE -o eth.check_fcs:TRUE"
      " -o udp.ignore_ipv6_zero_checksum:TRUE ";  // RoCEv2 has none, whatever the IP version
  for (const char* heuristic : kHeuristics) {
    command.append("--disable-heuristic ").append(heuristic).append(" ");
  }
  return command;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text) {
    if (c == at) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  parts.push_back(part);
  return parts;
}

std::uint32_t word_at(const std::string& file, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, file.data() + at, sizeof word);
  return word;
}

}  // namespace

std::uint64_t Dissection::number(const std::string& field) const {
  const std::string& value = text(field);
  EXPECT_FALSE(value.empty()) << field;
  if (value.empty()) return 0;
  // These two are shown as raw bytes.
  const bool bytes = field == "infiniband.immdt" || field == "infiniband.ieth";
  return std::stoull(value, nullptr, bytes ? 16 : 0);
}

std::vector<Dissection> dissect(const std::string& capture, const std::string& filter,
                                const std::vector<std::string>& fields) {
  std::string command = tshark(capture) + "-T fields -E occurrence=f ";
  for (const std::string& field : fields) command += "-e " + field + " ";
  if (!filter.empty()) command += "-Y '" + filter + "' ";
  std::vector<Dissection> packets;
  std::istringstream lines(output_of(command + "2>/dev/null"));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> values = split(line, '\t');
    Dissection packet;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      packet.fields[fields[i]] = i < values.size() ? values[i] : "";
    }
    packets.push_back(packet);
  }
  return packets;
}

std::string complaints(const std::string& capture) {
  return output_of(tshark(capture) +
                   "-Y '_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || "
                   "eth.fcs.status == 0 || iwarp_mpa.bad_length || "
                   "_ws.expert.severity == error' 2>/dev/null");
}

void merge_captures(const std::vector<std::string>& captures, const std::string& merged) {
  std::string command = "mergecap -a -w '" + merged + "'";
  for (const std::string& capture : captures) command += " '" + capture + "'";
  output_of(command);
}

std::string dissection_text(const std::string& capture) {
  return output_of(tshark(capture) + "-V 2>/dev/null");
}

std::vector<CapturedPacket> read_pcapng(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  constexpr std::uint32_t kEnhancedPacket = 6;
  std::vector<CapturedPacket> packets;
  for (std::size_t at = 0; at + 12 <= file.size();) {
    const std::uint32_t length = word_at(file, at + 4);
    if (length < 12 || length % 4 != 0 || at + length > file.size() ||
        word_at(file, at + length - 4) != length) {
      ADD_FAILURE() << path << ": broken block at " << at;
      return packets;
    }
    if (word_at(file, at) == kEnhancedPacket) {
      CapturedPacket packet;
      packet.nanoseconds = (std::uint64_t{word_at(file, at + 12)} << 32) | word_at(file, at + 16);
      const std::uint32_t captured = word_at(file, at + 20);
      const auto* data = reinterpret_cast<const std::uint8_t*>(file.data()) + at + 28;
      packet.bytes.assign(data, data + captured);
      // The first option is the flags: code 2, length 4.
      packet.sent = (word_at(file, at + 28 + (captured + 3) / 4 * 4 + 4) & 3U) == 2;
      packets.push_back(std::move(packet));
    }
    at += length;
  }
  return packets;
}

}  // namespace rnic::testbench

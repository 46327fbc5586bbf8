// SPDX-License-Identifier: Apache-2.0
// Bytes arrive intact at the right address and nowhere else: every operation, wire, awkward size
// and alignment, one verbs program for both hosts.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

#include "base/rng.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::WrOpcode;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kArena = (1U << 20) + 5 * 4096;  // around the largest message
constexpr std::uint8_t kCanary = 0xA5;

/// Where a message starts in its arena: page and cache line boundaries hit and missed.
struct Place {
  std::uint64_t source;
  std::uint64_t target;
};
constexpr Place kPlaces[] = {{4096, 8192}, {4096 + 1, 4096 + 63}, {8191, 4096 + 2}};
constexpr std::uint32_t kSizes[] = {1, 63, 64, 65, 4095, 4096, 4097, 65537, 1U << 20};

Bytes random_bytes(std::uint64_t count, std::uint64_t seed) {
  Bytes bytes(count);
  Rng rng(seed, "data");
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t word = rng.next();
    std::memcpy(&bytes[i], &word, std::min<std::size_t>(8, bytes.size() - i));
  }
  return bytes;
}

class DataIntegrityTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  const std::string& op() const { return std::get<1>(GetParam()); }
  bool two_sided() const { return op() != "write" && op() != "read"; }
  bool has_imm() const { return op() == "write_imm" || op() == "send_imm"; }

  WrOpcode opcode() const {
    if (op() == "write") return WrOpcode::kRdmaWrite;
    if (op() == "write_imm") return WrOpcode::kRdmaWriteWithImm;
    if (op() == "read") return WrOpcode::kRdmaRead;
    return op() == "send" ? WrOpcode::kSend : WrOpcode::kSendWithImm;
  }

  /// One message from `from` of `sender` to `to` of `receiver`; the arenas are compared as a whole.
  void transfer(VerbsRig& rig, RigBuffer& from, RigBuffer& to, std::uint32_t size, Place place) {
    SCOPED_TRACE("size " + std::to_string(size) + ", source at " + std::to_string(place.source) +
                 ", target at " + std::to_string(place.target));
    const bool read = op() == "read";
    RigSide& source = read ? rig.b : rig.a;
    RigSide& target = read ? rig.a : rig.b;
    const Bytes sent = random_bytes(kArena, size + place.source);
    source.fill(from.address, sent);
    Bytes expected(kArena, kCanary);
    target.fill(to.address, expected);
    std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(place.source), size,
                expected.begin() + static_cast<std::ptrdiff_t>(place.target));
    if (two_sided()) {
      // More room than the message needs: what it does not fill stays as it was.
      ASSERT_EQ(rig.b.post_recv(to.address + place.target, to.region.lkey, size + 77),
                host::Status::kOk);
    }
    const std::uint64_t local = read ? to.address + place.target : from.address + place.source;
    const std::uint64_t remote = read ? from.address + place.source : to.address + place.target;
    ASSERT_EQ(rig.a.post(opcode(), local, (read ? to : from).region.lkey, size, remote,
                         (read ? from : to).region.rkey, size + 5),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    if (two_sided()) {
      const host::verbs::Wc wc = rig.b.await_recv();
      EXPECT_EQ(wc.status, protocol::WcStatus::kSuccess);
      EXPECT_EQ(wc.byte_len, size);
      EXPECT_EQ(wc.imm_data, has_imm() ? size + 5 : 0);
    }
    rig.settle(microseconds(2));
    EXPECT_TRUE(target.bytes_at(to.address, kArena) == expected);
    EXPECT_TRUE(source.bytes_at(from.address, kArena) == sent) << "the source changed";
  }
};

TEST_P(DataIntegrityTest, EveryByteAtItsPlaceAndNowhereElse) {
  VerbsRig rig({{"transport.protocol", std::get<0>(GetParam())}, {"memory.page_size", "4KiB"}});
  rig.run([&] {
    rig.connect();
    RigSide& source = op() == "read" ? rig.b : rig.a;
    RigSide& target = op() == "read" ? rig.a : rig.b;
    RigBuffer from = source.buffer(kArena);
    RigBuffer to = target.buffer(kArena);
    // A neighbour on each side that nobody names.
    RigBuffer bystander_a = rig.a.buffer(std::uint64_t{4} * 4096);
    RigBuffer bystander_b = rig.b.buffer(std::uint64_t{4} * 4096);
    const Bytes untouched(bystander_a.bytes, kCanary);
    rig.a.fill(bystander_a.address, untouched);
    rig.b.fill(bystander_b.address, untouched);
    for (const std::uint32_t size : kSizes) {
      for (const Place place : kPlaces) transfer(rig, from, to, size, place);
    }
    EXPECT_TRUE(rig.a.bytes_at(bystander_a.address, bystander_a.bytes) == untouched);
    EXPECT_TRUE(rig.b.bytes_at(bystander_b.address, bystander_b.bytes) == untouched);
    EXPECT_EQ(rig.a.node.nic.dma.faults() + rig.b.node.nic.dma.faults(), 0U);
  });
}

INSTANTIATE_TEST_SUITE_P(Ib, DataIntegrityTest,
                         ::testing::Combine(::testing::Values("ib", "rocev1", "rocev2"),
                                            ::testing::ValuesIn(operations_of("ib"))),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });
INSTANTIATE_TEST_SUITE_P(Iwarp, DataIntegrityTest,
                         ::testing::Combine(::testing::Values("iwarp"),
                                            ::testing::ValuesIn(operations_of("iwarp"))),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

}  // namespace
}  // namespace rnic::testbench

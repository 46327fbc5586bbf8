// SPDX-License-Identifier: Apache-2.0
#include "protocol/mpt.h"

#include <gtest/gtest.h>

#include <array>

#include "base/rng.h"
#include "protocol/mtt.h"

namespace rnic::protocol {
namespace {

constexpr std::uint64_t kMax = ~std::uint64_t{0};

MptEntry region() {
  MptEntry entry;
  entry.state = MptState::kValid;
  entry.key = make_key(5, 7);
  entry.pd = 3;
  entry.access = kAccessLocalWrite | kAccessRemoteRead;
  entry.start = 0x10000;
  entry.length = 0x2000;
  return entry;
}

AccessResult check(const MptEntry& entry, std::uint64_t va, std::uint64_t length,
                   AccessFlags needed = kAccessLocalRead) {
  return check_access(entry, entry.key, entry.pd, va, length, needed);
}

TEST(Mpt, KeyIsIndexAboveVariant) {
  EXPECT_EQ(make_key(0x123456, 0x78), 0x12345678U);
  EXPECT_EQ(key_index(0x12345678), 0x123456U);
  EXPECT_EQ(key_variant(0x12345678), 0x78U);
}

TEST(Mpt, AccessFlagsHaveTheValuesOfVerbs) {
  EXPECT_EQ(kAccessLocalWrite, 1U);
  EXPECT_EQ(kAccessRemoteWrite, 2U);
  EXPECT_EQ(kAccessRemoteRead, 4U);
  EXPECT_EQ(kAccessRemoteAtomic, 8U);
  EXPECT_EQ(kAccessMwBind, 16U);
  EXPECT_EQ(kAccessZeroBased, 32U);
  EXPECT_EQ(kAccessOnDemand, 64U);
  EXPECT_EQ(kAccessHugetlb, 128U);
  EXPECT_EQ(kAccessRelaxedOrdering, 1048576U);
}

TEST(Mpt, RegistrationFlagRules) {
  EXPECT_TRUE(registration_flags_valid(0));
  EXPECT_TRUE(registration_flags_valid(kAccessRemoteRead));
  EXPECT_TRUE(registration_flags_valid(kAccessMwBind));
  EXPECT_FALSE(registration_flags_valid(kAccessRemoteWrite));
  EXPECT_FALSE(registration_flags_valid(kAccessRemoteAtomic | kAccessRemoteRead));
  EXPECT_TRUE(registration_flags_valid(kAccessRemoteWrite | kAccessLocalWrite));
  EXPECT_TRUE(registration_flags_valid(kAccessRelaxedOrdering | (1U << 29)));
  EXPECT_TRUE(registration_flags_valid(kAccessOnDemand));
  EXPECT_FALSE(registration_flags_valid(kAccessOnDemand | kAccessMwBind));
  EXPECT_FALSE(registration_flags_valid(1U << 10));
  EXPECT_FALSE(registration_flags_valid(1U << 30));
}

TEST(Mpt, EncodingPlacesFieldsBigEndian) {
  MptEntry entry = region();
  entry.type = MptType::kWindowType2;
  entry.log2_page_size = 21;
  entry.zero_based = true;
  entry.start = 0x0102030405060708;
  entry.qpn = 0x0A0B0C;
  std::array<std::uint8_t, MptEntry::kBytes> bytes;
  bytes.fill(0xEE);
  entry.encode(bytes.data());
  // From the layout: state, type, log2 page, zero-based, then key = 5 << 8 | 7 = 0x00000507.
  const std::array<std::uint8_t, 12> head{2, 2, 21, 1, 0, 0, 5, 7, 0, 0, 0, 3};
  for (std::size_t i = 0; i < head.size(); ++i) EXPECT_EQ(bytes[i], head[i]) << i;
  for (std::uint8_t i = 0; i < 8; ++i) EXPECT_EQ(bytes[16U + i], i + 1);
  EXPECT_EQ(bytes[49], 0x0A);
  EXPECT_EQ(bytes[51], 0x0C);
  for (std::size_t i = 52; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], 0) << i;
}

TEST(Mpt, ZeroBytesAreAnInvalidEntry) {
  const std::array<std::uint8_t, MptEntry::kBytes> zeros{};
  EXPECT_EQ(MptEntry::decode(zeros.data()).state, MptState::kInvalid);
}

TEST(Mpt, DecodeUndoesEncode) {
  Rng rng(1, "mpt_test");
  for (int i = 0; i < 2000; ++i) {
    MptEntry entry;
    entry.state = static_cast<MptState>(rng.below(3));
    entry.type = static_cast<MptType>(rng.below(3));
    entry.log2_page_size = static_cast<std::uint8_t>(12 + rng.below(19));
    entry.zero_based = rng.below(2) != 0;
    entry.key = static_cast<std::uint32_t>(rng.next());
    entry.pd = static_cast<std::uint32_t>(rng.next());
    entry.access = static_cast<AccessFlags>(rng.next());
    entry.start = rng.next();
    entry.length = rng.next();
    entry.mtt_base = rng.next();
    entry.mtt_count = static_cast<std::uint32_t>(rng.next());
    entry.page_offset = static_cast<std::uint32_t>(rng.next());
    entry.qpn = static_cast<std::uint32_t>(rng.next());
    std::array<std::uint8_t, MptEntry::kBytes> bytes;
    entry.encode(bytes.data());
    const MptEntry copy = MptEntry::decode(bytes.data());
    EXPECT_EQ(copy.state, entry.state);
    EXPECT_EQ(copy.type, entry.type);
    EXPECT_EQ(copy.log2_page_size, entry.log2_page_size);
    EXPECT_EQ(copy.zero_based, entry.zero_based);
    EXPECT_EQ(copy.key, entry.key);
    EXPECT_EQ(copy.pd, entry.pd);
    EXPECT_EQ(copy.access, entry.access);
    EXPECT_EQ(copy.start, entry.start);
    EXPECT_EQ(copy.length, entry.length);
    EXPECT_EQ(copy.mtt_base, entry.mtt_base);
    EXPECT_EQ(copy.mtt_count, entry.mtt_count);
    EXPECT_EQ(copy.page_offset, entry.page_offset);
    EXPECT_EQ(copy.qpn, entry.qpn);
  }
}

TEST(Mpt, BoundsAreExact) {
  const MptEntry entry = region();  // [0x10000, 0x12000)
  EXPECT_EQ(check(entry, 0x10000, 0x2000), AccessResult::kOk);
  EXPECT_EQ(check(entry, 0x10000, 0x2001), AccessResult::kOutOfBounds);
  EXPECT_EQ(check(entry, 0x0FFFF, 1), AccessResult::kOutOfBounds);
  EXPECT_EQ(check(entry, 0x11FFF, 1), AccessResult::kOk);
  EXPECT_EQ(check(entry, 0x11FFF, 2), AccessResult::kOutOfBounds);
  EXPECT_EQ(check(entry, 0x12000, 0), AccessResult::kOk);
  EXPECT_EQ(check(entry, 0x12001, 0), AccessResult::kOutOfBounds);
}

TEST(Mpt, RangesThatWrapAroundAreOutOfBounds) {
  const MptEntry entry = region();
  // 0x11800 + (2^64 - 0x800) wraps to 0x11000, inside the region.
  EXPECT_EQ(check(entry, 0x11800, kMax - 0x800 + 1), AccessResult::kOutOfBounds);
  EXPECT_EQ(check(entry, kMax, 0x10002), AccessResult::kOutOfBounds);
  EXPECT_EQ(check(entry, 0x11000, kMax), AccessResult::kOutOfBounds);
  // Short ranges whose end wraps to 0xFFE, below the end of the region.
  EXPECT_EQ(check(entry, kMax - 1, 0x1000), AccessResult::kOutOfBounds);
  MptEntry top = region();
  top.start = kMax - 0xFFF;  // the last 4 KiB of the address space
  top.length = 0x1000;
  EXPECT_EQ(check(top, kMax, 1), AccessResult::kOk);
  EXPECT_EQ(check(top, kMax, 2), AccessResult::kOutOfBounds);
  EXPECT_EQ(check(top, 0, 1), AccessResult::kOutOfBounds);
}

TEST(Mpt, EachCheckHasItsOwnAnswer) {
  const MptEntry entry = region();
  EXPECT_EQ(check_access(entry, make_key(5, 8), 3, 0x10000, 8, 0), AccessResult::kBadKey)
      << "a stale variant byte must fail";
  EXPECT_EQ(check_access(entry, entry.key, 4, 0x10000, 8, 0), AccessResult::kWrongPd);
  MptEntry freed = entry;
  freed.state = MptState::kInvalid;
  EXPECT_EQ(check(freed, 0x10000, 8), AccessResult::kInvalidState);
  freed.state = MptState::kFree;
  EXPECT_EQ(check(freed, 0x10000, 8), AccessResult::kInvalidState);
  EXPECT_EQ(check(entry, 0x10000, 8, kAccessLocalWrite), AccessResult::kOk);
  EXPECT_EQ(check(entry, 0x10000, 8, kAccessRemoteRead), AccessResult::kOk);
  EXPECT_EQ(check(entry, 0x10000, 8, kAccessRemoteWrite), AccessResult::kNoRight);
  EXPECT_EQ(check(entry, 0x10000, 8, kAccessRemoteRead | kAccessRemoteAtomic),
            AccessResult::kNoRight);
}

TEST(Mpt, OnlyType2WindowsAreTiedToTheirQueuePair) {
  MptEntry window = region();
  window.qpn = 9;
  EXPECT_EQ(check_access(window, window.key, 3, 0x10000, 8, 0, 8), AccessResult::kOk);
  window.type = MptType::kWindowType1;
  EXPECT_EQ(check_access(window, window.key, 3, 0x10000, 8, 0, 8), AccessResult::kOk);
  window.type = MptType::kWindowType2;
  EXPECT_EQ(check_access(window, window.key, 3, 0x10000, 8, 0, 8), AccessResult::kWrongQp);
  EXPECT_EQ(check_access(window, window.key, 3, 0x10000, 8, 0, 9), AccessResult::kOk);
}

TEST(Mpt, LocateCountsPagesFromTheFirstOne) {
  MptEntry entry = region();
  entry.start = 0x10F00;
  entry.page_offset = 0xF00;
  entry.mtt_base = 40;
  // 0x10F00 + 0x100 = 0x11000 is the first byte of the second page.
  EXPECT_EQ(locate(entry, 0x10FFF).index, 40U);
  EXPECT_EQ(locate(entry, 0x10FFF).offset, 0xFFFU);
  EXPECT_EQ(locate(entry, 0x11000).index, 41U);
  EXPECT_EQ(locate(entry, 0x11000).offset, 0U);
}

TEST(Mtt, AddressAndRightsShareAWord) {
  std::array<std::uint8_t, MttEntry::kBytes> bytes;
  MttEntry{0x0000123456789000, true, true}.encode(bytes.data());
  // 0x0000123456789000 | READ 1 | WRITE 2, most significant byte first.
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 8>{0x00, 0x00, 0x12, 0x34, 0x56, 0x78, 0x90, 0x03}));
  const MttEntry entry = MttEntry::decode(bytes.data());
  EXPECT_EQ(entry.address, 0x0000123456789000U);
  EXPECT_TRUE(entry.readable);
  EXPECT_TRUE(entry.writable);
  MttEntry{0x1000, true, false}.encode(bytes.data());
  EXPECT_EQ(bytes[7], 0x01);
  EXPECT_FALSE(MttEntry::decode(bytes.data()).writable);
  bytes.fill(0);
  EXPECT_FALSE(MttEntry::decode(bytes.data()).present());
}

}  // namespace
}  // namespace rnic::protocol

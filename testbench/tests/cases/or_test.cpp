// SPDX-License-Identifier: Apache-2.0
// Public cases of theme OR: ordering and visibility.
#include <gtest/gtest.h>

#include <algorithm>

#include "protocol/atomic.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::WrOpcode;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr protocol::AccessFlags kCounted = kAllAccess | protocol::kAccessRemoteAtomic;

// OR-01 --------------------------------------------------------------------------------------

struct WriteThenAdd {
  double write_us = 0;
  double add_us = 0;
  double both_us = 0;
  std::uint64_t word = 0;
  std::uint64_t original = 0;
};

/// A WRITE of 100 to a word and a fetch-and-add of 5 to the same, alone and together.
WriteThenAdd write_then_add(const std::string& waits) {
  WriteThenAdd out;
  VerbsRig rig({{"transport.protocol", "ib"},
                {"transport.atomic_waits", waits},
                {"nic.blueflame", "false"},
                {"link.delay", "2us"},
                {"cpu.post_cost", "1ns"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096, kCounted);
    Bytes hundred(8);
    protocol::store_operand(hundred.data(), 100);
    rig.a.fill(mine.address, hundred);
    const protocol::Sge source{mine.address, 8, mine.region.lkey};
    const protocol::Sge result{mine.address + 64, 8, mine.region.lkey};
    SendWr list[2];
    for (SendWr& wr : list) {
      wr.flags = SendFlags::kSignaled;
      wr.num_sge = 1;
      wr.remote_addr = theirs.address;
      wr.rkey = theirs.region.rkey;
    }
    list[0].opcode = WrOpcode::kRdmaWrite;
    list[0].sg_list = &source;
    list[1].opcode = WrOpcode::kAtomicFetchAndAdd;
    list[1].sg_list = &result;
    list[1].compare_add = 5;
    const auto time_of = [&](SendWr* first, std::uint32_t count) {
      rig.settle();
      const Time start = rig.a.core.now();
      EXPECT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, first, count), host::Status::kOk);
      for (std::uint32_t i = 0; i < count; ++i) {
        EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
      }
      return to_us(rig.a.core.now() - start);
    };
    time_of(list, 2);  // warms the caches
    out.write_us = time_of(list, 1);
    out.add_us = time_of(list + 1, 1);
    out.both_us = time_of(list, 2);
    out.word = protocol::load_operand(rig.b.bytes_at(theirs.address, 8).data());
    out.original = protocol::load_operand(rig.a.bytes_at(mine.address + 64, 8).data());
  });
  return out;
}

TEST(CaseOR, OR01_WhereTheResponderKeepsTheOrderTheyShareARoundTrip) {
  const WriteThenAdd t = write_then_add("false");
  EXPECT_LT(t.both_us, t.add_us + 1.0);
  EXPECT_EQ(t.word, 105U);
  EXPECT_EQ(t.original, 100U);
}

TEST(CaseOR, OR01_WhereTheRequesterWaitsTheyTakeTwoRoundTrips) {
  const WriteThenAdd t = write_then_add("true");
  // Both, but what is before the first packet and behind the last is there once only.
  EXPECT_GT(t.both_us, t.write_us + t.add_us - 1.5);
  EXPECT_LT(t.both_us, t.write_us + t.add_us + 0.1);
  EXPECT_EQ(t.word, 105U);
  EXPECT_EQ(t.original, 100U);
}

// OR-02 --------------------------------------------------------------------------------------

/// One megabyte over a path that overtakes: the completion comes after all bytes, whether they come
/// with the immediate or before an empty one.
void completion_after_data(bool separate) {
  constexpr std::uint32_t kBytes = 1 << 20;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"transport.recovery", "selective_repeat"},
                {"link.reorder_rate", "0.2"},
                {"link.reorder_delay", "3us"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes);
    const RigBuffer theirs = rig.b.buffer(kBytes);
    rig.a.fill(mine.address, Bytes(kBytes, 0x5E));
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 0), host::Status::kOk);
    }
    rig.settle();
    if (separate) {
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kBytes,
                           theirs.address, theirs.region.rkey),
                host::Status::kOk);
    }
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey,
                         separate ? 0 : kBytes, theirs.address, theirs.region.rkey, 77),
              host::Status::kOk);
    const host::verbs::Wc wc = rig.b.await_recv();
    EXPECT_EQ(wc.imm_data, 77U);
    EXPECT_EQ(wc.byte_len, separate ? 0U : kBytes);
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kBytes), Bytes(kBytes, 0x5E));
    EXPECT_GT(rig.b.node.nic.transport().counters().out_of_sequence, 0U) << "the path overtakes";
  });
}

TEST(CaseOR, OR02_TheImmediateComesAfterItsData) { completion_after_data(false); }
TEST(CaseOR, OR02_AnEmptyImmediateComesAfterTheDataBefore) { completion_after_data(true); }

// OR-03 --------------------------------------------------------------------------------------

TEST(CaseOR, OR03_APacketIsSeenLineByLineUntilItsCompletion) {
  constexpr std::uint32_t kBytes = 4096;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"pcie.detail", "tlp"},
                {"pcie.mps", "256"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes);
    const RigBuffer theirs = rig.b.buffer(kBytes);
    rig.a.fill(mine.address, Bytes(kBytes, 0xE7));
    ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 0), host::Status::kOk);
    rig.settle();
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, kBytes,
                         theirs.address, theirs.region.rkey),
              host::Status::kOk);
    std::uint32_t partial = 0;
    while (!rig.b.verbs().has_completion(*rig.b.recv_cq)) {
      const Bytes seen = rig.b.bytes_at(theirs.address, kBytes);
      const auto lines = static_cast<std::uint32_t>(std::count(seen.begin(), seen.end(), 0xE7));
      EXPECT_EQ(lines % 256, 0U) << "a transaction at a time";
      partial += lines > 0 && lines < kBytes ? 1U : 0U;
      rig.settle(nanoseconds(4));
    }
    EXPECT_GT(partial, 0U) << "16 transactions of 256 B, some 10 ns each";
    EXPECT_EQ(rig.b.bytes_at(theirs.address, kBytes), Bytes(kBytes, 0xE7));
  });
}

/// Samples of 4 KiB in two pages while a WRITE with immediate brings them: how often the second
/// page had bytes that the first one lacked. The root complex knows the second page's address, the
/// first one's it looks up for a microsecond.
std::uint32_t later_lines_first(const char* relaxed) {
  constexpr std::uint32_t kBytes = 4096;
  constexpr std::uint32_t kHalf = kBytes / 2;
  std::uint32_t early = 0;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"pcie.detail", "tlp"},
                {"pcie.mps", "256"},
                {"pcie.relaxed_ordering", relaxed},
                {"iommu.enabled", "true"},
                {"iommu.walk_latency", "1us"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes);
    const RigBuffer theirs = rig.b.buffer(2 * kBytes);
    const std::uint64_t target = theirs.address + kHalf;  // half in either page
    rig.a.fill(mine.address, Bytes(kBytes, 0xE7));
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.b.post_recv(theirs.address, theirs.region.lkey, 0), host::Status::kOk);
    }
    // The second page's translation, and that of the completion queue.
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, 64,
                         target + kBytes, theirs.region.rkey),
              host::Status::kOk);
    rig.b.await_recv();
    rig.settle();
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, kBytes,
                         target, theirs.region.rkey),
              host::Status::kOk);
    while (!rig.b.verbs().has_completion(*rig.b.recv_cq)) {
      const Bytes seen = rig.b.bytes_at(target, kBytes);
      const auto first = std::count(seen.begin(), seen.begin() + kHalf, 0xE7);
      const auto second = std::count(seen.begin() + kHalf, seen.end(), 0xE7);
      early += second > 0 && first < kHalf ? 1U : 0U;
      rig.settle(nanoseconds(4));
    }
    EXPECT_EQ(rig.b.bytes_at(target, kBytes), Bytes(kBytes, 0xE7)) << "never after the CQE";
  });
  return early;
}

TEST(CaseOR, OR03_LaterLinesMayBeSeenFirstWhereOrderingIsRelaxed) {
  EXPECT_GT(later_lines_first("true"), 0U);
}
TEST(CaseOR, OR03_LinesAreSeenInOrderWhereItIsStrict) { EXPECT_EQ(later_lines_first("false"), 0U); }

// OR-06 --------------------------------------------------------------------------------------

/// Data to a page whose address the root complex must look up for 3 us, then a READ of another page
/// as a flush: whether the data is visible when the READ completes.
bool flushed_by_a_read(const char* relaxed, bool strict_write_between) {
  bool flushed = false;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"pcie.relaxed_ordering", relaxed},
                {"iommu.enabled", "true"},
                {"iommu.walk_latency", "3us"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer data = rig.b.buffer(4096);
    const RigBuffer other = rig.b.buffer(4096);
    rig.a.fill(mine.address, Bytes(64, 0x3D));
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(rig.b.post_recv(other.address, other.region.lkey, 0), host::Status::kOk);
    }
    const auto ask = [&](WrOpcode opcode, const RigBuffer& where, std::uint32_t bytes) {
      ASSERT_EQ(rig.a.post(opcode, mine.address + (opcode == WrOpcode::kRdmaRead ? 64 : 0),
                           mine.region.lkey, bytes, where.address, where.region.rkey),
                host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    };
    // The other page's translation, and that of the completion queue.
    ask(WrOpcode::kRdmaRead, other, 64);
    ask(WrOpcode::kRdmaWriteWithImm, other, 0);
    rig.settle();
    ask(WrOpcode::kRdmaWrite, data, 64);
    if (strict_write_between) ask(WrOpcode::kRdmaWriteWithImm, other, 0);  // its CQE is strict
    ask(WrOpcode::kRdmaRead, other, 64);
    flushed = rig.b.bytes_at(data.address, 64) == Bytes(64, 0x3D);
    rig.settle();
    EXPECT_EQ(rig.b.bytes_at(data.address, 64), Bytes(64, 0x3D));
  });
  return flushed;
}

TEST(CaseOR, OR06_AReadPushesStrictlyOrderedWrites) {
  EXPECT_TRUE(flushed_by_a_read("false", false));
}
TEST(CaseOR, OR06_AReadDoesNotPushRelaxedWrites) { EXPECT_FALSE(flushed_by_a_read("true", false)); }
TEST(CaseOR, OR06_AStrictWriteInBetweenDoes) { EXPECT_TRUE(flushed_by_a_read("true", true)); }

TEST(CaseOR, OR06_AReadByTheDevicePushesItsWrites) {
  // A WRITE is acknowledged when it has left the device; it is 3 us away from memory then.
  VerbsRig rig({{"transport.protocol", "rocev2"}, {"pcie.latency", "3us"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(4096);
    const RigBuffer theirs = rig.b.buffer(4096);
    std::uint8_t value = 0;
    std::uint32_t stale = 0;
    for (int i = 0; i < 8; ++i) {
      rig.a.fill(mine.address, Bytes(64, ++value));
      ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, 64, theirs.address,
                           theirs.region.rkey),
                host::Status::kOk);
      // The CPU takes another way: it may see the old bytes when the WRITE is acknowledged.
      while (rig.b.node.nic.transport().counters().acks_sent <= static_cast<std::uint32_t>(i)) {
        rig.settle(nanoseconds(10));
      }
      stale += rig.b.bytes_at(theirs.address, 64) != Bytes(64, value) ? 1U : 0U;
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
      // The device's own read follows its writes.
      ASSERT_EQ(rig.a.post(*rig.a.qp, WrOpcode::kRdmaRead, mine.address + 64, mine.region.lkey, 64,
                           theirs.address, theirs.region.rkey),
                host::Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
      EXPECT_EQ(rig.a.bytes_at(mine.address + 64, 64), Bytes(64, value));
      rig.settle();
    }
    EXPECT_GT(stale, 0U);
  });
}

// OR-07 --------------------------------------------------------------------------------------

/// Data in 16 packets, of which the eighth is held back for 50 us, then a flag: whether the flag
/// can be seen while data are missing.
bool flag_is_early(WrOpcode flag, const std::string& recovery) {
  constexpr std::uint32_t kBytes = 64 << 10;
  bool early = false;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"transport.recovery", recovery},
                {"link.delay", "5us"},  // what is resent comes long after the flag
                {"link.reorder_list", "8"},
                {"link.reorder_delay", "50us"}});
  rig.run([&] {
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes + 64);
    const RigBuffer data = rig.b.buffer(kBytes);
    const RigBuffer word = rig.b.buffer(4096, kCounted);
    rig.a.fill(mine.address, Bytes(kBytes, 0x91));
    rig.a.fill(mine.address + kBytes, Bytes(8, 1));
    rig.settle();  // the registrations' time is over: from now on side b looks when it is asked to
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kBytes, data.address,
                         data.region.rkey),
              host::Status::kOk);
    const protocol::Sge sge{mine.address + kBytes, 8, mine.region.lkey};
    SendWr wr;
    wr.opcode = flag;
    wr.flags = SendFlags::kSignaled;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.remote_addr = word.address;
    wr.rkey = word.region.rkey;
    wr.compare_add = 1;
    ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), host::Status::kOk);
    while (rig.b.bytes_at(word.address, 8) == Bytes(8, 0)) rig.settle(nanoseconds(50));
    early = rig.b.bytes_at(data.address, kBytes) != Bytes(kBytes, 0x91);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
  });
  return early;
}

TEST(CaseOR, OR07_AnAtomicFlagIsNeverEarly) {
  EXPECT_FALSE(flag_is_early(WrOpcode::kAtomicFetchAndAdd, "selective_repeat"));
}
TEST(CaseOR, OR07_AWriteOfTheFlagMayBe) {
  EXPECT_TRUE(flag_is_early(WrOpcode::kRdmaWrite, "selective_repeat"));
}
TEST(CaseOR, OR07_NotWhereOnlyTheNextPacketIsTaken) {
  EXPECT_FALSE(flag_is_early(WrOpcode::kRdmaWrite, "go_back_n"));
}

// OR-09 --------------------------------------------------------------------------------------

/// How long the data of a WRITE with immediate are still missing when its completion is there.
double data_after_completion_us(bool in_peer) {
  double missing = 0;
  VerbsRig rig({{"transport.protocol", "rocev2"},
                {"transport.mtu", "4096"},
                {"workload.remote_memory", "peer"},  // there is one beside each NIC
                {"peer.write_latency", "5us"}});
  rig.run([&] {
    constexpr std::uint32_t kBytes = 4096;
    rig.connect();
    const RigBuffer mine = rig.a.buffer(kBytes);
    RigBuffer theirs = rig.b.buffer(kBytes);
    if (in_peer) {
      theirs.address = rig.b.node.host.map_peer(kBytes);
      theirs.region =
          rig.b.verbs().reg_mr(rig.b.core, rig.b.pd, theirs.address, kBytes, kAllAccess).region;
    }
    rig.a.fill(mine.address, Bytes(kBytes, 0x66));
    ASSERT_EQ(rig.b.post_recv(0, 0, 0), host::Status::kOk);
    rig.settle();
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWriteWithImm, mine.address, mine.region.lkey, kBytes,
                         theirs.address, theirs.region.rkey, 5),
              host::Status::kOk);
    while (!rig.b.verbs().has_completion(*rig.b.recv_cq)) rig.settle(nanoseconds(10));
    const Time seen = sim_now();
    while (rig.b.bytes_at(theirs.address, kBytes) != Bytes(kBytes, 0x66)) {
      rig.settle(nanoseconds(10));
    }
    missing = to_us(sim_now() - seen);
  });
  return missing;
}

TEST(CaseOR, OR09_ACompletionMayBeSeenBeforeDataOnAnotherPath) {
  // The peer takes 4 KiB at 192 Gb/s (0.17 us) and shows them 5 us later; the completion, less than
  // half a microsecond behind the data on PCIe, is seen in host memory after 0.06 us.
  const double missing = data_after_completion_us(true);
  EXPECT_LT(missing, 5.0 + 0.17 - 0.06);
  EXPECT_GT(missing, 4.6);
}

TEST(CaseOR, OR09_NotOnTheSamePath) { EXPECT_EQ(data_after_completion_us(false), 0); }

// OR-10 --------------------------------------------------------------------------------------

TEST(CaseOR, OR10_AWriteTellsNobodyASendBehindItDoes) {
  constexpr std::uint32_t kBytes = 256 * 1024;
  VerbsRig rig(Settings{{"transport.protocol", "rocev2"}});
  rig.run([&] {
    rig.connect();
    RigBuffer mine = rig.a.buffer(kBytes);
    RigBuffer data = rig.b.buffer(kBytes);
    RigBuffer note = rig.b.buffer(4096);
    rig.a.fill(mine.address, Bytes(kBytes, 3));
    ASSERT_EQ(rig.b.post_recv(note.address, note.region.lkey, 64), host::Status::kOk);
    // The server reads at once: nothing has come.
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kBytes, data.address,
                         data.region.rkey),
              host::Status::kOk);
    EXPECT_EQ(rig.b.bytes_at(data.address, kBytes), Bytes(kBytes, 0));
    EXPECT_EQ(rig.a.await_send().status, protocol::WcStatus::kSuccess);
    rig.settle();
    host::verbs::Wc wc;
    EXPECT_EQ(rig.b.verbs().poll_cq(rig.b.core, *rig.b.recv_cq, 1, &wc), 0U) << "no notification";
    // With a SEND behind it the data are there when its completion is.
    rig.a.fill(mine.address, Bytes(kBytes, 4));
    ASSERT_EQ(rig.a.post(WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, kBytes, data.address,
                         data.region.rkey),
              host::Status::kOk);
    ASSERT_EQ(rig.a.post(WrOpcode::kSend, mine.address, mine.region.lkey, 8), host::Status::kOk);
    EXPECT_EQ(rig.b.await_recv().status, protocol::WcStatus::kSuccess);
    EXPECT_EQ(rig.b.bytes_at(data.address, kBytes), Bytes(kBytes, 4));
  });
}

}  // namespace
}  // namespace rnic::testbench

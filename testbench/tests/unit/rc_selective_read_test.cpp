// SPDX-License-Identifier: Apache-2.0
// Selective repeat of READs packet by packet: every way in which a part, or its repetition, can be
// lost is found by what arrives later; where nothing can, by a short timer. MTU 256, first PSN 100,
// four READs at a time, acknowledgement timer 65.536 us, which never expires here.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/rc_packets.h"

namespace rnic::testbench {
namespace {

using protocol::WcStatus;
using Psns = std::vector<std::uint32_t>;

constexpr std::uint32_t kPacket = 256;

transport::RcConfig selective(std::uint32_t window = 64) {
  transport::RcConfig config;
  config.selective_repeat = true;
  config.window = window;
  return config;
}

Packets without(const Packets& packets, const Psns& lost) {
  Packets rest;
  for (const RcPacket& packet : packets) {
    if (std::find(lost.begin(), lost.end(), packet.bth.psn) == lost.end()) rest.push_back(packet);
  }
  return rest;
}

/// Nothing was found by time-out, every READ completed, and its data are the responder's.
void expect_done(const RcPair& pair, std::size_t reads, std::uint32_t bytes) {
  ASSERT_EQ(pair.a.completions.size(), reads);
  for (std::size_t i = 0; i < reads; ++i) {
    EXPECT_EQ(pair.a.completions[i].status, WcStatus::kSuccess);
    EXPECT_TRUE(same_bytes(pair.a, 0x4000 + 0x4000 * i, pair.b, 0x40000 + 0x4000 * i, bytes)) << i;
  }
  EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 0U);
  EXPECT_EQ(pair.a.qp.outstanding_reads, 0U);
  EXPECT_EQ(pair.b.qp.reads_in_service, 0U);
}

void post_reads(RcPair& pair, std::size_t count, std::uint32_t bytes) {
  for (std::size_t i = 0; i < count; ++i) {
    fill(pair.b, 0x40000 + 0x4000 * i, bytes, static_cast<std::uint32_t>(i));
    pair.a.post_read(0x4000 + 0x4000 * i, 0x40000 + 0x4000 * i, bytes);
  }
}

// Parts 102 and 105 are asked for again in this order. The answer to the second says that the one
// to the first was lost.
TEST(RcSelectiveRead, LostRepetitionIsFoundByALaterRepetition) {
  RcPair pair(selective());
  post_reads(pair, 1, 8 * kPacket);  // PSNs 100-107
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(without(pair.b.send_all(), {102, 105}));
  const Packets asked = pair.a.send_all();
  EXPECT_EQ(psns(asked), (Psns{102, 105}));
  pair.b.receive_all(asked);
  pair.a.receive_all(without(pair.b.send_all(), {102}));
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{102}));
  pair.b.receive_all(again);
  pair.run();
  expect_done(pair, 1, 8 * kPacket);
}

// The same when what is lost is not the answer but the request for it.
TEST(RcSelectiveRead, LostRequestForAPartIsFoundByALaterRepetition) {
  RcPair pair(selective());
  post_reads(pair, 1, 8 * kPacket);
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(without(pair.b.send_all(), {102, 105}));
  pair.b.receive_all(without(pair.a.send_all(), {102}));
  pair.a.receive_all(pair.b.send_all());
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{102}));
}

// Of a run 102-104 the answer 102 is lost again: 103 says so at once.
TEST(RcSelectiveRead, LostPartOfARepeatedRunIsFoundByTheNext) {
  RcPair pair(selective());
  post_reads(pair, 1, 8 * kPacket);
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(without(pair.b.send_all(), {102, 103, 104}));
  const Packets asked = pair.a.send_all();
  ASSERT_EQ(psns(asked), (Psns{102}));
  EXPECT_EQ(asked[0].reth.dma_length, 3 * kPacket);
  pair.b.receive_all(asked);
  const Packets answers = pair.b.send_all();
  ASSERT_EQ(psns(answers), (Psns{102, 103, 104}));
  pair.a.receive(answers[1]);
  const Packets again = pair.a.send_all();
  ASSERT_EQ(psns(again), (Psns{102}));
  EXPECT_EQ(again[0].reth.dma_length, kPacket);
  pair.a.receive(answers[2]);
  EXPECT_TRUE(pair.a.send_all().empty());  // 104 has come, nothing else is missing
  pair.b.receive_all(again);
  pair.run();
  expect_done(pair, 1, 8 * kPacket);
}

// One repetition, and a READ that is posted behind it: its answer says that the repetition is lost.
// Each time costs a retry of the oldest packet, which seven losses in a row may have.
TEST(RcSelectiveRead, LostRepetitionIsFoundByALaterRead) {
  RcPair pair(selective());
  post_reads(pair, 1, 4 * kPacket);  // PSNs 100-103
  pair.b.receive_all(pair.a.send_all());
  pair.a.receive_all(without(pair.b.send_all(), {101}));
  for (std::uint32_t time = 1; time <= 3; ++time) {
    EXPECT_EQ(psns(pair.a.send_all()), (Psns{101})) << time;  // lost
    EXPECT_EQ(pair.a.qp.retries_left, 7 - time);
    fill(pair.b, 0x40000 + 0x4000 * time, 2 * kPacket, time);
    pair.a.post_read(0x4000 + 0x4000 * time, 0x40000 + 0x4000 * time, 2 * kPacket);
    pair.b.receive_all(pair.a.send_all());
    pair.a.receive_all(pair.b.send_all());
  }
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 4U);
  EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 0U);
}

// All four READ slots are taken, and only those can be seen: the third one's request is lost, and
// so is its repetition. What the responder tells of the fourth says so only of the first loss; a
// request behind the repetition is needed for the second.
TEST(RcSelectiveRead, LostRequestIsFoundByLaterRequests) {
  RcPair pair(selective());
  post_reads(pair, 4, 2 * kPacket);  // PSNs 100, 102, 104, 106
  pair.b.receive_all(without(pair.a.send_all(), {104}));
  pair.a.receive_all(pair.b.send_all());
  Packets again = pair.a.send_all();
  ASSERT_EQ(psns(again), (Psns{104}));  // lost
  EXPECT_EQ(again[0].reth.dma_length, 2 * kPacket);
  post_reads(pair, 1, 2 * kPacket);  // PSN 108, into the slot that the first one left
  const Packets later = pair.a.send_all();
  ASSERT_EQ(psns(later), (Psns{108}));
  pair.b.receive_all(later);
  pair.a.receive_all(pair.b.send_all());
  again = pair.a.send_all();
  ASSERT_EQ(psns(again), (Psns{104}));
  pair.b.receive_all(again);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 5U);
  EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 0U);
  EXPECT_EQ(pair.b.counters().rx_read_requests, 5U);
}

// While an answer of 8 packets is being sent, what was asked for again of the one before goes
// ahead of the rest.
TEST(RcSelectiveRead, RepetitionIsAnsweredBeforeWhatWaits) {
  RcPair pair(selective());
  post_reads(pair, 2, 8 * kPacket);  // PSNs 100-107, 108-115
  pair.b.receive_all(pair.a.send_all());
  Packets answers(10);  // up to 109
  for (RcPacket& answer : answers) ASSERT_TRUE(pair.b.respond(kTimeZero, answer));
  pair.a.receive_all(without(answers, {103}));
  pair.b.receive_all(pair.a.send_all());
  const Packets rest = pair.b.send_all();
  EXPECT_EQ(psns(rest), (Psns{103, 110, 111, 112, 113, 114, 115}));
  pair.a.receive_all(rest);
  expect_done(pair, 2, 8 * kPacket);
}

// What is asked for again although its first answer has not left yet (here: the acknowledgement of
// the request came too late) is not answered twice: the requester would take the READ for done and
// send one more than the responder has room for.
TEST(RcSelectiveRead, RepetitionLeavesWhatIsStillToComeToTheFirstAnswer) {
  RcPair pair(selective());
  post_reads(pair, 1, 8 * kPacket);
  const Packets request = pair.a.send_all();
  pair.b.receive_all(request);
  Packets answers(3);  // 100-102
  for (RcPacket& answer : answers) ASSERT_TRUE(pair.b.respond(kTimeZero, answer));
  pair.b.receive_all(request);
  EXPECT_EQ(psns(pair.b.send_all()), (Psns{100, 101, 102, 103, 104, 105, 106, 107}));
  pair.b.receive_all(request);
  EXPECT_EQ(pair.b.send_all().size(), 8U);  // it is over: again from the start
}

// A full set of READs leaves nothing to be sent behind a repetition, which is answered ahead of
// them. It is given up when others arrive after twice the time that the last repetition took: 2 us
// here, so at 4.1 us and not at 3.9 us.
TEST(RcSelectiveRead, OverdueRepetitionIsFoundByOtherAnswers) {
  for (const bool overdue : {false, true}) {
    RcPair pair(selective());
    post_reads(pair, 4, 8 * kPacket);  // PSNs 100-131
    pair.b.receive_all(pair.a.send_all());
    Packets answers(24);
    for (RcPacket& answer : answers) ASSERT_TRUE(pair.b.respond(kTimeZero, answer));
    Packets first(answers.begin(), answers.begin() + 6);
    pair.a.receive_all(without(first, {101, 104}));
    Packets asked = pair.a.send_all();
    ASSERT_EQ(psns(asked), (Psns{101, 104}));
    pair.b.receive_all(asked);
    Packets repeated(2);
    for (RcPacket& answer : repeated) ASSERT_TRUE(pair.b.respond(microseconds(2), answer));
    pair.a.receive_all(repeated, microseconds(2));
    pair.a.receive(answers[7], microseconds(2));  // 107: 106 is missing
    asked = pair.a.send_all(microseconds(2));
    ASSERT_EQ(psns(asked), (Psns{106}));  // lost
    const Time then = microseconds(2) + nanoseconds(overdue ? 4100 : 3900);
    pair.a.receive(answers[8], then);
    EXPECT_EQ(psns(pair.a.send_all(then)), overdue ? (Psns{106}) : Psns{});
  }
}

transport::RcConfig with_short_timer() {
  transport::RcConfig config = selective();
  config.tail_start = microseconds(20);
  return config;
}

// Three packets or fewer under way: the timer starts with 20 us, twice as long each time while it
// is not longer than the nominal 65.536 us; these expiries cost no retry. With a fourth packet it
// is the nominal one.
TEST(RcSelectiveTail, ShortTimerWhileNothingMayComeBehind) {
  RcPair pair(with_short_timer());
  pair.a.post_write(0, 0x8000, 3 * kPacket);
  EXPECT_EQ(pair.a.send_all().size(), 3U);  // lost
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(20));
  ASSERT_TRUE(pair.a.expire(microseconds(20)));
  EXPECT_EQ(psns(pair.a.send_all(microseconds(20))), (Psns{100, 101, 102}));
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(60));
  EXPECT_EQ(pair.a.qp.retries_left, 7);
  ASSERT_TRUE(pair.a.expire(microseconds(60)));
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(60) + nanoseconds(65'536));
  pair.run(microseconds(60));
  EXPECT_EQ(pair.a.completions.size(), 1U);
}

TEST(RcSelectiveTail, NominalTimerWhileMoreIsUnderWay) {
  RcPair pair(with_short_timer());
  pair.a.post_write(0, 0x8000, 4 * kPacket);
  pair.a.send_all();                             // lost
  ASSERT_TRUE(pair.a.expire(microseconds(20)));  // of the first packet alone
  EXPECT_TRUE(pair.a.send_all(microseconds(20)).empty());
  EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 0U);
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(20) + nanoseconds(65'536));
}

// Of eight packets six are known to have arrived: what is left is a tail.
TEST(RcSelectiveTail, TimerIsHastenedWhenTheRestHasArrived) {
  RcPair pair(with_short_timer());
  pair.a.post_write(0, 0x8000, 8 * kPacket);
  pair.b.receive_all(without(pair.a.send_all(), {100, 103}));
  ASSERT_TRUE(pair.a.expire(microseconds(20)));  // the first packet's; from now on until 85.5 us
  const Packets naks = pair.b.send_all();
  ASSERT_EQ(naks.size(), 6U);
  for (std::size_t i = 0; i < naks.size(); ++i) {
    pair.a.receive(naks[i], microseconds(30));
    // 8 packets less those known, 3 with the fifth NAK.
    EXPECT_EQ(pair.a.qp.retry_deadline == microseconds(50), i >= 4) << i;
  }
}

// Requests of READs that the responder keeps until their turn are not under way: the one that is
// missing is a tail, however long the answers will be.
TEST(RcSelectiveTail, RequestsThatWaitAtTheResponderAreNotUnderWay) {
  RcPair pair(with_short_timer());
  post_reads(pair, 4, 8 * kPacket);
  pair.b.receive_all(without(pair.a.send_all(), {100}));
  ASSERT_TRUE(pair.a.expire(microseconds(20)));  // three are not known to wait: until 85.5 us
  pair.a.receive_all(pair.b.send_all(), microseconds(30));
  EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(50));
  pair.a.send_all(microseconds(30));  // the repetition, lost
  ASSERT_TRUE(pair.a.expire(microseconds(50)));
  EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 1U);
  pair.run(microseconds(50));
  EXPECT_EQ(pair.a.completions.size(), 4U);
}

// All requests are sent again by time-out: two READs whose first request was lost, or whose answers
// were. What these repetitions are answered by may be lost in turn, and later parts say so.
TEST(RcSelectiveTail, GapsOfAnswersToRequestsRepeatedByTimeoutAreFound) {
  for (const bool requests_lost : {true, false}) {
    RcPair pair(with_short_timer());
    post_reads(pair, 2, 4 * kPacket);  // PSNs 100-103, 104-107
    Packets sent = pair.a.send_all();
    if (!requests_lost) {
      pair.b.receive_all(sent);
      pair.b.send_all();  // lost
    }
    const Time at = microseconds(20);  // two requests are a tail
    ASSERT_TRUE(pair.a.expire(at));
    sent = pair.a.send_all(at);
    ASSERT_EQ(psns(sent), (Psns{100, 104}));
    pair.b.receive_all(sent, at);
    pair.a.receive_all(without(pair.b.send_all(at), {101, 106}), at);
    sent = pair.a.send_all(at);
    EXPECT_EQ(psns(sent), (Psns{101, 106})) << requests_lost;
    pair.b.receive_all(sent, at);
    pair.run(at);
    EXPECT_EQ(pair.a.completions.size(), 2U);
    EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 1U);
  }
}

// The first READ's request is repeated by time-out. Before the second one's is, its late answer 104
// says that both were executed: of the second 105-107 are asked for, and 100-103 nonetheless.
TEST(RcSelectiveTail, GapsOfAnAnswerThatComesWhileOthersAreAskedForAreFound) {
  RcPair pair(with_short_timer());
  post_reads(pair, 2, 4 * kPacket);  // PSNs 100-103, 104-107
  const Packets first = pair.a.send_all();
  pair.b.receive_all(first);  // late: answers come after the time-out
  const Packets answers = pair.b.send_all();
  ASSERT_EQ(answers.size(), 8U);
  const Time at = microseconds(20);
  ASSERT_TRUE(pair.a.expire(at));
  RcPacket repeated;
  ASSERT_TRUE(pair.a.request(at, repeated));
  EXPECT_EQ(repeated.bth.psn, 100U);  // lost
  pair.a.receive(answers[4], at);     // 104: both were executed, 100-103 are missing
  const Packets asked = pair.a.send_all(at);
  const Psns found = psns(asked);
  EXPECT_EQ(std::count(found.begin(), found.end(), 105U), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), 100U), 1);
  pair.b.receive_all(asked, at);
  pair.run(at);
  EXPECT_EQ(pair.a.completions.size(), 2U);
  EXPECT_EQ(pair.a.counters().local_ack_timeout_err, 1U);
}

/// PSNs of those that ask for an acknowledgement.
Psns asking(const Packets& packets) {
  Psns found;
  for (const RcPacket& packet : packets) {
    if (packet.bth.ack_request) found.push_back(packet.bth.psn);
  }
  return found;
}

// The last four packets of a message ask if nothing is behind it: the tail is then known to be one.
// With a message behind it nothing but its last packet does.
TEST(RcSelectiveTail, ItsPacketsAskForAcknowledgements) {
  RcPair pair(with_short_timer());
  pair.a.post_write(0, 0x8000, 8 * kPacket);  // 100-107
  pair.a.post_write(0, 0x8000, 6 * kPacket);  // 108-113
  EXPECT_EQ(asking(pair.a.send_all()), (Psns{107, 110, 111, 112, 113}));
  pair.a.post_write(0, 0x8000, 2 * kPacket);
  EXPECT_EQ(asking(pair.a.send_all()), (Psns{114, 115}));
  // Without a short timer, and with go-back-N, nothing is gained by it.
  for (const transport::RcConfig& config : {selective(), transport::RcConfig{}}) {
    RcPair other(config);
    other.a.post_write(0, 0x8000, 8 * kPacket);
    EXPECT_EQ(asking(other.a.send_all()), (Psns{107}));
  }
}

// A message of eight packets arrives, and the last one's ACK is lost: by the others' ACKs, at 1 to
// 3 us, one packet is under way, and it is sent again 20 us after the last of them. All four ACKs
// lost leave eight packets under way, for which the nominal 65.536 us hold.
TEST(RcSelectiveTail, TheLossOfTheLastAcknowledgementCostsAShortTimer) {
  for (const bool all : {false, true}) {
    RcPair pair(with_short_timer());
    pair.a.post_write(0, 0x8000, 8 * kPacket);
    const Packets sent = pair.a.send_all();
    Packets acks;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const Time now = nanoseconds(static_cast<std::int64_t>(i > 4 ? i - 4 : 0) * 1000);
      pair.b.receive(sent[i], now);
      for (RcPacket ack; pair.b.respond(now, ack);) acks.push_back(ack);
    }
    ASSERT_EQ(psns(acks), (Psns{104, 105, 106, 107}));
    for (std::size_t i = 0; i < 3 && !all; ++i) {
      pair.a.receive(acks[i], nanoseconds(static_cast<std::int64_t>(i + 1) * 1000));
    }
    EXPECT_TRUE(pair.a.completions.empty());
    if (all) {
      ASSERT_TRUE(pair.a.expire(microseconds(20)));  // of the first packet alone: no time-out yet
      EXPECT_TRUE(pair.a.send_all(microseconds(20)).empty());
      EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(20) + nanoseconds(65'536));
      continue;
    }
    EXPECT_EQ(pair.a.qp.retry_deadline, microseconds(23));
    ASSERT_TRUE(pair.a.expire(microseconds(23)));
    const Packets again = pair.a.send_all(microseconds(23));
    EXPECT_EQ(psns(again), (Psns{107}));
    pair.b.receive_all(again, microseconds(24));
    pair.a.receive_all(pair.b.send_all(microseconds(24)), microseconds(25));
    EXPECT_EQ(pair.a.completions.size(), 1U);
  }
}

// A window of 4 request packets: a READ is one of them, however long its answer is.
TEST(RcSelectiveRead, WindowCountsRequests) {
  RcPair pair(selective(4));
  post_reads(pair, 2, 8 * kPacket);           // PSNs 100-115
  pair.a.post_write(0, 0x8000, 4 * kPacket);  // 116-119
  EXPECT_EQ(psns(pair.a.send_all()), (Psns{100, 108, 116, 117}));
  EXPECT_EQ(pair.a.last_status, transport::PlanStatus::kBlocked);
}

// Requests far ahead of the one that is missing are kept: the window bounds their number, not their
// PSNs.
TEST(RcSelectiveRead, ResponderKeepsRequestsFarAhead) {
  RcPair pair(selective(4));
  post_reads(pair, 3, 32 * kPacket);  // PSNs 100, 132, 164
  pair.b.receive_all(without(pair.a.send_all(), {100}));
  EXPECT_EQ(pair.b.held.size(), 2U);
  pair.a.receive_all(pair.b.send_all());
  const Packets again = pair.a.send_all();
  EXPECT_EQ(psns(again), (Psns{100}));
  pair.b.receive_all(again);
  pair.run();
  expect_done(pair, 3, 32 * kPacket);
}

}  // namespace
}  // namespace rnic::testbench

// SPDX-License-Identifier: Apache-2.0
// Public cases, theme QC: queues, completion queues, queue pair states, completion rules.
#include <gtest/gtest.h>

#include "support/verbs_rig.h"

namespace rnic::testbench {
namespace {

using host::Status;
using host::verbs::AsyncEvent;
using host::verbs::CompletionQueue;
using host::verbs::CqInitAttr;
using host::verbs::QpInitAttr;
using host::verbs::QueuePair;
using host::verbs::SendFlags;
using host::verbs::SendWr;
using host::verbs::Wc;
using host::verbs::WrOpcode;
using protocol::QpState;
using protocol::WcStatus;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPage = 4096;

/// Two hosts with one connected pair of queue pairs made to measure, and a page of each.
struct QcRig {
  explicit QcRig(const Settings& more = {}) : rig(with({{"transport.protocol", "ib"}}, more)) {}

  void create() {
    rig.a.create();
    rig.b.create();
    mine = rig.a.buffer(16 * kPage);
    theirs = rig.b.buffer(16 * kPage);
  }
  void connect(const QpInitAttr& attr_a, const QpInitAttr& attr_b) {
    connect(attr_a, *rig.a.send_cq, *rig.a.recv_cq, attr_b);
  }
  void connect(const QpInitAttr& attr_a, CompletionQueue& send, CompletionQueue& recv,
               const QpInitAttr& attr_b) {
    from = rig.a.make_qp(attr_a, send, recv);
    to = rig.b.make_qp(attr_b);
    rig.join(*from, *to);
    rig.settle();
  }
  Status write(std::uint32_t flags, std::uint32_t bytes = 8) {
    return rig.a.post(*from, WrOpcode::kRdmaWrite, mine.address, mine.region.lkey, bytes,
                      theirs.address, theirs.region.rkey, 0, flags);
  }
  Status send(RigSide& side, QueuePair& qp, const RigBuffer& buffer, std::uint32_t bytes,
              std::uint32_t flags = SendFlags::kSignaled) {
    return side.post(qp, WrOpcode::kSend, buffer.address, buffer.region.lkey, bytes, 0, 0, 0,
                     flags);
  }

  VerbsRig rig;
  QueuePair* from = nullptr;
  QueuePair* to = nullptr;
  RigBuffer mine;
  RigBuffer theirs;
};

QpInitAttr depth(std::uint32_t send, std::uint32_t recv) {
  QpInitAttr attr;
  attr.max_send_wr = send;
  attr.max_recv_wr = recv;
  return attr;
}

/// A window of 128 messages, a signalled one every 32, credits from the peer every 16, all
/// completions in one queue: whoever posts on a credit alone. True: no post was refused.
bool window_of_credits(std::uint32_t send_queue) {
  constexpr std::uint32_t kWindow = 128;
  constexpr std::uint32_t kInterval = 32;
  constexpr std::uint32_t kCredit = 16;
  // 1.3 us each on the wire: the peer's credit for 16 is here long before the 32nd has arrived.
  constexpr std::uint32_t kMessage = 4 * kPage;
  bool fits = true;
  QcRig t;
  t.rig.run([&] {
    t.create();
    CompletionQueue* shared = t.rig.a.verbs().create_cq(t.rig.a.core, 512);
    t.connect(depth(send_queue, 64), *shared, *shared, depth(64, 512));
    for (int i = 0; i < 64; ++i) {
      ASSERT_EQ(t.rig.a.post_recv(*t.from, t.mine.address, t.mine.region.lkey, 8), Status::kOk);
    }
    for (int i = 0; i < 512; ++i) {
      ASSERT_EQ(t.rig.b.post_recv(*t.to, t.theirs.address, t.theirs.region.lkey, kMessage),
                Status::kOk);
    }
    std::uint32_t posted = 0;
    const auto post = [&](std::uint32_t count) {
      for (std::uint32_t i = 0; i < count && fits; ++i) {
        const std::uint32_t flags = ++posted % kInterval == 0 ? SendFlags::kSignaled : 0;
        const Status status = t.send(t.rig.a, *t.from, t.mine, kMessage, flags);
        if (status != Status::kOk) {
          EXPECT_EQ(status, Status::kEnomem);
        }
        fits = fits && status == Status::kOk;
      }
    };
    post(kWindow);
    std::uint32_t received = 0;
    while (fits && received < 384) {
      EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
      if (++received % kCredit != 0) continue;
      ASSERT_EQ(t.rig.b.post(*t.to, WrOpcode::kSendWithImm, 0, 0, 0, 0, 0, kCredit, 0),
                Status::kOk);
      // Whatever has completed by the time the credit arrives is polled before it is used.
      Wc wc;
      bool credit = false;
      while (!credit) {
        t.rig.a.verbs().wait_cq(t.rig.a.core, *shared);
        while (t.rig.a.verbs().poll_cq(t.rig.a.core, *shared, 1, &wc) == 1) {
          EXPECT_EQ(wc.status, WcStatus::kSuccess);
          credit |= wc.opcode == protocol::WcOpcode::kRecv;
        }
      }
      post(kCredit);
    }
  });
  return fits;
}

TEST(CaseQC, QC01_CreditsAheadOfSendCompletions) { EXPECT_FALSE(window_of_credits(128)); }

TEST(CaseQC, QC01_SlackOfOneSignalInterval) { EXPECT_TRUE(window_of_credits(128 + 32)); }

TEST(CaseQC, QC02_UnsignalledOnlyFillsTheQueueForEver) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    t.connect(depth(16, 1), depth(1, 1));
    for (int i = 0; i < 16; ++i) ASSERT_EQ(t.write(0), Status::kOk);
    EXPECT_EQ(t.write(0), Status::kEnomem);
    t.rig.settle(microseconds(1000));
    EXPECT_EQ(t.rig.b.node.nic.transport().counters().rx_write_requests, 16U) << "all are done";
    EXPECT_EQ(t.write(0), Status::kEnomem);
    EXPECT_EQ(t.write(SendFlags::kSignaled), Status::kEnomem);
    Wc wc;
    EXPECT_EQ(t.rig.a.verbs().poll_cq(t.rig.a.core, *t.rig.a.send_cq, 1, &wc), 0U);
  });
}

TEST(CaseQC, QC02_OneCompletionFreesAllBeforeIt) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    t.connect(depth(16, 1), depth(1, 1));
    for (int round = 0; round < 10; ++round) {
      // The last of sixteen is signalled.
      for (int i = 0; i < 16; ++i) {
        ASSERT_EQ(t.write(i == 15 ? SendFlags::kSignaled : 0), Status::kOk) << round << " " << i;
      }
      EXPECT_EQ(t.write(0), Status::kEnomem);
      t.rig.settle();
      EXPECT_EQ(t.write(0), Status::kEnomem) << "done, but not polled";
      EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
    }
  });
}

/// Every k-th of a queue of 16 is signalled, and polled as late as can be: k posts after k posts
/// succeed for ever where k is at most 16, and no more than 16 where it is not.
void signal_every(std::uint32_t k) {
  QcRig t;
  t.rig.run([&] {
    constexpr std::uint32_t kRoom = 16;
    t.create();
    t.connect(depth(kRoom, 1), depth(1, 1));
    const std::uint32_t fits = kRoom / k * k;  // up to the last signalled one
    std::uint32_t posted = 0;
    std::uint32_t freed = 0;  // by the completions that were polled
    while (posted < 20 * kRoom) {
      const Status status = t.write((posted + 1) % k == 0 ? SendFlags::kSignaled : 0);
      if (status == Status::kOk) {
        ++posted;
        continue;
      }
      ASSERT_EQ(status, Status::kEnomem);
      EXPECT_EQ(posted - freed, kRoom) << "places are taken until they are polled";
      t.rig.settle();
      EXPECT_EQ(t.write(0), Status::kEnomem) << "done, but not polled";
      Wc wc;
      if (t.rig.a.verbs().poll_cq(t.rig.a.core, *t.rig.a.send_cq, 1, &wc) == 0) break;
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      freed += k;  // itself and the unsignalled ones before it
    }
    EXPECT_EQ(posted, fits > 0 ? 20 * kRoom : kRoom) << k;
  });
}

TEST(CaseQC, QC02_SignalEveryOne) { signal_every(1); }
TEST(CaseQC, QC02_SignalEveryFive) { signal_every(5); }
TEST(CaseQC, QC02_SignalEverySixteen) { signal_every(16); }
TEST(CaseQC, QC02_SignalEverySeventeenIsNever) { signal_every(17); }

TEST(CaseQC, QC04_SeventeenCompletionsInAQueueOfSixteen) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    CompletionQueue* small = t.rig.a.verbs().create_cq(t.rig.a.core, 16);
    t.connect(depth(32, 4), *small, *t.rig.a.recv_cq, depth(1, 1));
    for (int i = 0; i < 16; ++i) ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    t.rig.settle();
    AsyncEvent event;
    EXPECT_FALSE(t.rig.a.verbs().poll_async_event(t.rig.a.core, event)) << "sixteen fit";
    EXPECT_EQ(t.rig.a.device_qp(*t.from).state, QpState::kRts);
    ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    t.rig.settle();
    ASSERT_TRUE(t.rig.a.verbs().poll_async_event(t.rig.a.core, event));
    EXPECT_EQ(event.type, protocol::EventType::kCqError);
    EXPECT_EQ(event.cq, small);
    ASSERT_TRUE(t.rig.a.verbs().poll_async_event(t.rig.a.core, event));
    EXPECT_EQ(event.type, protocol::EventType::kQpFatal);
    EXPECT_EQ(event.qp, t.from);
    EXPECT_EQ(t.rig.a.device_qp(*t.from).state, QpState::kError);
    // The other queue pair of the host does not complete there.
    EXPECT_EQ(t.rig.a.device_qp().state, QpState::kInit);
  });
}

TEST(CaseQC, QC04_OverrunIgnoredOverwrites) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    CompletionQueue* small = t.rig.a.verbs().create_cq(t.rig.a.core, CqInitAttr{16, nullptr, true});
    t.connect(depth(32, 4), *small, *t.rig.a.recv_cq, depth(1, 1));
    const auto counter_of_slot = [&](std::uint32_t slot) {
      std::uint8_t bytes[protocol::kCqeBytes];
      t.rig.a.node.host.memory.read(small->ring_address + slot * std::uint64_t{sizeof bytes}, bytes,
                                    sizeof bytes);
      return protocol::decode_cqe(bytes).wqe_counter;
    };
    for (int i = 0; i < 16; ++i) ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    t.rig.settle();
    EXPECT_EQ(counter_of_slot(0), 0U);
    ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    t.rig.settle();
    EXPECT_EQ(counter_of_slot(0), 16U) << "the 17th took the place of the first";
    for (std::uint32_t slot = 1; slot < 16; ++slot) EXPECT_EQ(counter_of_slot(slot), slot);
    // Who polls gets all but the first: one is lost.
    const std::uint64_t last = t.rig.a.wr_ids;
    for (std::uint64_t id = last - 15; id <= last; ++id) {
      Wc wc;
      ASSERT_EQ(t.rig.a.verbs().poll_cq(t.rig.a.core, *small, 1, &wc), 1U);
      EXPECT_EQ(wc.wr_id, id);
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
    }
    Wc none;
    EXPECT_EQ(t.rig.a.verbs().poll_cq(t.rig.a.core, *small, 1, &none), 0U);
    AsyncEvent event;
    EXPECT_FALSE(t.rig.a.verbs().poll_async_event(t.rig.a.core, event));
    EXPECT_EQ(t.rig.a.device_qp(*t.from).state, QpState::kRts);
    // And the queue goes on.
    ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    EXPECT_EQ(t.rig.a.await(*small).wr_id, last + 1);
  });
}

/// Without that option 16 completions are polled, and nothing behind them.
TEST(CaseQC, QC04_WhatWasThereBeforeTheOverrunIsPolled) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    CompletionQueue* small = t.rig.a.verbs().create_cq(t.rig.a.core, 16);
    t.connect(depth(32, 4), *small, *t.rig.a.recv_cq, depth(1, 1));
    const std::uint64_t first = t.rig.a.wr_ids + 1;
    for (int i = 0; i < 17; ++i) ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    t.rig.settle();
    for (std::uint64_t i = 0; i < 16; ++i) {
      Wc wc;
      ASSERT_EQ(t.rig.a.verbs().poll_cq(t.rig.a.core, *small, 1, &wc), 1U) << i;
      EXPECT_EQ(wc.wr_id, first + i);
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
    }
    Wc none;
    EXPECT_EQ(t.rig.a.verbs().poll_cq(t.rig.a.core, *small, 1, &none), 0U);
    // What is posted now goes the same way: nobody hears of it.
    ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    t.rig.settle();
    EXPECT_EQ(t.rig.a.verbs().poll_cq(t.rig.a.core, *small, 1, &none), 0U);
  });
}

TEST(CaseQC, QC05_WhatFollowsTheFirstError) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    CompletionQueue* send = t.rig.a.verbs().create_cq(t.rig.a.core, 128);
    t.connect(depth(128, 16), *send, *t.rig.a.recv_cq, depth(1, 1));
    for (int i = 0; i < 16; ++i) {
      ASSERT_EQ(t.rig.a.post_recv(*t.from, t.mine.address, t.mine.region.lkey, 8), Status::kOk);
    }
    const std::uint64_t first = t.rig.a.wr_ids + 1;
    std::vector<SendWr> list(64);
    const protocol::Sge sge{t.mine.address, 64, t.mine.region.lkey};
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i].wr_id = first + i;
      list[i].opcode = WrOpcode::kRdmaWrite;
      list[i].flags = SendFlags::kSignaled;
      list[i].sg_list = &sge;
      list[i].num_sge = 1;
      list[i].remote_addr = t.theirs.address;
      list[i].rkey = i == 9 ? t.theirs.region.rkey ^ 0x300 : t.theirs.region.rkey;
    }
    ASSERT_EQ(t.rig.a.verbs().post_send(t.rig.a.core, *t.from, list.data(), 64), Status::kOk);
    for (std::uint64_t i = 0; i < 64; ++i) {
      const Wc wc = t.rig.a.await(*send);
      EXPECT_EQ(wc.wr_id, first + i);
      EXPECT_EQ(wc.status, i < 9    ? WcStatus::kSuccess
                           : i == 9 ? WcStatus::kRemoteAccessError
                                    : WcStatus::kWrFlushError)
          << i;
    }
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(t.rig.a.await_recv().status, WcStatus::kWrFlushError) << i;
    }
    // Posted from now on: accepted, and flushed.
    ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    EXPECT_EQ(t.rig.a.await(*send).status, WcStatus::kWrFlushError);
    ASSERT_EQ(t.rig.a.post_recv(*t.from, t.mine.address, t.mine.region.lkey, 8), Status::kOk);
    EXPECT_EQ(t.rig.a.await_recv().status, WcStatus::kWrFlushError);
  });
}

TEST(CaseQC, QC05_AllFlushedWhenTheApplicationEndsIt) {
  QcRig t(Settings{{"link.delay", "100us"}});  // nothing is acknowledged before the state changes
  t.rig.run([&] {
    t.create();
    t.connect(depth(64, 16), depth(1, 1));
    for (int i = 0; i < 16; ++i) {
      ASSERT_EQ(t.rig.a.post_recv(*t.from, t.mine.address, t.mine.region.lkey, 8), Status::kOk);
    }
    for (int i = 0; i < 40; ++i) ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
    host::verbs::QpAttr attr;
    attr.qp_state = QpState::kError;
    ASSERT_EQ(t.rig.a.verbs().modify_qp(t.rig.a.core, *t.from, attr, protocol::QpAttrMask::kState),
              Status::kOk);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kWrFlushError);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(t.rig.a.await_recv().status, WcStatus::kWrFlushError);
  });
}

TEST(CaseQC, QC06_TheOtherQueuePairGoesOn) {
  QcRig t({{"transport.ack_timeout", "8"}, {"transport.retry_count", "3"}});
  t.rig.run([&] {
    t.create();
    t.connect(depth(64, 1), depth(1, 1));
    // The second one's peer does not exist: nobody answers.
    QueuePair* lost = t.rig.a.make_qp(depth(4, 1));
    t.rig.a.connect(*lost, 0xABCDE, path_between(0, 1), t.rig.config().transport);
    std::uint64_t failed_at = 0;
    Wc failure;
    // One WRITE at a time for a millisecond: how many?
    const auto rate = [&](Time window) {
      const Time end = t.rig.a.core.now() + window;
      std::uint64_t done = 0;
      while (t.rig.a.core.now() < end) {
        EXPECT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
        while (true) {
          const Wc wc = t.rig.a.await_send();
          if (wc.qp_num == t.from->qpn) {
            EXPECT_EQ(wc.status, WcStatus::kSuccess);
            break;
          }
          failure = wc;
          failed_at = done + 1;
        }
        ++done;
      }
      return done;
    };
    const std::uint64_t alone = rate(microseconds(1000));
    ASSERT_EQ(t.rig.a.post(*lost, WrOpcode::kRdmaWrite, t.mine.address, t.mine.region.lkey, 8,
                           t.theirs.address, t.theirs.region.rkey),
              Status::kOk);
    const std::uint64_t beside = rate(microseconds(1000));
    EXPECT_EQ(failed_at, 0U) << "still retrying";
    EXPECT_NEAR(static_cast<double>(beside) / static_cast<double>(alone), 1.0, 0.03);
    // 4 sends, 4.096 us * 2^8 = 1.05 ms apart.
    rate(microseconds(4000));
    EXPECT_GT(failed_at, 0U);
    EXPECT_EQ(failure.status, WcStatus::kRetryExceededError);
    EXPECT_EQ(failure.qp_num, lost->qpn);
    // Port counters are sums: they do not tell who it was.
    EXPECT_EQ(t.rig.a.node.nic.transport().counters().local_ack_timeout_err, 4U);
    EXPECT_EQ(t.rig.a.device_qp(*t.from).state, QpState::kRts);
  });
}

TEST(CaseQC, QC09_OneSegmentTooMany) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    QpInitAttr attr = depth(16, 1);
    attr.max_send_sge = 3;
    t.connect(attr, depth(1, 1));
    const protocol::Sge segments[4] = {{t.mine.address, 16, t.mine.region.lkey},
                                       {t.mine.address + 100, 16, t.mine.region.lkey},
                                       {t.mine.address + 200, 16, t.mine.region.lkey},
                                       {t.mine.address + 300, 16, t.mine.region.lkey}};
    SendWr list[3];
    for (std::uint64_t i = 0; i < 3; ++i) {
      list[i].wr_id = 70 + i;
      list[i].opcode = WrOpcode::kRdmaWrite;
      list[i].flags = SendFlags::kSignaled;
      list[i].sg_list = segments;
      list[i].num_sge = i == 1 ? 4 : 3;
      list[i].remote_addr = t.theirs.address;
      list[i].rkey = t.theirs.region.rkey;
    }
    std::uint32_t bad = 9;
    EXPECT_EQ(t.rig.a.verbs().post_send(t.rig.a.core, *t.from, list, 3, &bad), Status::kEinval);
    EXPECT_EQ(bad, 1U);
    const Wc wc = t.rig.a.await_send();
    EXPECT_EQ(wc.wr_id, 70U);
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    t.rig.settle();
    Wc more;
    EXPECT_EQ(t.rig.a.verbs().poll_cq(t.rig.a.core, *t.rig.a.send_cq, 1, &more), 0U);
    EXPECT_EQ(t.rig.b.node.nic.transport().counters().rx_write_requests, 1U);
    // More than the device has is refused when the queue pair is made.
    attr.max_send_sge = t.rig.config().nic.max_sge + 1;
    EXPECT_EQ(t.rig.a.verbs().create_qp(t.rig.a.core, t.rig.a.pd, *t.rig.a.send_cq,
                                        *t.rig.a.recv_cq, attr),
              nullptr);
  });
}

TEST(CaseQC, QC10_TheAnswerBeforeTheAcknowledgement) {
  // Of two messages close to each other the second is acknowledged 30 us later; the peer answers
  // at once.
  QcRig t(Settings{{"transport.ack_coalesce_time", "30us"}});
  t.rig.run([&] {
    t.create();
    CompletionQueue* shared = t.rig.a.verbs().create_cq(t.rig.a.core, 64);
    t.connect(depth(8, 8), *shared, *shared, depth(8, 8));
    ASSERT_EQ(t.rig.a.post_recv(*t.from, t.mine.address, t.mine.region.lkey, 8), Status::kOk);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(t.rig.b.post_recv(*t.to, t.theirs.address, t.theirs.region.lkey, 8), Status::kOk);
    }
    ASSERT_EQ(t.send(t.rig.a, *t.from, t.mine, 8), Status::kOk);
    const std::uint64_t first = t.rig.a.wr_ids;
    const auto& counters = t.rig.b.node.nic.transport().counters();
    while (counters.acks_sent == 0) t.rig.settle(nanoseconds(100));
    t.rig.settle(microseconds(1));
    ASSERT_EQ(t.send(t.rig.a, *t.from, t.mine, 8), Status::kOk);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kSuccess);
    ASSERT_EQ(t.send(t.rig.b, *t.to, t.theirs, 8), Status::kOk);
    // Within the send queue the order holds; the RECV comes between the two.
    Wc wc = t.rig.a.await(*shared);
    EXPECT_EQ(wc.opcode, protocol::WcOpcode::kSend);
    EXPECT_EQ(wc.wr_id, first);
    EXPECT_EQ(t.rig.a.await(*shared).opcode, protocol::WcOpcode::kRecv);
    wc = t.rig.a.await(*shared);
    EXPECT_EQ(wc.opcode, protocol::WcOpcode::kSend);
    EXPECT_EQ(wc.wr_id, first + 1);
  });
}

TEST(CaseQC, QC12_NoEventForWhatIsThereWhenArmed) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    host::verbs::Context& verbs = t.rig.a.verbs();
    host::verbs::CompletionChannel* channel = verbs.create_comp_channel();
    CompletionQueue* cq = verbs.create_cq(t.rig.a.core, CqInitAttr{16, channel, false});
    t.connect(depth(16, 1), *cq, *t.rig.a.recv_cq, depth(1, 1));
    const auto complete_one = [&] {
      ASSERT_EQ(t.write(SendFlags::kSignaled), Status::kOk);
      t.rig.settle();
    };
    Wc wc;
    complete_one();
    EXPECT_EQ(verbs.poll_cq(t.rig.a.core, *cq, 1, &wc), 1U);
    complete_one();  // between the last poll and the arming
    ASSERT_EQ(verbs.req_notify_cq(t.rig.a.core, *cq, false), Status::kOk);
    t.rig.settle();
    EXPECT_TRUE(channel->events.empty());
    EXPECT_EQ(verbs.poll_cq(t.rig.a.core, *cq, 1, &wc), 1U) << "so poll again after arming";
    complete_one();
    complete_one();
    EXPECT_EQ(channel->events.size(), 1U) << "exactly one event for one arming";
  });
}

/// RECV of `recv` bytes, SEND of `send` bytes: too long.
void expect_too_long(std::uint32_t recv, std::uint32_t send) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    t.connect(depth(4, 4), depth(4, 4));
    const Bytes before(16 * kPage, 0x33);
    t.rig.b.fill(t.theirs.address, before);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(t.rig.b.post_recv(*t.to, t.theirs.address, t.theirs.region.lkey, recv),
                Status::kOk);
    }
    ASSERT_EQ(t.send(t.rig.a, *t.from, t.mine, send), Status::kOk);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kLocalLengthError);
    EXPECT_EQ(t.rig.b.await_recv().status, WcStatus::kWrFlushError);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kRemoteInvalidRequestError);
    t.rig.settle();
    EXPECT_EQ(t.rig.a.device_qp(*t.from).state, QpState::kError);
    EXPECT_EQ(t.rig.b.device_qp(*t.to).state, QpState::kError);
    // Behind the RECV's buffer nothing was written.
    EXPECT_EQ(t.rig.b.bytes_at(t.theirs.address + recv, 16 * kPage - recv),
              Bytes(16 * kPage - recv, 0x33));
  });
}

TEST(CaseQC, QC13_OneByteTooLong) { expect_too_long(1024, 1025); }

TEST(CaseQC, QC13_ManyPacketsTooLong) { expect_too_long(1024, 16 * kPage); }

/// A datagram that is one byte longer than its RECV, or one that fills it, and the next one: the
/// queue pair stays in RTS either way, and the sender hears nothing.
void datagram_too_long(const std::string& profile) {
  VerbsRig rig({{"transport.protocol", "ib"}, {"nic.long_message", profile}});
  rig.run([&] {
    constexpr std::uint32_t kHeader = 40;
    constexpr std::uint32_t kRoom = 1024;
    rig.connect(protocol::QpType::kUd);
    const RigBuffer from = rig.a.buffer(kPage);
    const RigBuffer to = rig.b.buffer(4 * kPage);
    for (std::uint64_t i = 0; i < 3; ++i) {
      ASSERT_EQ(rig.b.post_recv(to.address + i * kPage, to.region.lkey, kRoom), Status::kOk);
    }
    for (const std::uint32_t bytes : {kRoom - kHeader + 1, kRoom - kHeader, 8U}) {
      const protocol::Sge sge{from.address, bytes, from.region.lkey};
      host::verbs::SendWr wr;
      wr.flags = SendFlags::kSignaled;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.ah = rig.a_to_b;
      wr.remote_qpn = rig.b.qp->qpn;
      wr.remote_qkey = kRigQkey;
      ASSERT_EQ(rig.a.verbs().post_send(rig.a.core, *rig.a.qp, &wr, 1), Status::kOk);
      EXPECT_EQ(rig.a.await_send().status, WcStatus::kSuccess);
    }
    if (profile == "complete") {
      EXPECT_EQ(rig.b.await_recv().status, WcStatus::kLocalLengthError);
    }
    for (const std::uint32_t bytes : {kRoom, kHeader + 8}) {
      const Wc wc = rig.b.await_recv();
      EXPECT_EQ(wc.status, WcStatus::kSuccess);
      EXPECT_EQ(wc.byte_len, bytes);
    }
    EXPECT_EQ(rig.a.state(), QpState::kRts);
    EXPECT_EQ(rig.b.state(), QpState::kRts);
    // Nothing was written of the one that did not fit, or behind the one that did.
    EXPECT_EQ(rig.b.bytes_at(to.address + kRoom, 1), std::vector<std::uint8_t>(1, 0));
  });
}

TEST(CaseQC, QC13_ADatagramTooLongIsDropped) { datagram_too_long("drop"); }
TEST(CaseQC, QC13_ADatagramTooLongFailsItsRecvOnly) { datagram_too_long("complete"); }

TEST(CaseQC, QC13_AWriteWithImmediateMayBeLongerThanTheRecv) {
  QcRig t;
  t.rig.run([&] {
    t.create();
    t.connect(depth(4, 4), depth(4, 4));
    ASSERT_EQ(t.rig.b.post_recv(*t.to, t.theirs.address, t.theirs.region.lkey, 16), Status::kOk);
    ASSERT_EQ(t.rig.a.post(*t.from, WrOpcode::kRdmaWriteWithImm, t.mine.address, t.mine.region.lkey,
                           kPage, t.theirs.address, t.theirs.region.rkey, 77),
              Status::kOk);
    const Wc wc = t.rig.b.await_recv();
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.byte_len, kPage);
    EXPECT_EQ(wc.imm_data, 77U);
    EXPECT_EQ(t.rig.a.await_send().status, WcStatus::kSuccess);
  });
}

}  // namespace
}  // namespace rnic::testbench

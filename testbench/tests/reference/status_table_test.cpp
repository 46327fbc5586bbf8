// SPDX-License-Identifier: Apache-2.0
// Every mistake with every operation on every transport: the status at the requester, what becomes
// of the RECV, the refusal on the wire, the states of both queue pairs, and whether memory was
// touched.
#include "reference/status_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "reference/status_mistake.h"
#include "support/verbs_rig.h"
#include "support/wire_spy.h"

namespace rnic::testbench {
namespace {

using namespace status;

/// Makes a mistake and judges what comes of it.
class Attempt : private Mistaken {
 public:
  Attempt(VerbsRig& rig, WireSpy& spy, Cause cause, WrOpcode opcode, Service service)
      : Mistaken(rig, cause, opcode, service),
        spy_(spy),
        expected_(reference::consequence_of(cause, opcode, service)) {}

  void run() {
    connect();
    prepare();
    if (cause_ == Cause::kQueueFull) fill_queue();
    if (cause_ == Cause::kSendCqFull || cause_ == Cause::kRecvCqFull) fill_cq();
    post_recv();
    rig_.settle();
    events_of(rig_.a);
    events_of(rig_.b);
    spy_.forget();
    break_read();
    if (cause_ == Cause::kTooManyReads) keep_busy();
    const Status posted = rig_.a.verbs().post_send(rig_.a.core, *from_, &wr_, 1);
    EXPECT_EQ(posted, expected_.post) << host::status_name(posted);
    if (posted != Status::kOk || expected_.post != Status::kOk) return;
    judge();
  }

 private:
  std::vector<Wc> taken(RigSide& side, host::verbs::CompletionQueue& cq, const QueuePair& qp) {
    std::vector<Wc> result;
    Wc wc;
    while (side.verbs().poll_cq(side.core, cq, 1, &wc) > 0) {
      if (wc.qp_num == qp.qpn) result.push_back(wc);
    }
    return result;
  }

  /// The types of all events that `side` has not fetched.
  static Consequence::Events events_of(RigSide& side) {
    Consequence::Events types;
    host::verbs::AsyncEvent event;
    while (side.verbs().poll_async_event(side.core, event)) types.push_back(event.type);
    return types;
  }

  static std::string names(const Consequence::Events& events) {
    std::string text;
    for (const protocol::EventType type : events) text += std::string(event_name(type)) + " ";
    return text;
  }

  void judge_completion() {
    const Wc done = rig_.a.await_send();
    EXPECT_EQ(done.qp_num, from_->qpn);
    EXPECT_EQ(done.wr_id, 1U);
    EXPECT_EQ(done.status, expected_.requester)
        << protocol::wc_status_name(done.status) << " instead of "
        << protocol::wc_status_name(expected_.requester);
  }

  void judge() {
    if (!expected_.silent) judge_completion();
    rig_.settle(microseconds(50));
    EXPECT_TRUE(taken(rig_.a, *rig_.a.send_cq, *from_).empty());
    if (send_cq_ != nullptr) {
      EXPECT_EQ(taken(rig_.a, *send_cq_, *from_).size(), 1U) << "the filler";
    }
    EXPECT_EQ(names(events_of(rig_.a)), names(expected_.requester_events));
    EXPECT_EQ(names(events_of(rig_.b)), names(expected_.responder_events));
    judge_recvs();
    judge_wire();
    EXPECT_EQ(rig_.a.device_qp(*from_).state,
              expected_.requester_breaks ? stopped() : QpState::kRts);
    EXPECT_EQ(rig_.b.device_qp(*to_).state,
              expected_.responder_breaks ? QpState::kError : QpState::kRts);
    judge_memory();
  }

  QpState stopped() const {
    return reference::stops_in_error(expected_, service_) ? QpState::kError : QpState::kSqe;
  }

  void judge_recvs() {
    std::vector<Wc> recvs = taken(rig_.b, recv_cq_ != nullptr ? *recv_cq_ : *rig_.b.recv_cq, *to_);
    if (recv_cq_ != nullptr) {
      ASSERT_FALSE(recvs.empty());
      EXPECT_EQ(recvs.front().wr_id, 77U) << "the filler";
      recvs.erase(recvs.begin());
    }
    std::size_t at = 0;
    if (expected_.takes_recv) {
      ASSERT_FALSE(recvs.empty()) << "the RECV does not complete";
      EXPECT_EQ(recvs[at].wr_id, 1U);
      const bool ended = opcode_ == WrOpcode::kSendWithInv && expected_.recv == WcStatus::kSuccess;
      EXPECT_EQ((recvs[at].wc_flags & Wc::kWithInv) != 0, ended);
      EXPECT_EQ(recvs[at].invalidated_rkey, ended ? wr_.invalidate_key : 0U);
      EXPECT_EQ(recvs[at++].status, expected_.recv);
    }
    // RECVs of a shared queue stay there; a queue that ran over takes no news.
    const bool lost = srq_ != nullptr || (recv_cq_ != nullptr && expected_.responder_breaks);
    const std::size_t left = has_recvs() && !lost ? 2 - at : 0;
    if (expected_.responder_breaks) {
      EXPECT_EQ(recvs.size(), at + left);
      for (; at < recvs.size(); ++at) EXPECT_EQ(recvs[at].status, WcStatus::kWrFlushError);
    } else {
      EXPECT_EQ(recvs.size(), at) << "no other RECV completes";
    }
  }

  void judge_wire() {
    const std::uint32_t seen = spy_.refusal();
    const auto expected = static_cast<std::uint32_t>(expected_.wire);
    switch (expected_.wire) {
      case Wire::kRnrNak:
        EXPECT_EQ(seen & 0xE0U, expected);
        break;
      case Wire::kRdmapProtection:
      case Wire::kRdmapOperation:
      case Wire::kDdpTagged:
        EXPECT_EQ(seen & 0xFF00U, expected) << std::hex << seen;
        break;
      default:
        EXPECT_EQ(seen, expected) << std::hex << seen;
        break;
    }
  }

  void judge_memory() {
    Bytes inbox = rig_.b.bytes_at(inbox_.address, kPage);
    // A datagram's network header is none of the message.
    const std::uint64_t start = recv_sge_.address - inbox_.address;
    for (std::uint64_t i = start; i < std::min(kPage, start + header_area()); ++i) inbox[i] = 0x33;
    const bool changed = rig_.b.bytes_at(remote_.address, kPage) != Bytes(kPage, 0x11) ||
                         inbox != Bytes(kPage, 0x33);
    EXPECT_EQ(changed, expected_.memory_changes);
    const bool brought = expected_.requester == WcStatus::kSuccess &&
                         (opcode_ == WrOpcode::kRdmaRead || is_atomic(opcode_)) &&
                         cause_ != Cause::kZeroLength;
    EXPECT_EQ(rig_.a.bytes_at(local_.address, kPage) != Bytes(kPage, 0x22), brought);
  }

  WireSpy& spy_;
  const Consequence expected_;
};

struct Transport {
  std::string protocol;
  Service service;
};

std::vector<Transport> all_transports() {
  std::vector<Transport> out;
  for (const std::string& protocol : all_protocols()) {
    for (const Service service : reference::all_services()) {
      if ((protocol == "iwarp") == (service == Service::kIwarp)) out.push_back({protocol, service});
    }
  }
  return out;
}

class StatusTable : public ::testing::TestWithParam<std::tuple<Transport, WrOpcode>> {};

TEST_P(StatusTable, EveryCause) {
  const auto& [transport, opcode] = GetParam();
  const std::string& protocol = transport.protocol;
  const Service service = transport.service;
  WireSpy spy("spy", WireSpy::named(protocol));
  VerbsRig rig({{"transport.protocol", protocol},
                {"transport.mtu", protocol == "iwarp" ? "1500" : "1024"},
                {"transport.ack_timeout", "6"},
                {"transport.retry_count", "1"},
                {"transport.rnr_retry", "1"},
                {"transport.min_rnr_timer", "1"},
                {"nic.blueflame", "false"},
                {"memory.odp_fault_cost", "1us"},
                {"memory.memlock_limit", "1GiB"}},
               &spy);
  const WrOpcode op = opcode;
  rig.run([&] {
    rig.connect();
    for (const Cause cause : reference::all_causes()) {
      if (!reference::consequence_of(cause, op, service).applies) continue;
      SCOPED_TRACE(std::string(reference::cause_name(cause)) + ", " + reference::opcode_name(op));
      Attempt(rig, spy, cause, op, service).run();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, StatusTable,
                         ::testing::Combine(::testing::ValuesIn(all_transports()),
                                            ::testing::ValuesIn(reference::all_opcodes())),
                         [](const auto& test) {
                           const Transport& transport = std::get<0>(test.param);
                           const std::string service = reference::service_name(transport.service);
                           return transport.protocol + "_" +
                                  (transport.service == Service::kIwarp ? "" : service + "_") +
                                  reference::opcode_name(std::get<1>(test.param));
                         });

/// The table in the documentation is this one. RNICSIM_WRITE_STATUS_TABLE=1 writes it anew.
TEST(StatusTableDocument, IsUpToDate) {
  const std::string path = data_path() + "/../reference/status_table.md";
  const std::string head =
      "# What every mistake leads to\n\nGenerated from `status_table.cpp`, whose every line a test "
      "runs. QP states: requester, responder. (Where an atomic fails with local_protection_error "
      "the peer's word has changed: it has been executed when its answer finds no place, IBTA vol "
      "1, "
      "9.4.5 and 9.9.2.)\n\n";
  const std::string text = head + reference::status_table_markdown();
  if (std::getenv("RNICSIM_WRITE_STATUS_TABLE") != nullptr) std::ofstream(path) << text;
  std::ostringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.str(), text);
}

}  // namespace
}  // namespace rnic::testbench

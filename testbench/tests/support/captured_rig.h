// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "capture/port_capture.h"
#include "support/temporary_file.h"
#include "support/tshark.h"
#include "support/verbs_rig.h"

namespace rnic::testbench {

/// Two hosts and a capture at the port of the first.
class CapturedRig {
 public:
  explicit CapturedRig(const Settings& settings)
      : place_("capture_service"),
        rig(settings),
        capture_(place_.path(), "a",
                 rig.config().transport.protocol == config::Protocol::kIb ? CaptureLink::kErf
                                                                          : CaptureLink::kEthernet,
                 rig.a.node.nic.encapsulation()) {
    rig.a.port().set_tap(&capture_);
  }
  /// The capture's file once `story` is over; no packet of it is malformed.
  std::string file_of(const std::function<void()>& story) {
    rig.run([&] {
      story();
      rig.settle(microseconds(300));  // the last delayed ACK
    });
    capture_.finish();
    const std::string file = place_.path() + "/a.pcapng";
    EXPECT_EQ(complaints(file), "");
    return file;
  }
  /// A signalled request of `a`, carried out.
  void go(host::verbs::WrOpcode op, std::uint32_t bytes,
          protocol::WcStatus status = protocol::WcStatus::kSuccess, std::uint32_t rkey_change = 0) {
    EXPECT_EQ(rig.a.post(op, local.address, local.region.lkey, bytes, remote.address,
                         remote.region.rkey ^ rkey_change),
              host::Status::kOk);
    EXPECT_EQ(rig.a.await_send().status, status);
  }
  void map(protocol::AccessFlags access = kAllAccess | protocol::kAccessRemoteAtomic) {
    local = rig.a.buffer(16384, access);
    remote = rig.b.buffer(16384, access);
  }

 private:
  TemporaryFile place_;
  bool vacant_ = std::filesystem::remove(place_.path());  ///< for a directory

 public:
  VerbsRig rig;
  RigBuffer local;
  RigBuffer remote;

 private:
  PortCapture capture_;
};

inline std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++count;
  return count;
}

}  // namespace rnic::testbench

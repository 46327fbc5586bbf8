// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <systemc>

#include "base/event_queue.h"
#include "base/pool.h"
#include "base/sc_time.h"
#include "host/physical_memory.h"
#include "host/root_complex.h"

namespace rnic::host {

/// One core's time as its thread spends it. A thread runs ahead of simulated time while it only
/// computes, and catches up (`sync`) before it looks at memory that a device may have written.
/// Use from SC_THREADs only.
class Core {
 public:
  /// Spends `duration` computing.
  void spend(Time duration) {
    ahead_ += duration;
    busy_ += duration;
  }

  /// Lets simulated time catch up with this core.
  void sync() {
    if (ahead_ == kTimeZero) return;
    const Time ahead = ahead_;
    ahead_ = kTimeZero;
    busy_until_ = sim_now() + ahead;
    timeline_->sleep(ahead);
  }

  /// Lets simulated time catch up, then does nothing for `duration`.
  void idle(Time duration) {
    sync();
    if (duration > kTimeZero) timeline_->sleep(duration);
  }

  /// The core's own present.
  Time now() const { return sim_now() + ahead_; }

  /// Accounts for time spent spinning in sc_core::wait(), looking in vain.
  void add_polling(Time duration) { polling_ += duration; }
  /// Accounts for time in sc_core::wait() in which the core could do nothing else: an uncached
  /// load.
  void add_stall(Time duration) { busy_ += duration; }
  /// Of what was spent: waiting for a lock that others have, spinning.
  void add_lock_wait(Time duration) { locks_ += duration; }
  Time locks() const { return locks_; }
  /// Time spent computing and polling.
  Time busy() const { return busy_ + polling_; }
  Time polling() const { return polling_; }
  /// Starts counting at sim_now(); what a core that is ahead has already spent after that counts.
  void reset_statistics() {
    busy_ = std::max(kTimeZero, std::max(now(), busy_until_) - sim_now());
    polling_ = kTimeZero;
    locks_ = kTimeZero;
  }

 private:
  Timeline* timeline_ = &Timeline::instance();  ///< of its host
  Time ahead_{0};
  Time busy_until_{0};  ///< end of the work that simulated time is catching up with
  Time busy_{0};
  Time polling_{0};
  Time locks_{0};  ///< part of busy_
};

/// Wakes a spinning thread when a device writes to what it polls; the polls in between are
/// arithmetic, not events.
class PollSpot : public MemoryWatcher {
 public:
  PollSpot() = default;
  PollSpot(const PollSpot&) = delete;
  PollSpot& operator=(const PollSpot&) = delete;

  void memory_written(std::uint64_t /*pa*/, std::uint32_t /*bytes*/) override {
    ++writes_;
    last_write_ = sim_now();
    if (waiting_) Timeline::notify(written_);
  }

  /// Writes seen since construction.
  std::uint64_t writes() const { return writes_; }
  Time last_write() const { return last_write_; }

  /// Spins, one look every `period`, until writes() exceeds `seen`; returns at the end of the look
  /// that sees the write. A write falls into the middle of a look on the average and the next one
  /// sees it: no phase is simulated, or differences below `period` would vanish. False when it is
  /// `deadline` and there was none.
  bool spin(Core& core, Time period, std::uint64_t seen, Time deadline = kTimeNever) {
    core.sync();
    const Time start = sim_now();
    if (writes_ <= seen) {
      waiting_ = true;
      while (writes_ <= seen && sim_now() < deadline) await_write(deadline);
      waiting_ = false;
      core.add_polling(sim_now() - start);
      core.spend(period / 2);
    }
    core.spend(period);
    return writes_ > seen;
  }

 private:
  void await_write(Time deadline) {
    if (deadline == kTimeNever) {
      sc_core::wait(written_);
    } else {
      sc_core::wait(to_sc_time(deadline - sim_now()), written_);
    }
  }

  sc_core::sc_event written_;
  std::uint64_t writes_ = 0;
  Time last_write_{0};
  bool waiting_ = false;
};

/// Stores on their way from cores to the device's registers. A core that runs ahead of simulated
/// time hands its stores over with their time; they enter PCIe then, in order.
class StoreBuffer : public sc_core::sc_module {
 public:
  StoreBuffer(const sc_core::sc_module_name& name, MmioPort& mmio)
      : sc_module(name), mmio_(mmio), stores_("stores", this, &StoreBuffer::drain) {}

  /// At most 1 KiB (a BlueFlame push).
  void store(Time at, std::uint64_t offset, const std::uint8_t* data, std::uint32_t bytes,
             tlm_ext::Purpose purpose);
  /// Reads a register behind all stores of before `at`.
  void load(Time at, std::uint64_t offset, MmioReader& reader);

 private:
  struct Store {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    MmioReader* reader = nullptr;  ///< it is a load, and for whom
    tlm_ext::Purpose purpose = tlm_ext::Purpose::kDoorbell;
    std::array<std::uint8_t, 1024> data{};
  };

  void drain(Store*& store);

  MmioPort& mmio_;
  Pool<Store> pool_;
  EventQueue<StoreBuffer, Store*> stores_;
};

}  // namespace rnic::host

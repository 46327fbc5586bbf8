// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace rnic::nic {

/// Work suspended until something it waits for arrives (a context, a translation entry). Intrusive:
/// a waiter waits for one thing at a time.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void resume(Time now) = 0;

  Waiter* next_waiter = nullptr;
  std::uint8_t progress = 0;  ///< for who resumes it: how far what was asked has come
  bool failed = false;        ///< resumed because what it waits for could not be had
};

/// FIFO of waiters.
class WaitList {
 public:
  bool empty() const { return head_ == nullptr; }

  void push(Waiter* waiter) {
    waiter->next_waiter = nullptr;
    if (tail_ != nullptr) {
      tail_->next_waiter = waiter;
    } else {
      head_ = waiter;
    }
    tail_ = waiter;
  }

  /// Resumes who has waited longest, if anybody does.
  void resume_first(Time now) {
    if (head_ == nullptr) return;
    Waiter* waiter = head_;
    head_ = waiter->next_waiter;
    if (head_ == nullptr) tail_ = nullptr;
    waiter->resume(now);
  }

  /// As resume_all(), but what they wait for will not come: `failed` is set.
  void fail_all(Time now) {
    for (Waiter* waiter = head_; waiter != nullptr; waiter = waiter->next_waiter) {
      waiter->failed = true;
    }
    resume_all(now);
  }

  /// Resumes everybody in order; those who wait again join a new list.
  void resume_all(Time now) {
    Waiter* waiter = head_;
    head_ = tail_ = nullptr;
    while (waiter != nullptr) {
      Waiter* next = waiter->next_waiter;
      waiter->resume(now);
      waiter = next;
    }
  }

 private:
  Waiter* head_ = nullptr;
  Waiter* tail_ = nullptr;
};

}  // namespace rnic::nic

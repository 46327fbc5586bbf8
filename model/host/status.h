// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnic::host {

/// Outcome of a system call of the modelled operating system; the numbers are Linux errno values.
enum class Status : std::uint8_t {
  kOk = 0,
  kEperm = 1,
  kEio = 5,
  kEnomem = 12,
  kEfault = 14,
  kEbusy = 16,
  kEinval = 22,
};

/// "ok", "EPERM", "ENOMEM", ...
constexpr const char* status_name(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kEperm:
      return "EPERM";
    case Status::kEio:
      return "EIO";
    case Status::kEnomem:
      return "ENOMEM";
    case Status::kEfault:
      return "EFAULT";
    case Status::kEbusy:
      return "EBUSY";
    case Status::kEinval:
      return "EINVAL";
  }
  return "unknown";
}

}  // namespace rnic::host

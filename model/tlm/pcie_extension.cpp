// SPDX-License-Identifier: Apache-2.0
#include "tlm/pcie_extension.h"

namespace rnic::tlm_ext {

const char* purpose_name(Purpose purpose) {
  static constexpr const char* kNames[kPurposeCount] = {
      "doorbell", "blueflame", "doorbell_record", "wqe",         "rq_wqe", "qpc",  "cqc",
      "mpt",      "mtt",       "payload",         "cqe",         "eqe",    "msix", "command",
      "atomic",   "register",  "translation",     "invalidation"};
  return kNames[static_cast<std::size_t>(purpose)];
}

}  // namespace rnic::tlm_ext

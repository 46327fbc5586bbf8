// SPDX-License-Identifier: Apache-2.0
#include "transport/transport.h"

#include <algorithm>

namespace rnic::transport {

std::uint32_t slice_sges(const protocol::Sge* list, std::uint32_t list_count, std::uint32_t offset,
                         std::uint32_t length, PieceList& out) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < list_count && length > 0; ++i) {
    const protocol::Sge& sge = list[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::uint32_t take = std::min(sge.length - offset, length);
    out[count++] = protocol::Sge{sge.address + offset, take, sge.lkey};
    length -= take;
    offset = 0;
  }
  return count;
}

}  // namespace rnic::transport

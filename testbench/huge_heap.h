// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rnic::testbench {

/// Asks for huge pages for the heap, before it is used: the state of many hosts is small objects
/// all over it, and with small pages most of them would miss the TLB of the machine that simulates
/// whenever a host's turn comes. A hint: where it is refused, everything else stays the same.
void prefer_huge_heap();

}  // namespace rnic::testbench

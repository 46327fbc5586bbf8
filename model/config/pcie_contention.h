// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"

namespace rnic::config {

/// Does the run depend on how single PCIe packets follow each other, which bursts by arithmetic
/// (`pcie.detail=fast`) cannot know? So it is where posted credits are for less than a round trip,
/// and where a device sends and receives at once and both streams share what is scarce: the slot,
/// memory bandwidth, read tags, the IOMMU's walkers, a link that repeats packets. So it is, too, on
/// a slot so slow that a packet in the way takes a good part of a round trip; where UpdateFCs are
/// sent at intervals (`pcie.update_fc_interval`): credits come in steps, and a window of bytes on
/// the way cannot know which packet finds the last one; and in streams of messages that take RECVs
/// and are no more than a few packets, where fetches and CQEs are as many. Of what `config` says
/// only automatic credits may be open: they are never for less than a round trip.
bool packets_interleave(const Config& config);

/// Are there queues at the slot or short of it, so that it matters which of two requests at nearly
/// the same time is served first? (Behind it: RootComplex::minds_order().)
bool requests_queue(const Config& config);

}  // namespace rnic::config

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/frame.h"
#include "transport/encapsulation.h"
#include "transport/queue_pair.h"

namespace rnic::transport {

/// Automatic path migration of connected queue pairs (IBTA vol 1, 17.2.8). Software loads an
/// alternate path and sets REARM at both ends; each end is ARMED once it has heard from the other.
/// When the requester has no retry left, or software says so, it goes over to the alternate path
/// and sets MigReq in what it sends; the peer follows. A queue pair that never had an alternate
/// path sends MigReq=0 as rxe does.

/// Goes over to the alternate path; false when `qp` is not armed.
bool migrate(QueuePair& qp);

/// A packet of the peer arrived with MigReq as `requested` has it. Costs nothing without a path.
void note_migration(QueuePair& qp, bool requested, const protocol::Frame& frame,
                    const Encapsulation& encapsulation);

}  // namespace rnic::transport

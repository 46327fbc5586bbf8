// SPDX-License-Identifier: Apache-2.0
#include "transport/path_migration.h"

#include <utility>

namespace rnic::transport {

using protocol::PathMigration;

namespace {

/// The frame was sent by the port that `av` leads to, as far as link addresses tell.
bool came_from(const ParsedOuter& outer, const protocol::AddressVector& av) {
  return outer.source.lid != 0 ? outer.source.lid == av.destination_lid
                               : outer.source.mac == av.destination_mac;
}

}  // namespace

bool migrate(QueuePair& qp) {
  if (qp.migration == nullptr || qp.migration->state != PathMigration::kArmed) return false;
  MigrationPath& path = *qp.migration;
  std::swap(qp.av, path.alternate);
  std::swap(qp.timeout_exponent, path.timeout_exponent);
  path.state = PathMigration::kMigrated;
  path.moved = true;
  qp.path_news = PathNews::kMigrated;
  return true;
}

void note_migration(QueuePair& qp, bool requested, const protocol::Frame& frame,
                    const Encapsulation& encapsulation) {
  if (qp.migration == nullptr) return;
  MigrationPath& path = *qp.migration;
  if (path.state == PathMigration::kRearm && !requested) path.state = PathMigration::kArmed;
  if (path.state != PathMigration::kArmed || !requested) return;
  if (came_from(encapsulation.parse(frame), path.alternate)) {
    migrate(qp);
  } else if (!path.refused) {
    path.refused = true;
    qp.path_news = PathNews::kRefused;
  }
}

}  // namespace rnic::transport

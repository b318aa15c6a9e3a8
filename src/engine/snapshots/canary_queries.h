#pragma once

#include <absl/status/status.h>

#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Searches of a fixed (seeded) sample in a generation that is to replace another, before it does.
// They run on the publisher's thread, on the host holding no search up (SegmentIndex::SearchAside).
// Scores are finite: rows whose products could overflow are not read (kNormMax).

// Refuses a generation in which all scores of a sample are equal, so that every answer would be in
// the order of the rows: a model that failed writes such vectors. It accepts a collection of
// fewer than 16 rows, since equal rows may be meant there, and one whose rows all scored the same
// before.
//   served  what is to be replaced
// Cost: a search for 16 rows among at most 272.
// Errors: ALL_SCORES_EQUAL; the index's own.
absl::Status CheckScoresDiffer(const Snapshot& served, const Snapshot& next);

// Refuses a generation whose answers differ too much from those that are served. The overlap is the
// mean share, over up to 64 items that both generations have, of the item's 10 nearest that are
// among its 10 nearest in `next`, too: by id, without the item itself.
//   minimum  of the overlap, 0..1; 0: any will do, and nothing is searched
// Cost: a search for 64 rows in each generation.
// Errors: OVERLAP_TOO_LOW with the overlap found; the indexes' own.
absl::Status CheckOverlap(const Snapshot& served, const Snapshot& next, double minimum);

}  // namespace simile::engine

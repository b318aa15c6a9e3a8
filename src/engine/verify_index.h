#pragma once

#include <absl/status/status.h>

#include "simile/matrix_view.h"
#include "simile/segment.h"

namespace simile::engine {

// Asks a fresh index for the neighbours of a few of its own rows (seeded choice) and holds the
// answers, rows and score bits, against the reference canonical score: of every row when the
// segment is small, else of the rows returned and of a seeded sample, none of which may outrank the
// last hit unless it is among the hits. A wrong index is never published. Runs on the publisher's
// thread while older segments of the same backend are searched on the dispatch thread.
//   rows       [row_count, dim]  what the index was built from
//   first_row  the caller's number of rows[0]
// Cost: about 2 ns a multiply-add; at most some 40 million of them, whatever the segment's size.
// Errors: kInternal naming the query's row, the rank, and both rows and scores; the index's own.
absl::Status VerifyIndex(const SegmentIndex& index, MatrixView rows, Row first_row);

}  // namespace simile::engine

#pragma once

#include <absl/status/status.h>

#include "simile/matrix_view.h"
#include "simile/segment.h"

namespace simile::engine {

// Checks a fresh index before it is published: searches it, in one batch, for the 10 nearest rows
// of 4 of its own rows (a seeded choice that avoids rows of zeros) and compares rows, order and
// score bits with the reference canonical score. With at most 10,000,000 / dim rows, every row is
// scored and the answer must be the reference's. With more, the hits are scored and a seeded sample
// of that many rows, none of which may outrank the last hit unless it is a hit itself.
// Not checked: masks, exclusions, thresholds, Score, and any strategy other than the one that
// answers these searches. An index still being built (Built() < 1) answers by its slower strategy;
// the CPU engine itself compares its packed rows with the scan once they are built, and keeps
// scanning when they differ (int8_backend.cpp).
// Runs on the publisher's thread while older segments of the same backend are searched, and holds
// none of those searches up (SegmentIndex::SearchAside).
//   rows       [row_count, dim]  what the index was built from
//   first_row  the caller's number of rows[0]
// Cost: the search, and up to 40 million multiply-adds of about 2 ns.
// Errors: kInternal naming the query's row, the rank, and both rows and scores; the index's own.
absl::Status VerifyIndex(const SegmentIndex& index, MatrixView rows, Row first_row);

}  // namespace simile::engine

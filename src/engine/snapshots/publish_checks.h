#pragma once

#include <cstddef>
#include <cstdint>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/snapshots/snapshot.h"
#include "simile/matrix_view.h"
#include "simile/segment.h"

namespace simile::engine {

// Checks a fresh index before it is published: searches it, in one batch, for the 10 nearest rows
// of 4 of its own rows, a seeded choice that avoids rows of zeros. Compares rows, order and score
// bits with the reference canonical score. With at most 10,000,000 / dim rows, every row is scored
// and the answer must be the reference's. With more rows, the hits and a seeded sample of
// 10,000,000 / dim rows are scored. No sampled row may outrank the last hit unless it is a hit
// itself.
// Not checked: masks, exclusions, thresholds, Score, and any strategy other than the one that
// answers these searches. An index still being built (Built() < 1) answers by its slower strategy;
// the CPU engine itself compares its packed rows with the scan once they are built, and keeps
// scanning when they differ (int8_backend.cpp).
// Runs on the publisher's thread while older segments of the same backend are searched, and does
// not delay these searches (SegmentIndex::SearchAside).
//   rows       [row_count, dim] the rows that the index was built from
//   first_row  the caller's number of rows[0]
// Cost: the search, and up to 40 million multiply-adds of about 2 ns.
// Errors: kInternal naming the query's row, the rank, and both rows and scores; the index's own.
absl::Status VerifyIndex(const SegmentIndex& index, MatrixView rows, Row first_row);

// The checks below search a fixed (seeded) sample in a new generation before it replaces the served
// one. They run on the publisher's thread; on the host they delay no search
// (SegmentIndex::SearchAside). Scores are finite: rows whose products could overflow are not read
// (kNormMax).

// Refuses a generation in which all scores of a sample are equal: a failed model writes such
// vectors, and every answer would be in the order of the rows. Accepts a collection of fewer than
// 16 rows, where equal rows may be intended. Also accepts equal scores if the served generation has
// them.
//   served  the generation to be replaced
// Cost: a search for 16 rows among at most 272.
// Errors: ALL_SCORES_EQUAL; the index's own.
absl::Status CheckScoresDiffer(const Snapshot& served, const Snapshot& next);

// The approximate number of rows that are searched to compare the answers of a large generation.
// The index of a new generation is not built yet, so one thread scans these rows.
inline constexpr std::uint64_t kOverlapRowsMax = 1U << 20;

// How much of the answers of a generation stays in the next one. For an item in both generations,
// this is the share of its 10 nearest ids that are also among its 10 nearest in `next`, without the
// item itself. `share` is the mean over up to 64 items. Large generations are compared by a sample
// of the rows; the hash of an id puts it into the samples of both or of neither.
struct Overlap {
  std::size_t items = 0;  // compared; 0 when the next generation has none of the sampled items
  double share = 0;       // 0..1; undefined when items is 0
};
//   rows_max  the approximate number of rows of a generation that are searched at most
// Cost: a search for 64 rows among about rows_max of each generation; for large generations also a
// look at every id. Errors: the indexes' own.
absl::StatusOr<Overlap> MeasureOverlap(const Snapshot& served, const Snapshot& next,
                                       std::uint64_t rows_max = kOverlapRowsMax);

// Errors: OVERLAP_TOO_LOW with the measured overlap, when the minimum is above 0 and the overlap is
//         below it.
absl::Status CheckOverlap(const Overlap& overlap, double minimum);

}  // namespace simile::engine

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

// The approximate number of rows that are searched to compare the answers of a large generation.
// The index of a new generation is not built yet, so one thread scans these rows.
inline constexpr std::uint64_t kOverlapRowsMax = 1U << 20;

// How much of the answers of a generation stays in the next one. The share is the mean, over up to
// 64 items that both generations have, of the share of the item's 10 nearest that are among its 10
// nearest in `next`, too: by id, without the item itself. In large generations these are the
// nearest of a sample of the rows, which the hash of an id puts into the samples of both or of
// none.
struct Overlap {
  std::size_t items = 0;  // compared; 0 when the next generation has none of the sampled items
  double share = 0;       // 0..1; of no meaning without items
};
//   rows_max  the approximate number of rows of a generation that are searched at most
// Cost: a search for 64 rows among about rows_max of each generation, and a look at every id of
// large ones. Errors: the indexes' own.
absl::StatusOr<Overlap> MeasureOverlap(const Snapshot& served, const Snapshot& next,
                                       std::uint64_t rows_max = kOverlapRowsMax);

// Errors: OVERLAP_TOO_LOW with the overlap found, where it is below a minimum that is above 0.
absl::Status CheckOverlap(const Overlap& overlap, double minimum);

}  // namespace simile::engine

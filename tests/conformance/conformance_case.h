#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "certificate/padded_rows.h"
#include "simile/query.h"
#include "simile/segment.h"

namespace simile::conformance {

// One random search, a function of the seed: a segment, a batch, and the spec of each query.
struct ConformanceCase {
  std::uint64_t seed = 0;
  std::string description;  // for the message of a failure
  Metric metric = Metric::kCosine;
  Row first_row = 0;
  std::shared_ptr<tests::PaddedRows> rows;
  std::shared_ptr<tests::PaddedRows> queries;
  std::vector<std::shared_ptr<RowMask>> masks;  // [batch], null where every row passes
  std::vector<std::vector<Row>> excluded_rows;  // [batch]
  std::vector<QuerySpec> specs;                 // [batch], borrow masks and excluded_rows

  SegmentRows Segment() const { return {rows->view(), rows, metric, first_row}; }
  SearchBatch Batch() const { return {queries->view(), specs}; }
  // Whether query's mask, exclusions and threshold let this row with this score be returned.
  bool Passes(std::size_t query, Row row, float score) const;
};

// Dims 1 to 4096, 1 to 3000 rows, k from 1 to all rows and beyond, batches 1 to 100: mostly small,
// so that ten thousand cases take seconds, and often at the edges of tiles and blocks. In a quarter
// of the cases some rows are all zeros, as a collection of dot products has them, and so may
// queries be; in half of these the masks leave such rows out, as a cosine collection does that
// skips them.
ConformanceCase MakeCase(std::uint64_t seed);

}  // namespace simile::conformance

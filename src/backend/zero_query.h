#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "simile/hits.h"
#include "simile/query.h"
#include "simile/segment.h"

namespace simile::backend {

// A query of zeros scores 0 with every row, so the first rows that pass are its answer. In a pass
// over cheap scores no bound would separate two rows, and every row would need its canonical score:
// an estimated thousand times the cost of another query.

// Writes the answer to a query of zeros. Cost: rows are visited up to the last hit.
//   index  of the query in its batch
inline void AnswerZeroQuery(const SegmentRows& rows, const QuerySpec& spec, std::size_t index,
                            SearchResult& result) {
  constexpr const char* kEngine = "zero-query";
  const Row end = rows.first_row + static_cast<Row>(rows.rows.row_count());
  const std::span<Hit> hits = result.Buffer(index);
  std::span<const Row> excluded = spec.excluded_rows;
  std::size_t count = 0;
  const bool reaches_threshold = 0 >= spec.score_threshold;
  for (Row row = rows.first_row; reaches_threshold && row < end; ++row) {
    if (count == std::min<std::size_t>(spec.k, hits.size())) break;
    if (spec.mask != nullptr && !spec.mask->Allows(row)) continue;
    while (!excluded.empty() && excluded.front() < row) excluded = excluded.subspan(1);
    if (excluded.empty() || excluded.front() != row) hits[count++] = {row, 0};
  }
  result.SetCount(index, count);
  result.SetEngine(index, kEngine);
}

}  // namespace simile::backend

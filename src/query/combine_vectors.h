#pragma once

#include <vector>

#include <absl/status/status.h>

#include "query/place.h"
#include "query/query_request.h"
#include "query/vector_builder.h"

namespace simile::query {

// Build a query from several vectors. Arithmetic is in double, rounded to fp32 once.
//   query     its place
//   excluded  the rows of the items named are added
// Errors: VectorBuilder's, with the example's place; INVALID_FIELD when the vectors cancel each
//         other out.

// One padded row: twice the weighted mean of the positive examples less that of the negative ones;
// without negatives, the mean of the positives.
// REQUIRES: at least one positive example.
absl::Status BuildAverage(const VectorBuilder& builder, const Place& query,
                          const ByExamples& examples, float* row, std::vector<Row>& excluded);

// One padded row.
absl::Status BuildBlend(const VectorBuilder& builder, const Place& query, const ByBlend& blend,
                        float* row, std::vector<Row>& excluded);

// A padded row for every example, the positive ones first.
// Errors: also INVALID_FIELD when weights and lengths are so large that sums could overflow.
absl::Status BuildExamples(const VectorBuilder& builder, const Place& query,
                           const ByExamples& examples, float* rows, std::vector<Row>& excluded);

}  // namespace simile::query

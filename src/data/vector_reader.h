#pragma once

#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/equal_rows.h"
#include "data/matrix.h"
#include "data/vector_layout.h"
#include "simile/query.h"

namespace simile::data {

// What rows are checked for.
struct VectorRules {
  Metric metric = Metric::kCosine;
  OnZeroRow on_zero_row = OnZeroRow::kRefuse;  // for cosine
  std::string_view zero_row_advice = kZeroRowAdvice;
};

// What is known of a file's valid rows when all are read.
struct VectorFacts {
  // Their Euclidean lengths as stored, those of skipped rows aside.
  double shortest = 0;
  double longest = 0;
  std::vector<Row> skipped_rows;  // ascending; for OnZeroRow::kSkip
  EqualGroup equal;               // the most rows that share one vector, rows of zeros aside
};

// Reads all rows through one small buffer: checks that each is finite, of a length within
// 2^-60..2^60 or, where the rules take it, zero, and scales it to unit length for cosine (in
// double, rounded to fp32 once). For dot, rows are kept as given, rounded to fp32. A skipped row is
// kept as zeros. A file of zeros alone is refused.
// REQUIRES: the reader is at the first row, as ReadVectorLayout leaves it.
// Errors: kInvalidArgument `FILE: row R holds NaN at column C; ... (N of M rows are affected)`: the
//         first invalid row, and how many have the same fault; kResourceExhausted without memory.
absl::StatusOr<Matrix> ReadMatrix(BufferedReader& in, const VectorLayout& layout,
                                  const VectorRules& rules, VectorFacts& facts);

// The same checks without keeping rows.
absl::Status CheckRows(BufferedReader& in, const VectorLayout& layout, const VectorRules& rules,
                       VectorFacts& facts);

}  // namespace simile::data

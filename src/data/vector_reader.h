#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/matrix.h"
#include "data/vector_layout.h"
#include "simile/query.h"

namespace simile::data {

// The Euclidean lengths of a file's valid rows as stored.
struct LengthRange {
  double shortest = 0;
  double longest = 0;
};

// Reads all rows through one small buffer: checks that each is finite, not zero and of a length
// within 2^-60..2^60, and scales it to unit length for cosine (in double, rounded to fp32 once).
// For dot, rows are kept as given, rounded to fp32.
// REQUIRES: the reader is at the first row, as ReadVectorLayout leaves it.
// Errors: kInvalidArgument `FILE: row R holds NaN at column C; ... (N of M rows are affected)`: the
//         first invalid row, and how many have the same fault; kResourceExhausted without memory.
absl::StatusOr<Matrix> ReadMatrix(BufferedReader& in, const VectorLayout& layout, Metric metric,
                                  LengthRange& lengths);

// The same checks without keeping rows.
absl::Status CheckRows(BufferedReader& in, const VectorLayout& layout, Metric metric,
                       LengthRange& lengths);

}  // namespace simile::data

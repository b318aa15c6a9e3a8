#pragma once

#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "simile/limits.h"

namespace simile::cli {

// Query vectors from a file. All rows have the same length.
struct QueryVectors {
  std::string source;  // its name in messages
  std::vector<std::vector<float>> rows;

  std::size_t dim() const { return rows.front().size(); }
};

// Reads one vector or several from a file, or from standard input for "-".
// Errors: those of ReadInputFile, for a file larger than any call, and of ParseQueryVectors.
absl::StatusOr<QueryVectors> ReadQueryVectors(const std::string& file, const Limits& limits);

// Reads .npy of one or two axes (float16, float32, float64), or JSON: a list of numbers or a list
// of such lists.
//   source  the name of the bytes in messages
// Errors: kInvalidArgument naming the place: not JSON, rows of different lengths, no vector, more
// than limits.queries_per_call_max, wider than limits.dim_max.
absl::StatusOr<QueryVectors> ParseQueryVectors(std::string bytes, const std::string& source,
                                               const Limits& limits);

}  // namespace simile::cli

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "simile/limits.h"

namespace simile::cli {

// The bytes of a file that a flag names, or of standard input for "-".
struct InputFile {
  std::string source;  // its name in messages
  std::string bytes;
};

// Errors: kNotFound; kPermissionDenied; kInvalidArgument for a folder and for more than bytes_max.
absl::StatusOr<InputFile> ReadInputFile(const std::string& file, std::size_t bytes_max);

// Reads ids from a file, or from standard input for "-": a JSON list of strings and integers, or a
// text with one id a line. Empty lines of the text are skipped.
// Errors: ReadInputFile's; kInvalidArgument naming the place, also for more than
//         limits.allowed_ids_max ids.
absl::StatusOr<std::vector<std::string>> ReadIdFile(const std::string& file, const Limits& limits);

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

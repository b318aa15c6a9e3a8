#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "simile/limits.h"

namespace simile::cli {

// The bytes of a file, or of standard input for the file name "-".
struct InputFile {
  std::string source;  // its name in messages
  std::string bytes;
};

// Errors: kNotFound; kPermissionDenied; kInvalidArgument for a folder, and for more than bytes_max
// bytes.
absl::StatusOr<InputFile> ReadInputFile(const std::string& file, std::size_t bytes_max);

// Reads ids from a file, or from standard input for "-": a JSON list of strings and integers, or a
// text with one id per line. Skips empty lines of the text. Errors: ReadInputFile's;
// kInvalidArgument naming the place, also for more than
//         limits.allowed_ids_max ids.
absl::StatusOr<std::vector<std::string>> ReadIdFile(const std::string& file, const Limits& limits);

// Query vectors from a file. All rows have the same length; there is at least one row.
struct QueryVectors {
  std::string source;  // its name in messages
  std::vector<std::vector<float>> rows;

  std::size_t dim() const { return rows.front().size(); }
};

// Reads one vector or several from a file, or from standard input for "-". Errors: ReadInputFile's,
// also for a file larger than any call can be; ParseQueryVectors's.
absl::StatusOr<QueryVectors> ReadQueryVectors(const std::string& file, const Limits& limits);

// Parses a .npy file of one or two axes (float16, float32, float64), or JSON: a list of numbers, or
// a list of lists of numbers.
//   source  the name of the bytes in messages
// Errors: kInvalidArgument naming the place: not JSON, rows of different lengths, no vector, more
// than limits.queries_per_call_max, wider than limits.dim_max.
absl::StatusOr<QueryVectors> ParseQueryVectors(std::string bytes, const std::string& source,
                                               const Limits& limits);

}  // namespace simile::cli

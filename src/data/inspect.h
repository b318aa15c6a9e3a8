#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/limits.h"

namespace simile::data {

// What is in a file or a collection's folder, and whether it would load.
struct Inspection {
  std::string
      kind;  // "vectors (.npy)", "payload", "ids", "interactions", "collection settings", ...
  std::vector<std::pair<std::string, std::string>> facts;  // label and value, in reading order
  // OK when it would load; else exactly what a load would answer. Facts found before the fault was
  // met are there either way.
  absl::Status verdict;
};

// Looks at a .npy, .safetensors, .jsonl or .json file by itself, wholly read and checked (lengths
// as for cosine), or at a folder, planned as a collection. Messages name the file by its last part.
// Errors: only when it cannot be opened at all, or is of a kind that Simile does not read.
absl::StatusOr<Inspection> InspectFile(const std::filesystem::path& path, const Limits& limits);

}  // namespace simile::data

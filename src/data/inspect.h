#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/limits.h"

namespace simile::data {

// The contents of a file or a collection's folder, and whether it would load.
struct Inspection {
  std::string kind;  // "vectors", "payload", "ids", "interactions", "collection settings", ...
  std::vector<std::pair<std::string, std::string>> facts;  // label and value, in reading order
  // OK when it would load, else the error of a load. Facts found before the error are kept.
  absl::Status status;
};

// Reads and checks a whole vector, .jsonl or .json file by itself (lengths as for cosine), or plans
// a folder as a collection. Messages name the file by its last part. Errors: only when it cannot be
// opened, or is of a kind that Simile does not read.
absl::StatusOr<Inspection> InspectFile(const std::filesystem::path& path, const Limits& limits);

}  // namespace simile::data

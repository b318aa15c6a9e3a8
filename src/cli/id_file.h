#pragma once

#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "simile/limits.h"

namespace simile::cli {

// Reads ids from a file, or from standard input for "-": a JSON list of strings and integers, or a
// text with one id a line. Empty lines of the text are skipped.
// Errors: ReadInputFile's; kInvalidArgument naming the place, also for more than
//         limits.allowed_ids_max ids.
absl::StatusOr<std::vector<std::string>> ReadIdFile(const std::string& file, const Limits& limits);

}  // namespace simile::cli

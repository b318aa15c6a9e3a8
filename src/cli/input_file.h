#pragma once

#include <cstddef>
#include <string>

#include <absl/status/statusor.h>

namespace simile::cli {

// The bytes of a file that a flag names, or of standard input for "-".
struct InputFile {
  std::string source;  // its name in messages
  std::string bytes;
};

// Errors: kNotFound; kPermissionDenied; kInvalidArgument for a folder and for more than bytes_max.
absl::StatusOr<InputFile> ReadInputFile(const std::string& file, std::size_t bytes_max);

}  // namespace simile::cli

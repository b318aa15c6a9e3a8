#pragma once

#include <string_view>

#include <absl/status/statusor.h>

namespace simile::cli {

// The bytes that a text such as `16GiB`, `80 GB` or `1.5TiB` names: 1 to 2^50.
// Errors: kInvalidArgument, which says what would be right.
absl::StatusOr<double> ParseBytes(std::string_view text);
// Bytes a second: `300GB/s`, `4.8 TB/s`. Errors likewise.
absl::StatusOr<double> ParseBandwidth(std::string_view text);

}  // namespace simile::cli

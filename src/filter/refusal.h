#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <fmt/format.h>

#include "base/error_detail.h"

namespace simile::filter {

// INVALID_FILTER about a place in a filter: `column N: what`.
//   column  in characters, from 1
inline absl::Status RefuseAt(std::uint32_t column, std::string_view what) {
  return base::Error(base::ErrorReason::kInvalidFilter, fmt::format("column {}: {}", column, what));
}

}  // namespace simile::filter

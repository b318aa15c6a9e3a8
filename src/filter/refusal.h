#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <fmt/format.h>

namespace simile::filter {

// kInvalidArgument about a place in a filter: `column N: what`.
//   column  in characters, from 1
inline absl::Status RefuseAt(std::uint32_t column, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("column {}: {}", column, what));
}

}  // namespace simile::filter

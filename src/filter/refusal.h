#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>

namespace simile::filter {

// kInvalidArgument about a place in a filter: `column N: what`.
//   column  in characters, from 1
absl::Status RefuseAt(std::uint32_t column, std::string_view what);

}  // namespace simile::filter

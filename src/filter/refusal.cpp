#include "filter/refusal.h"

#include <fmt/format.h>

namespace simile::filter {

absl::Status RefuseAt(std::uint32_t column, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("column {}: {}", column, what));
}

}  // namespace simile::filter

#include "data/byte_source.h"

#include <algorithm>

namespace simile::data {

absl::StatusOr<std::size_t> MemorySource::Read(std::span<char> into) {
  const std::size_t count = rest_.copy(into.data(), std::min(into.size(), rest_.size()));
  rest_.remove_prefix(count);
  return count;
}

}  // namespace simile::data

#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace simile::engine {

// Space for so many elements. Grows by powers of two. Throws bad_alloc.
template <class Element>
void ReserveFor(std::size_t count, std::vector<Element>& list) {
  if (count > list.capacity()) list.reserve(std::bit_ceil(count));
}

}  // namespace simile::engine

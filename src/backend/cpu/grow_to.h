#pragma once

#include <cstddef>

namespace simile::backend::cpu {

// Buffers are kept from one search to the next and only grow, so that a warm search allocates
// nothing.
template <class Vector>
void GrowTo(Vector& vector, std::size_t size) {
  if (vector.size() < size) vector.resize(size);
}

}  // namespace simile::backend::cpu

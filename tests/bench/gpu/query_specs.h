#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simile/query.h"

namespace simile::bench::gpu {

// Queries that all want k hits, of all rows.
inline std::vector<QuerySpec> AllWanting(std::size_t count, std::uint32_t k) {
  QuerySpec spec;
  spec.k = k;
  return std::vector<QuerySpec>(count, spec);
}

}  // namespace simile::bench::gpu

#pragma once

#include <cstdint>

namespace simile::data {

// What a reader keeps of the rows or lines that it checks: a load keeps them, an inspection does
// not.
enum class Keep : std::uint8_t { kRows, kNothing };

}  // namespace simile::data

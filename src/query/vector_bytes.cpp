#include "query/vector_bytes.h"

#include <bit>
#include <cstring>

#include "base/fp16.h"
#include "data/equal_rows.h"

namespace simile::query {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

double VectorBytes::CopyTo(float* out) const {
  if (format_ == Format::kF32) {
    std::memcpy(out, bytes_.data(), bytes_.size());
  } else {
    for (std::size_t i = 0; i < size(); ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes_.data() + i * sizeof bits, sizeof bits);
      out[i] = base::FloatFromFp16(bits);
    }
  }
  const std::span<const float> values(out, size());
  return data::ProductSum(values, values);
}

}  // namespace simile::query

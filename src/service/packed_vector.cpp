#include "service/packed_vector.h"

#include <cstddef>

#include "base/message_text.h"
#include "service/refuse.h"
#include "simile/v1/types.pb.h"

namespace simile::service {

absl::StatusOr<query::VectorBytes> VectorBytesOf(const FieldPath& field,
                                                 const v1::PackedVector& packed,
                                                 std::string_view data, std::uint32_t dim_max) {
  std::size_t number_bytes = 0;
  switch (packed.format()) {
    case v1::PackedVector::FORMAT_F32_LE:
      number_bytes = 4;
      break;
    case v1::PackedVector::FORMAT_F16_LE:
      number_bytes = 2;
      break;
    default:
      return RefuseEnum({"format", &field}, packed.format(), "FORMAT_F32_LE or FORMAT_F16_LE");
  }
  const FieldPath bytes{"data", &field};
  if (data.empty()) return Refuse(bytes, "empty; send {} bytes for each dimension", number_bytes);
  if (data.size() % number_bytes != 0) {
    return Refuse(bytes, "{} bytes; {} takes {} for each dimension, so a multiple of {}",
                  base::Grouped(data.size()), v1::PackedVector::Format_Name(packed.format()),
                  number_bytes, number_bytes);
  }
  const std::size_t dim = data.size() / number_bytes;
  if (dim > dim_max) {
    return Refuse(bytes, "{} dimensions; a vector has at most {}", base::Grouped(dim),
                  base::Grouped(dim_max));
  }
  using Format = query::VectorBytes::Format;
  return query::VectorBytes(number_bytes == 4 ? Format::kF32 : Format::kF16, data);
}

}  // namespace simile::service

#include "service/packed_vector.h"

#include <bit>
#include <cstddef>
#include <string>

#include "base/fp16.h"
#include "base/message_text.h"
#include "service/refuse.h"
#include "simile/v1/types.pb.h"

namespace simile::service {
namespace {

// Reads little-endian bits on any machine; compiles to one load on a little-endian one.
template <class Bits>
Bits LoadBits(const std::string& data, std::size_t place) {
  Bits bits = 0;
  for (std::size_t byte = 0; byte < sizeof(Bits); ++byte) {
    bits = static_cast<Bits>(
        bits | static_cast<Bits>(static_cast<Bits>(static_cast<unsigned char>(data[place + byte]))
                                 << (8 * byte)));
  }
  return bits;
}

}  // namespace

absl::StatusOr<std::vector<float>> UnpackVector(const FieldPath& field,
                                                const v1::PackedVector& packed,
                                                std::uint32_t dim_max) {
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
  const std::string& data = packed.data();
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
  std::vector<float> values(dim);
  for (std::size_t index = 0; index < dim; ++index) {
    values[index] = number_bytes == 4
                        ? std::bit_cast<float>(LoadBits<std::uint32_t>(data, index * 4))
                        : base::FloatFromFp16(LoadBits<std::uint16_t>(data, index * 2));
  }
  return values;
}

}  // namespace simile::service

#include "service/packed_vector.h"

#include <bit>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "data/wording.h"
#include "simile/v1/types.pb.h"

namespace simile::service {
namespace {

// Little-endian whatever the machine is; compilers turn it into one load.
template <class Bits>
Bits TakeBits(const std::string& data, std::size_t place) {
  Bits bits = 0;
  for (std::size_t byte = 0; byte < sizeof(Bits); ++byte) {
    bits = static_cast<Bits>(
        bits | static_cast<Bits>(static_cast<Bits>(static_cast<unsigned char>(data[place + byte]))
                                 << (8 * byte)));
  }
  return bits;
}

}  // namespace

float FloatOfHalf(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24, exact in fp32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

absl::StatusOr<std::vector<float>> UnpackVector(std::string_view field,
                                                const v1::PackedVector& packed,
                                                std::uint32_t dim_max) {
  const std::string& data = packed.data();
  const auto refuse = [&](std::string_view part, const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("{}.{}: {}", field, part, what));
  };
  std::size_t number_bytes = 0;
  std::string_view format_name;
  switch (packed.format()) {
    case v1::PackedVector::F32_LE:
      number_bytes = 4;
      format_name = "F32_LE";
      break;
    case v1::PackedVector::F16_LE:
      number_bytes = 2;
      format_name = "F16_LE";
      break;
    case v1::PackedVector::FORMAT_UNSPECIFIED:
      return refuse("format", "not set; set F32_LE or F16_LE");
    default:
      return refuse(
          "format",
          fmt::format("{} is not a known format; set F32_LE ({}) or F16_LE ({})",
                      static_cast<int>(packed.format()), static_cast<int>(v1::PackedVector::F32_LE),
                      static_cast<int>(v1::PackedVector::F16_LE)));
  }
  if (data.empty()) {
    return refuse("data", fmt::format("empty; send {} bytes a dimension", number_bytes));
  }
  if (data.size() % number_bytes != 0) {
    return refuse("data",
                  fmt::format("{} bytes; {} takes {} a dimension, so a multiple of {}",
                              data::Grouped(data.size()), format_name, number_bytes, number_bytes));
  }
  const std::size_t dim = data.size() / number_bytes;
  if (dim > dim_max) {
    return refuse("data", fmt::format("{} dimensions; a vector has at most {}", data::Grouped(dim),
                                      data::Grouped(dim_max)));
  }
  std::vector<float> values(dim);
  for (std::size_t index = 0; index < dim; ++index) {
    values[index] = number_bytes == 4
                        ? std::bit_cast<float>(TakeBits<std::uint32_t>(data, index * 4))
                        : FloatOfHalf(TakeBits<std::uint16_t>(data, index * 2));
  }
  return values;
}

}  // namespace simile::service

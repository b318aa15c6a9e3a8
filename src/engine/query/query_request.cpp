#include "engine/query/query_request.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "base/fp16.h"
#include "data/formats/equal_rows.h"

namespace simile::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

std::string PartText(const Place& place) {
  return place.part_index < 0 ? std::string(place.part)
                              : fmt::format("{}[{}]", place.part, place.part_index);
}

std::string FieldAt(const Place& place, std::string_view leaf) {
  std::string field = fmt::format("{}[{}]", place.list, place.index);
  if (!place.part.empty()) field.append(".").append(PartText(place));
  if (!leaf.empty()) field.append(".").append(leaf);
  return field;
}

std::string MessageAt(const Place& place, std::string_view what) {
  std::string message;
  if (!place.alone) message = fmt::format("{}[{}]: ", place.list, place.index);
  if (!place.part.empty()) message.append(PartText(place)).append(": ");
  return message.append(what);
}

}  // namespace

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

absl::Status ErrorAt(const Place& place, std::string_view leaf, base::ErrorReason reason,
                     std::string_view what) {
  return base::Error(reason, MessageAt(place, what), FieldAt(place, leaf));
}

absl::Status AtPlace(const Place& place, std::string_view leaf, const absl::Status& error) {
  const std::string message = MessageAt(place, std::string(error.message()));
  return base::WithField(base::WithMessage(error, message), FieldAt(place, leaf));
}

}  // namespace simile::engine

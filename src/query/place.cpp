#include "query/place.h"

#include <fmt/format.h>

namespace simile::query {
namespace {

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

absl::Status ErrorAt(const Place& place, std::string_view leaf, base::ErrorReason reason,
                     std::string_view what) {
  return base::Error(reason, MessageAt(place, what), FieldAt(place, leaf));
}

absl::Status AtPlace(const Place& place, std::string_view leaf, const absl::Status& error) {
  const std::string message = MessageAt(place, std::string(error.message()));
  return base::WithField(base::WithMessage(error, message), FieldAt(place, leaf));
}

}  // namespace simile::query

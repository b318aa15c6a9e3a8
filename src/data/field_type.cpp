#include "data/field_type.h"

#include <algorithm>
#include <array>

namespace simile::data {
namespace {

constexpr std::array<std::string_view, 7> kNames = {
    "keyword", "list of keywords", "integer", "number", "boolean", "time", "other"};

}  // namespace

std::string_view NameOf(FieldType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<FieldType> FieldTypeOf(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<FieldType>(found - kNames.begin());
}

std::span<const std::string_view> FieldTypeNames() { return kNames; }

}  // namespace simile::data

#include "filter/unknown_field.h"

#include <vector>

#include <fmt/format.h>

#include "data/nearest_name.h"
#include "data/wording.h"
#include "filter/expression.h"

namespace simile::filter {

std::string UnknownField(std::string_view collection, std::string_view field,
                         const PayloadIndex& payload) {
  std::vector<std::string> known;
  for (const Field& each : payload.fields()) known.push_back(each.name);
  if (known.empty()) {
    return fmt::format("{} has no payload and so no field {}; only id can be asked", collection,
                       data::Quoted(field));
  }
  constexpr std::size_t kShownMax = 20;
  const bool cut = known.size() > kShownMax;
  const std::string offer = data::DidYouMean(data::NearestName(field, known));
  if (cut) known.resize(kShownMax);
  for (std::string& name : known) name = FieldText(name);
  return fmt::format("{} has no field {}.{} Fields: {}{}.", collection, data::Quoted(field), offer,
                     fmt::join(known, ", "), cut ? ", ..." : "");
}

}  // namespace simile::filter

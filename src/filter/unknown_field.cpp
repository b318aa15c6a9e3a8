#include "filter/unknown_field.h"

#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "filter/expression.h"

namespace simile::filter {

std::string UnknownField(std::string_view collection, std::string_view field,
                         const PayloadView& payload) {
  std::vector<std::string> known;
  for (const Field& each : payload.fields()) known.push_back(each.name);
  if (known.empty()) {
    return fmt::format("{} has no payload and so no field {}; only id can be asked", collection,
                       base::Quoted(field));
  }
  constexpr std::size_t kListedMax = 20;
  const bool cut = known.size() > kListedMax;
  const std::string offer = base::DidYouMean(base::NearestName(field, known));
  if (cut) known.resize(kListedMax);
  for (std::string& name : known) name = FieldText(name);
  return fmt::format("{} has no field {}.{} Fields: {}{}.", collection, base::Quoted(field), offer,
                     fmt::join(known, ", "), cut ? ", ..." : "");
}

}  // namespace simile::filter

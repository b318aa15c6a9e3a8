#include "filter/unknown_field.h"

#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "filter/expression.h"

namespace simile::filter {
namespace {

// Of a name such as `tags.k`: that the field before the dot holds no fields. Empty for any other.
std::string OfNoObject(std::string_view name, const PayloadView& payload) {
  const Field* const object = payload.Find(name.substr(0, name.find('.')));
  if (object == nullptr || object->name == name) return {};
  for (const Field& field : payload.fields()) {
    if (field.is_nested && field.name.starts_with(object->name + '.')) return {};
  }
  return fmt::format(" {} is of type {}, and no fields inside it are read.",
                     FieldText(object->name), NameOf(object->type));
}

}  // namespace

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
  std::string offer = OfNoObject(field, payload);
  if (offer.empty()) offer = base::DidYouMean(base::NearestName(field, known));
  if (cut) known.resize(kListedMax);
  for (std::string& name : known) name = FieldText(name);
  return fmt::format("{} has no field {}.{} Fields: {}{}.", collection, base::Quoted(field), offer,
                     fmt::join(known, ", "), cut ? ", ..." : "");
}

}  // namespace simile::filter

#include "cli/fields_flag.h"

#include <algorithm>

#include "cli/payload_text.h"

namespace simile::cli {

void SelectFields(const std::vector<std::string>& fields, const v1::Collection& collection,
                  v1::PayloadSelector& selector) {
  const bool has_id = std::ranges::any_of(
      collection.fields(), [](const v1::PayloadField& field) { return field.name() == kIdField; });
  for (const std::string& field : fields) {
    if (field != kIdField || has_id) selector.add_fields(field);
  }
  if (!fields.empty() && selector.fields().empty()) {
    selector.set_selection(v1::PayloadSelector::SELECTION_NONE);
  }
}

}  // namespace simile::cli

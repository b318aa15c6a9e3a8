#include "service/payload_selection.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "service/request_fields.h"
#include "simile/v1/types.pb.h"

namespace simile::service {
namespace {

using v1::PayloadSelector;

// How many fields an error lists. It gives only the number of the rest.
constexpr std::size_t kFieldsListedMax = 20;

absl::Status UnknownField(const FieldPath& field, std::string_view collection,
                          std::string_view name, const filter::PayloadView& fields) {
  std::vector<std::string> known;
  for (const filter::Field& each : fields.fields()) known.push_back(each.name);
  std::string what = fmt::format("{} has no field {}.", collection, base::Quoted(name));
  if (known.empty()) {
    what += " It has no payload (no metadata.jsonl).";
  } else {
    what += base::DidYouMean(base::NearestName(name, known));
    const std::size_t listed = std::min(known.size(), kFieldsListedMax);
    what += fmt::format(
        " Fields: {}",
        fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(listed), ", "));
    what += listed < known.size() ? fmt::format(" and {} more.", known.size() - listed) : ".";
  }
  return RefuseFor(base::ErrorReason::kUnknownPayloadField, field, "{}", what);
}

}  // namespace

absl::Status CheckPayloadSelector(const FieldPath& field, const PayloadSelector& selector,
                                  const Limits& limits) {
  const PayloadSelector::Selection selection = selector.selection();
  if (!PayloadSelector::Selection_IsValid(selection)) {
    return RefuseEnum({"selection", &field}, selection,
                      "SELECTION_ALL or SELECTION_NONE, or name fields instead");
  }
  const FieldPath fields{"fields", &field};
  const auto count = static_cast<std::uint32_t>(selector.fields_size());
  if (count > 0 && selection != PayloadSelector::SELECTION_UNSPECIFIED) {
    return Refuse(fields, "{} named together with {}; leave one of them out",
                  base::Counted(count, "field"), PayloadSelector::Selection_Name(selection));
  }
  if (count <= limits.payload_fields_max) return absl::OkStatus();
  return Refuse(fields, "{} named; at most {}", base::Counted(count, "field"),
                limits.payload_fields_max);
}

absl::StatusOr<PayloadSelection> SelectPayload(const FieldPath& field, std::string_view collection,
                                               const PayloadSelector& selector,
                                               const data::PayloadTable& payload,
                                               const filter::PayloadView& fields) {
  const bool named = !selector.fields().empty();
  PayloadSelection selection;
  selection.none = selector.selection() == PayloadSelector::SELECTION_NONE ||
                   (!named && payload.row_count() == 0);
  selection.all = !selection.none && !named;
  for (int index = 0; index < selector.fields_size(); ++index) {
    const std::string& name = selector.fields(index);
    const auto number = payload.FieldNumber(name);
    if (!number || fields.Find(name) == nullptr) {
      return UnknownField({"fields", &field, index}, collection, name, fields);
    }
    selection.field_numbers.push_back(*number);
  }
  std::vector<std::uint32_t>& numbers = selection.field_numbers;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return selection;
}

}  // namespace simile::service

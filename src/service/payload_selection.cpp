#include "service/payload_selection.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"

namespace simile::service {
namespace {

// How many fields an error lists; of more it says how many.
constexpr std::size_t kFieldsListedMax = 20;

absl::Status UnknownField(std::string_view path, std::size_t index, std::string_view collection,
                          std::string_view name, const data::PayloadTable& payload) {
  std::vector<std::string> known;
  for (const data::FieldInfo& field : payload.fields()) known.push_back(field.name);
  std::string message =
      fmt::format("{}[{}]: {} has no field {}.", path, index, collection, base::Quoted(name));
  if (known.empty()) {
    return absl::InvalidArgumentError(message + " It has no payload (no metadata.jsonl).");
  }
  message += base::DidYouMean(base::NearestName(name, known));
  const std::size_t listed = std::min(known.size(), kFieldsListedMax);
  message += fmt::format(
      " Fields: {}",
      fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(listed), ", "));
  message += listed < known.size() ? fmt::format(" and {} more.", known.size() - listed) : ".";
  return absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<PayloadSelection> SelectPayload(std::string_view path, std::string_view collection,
                                               const std::vector<std::string>& names,
                                               bool with_payload,
                                               const data::PayloadTable& payload) {
  PayloadSelection selection;
  selection.none = !with_payload || (names.empty() && payload.row_count() == 0);
  selection.all = !selection.none && names.empty();
  for (std::size_t index = 0; index < names.size(); ++index) {
    const auto number = payload.FieldNumber(names[index]);
    if (!number) return UnknownField(path, index, collection, names[index], payload);
    selection.field_numbers.push_back(*number);
  }
  std::vector<std::uint32_t>& numbers = selection.field_numbers;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return selection;
}

PayloadObject ReadSelected(const data::PayloadTable& payload, Row row,
                           const PayloadSelection& selection) {
  if (selection.none) return {};
  return selection.all ? payload.Read(row) : payload.Read(row, selection.field_numbers);
}

}  // namespace simile::service

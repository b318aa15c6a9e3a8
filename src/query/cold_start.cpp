#include "query/cold_start.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "filter/expression.h"
#include "filter/suggestions.h"

namespace simile::query {
namespace {

using filter::Field;
using filter::FieldType;

constexpr std::string_view kFieldOfColdStart = "cold_start.field";
constexpr std::string_view kYear = "year";

bool HasOrder(const Field& field) {
  return field.type == FieldType::kInteger || field.type == FieldType::kNumber ||
         field.type == FieldType::kTime;
}

// "; fields with an order: year, rating", or "; no field of it has an order".
std::string FieldsWithOrder(const filter::PayloadView& payload) {
  std::vector<std::string> names;
  for (const Field& field : payload.fields()) {
    if (HasOrder(field)) names.push_back(filter::FieldText(field.name));
  }
  if (names.empty()) return "; no field of it has an order";
  return fmt::format("; fields with an order: {}", fmt::join(names, ", "));
}

// The field that orders rows by age when the request names none; null when no field does.
const Field* NewestField(const filter::PayloadView& payload) {
  const Field* only_time = nullptr;
  for (const Field& field : payload.fields()) {
    if (field.type != FieldType::kTime || field.is_nested) continue;
    if (only_time != nullptr) return nullptr;
    only_time = &field;
  }
  if (only_time != nullptr) return only_time;
  const Field* const year = payload.Find(kYear);
  const bool has_years =
      year != nullptr && (year->type == FieldType::kInteger || year->type == FieldType::kNumber);
  return has_years ? year : nullptr;
}

// An error of `cold_start`, or of a field of it, which the messages name. They name no query: all
// of a call have the options' cold start.
absl::Status Refuse(std::string_view field, base::ErrorReason reason, std::string_view what) {
  return base::Error(reason, fmt::format("{}: {}", field, what), fmt::format("options.{}", field));
}

absl::StatusOr<const Field*> ChooseField(const engine::Snapshot& snapshot,
                                         const ColdStart& cold_start,
                                         const filter::PayloadView& payload) {
  if (cold_start.field.empty()) {
    if (const Field* const field = NewestField(payload)) return field;
    return Refuse(kFieldOfColdStart, base::ErrorReason::kInvalidField,
                  fmt::format("{} does not tell by itself which rows are newest; name a field{}",
                              snapshot.collection, FieldsWithOrder(payload)));
  }
  const Field* const field = payload.Find(cold_start.field);
  if (field == nullptr) {
    return Refuse(kFieldOfColdStart, base::ErrorReason::kUnknownPayloadField,
                  filter::UnknownField(snapshot.collection, cold_start.field, payload));
  }
  if (HasOrder(*field)) return field;
  return Refuse(
      kFieldOfColdStart, base::ErrorReason::kInvalidField,
      fmt::format("{} is of type {}, which has no order{}", filter::FieldText(field->name),
                  NameOf(field->type), FieldsWithOrder(payload)));
}

}  // namespace

absl::StatusOr<engine::RowOrder> OrderOf(const engine::Snapshot& snapshot,
                                         const ColdStart& cold_start, const ExistingItems& existing,
                                         base::LongWork& work) {
  if (cold_start.order == ColdStart::Order::kMostPopular && cold_start.field.empty()) {
    auto counted = snapshot.user_subsets->Of(existing.users(), snapshot.dataset, work);
    if (!counted.ok()) return counted.status();
    if (!counted->most_seen->empty()) {
      return engine::RowOrder(std::move(counted->most_seen), snapshot.row_count());
    }
    return Refuse("cold_start", base::ErrorReason::kInvalidField,
                  fmt::format("{} has no interactions to tell what is popular; name a field{}",
                              snapshot.collection, FieldsWithOrder(existing.fields())));
  }
  const absl::StatusOr<const Field*> chosen = ChooseField(snapshot, cold_start, existing.fields());
  if (!chosen.ok()) return chosen.status();
  const Field& field = **chosen;
  using Integers = filter::OrderedColumn<std::int64_t>;
  if (const auto* const integers = std::get_if<Integers>(&field.column)) {
    return engine::RowOrder(field.name, integers, snapshot.row_count());
  }
  return engine::RowOrder(field.name,
                          &std::get<filter::OrderedColumn<filter::Number>>(field.column),
                          snapshot.row_count());
}

}  // namespace simile::query

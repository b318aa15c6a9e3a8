#include "recommend/fallback.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "filter/expression.h"
#include "filter/payload_index.h"
#include "filter/unknown_field.h"

namespace simile::recommend {
namespace {

using filter::Field;
using filter::FieldType;

constexpr std::string_view kUsersWhoHaveSeen = "users who have seen it";
constexpr std::string_view kYear = "year";

bool HasOrder(const Field& field) {
  return field.type == FieldType::kInteger || field.type == FieldType::kNumber ||
         field.type == FieldType::kTime;
}

// "; fields with an order: year, rating", or that there is none.
std::string FieldsWithOrder(const filter::PayloadIndex& payload) {
  std::vector<std::string> names;
  for (const Field& field : payload.fields()) {
    if (HasOrder(field)) names.push_back(filter::FieldText(field.name));
  }
  if (names.empty()) return "; no field of it has an order";
  return fmt::format("; fields with an order: {}", fmt::join(names, ", "));
}

// The field that tells which rows are newest when nobody has said; null when none does.
const Field* NewestField(const filter::PayloadIndex& payload) {
  const Field* only_time = nullptr;
  for (const Field& field : payload.fields()) {
    if (field.type != FieldType::kTime) continue;
    if (only_time != nullptr) return nullptr;
    only_time = &field;
  }
  if (only_time != nullptr) return only_time;
  const Field* const year = payload.Find(kYear);
  return year != nullptr && year->type == FieldType::kInteger ? year : nullptr;
}

absl::StatusOr<const Field*> ChooseField(const engine::Snapshot& snapshot,
                                         const Fallback& fallback) {
  const filter::PayloadIndex& payload = snapshot.filters->payload();
  if (fallback.field.empty()) {
    if (const Field* const field = NewestField(payload)) return field;
    return absl::InvalidArgumentError(
        fmt::format("fallback.field: {} does not tell by itself which rows are newest; name a "
                    "field{}",
                    snapshot.collection, FieldsWithOrder(payload)));
  }
  const Field* const field = payload.Find(fallback.field);
  if (field == nullptr) {
    return absl::InvalidArgumentError(
        "fallback.field: " + filter::UnknownField(snapshot.collection, fallback.field, payload));
  }
  if (HasOrder(*field)) return field;
  return absl::InvalidArgumentError(
      fmt::format("fallback.field: {} is of type {}, which has no order{}",
                  filter::FieldText(field->name), NameOf(field->type), FieldsWithOrder(payload)));
}

}  // namespace

absl::StatusOr<engine::RowOrder> OrderOf(const engine::Snapshot& snapshot,
                                         const Fallback& fallback) {
  if (fallback.order == Fallback::Order::kMostPopular && fallback.field.empty()) {
    const std::vector<Row>& most_seen = snapshot.dataset->profiles.most_seen;
    if (!most_seen.empty()) {
      return engine::RowOrder(kUsersWhoHaveSeen, &most_seen, snapshot.row_count());
    }
    return absl::InvalidArgumentError(
        fmt::format("fallback: {} has no interactions to tell what is popular; name a field{}",
                    snapshot.collection, FieldsWithOrder(snapshot.filters->payload())));
  }
  const absl::StatusOr<const Field*> chosen = ChooseField(snapshot, fallback);
  if (!chosen.ok()) return chosen.status();
  const Field& field = **chosen;
  using Whole = filter::OrderedColumn<std::int64_t>;
  if (const auto* const whole = std::get_if<Whole>(&field.column)) {
    return engine::RowOrder(field.name, whole, snapshot.row_count());
  }
  return engine::RowOrder(field.name, &std::get<filter::OrderedColumn<double>>(field.column),
                          snapshot.row_count());
}

}  // namespace simile::recommend

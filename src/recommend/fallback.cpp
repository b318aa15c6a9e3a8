#include "recommend/fallback.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
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

// Takes rows in the order they come until there are enough, those that may be returned.
class Taker {
 public:
  Taker(const RowMask* mask, std::span<const Row> excluded, std::size_t row_count,
        std::size_t wanted, std::vector<Row>& rows)
      : mask_(mask), excluded_(excluded), met_(row_count), wanted_(wanted), rows_(rows) {}

  // Whether more are wanted.
  bool Take(Row row) {
    met_.Allow(row);
    const bool passes = (mask_ == nullptr || mask_->Allows(row)) &&
                        !std::binary_search(excluded_.begin(), excluded_.end(), row);
    if (passes) rows_.push_back(row);
    return rows_.size() < wanted_;
  }
  // All rows that have not come yet.
  void TakeOthers() {
    for (Row row = 0; row < met_.row_count() && rows_.size() < wanted_; ++row) {
      if (!met_.Allows(row)) Take(row);
    }
  }

 private:
  const RowMask* mask_;
  const std::span<const Row> excluded_;
  RowMask met_;
  const std::size_t wanted_;
  std::vector<Row>& rows_;
};

}  // namespace

absl::StatusOr<engine::GivenRows> RowsByFallback(const engine::Snapshot& snapshot,
                                                 const Fallback& fallback, const RowMask* mask,
                                                 std::span<const Row> excluded,
                                                 std::size_t wanted) {
  engine::GivenRows given;
  Taker taker(mask, excluded, snapshot.row_count(), wanted, given.rows);
  if (fallback.order == Fallback::Order::kMostPopular && fallback.field.empty()) {
    const std::vector<Row>& most_seen = snapshot.dataset->profiles.most_seen;
    if (most_seen.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("fallback: {} has no interactions to tell what is popular; name a field{}",
                      snapshot.collection, FieldsWithOrder(snapshot.filters->payload())));
    }
    given.ordered_by = kUsersWhoHaveSeen;
    static_cast<void>(std::ranges::all_of(most_seen, [&](Row row) { return taker.Take(row); }));
  } else {
    const absl::StatusOr<const Field*> field = ChooseField(snapshot, fallback);
    if (!field.ok()) return field.status();
    given.ordered_by = (*field)->name;
    const auto take = [&](Row row) { return taker.Take(row); };
    if (const auto* const whole =
            std::get_if<filter::OrderedColumn<std::int64_t>>(&(*field)->column)) {
      whole->VisitDescending(take);
    } else {
      std::get<filter::OrderedColumn<double>>((*field)->column).VisitDescending(take);
    }
  }
  taker.TakeOthers();
  return given;
}

}  // namespace simile::recommend

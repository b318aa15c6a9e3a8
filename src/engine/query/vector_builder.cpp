#include "engine/query/vector_builder.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/message_text.h"
#include "certificate/device_bounds.h"
#include "certificate/vector_sum.h"
#include "simile/limits.h"

namespace simile::engine {
namespace {

using base::ErrorReason;

// A vector sent as stored may be searched without being normalized, because no proof requires a
// query of unit length. The CPU's bound uses the measured length of the query
// (certificate/score_bound.h). The GPU's bound requires at most kUnitLengthMax; a longer query is
// scaled (ChooseUnit in certificate/device_bounds.h). A query within kStoredLengthError of 1 is not
// scaled, like the rows.
static_assert(1 + kStoredLengthError <= certificate::kUnitLengthMax);

// Names the first number that is not finite.
template <class Number>
std::string NotFiniteText(std::string_view name, std::span<const Number> values) {
  std::size_t column = 0;
  while (column + 1 < values.size() && std::isfinite(values[column])) ++column;
  return fmt::format("{} holds {} at column {}; vectors must be finite", name,
                     std::isnan(values[column]) ? "NaN" : "infinity", column);
}

// Scales in double and rounds to fp32 as data::ReadMatrix does, so the bits are equal.
void Scale(double factor, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(value * factor);
}

void Copy(MatrixView vectors, Row from, float* row) {
  std::copy_n(vectors.PaddedRow(from), vectors.padded_dim(), row);
}

// The most that weights times lengths, summed over all examples, may be: far from overflow with any
// row.
constexpr double kReachMax = 0x1p66;

constexpr std::string_view kPositive = "examples.positive";
constexpr std::string_view kNegative = "examples.negative";

double TotalWeight(const std::vector<Example>& examples) {
  double total = 0;
  for (const Example& example : examples) total += example.weight;
  return total;
}

Place WithPart(const Place& query, std::string_view part) {
  Place place = query;
  place.part = part;
  return place;
}

// Calls visit(place, example) for each.
//   part  kPositive or kNegative
template <class Visit>
absl::Status ForEachExample(const Place& query, std::string_view part,
                            const std::vector<Example>& examples, Visit visit) {
  Place place = WithPart(query, part);
  for (const Example& example : examples) {
    ++place.part_index;
    if (absl::Status status = visit(place, example); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VectorBuilder::Build(const Place& place, const ByVector& target, float* row,
                                  std::vector<Row>&) const {
  const std::size_t dim = target.values.size();
  if (dim != snapshot_.dim()) {
    return ErrorAt(
        place, target.field, ErrorReason::kDimensionMismatch,
        fmt::format("vector holds {}, {} has {}; a vector from another model cannot be compared",
                    base::Counted(dim, "dimension"), snapshot_.collection,
                    base::Grouped(snapshot_.dim())));
  }
  const double squares = target.values.CopyTo(row);
  const std::span<float> values(row, dim);
  const absl::StatusOr<double> length =
      CheckedLength<float>(place, target.field, "vector", squares, values);
  if (!length.ok()) return length.status();
  if (target.as_stored) return CheckStored(place, target, *length);
  if (is_cosine()) Scale(1 / *length, values);
  return absl::OkStatus();
}

absl::Status VectorBuilder::CheckStored(const Place& place, const ByVector& target,
                                        double length) const {
  if (!is_cosine() || std::abs(length - 1) <= kStoredLengthError) return absl::OkStatus();
  return ErrorAt(
      place, target.field, ErrorReason::kInvalidField,
      fmt::format("vector has length {:.7g} and is marked as_stored; vectors that {} stores have "
                  "length 1 within {}; leave out as_stored to have it brought to that length",
                  length, snapshot_.collection, kStoredLengthError));
}

absl::StatusOr<Row> VectorBuilder::WriteItem(const Place& place, std::string_view field,
                                             const engine::Snapshot& snapshot,
                                             const ExistingItems& items, std::string_view id,
                                             float* row) const {
  const std::optional<Row> item = items.Find(id);
  if (!item) {
    return NotFound(place, field, ErrorReason::kItemNotFound,
                    items.ItemNotFoundText(id, may_offer_, work_));
  }
  if (snapshot.searchable != nullptr && !snapshot.searchable->Allows(*item)) {
    return ErrorAt(
        place, field, ErrorReason::kInvalidField,
        fmt::format("item {} of {} has a vector of zeros, which is like nothing (on_zero_row: "
                    "skip)",
                    base::Quoted(id), snapshot.collection));
  }
  Copy(snapshot.dataset->vectors.view(), *item, row);
  return *item;
}

absl::Status VectorBuilder::Build(const Place& place, const ByItem& target, float* row,
                                  std::vector<Row>& excluded) const {
  const auto item = WriteItem(place, target.field, snapshot_, items_, target.id, row);
  if (item.ok()) excluded.push_back(*item);
  return item.status();
}

absl::Status VectorBuilder::Build(const Place& place, const ByOtherItem& target, float* row,
                                  std::vector<Row>&) const {
  const auto other = others_.Of(place, target.collection);
  if (!other.ok()) return other.status();
  return WriteItem(place, "item.id", (*other)->snapshot, (*other)->existing, target.id, row)
      .status();
}

absl::Status VectorBuilder::Build(const Place& place, const VectorOrItem& target, float* row,
                                  std::vector<Row>& excluded) const {
  return std::visit([&](const auto& each) { return Build(place, each, row, excluded); }, target);
}

absl::Status VectorBuilder::Build(const Place& place, const ByUser& target, float* row,
                                  std::vector<Row>&) const {
  if (!items_.has_users()) {
    return ErrorAt(
        place, target.field, ErrorReason::kUserNotFound,
        fmt::format("{} has no user profiles: its folder had no user_ids.json when it was loaded; "
                    "restart or reload after adding it",
                    snapshot_.collection));
  }
  const std::optional<Row> user = items_.FindUser(target.id);
  if (!user) {
    return NotFound(place, target.field, ErrorReason::kUserNotFound,
                    items_.UserNotFoundText(target.id, may_offer_, work_));
  }
  Copy(snapshot_.dataset->profiles.vectors.view(), *user, row);
  return absl::OkStatus();
}

absl::Status VectorBuilder::NotFound(const Place& place, std::string_view field, ErrorReason reason,
                                     const absl::StatusOr<std::string>& text) {
  return text.ok() ? ErrorAt(place, field, reason, *text) : text.status();
}

absl::Status VectorBuilder::Finish(const Place& place, std::string_view name,
                                   std::span<const double> values, float* row) const {
  double squares = 0;
  for (const double value : values) squares += value * value;
  const absl::StatusOr<double> length = CheckedLength<double>(place, {}, name, squares, values);
  if (!length.ok()) return length.status();
  const double divisor = is_cosine() ? *length : 1;
  for (std::size_t column = 0; column < values.size(); ++column) {
    row[column] = static_cast<float>(values[column] / divisor);
  }
  return absl::OkStatus();
}

template <class Number>
absl::StatusOr<double> VectorBuilder::CheckedLength(const Place& place, std::string_view field,
                                                    std::string_view name, double squares,
                                                    std::span<const Number> values) const {
  const double length = std::sqrt(squares);
  if (!std::isfinite(length)) {
    return ErrorAt(place, field, ErrorReason::kInvalidField, NotFiniteText(name, values));
  }
  if (length == 0) {
    if (!is_cosine()) return length;  // a valid vector: all rows score 0
    return ErrorAt(place, field, ErrorReason::kInvalidField,
                   fmt::format("{} is all zeros; a vector needs a direction to be compared", name));
  }
  if (length < kNormMin || length > kNormMax) {
    return ErrorAt(place, field, ErrorReason::kInvalidField,
                   fmt::format("{} has length {:.4g}; lengths from 2^-60 to 2^60 can be compared",
                               name, length));
  }
  return length;
}

absl::Status BuildAverage(const VectorBuilder& builder, const Place& query,
                          const ByExamples& examples, float* row, std::vector<Row>& excluded) {
  certificate::VectorSum sum(builder.dim());
  const auto add = [&](std::string_view part, const std::vector<Example>& some, double factor) {
    const double share = factor / TotalWeight(some);
    return ForEachExample(query, part, some, [&](const Place& place, const Example& example) {
      absl::Status status = builder.Build(place, example.target, row, excluded);
      if (status.ok()) sum.Add(share * example.weight, row);
      return status;
    });
  };
  absl::Status status = add(kPositive, examples.positive, examples.negative.empty() ? 1.0 : 2.0);
  if (status.ok()) status = add(kNegative, examples.negative, -1.0);
  if (!status.ok()) return status;
  if (sum.CancelsOut()) {
    return ErrorAt(WithPart(query, "examples"), {}, base::ErrorReason::kInvalidField,
                   "positive and negative ones cancel each other out, so that no direction is left "
                   "to search in; the strategies best_score and sum_scores take them");
  }
  return builder.Finish(query, "the examples' average vector", sum.values(), row);
}

absl::Status BuildBlend(const VectorBuilder& builder, const Place& query, const ByBlend& blend,
                        float* row, std::vector<Row>& excluded) {
  const Place place = WithPart(query, "blend");
  certificate::VectorSum sum(builder.dim());
  absl::Status status = builder.Build(place, blend.target, row, excluded);
  if (!status.ok()) return status;
  sum.Add(1.0 - static_cast<double>(blend.user_weight), row);
  status = builder.Build(place, blend.user, row, excluded);
  if (!status.ok()) return status;
  sum.Add(blend.user_weight, row);
  if (sum.CancelsOut()) {
    return ErrorAt(place, {}, base::ErrorReason::kInvalidField,
                   "its two vectors cancel each other out, so that no direction is left to search "
                   "in; give another weight");
  }
  return builder.Finish(place, "the blended vector", sum.values(), row);
}

absl::Status BuildExamples(const VectorBuilder& builder, const Place& query,
                           const ByExamples& examples, float* rows, std::vector<Row>& excluded) {
  const std::size_t padded_dim = PaddedDim(builder.dim());
  certificate::VectorSum sum(builder.dim());
  const auto build = [&](const Place& place, const Example& example) {
    absl::Status status = builder.Build(place, example.target, rows, excluded);
    if (!status.ok()) return status;
    sum.Add(example.weight, rows);
    rows += padded_dim;
    return status;
  };
  absl::Status status = ForEachExample(query, kPositive, examples.positive, build);
  if (status.ok()) status = ForEachExample(query, kNegative, examples.negative, build);
  if (!status.ok()) return status;
  if (sum.reach() <= kReachMax) return absl::OkStatus();
  return ErrorAt(
      WithPart(query, "examples"), {}, base::ErrorReason::kInvalidField,
      fmt::format("weights times lengths of their vectors add up to {:.4g}; sums up to 2^66 can be "
                  "compared",
                  sum.reach()));
}

}  // namespace simile::engine

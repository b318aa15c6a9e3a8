#include "query/vector_builder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "simile/limits.h"

namespace simile::query {
namespace {

absl::Status Unknown(std::string_view place, std::string_view kind, const std::string& id,
                     const engine::Snapshot& snapshot, const data::IdIndex& ids) {
  const std::string offer = base::DidYouMean(ids.Nearest(id));
  return absl::NotFoundError(fmt::format("{}no {} {} in {}{}{}", place, kind, base::Quoted(id),
                                         snapshot.collection, offer.empty() ? "" : ".", offer));
}

// Names the first number that is not finite.
template <class Number>
absl::Status RefuseNotFinite(std::string_view place, std::string_view what,
                             std::span<const Number> values) {
  std::size_t column = 0;
  while (column + 1 < values.size() && std::isfinite(values[column])) ++column;
  return absl::InvalidArgumentError(
      fmt::format("{}{} holds {} at column {}; vectors must be finite", place, what,
                  std::isnan(values[column]) ? "NaN" : "infinity", column));
}

void Copy(MatrixView vectors, Row from, float* row) {
  std::copy_n(vectors.PaddedRow(from), vectors.padded_dim(), row);
}

}  // namespace

absl::Status VectorBuilder::Build(std::string_view place, const ByVector& target, float* row,
                                  std::vector<Row>&) const {
  const std::vector<float>& values = target.values;
  if (values.size() != snapshot_.dim()) {
    return absl::InvalidArgumentError(
        fmt::format("{}vector holds {}, {} has {}; a vector from another model cannot be compared",
                    place, base::Counted(values.size(), "dimension"), snapshot_.collection,
                    base::Grouped(snapshot_.dim())));
  }
  return Finish(place, "vector", std::span<const float>(values), row);
}

absl::Status VectorBuilder::Build(std::string_view place, const ByItem& target, float* row,
                                  std::vector<Row>& excluded) const {
  const std::optional<Row> item = snapshot_.dataset->ids.Find(target.id);
  if (!item) return Unknown(place, "item", target.id, snapshot_, snapshot_.dataset->ids);
  Copy(snapshot_.dataset->vectors.view(), *item, row);
  excluded.push_back(*item);
  return absl::OkStatus();
}

absl::Status VectorBuilder::Build(std::string_view place,
                                  const std::variant<ByVector, ByItem>& target, float* row,
                                  std::vector<Row>& excluded) const {
  return std::visit([&](const auto& each) { return Build(place, each, row, excluded); }, target);
}

absl::Status VectorBuilder::Build(std::string_view place, const ByUser& target, float* row,
                                  std::vector<Row>& excluded) const {
  const data::Profiles& profiles = snapshot_.dataset->profiles;
  if (profiles.ids.size() == 0) {
    return absl::FailedPreconditionError(fmt::format(
        "{}{} has no user profiles (no user_ids.json in its folder)", place, snapshot_.collection));
  }
  const std::optional<Row> user = profiles.ids.Find(target.id);
  if (!user) return Unknown(place, "user", target.id, snapshot_, profiles.ids);
  Copy(profiles.vectors.view(), *user, row);
  if (target.exclude_seen) {
    const std::span<const Row> seen = profiles.seen.Of(*user);
    excluded.insert(excluded.end(), seen.begin(), seen.end());
  }
  return absl::OkStatus();
}

// In double: squares of fp32 numbers are exact in it and neither overflow nor underflow, so the
// length is finite exactly when every number is.
template <class Number>
absl::Status VectorBuilder::Finish(std::string_view place, std::string_view what,
                                   std::span<const Number> values, float* row) const {
  double squares = 0;
  for (const double value : values) squares += value * value;
  const double length = std::sqrt(squares);
  if (!std::isfinite(length)) return RefuseNotFinite(place, what, values);
  if (length < kNormMin || length > kNormMax) {
    return absl::InvalidArgumentError(fmt::format(
        "{}{} has length {:.4g}; lengths from 2^-60 to 2^60 can be compared", place, what, length));
  }
  const bool cosine = snapshot_.dataset->metric == Metric::kCosine;
  for (std::size_t column = 0; column < values.size(); ++column) {
    const double value = values[column];
    row[column] = static_cast<float>(cosine ? value / length : value);
  }
  return absl::OkStatus();
}

template absl::Status VectorBuilder::Finish(std::string_view, std::string_view,
                                            std::span<const double>, float*) const;

}  // namespace simile::query

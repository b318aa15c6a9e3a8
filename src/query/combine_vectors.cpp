#include "query/combine_vectors.h"

#include <fmt/format.h>

#include "certificate/vector_sum.h"

namespace simile::query {
namespace {

// Weights times lengths, summed over all examples: far from overflow with any row.
constexpr double kReachMax = 0x1p66;

constexpr std::string_view kPositive = "examples.positive";
constexpr std::string_view kNegative = "examples.negative";

double TotalWeight(const std::vector<Example>& examples) {
  double total = 0;
  for (const Example& example : examples) total += example.weight;
  return total;
}

Place PartOf(const Place& query, std::string_view part) {
  Place place = query;
  place.part = part;
  return place;
}

// Calls visit(place, example) for each.
//   part  kPositive or kNegative
template <class Visit>
absl::Status ForEachExample(const Place& query, std::string_view part,
                            const std::vector<Example>& examples, Visit visit) {
  Place place = PartOf(query, part);
  for (const Example& example : examples) {
    ++place.part_index;
    if (absl::Status status = visit(place, example); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

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
    return ErrorAt(PartOf(query, "examples"), {}, base::ErrorReason::kInvalidField,
                   "positive and negative ones cancel each other out, so that no direction is left "
                   "to search in; the strategies best_score and sum_scores take them");
  }
  return builder.Finish(query, "the examples' average vector", sum.values(), row);
}

absl::Status BuildBlend(const VectorBuilder& builder, const Place& query, const ByBlend& blend,
                        float* row, std::vector<Row>& excluded) {
  const Place place = PartOf(query, "blend");
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
      PartOf(query, "examples"), {}, base::ErrorReason::kInvalidField,
      fmt::format("weights times lengths of their vectors add up to {:.4g}; sums up to 2^66 can be "
                  "compared",
                  sum.reach()));
}

}  // namespace simile::query

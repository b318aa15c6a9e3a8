#include "query/combine_vectors.h"

#include <string>

#include <fmt/format.h>

#include "certificate/vector_sum.h"

namespace simile::query {
namespace {

// Weights times lengths, summed over all examples: far from overflow with any row.
constexpr double kReachMax = 0x1p66;

double TotalWeight(const std::vector<Example>& examples) {
  double total = 0;
  for (const Example& example : examples) total += example.weight;
  return total;
}

// Calls visit(example, what messages call it) for each.
template <class Visit>
absl::Status ForEachExample(std::string_view place, std::string_view sign,
                            const std::vector<Example>& examples, Visit visit) {
  for (std::size_t i = 0; i < examples.size(); ++i) {
    absl::Status status = visit(examples[i], fmt::format("{}examples.{}[{}]: ", place, sign, i));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BuildAverage(const VectorBuilder& builder, std::string_view place,
                          const ByExamples& examples, float* row, std::vector<Row>& excluded) {
  certificate::VectorSum sum(builder.dim());
  const auto add = [&](std::string_view sign, const std::vector<Example>& some, double factor) {
    const double share = factor / TotalWeight(some);
    return ForEachExample(place, sign, some, [&](const Example& example, const std::string& at) {
      absl::Status status = builder.Build(at, example.target, row, excluded);
      if (status.ok()) sum.Add(share * example.weight, row);
      return status;
    });
  };
  absl::Status status = add("positive", examples.positive, examples.negative.empty() ? 1.0 : 2.0);
  if (status.ok()) status = add("negative", examples.negative, -1.0);
  if (!status.ok()) return status;
  if (sum.Vanishes()) {
    return absl::InvalidArgumentError(fmt::format(
        "{}examples: positive and negative ones cancel each other out, so that no direction is "
        "left to search in; BEST_SCORE and SUM_SCORES take them",
        place));
  }
  return builder.Finish(place, "the examples' average vector", sum.values(), row);
}

absl::Status BuildBlend(const VectorBuilder& builder, std::string_view place, const ByBlend& blend,
                        float* row, std::vector<Row>& excluded) {
  const std::string at = fmt::format("{}blend: ", place);
  certificate::VectorSum sum(builder.dim());
  absl::Status status = builder.Build(at, blend.target, row, excluded);
  if (!status.ok()) return status;
  sum.Add(1.0 - static_cast<double>(blend.user_weight), row);
  status = builder.Build(at, blend.user, row, excluded);
  if (!status.ok()) return status;
  sum.Add(blend.user_weight, row);
  if (sum.Vanishes()) {
    return absl::InvalidArgumentError(
        fmt::format("{}its two vectors cancel each other out, so that no direction is left to "
                    "search in; give another user_weight",
                    at));
  }
  return builder.Finish(at, "the blended vector", sum.values(), row);
}

absl::Status BuildExamples(const VectorBuilder& builder, std::string_view place,
                           const ByExamples& examples, float* rows, std::vector<Row>& excluded) {
  const std::size_t padded_dim = PaddedDim(builder.dim());
  certificate::VectorSum sum(builder.dim());
  const auto build = [&](const Example& example, const std::string& at) {
    absl::Status status = builder.Build(at, example.target, rows, excluded);
    if (!status.ok()) return status;
    sum.Add(example.weight, rows);
    rows += padded_dim;
    return status;
  };
  absl::Status status = ForEachExample(place, "positive", examples.positive, build);
  if (status.ok()) status = ForEachExample(place, "negative", examples.negative, build);
  if (!status.ok()) return status;
  if (sum.reach() <= kReachMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}examples: weights times lengths of their vectors add up to {:.4g}; sums up to "
                  "2^66 can be compared",
                  place, sum.reach()));
}

}  // namespace simile::query

#include "query/option_notes.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "certificate/cosine_threshold.h"
#include "simile/limits.h"

namespace simile::query {
namespace {

constexpr float kNoThreshold = -std::numeric_limits<float>::infinity();

// What the scores of a query can be.
struct ScoreRange {
  double most = 0;
  std::string_view name;  // "cosine"; empty where scores have no bound
};

ScoreRange RangeOf(const QueryRequest& request, Metric metric, std::size_t dim) {
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples != nullptr && examples->strategy == Strategy::kSumScores) return {};
  if (examples != nullptr && examples->strategy == Strategy::kBestScore) return {1, "best_score"};
  if (metric == Metric::kDot) return {};
  // A vector marked as stored may be that much longer.
  return {1 + certificate::CosineRounding(dim) + kStoredLengthError, "cosine"};
}

void AddThresholdNotes(const QueryRequest& request, const ScoreRange& range,
                       std::vector<std::string>& notes) {
  if (range.name.empty()) return;
  const float threshold = request.score_threshold;
  if (threshold <= -1) {
    notes.push_back(
        fmt::format("score_threshold {} has no effect: no {} is below -1", threshold, range.name));
  } else if (threshold > range.most) {
    notes.push_back(fmt::format("score_threshold {} leaves out every row: no {} is above 1",
                                threshold, range.name));
  }
}

void AddDiversityNotes(const QueryRequest& request, std::vector<std::string>& notes) {
  if (request.diversity->lambda == 1) {
    notes.emplace_back("diversity has no effect: with lambda 1 the score alone decides");
  } else if (std::uint64_t{request.offset} + request.k == 1) {
    notes.emplace_back("diversity has no effect on a single hit, which is the best by score");
  }
}

// Equal weights leave a weighted mean as it is.
void AddWeightNote(std::string_view part, const std::vector<Example>& examples,
                   std::vector<std::string>& notes) {
  if (examples.empty() || examples.front().weight == 1) return;
  const bool equal = std::ranges::all_of(
      examples, [&](const Example& example) { return example.weight == examples.front().weight; });
  if (!equal) return;
  notes.push_back(
      fmt::format("examples.{}: weight {} has no effect: the strategy average_vector takes a "
                  "weighted mean, and "
                  "all weights are equal",
                  part, examples.front().weight));
}

void AddBlendNotes(const ByBlend& blend, std::vector<std::string>& notes) {
  if (blend.user_weight == 0) {
    notes.emplace_back("blend: the user's profile has no effect with user_weight 0");
  } else if (blend.user_weight == 1) {
    notes.emplace_back("blend: the target has no effect on scores with user_weight 1");
  }
}

}  // namespace

void AddOptionNotes(const QueryRequest& request, Metric metric, std::size_t dim, bool cold,
                    std::vector<std::string>& notes) {
  if (cold) {
    constexpr std::string_view kNoScores =
        "has no effect on a cold start, whose hits have no score";
    if (request.diversity) notes.push_back(fmt::format("diversity {}", kNoScores));
    if (request.score_threshold != kNoThreshold) {
      notes.push_back(fmt::format("score_threshold {}", kNoScores));
    }
    return;
  }
  if (request.score_threshold != kNoThreshold) {
    AddThresholdNotes(request, RangeOf(request, metric, dim), notes);
  }
  if (request.diversity) AddDiversityNotes(request, notes);
  if (const auto* const blend = std::get_if<ByBlend>(&request.target)) AddBlendNotes(*blend, notes);
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples == nullptr || examples->strategy != Strategy::kAverageVector) return;
  AddWeightNote("positive", examples->positive, notes);
  AddWeightNote("negative", examples->negative, notes);
}

}  // namespace simile::query

#include "query/option_notes.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <variant>

#include <fmt/format.h>

namespace simile::query {
namespace {

constexpr float kNoThreshold = -std::numeric_limits<float>::infinity();

// What scores of at least -1 are called; empty for those without a bound.
std::string_view BoundedScores(const QueryRequest& request, Metric metric) {
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples != nullptr && examples->strategy == Strategy::kSumScores) return {};
  if (examples != nullptr && examples->strategy == Strategy::kBestScore) return "best_score";
  return metric == Metric::kCosine ? "cosine" : std::string_view();
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

void AddOptionNotes(const QueryRequest& request, Metric metric, bool cold,
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
  const std::string_view scores = BoundedScores(request, metric);
  if (request.score_threshold != kNoThreshold && request.score_threshold <= -1 && !scores.empty()) {
    notes.push_back(fmt::format("score_threshold {} has no effect: no {} is below -1",
                                request.score_threshold, scores));
  }
  if (request.diversity) AddDiversityNotes(request, notes);
  if (const auto* const blend = std::get_if<ByBlend>(&request.target)) AddBlendNotes(*blend, notes);
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples == nullptr || examples->strategy != Strategy::kAverageVector) return;
  AddWeightNote("positive", examples->positive, notes);
  AddWeightNote("negative", examples->negative, notes);
}

}  // namespace simile::query

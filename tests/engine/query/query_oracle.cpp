#include "engine/query/query_oracle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "certificate/canonical_score.h"

namespace simile::engine {
namespace {

float Canonical(std::span<const float> a, std::span<const float> b) {
  return certificate::CanonicalScoreReference(a, b);
}

float SquashedByDefinition(float x) {
  const double wide = x;
  return static_cast<float>((wide / (1 + std::fabs(wide)) + 1) / 2);
}

float ExamplesScore(const ByExamples& examples, MatrixView vectors, std::span<const float> row) {
  double sum = 0;
  std::vector<float> positive;
  std::vector<float> negative;
  std::size_t vector = 0;
  for (const Example& example : examples.positive) {
    const float x = Canonical(vectors[vector++], row);
    sum += static_cast<double>(x) * static_cast<double>(example.weight);
    positive.push_back(x * example.weight);
  }
  for (const Example& example : examples.negative) {
    const float x = Canonical(vectors[vector++], row);
    sum -= static_cast<double>(x) * static_cast<double>(example.weight);
    negative.push_back(x * example.weight);
  }
  if (examples.strategy == Strategy::kSumScores) return RankedScore(static_cast<float>(sum));
  std::ranges::sort(positive);
  std::ranges::sort(negative);
  if (negative.empty()) return SquashedByDefinition(positive.back());
  if (positive.empty() || !(positive.back() > negative.back()))
    return -SquashedByDefinition(negative.back());
  return SquashedByDefinition(positive.back());
}

float ComputeScore(const QueryRequest& request, MatrixView vectors, std::span<const float> row) {
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples == nullptr || examples->strategy == Strategy::kAverageVector)
    return Canonical(vectors[0], row);
  return ExamplesScore(*examples, vectors, row);
}

std::set<Row> ExcludedRows(const data::Dataset& dataset, const QueryRequest& request) {
  std::set<Row> excluded;
  const auto exclude_id = [&](const std::string& id) {
    if (const auto row = dataset.ids.Find(id)) excluded.insert(*row);
  };
  const auto exclude_target = [&](const VectorOrItem& target) {
    if (const auto* const item = std::get_if<ByItem>(&target)) exclude_id(item->id);
  };
  const auto exclude_seen = [&](const ByUser& user) {
    if (!user.exclude_seen) return;
    for (const Row row : dataset.profiles.seen.Of(dataset.profiles.ids.Find(user.id).value()))
      excluded.insert(row);
  };
  for (const std::string& id : request.exclude_ids) exclude_id(id);
  if (const auto* const item = std::get_if<ByItem>(&request.target)) exclude_id(item->id);
  if (const auto* const user = std::get_if<ByUser>(&request.target)) exclude_seen(*user);
  if (const auto* const blend = std::get_if<ByBlend>(&request.target)) {
    exclude_target(blend->target);
    exclude_seen(blend->user);
  }
  if (const auto* const examples = std::get_if<ByExamples>(&request.target)) {
    for (const Example& example : examples->positive) exclude_target(example.target);
    for (const Example& example : examples->negative) exclude_target(example.target);
  }
  return excluded;
}

// A text, or the digits of an integer.
std::string GroupText(const PayloadValue& value) {
  const auto* const whole = std::get_if<std::int64_t>(&value.value);
  return whole != nullptr ? std::to_string(*whole) : std::get<std::string>(value.value);
}

std::set<std::string> ReadGroups(const data::Dataset& dataset, Row row, std::string_view field) {
  std::set<std::string> groups;
  for (const PayloadMember& member : dataset.payload.Read(row)) {
    if (member.first != field) continue;
    if (const auto* const list = std::get_if<PayloadList>(&member.second.value)) {
      for (const PayloadValue& each : *list) groups.insert(GroupText(each));
    } else {
      groups.insert(GroupText(member.second));
    }
  }
  return groups;
}

// Groups of equal best rows are in the order of their texts, which is that of the integers here.
std::vector<ExpectedAnswer::Group> Grouped(const data::Dataset& dataset,
                                           const GroupRequest& request,
                                           const std::vector<Hit>& hits, std::size_t k) {
  std::vector<ExpectedAnswer::Group> groups;
  std::map<std::string, std::size_t> place;
  for (const Hit& hit : hits) {
    for (const std::string& keyword : ReadGroups(dataset, hit.row, request.field)) {
      const auto [found, is_new] = place.try_emplace(keyword, groups.size());
      if (is_new) groups.push_back({keyword, {}});
      ExpectedAnswer::Group& group = groups[found->second];
      if (group.hits.size() < request.group_size) group.hits.push_back(hit);
    }
  }
  if (groups.size() > k) groups.resize(k);
  return groups;
}

std::vector<Hit> Diverse(const data::Dataset& dataset, const engine::Diversity& request,
                         std::vector<Hit> pool, std::size_t k) {
  if (pool.size() > request.candidates) pool.resize(request.candidates);
  const MatrixView rows = dataset.vectors.view();
  std::vector<Hit> chosen;
  while (chosen.size() < k && !pool.empty()) {
    std::size_t best = 0;
    double best_value = 0;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      float nearest = -HUGE_VALF;
      for (const Hit& hit : chosen)
        nearest = std::max(nearest, Canonical(rows[hit.row], rows[pool[i].row]));
      const double lambda = request.lambda;
      const double value = chosen.empty() ? -static_cast<double>(i)
                                          : lambda * pool[i].score - (1 - lambda) * nearest;
      if (i == 0 || value > best_value) {
        best = i;
        best_value = value;
      }
    }
    chosen.push_back(pool[best]);
    pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return chosen;
}

// Cosines are compared up to their rounding.
float ComparedThreshold(const data::Dataset& dataset, const QueryRequest& request) {
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  const bool is_cosine = dataset.metric == Metric::kCosine &&
                         (examples == nullptr || examples->strategy == Strategy::kAverageVector);
  return is_cosine ? certificate::CosineThreshold(request.score_threshold, dataset.vectors.dim())
                   : request.score_threshold;
}

bool RanksBefore(const Hit& a, const Hit& b) {
  return a.score != b.score ? a.score > b.score : a.row < b.row;
}

// All rows that may be returned, best first.
std::vector<Hit> AllHits(const data::Dataset& dataset, const QueryRequest& request,
                         MatrixView vectors, const std::function<bool(Row)>& passes) {
  const std::set<Row> excluded = ExcludedRows(dataset, request);
  const float threshold = ComparedThreshold(dataset, request);
  std::vector<Hit> hits;
  for (Row row = 0; row < dataset.vectors.row_count(); ++row) {
    if (excluded.contains(row) || !passes(row)) continue;
    if (std::ranges::binary_search(dataset.skipped_rows, row)) continue;
    const float score = ComputeScore(request, vectors, dataset.vectors.view()[row]);
    if (score >= threshold) hits.push_back({row, score});
  }
  std::ranges::sort(hits, RanksBefore);
  return hits;
}

}  // namespace

ExpectedAnswer BruteForce(const data::Dataset& dataset, const QueryRequest& request,
                          MatrixView vectors, const std::function<bool(Row)>& passes) {
  std::vector<Hit> hits = AllHits(dataset, request, vectors, passes);
  const std::size_t k = std::size_t{request.offset} + request.k;
  ExpectedAnswer answer;
  if (request.group_by) {
    answer.groups = Grouped(dataset, *request.group_by, hits, k);
  } else if (request.diversity) {
    answer.hits = Diverse(dataset, *request.diversity, std::move(hits), k);
  } else {
    if (hits.size() > k) hits.resize(k);
    answer.hits = std::move(hits);
  }
  return answer;
}

ExpectedPlace BruteForcePlace(const data::Dataset& dataset, const QueryRequest& request,
                              MatrixView vectors, const std::function<bool(Row)>& passes, Row row) {
  std::vector<Hit> hits = AllHits(dataset, request, vectors, passes);
  ExpectedPlace place;
  place.score = ComputeScore(request, vectors, dataset.vectors.view()[row]);
  const std::size_t k = std::size_t{request.offset} + request.k;
  if (request.diversity) {
    const std::vector<Hit> chosen = Diverse(dataset, *request.diversity, hits, k);
    const auto found = std::ranges::find(chosen, row, &Hit::row);
    if (found != chosen.end()) {
      place.step = static_cast<std::uint32_t>(found - chosen.begin() + 1);
    }
  }
  // As if it could be returned.
  const Hit own{row, place.score};
  const auto before = std::ranges::lower_bound(hits, own, RanksBefore);
  place.rank = static_cast<std::uint64_t>(before - hits.begin() + 1);
  if (before == hits.end() || before->row != row) hits.insert(before, own);
  if (!request.group_by) return place;
  const auto groups =
      Grouped(dataset, {request.group_by->field, UINT32_MAX}, hits, hits.size() * 8);
  for (const std::string& keyword : ReadGroups(dataset, row, request.group_by->field)) {
    const auto group = std::ranges::find(groups, keyword, &ExpectedAnswer::Group::keyword);
    const auto hit = std::ranges::find(group->hits, row, &Hit::row);
    place.groups.push_back({keyword, static_cast<std::uint64_t>(group - groups.begin() + 1),
                            static_cast<std::uint64_t>(hit - group->hits.begin() + 1)});
  }
  return place;
}

}  // namespace simile::engine

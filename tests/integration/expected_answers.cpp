#include "integration/expected_answers.h"

#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace simile::integration {
namespace {

constexpr double kTolerance = 2e-6;

std::vector<ExpectedAnswer> Read(const char* list, const char* id, const char* hits) {
  std::ifstream file(SIMILE_SOURCE_DIR "/examples/films/expected.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  std::vector<ExpectedAnswer> answers;
  for (const nlohmann::json& entry : json.at(list)) {
    ExpectedAnswer answer;
    answer.id = entry.at(id).get<std::string>();
    if (entry.contains("rows_passing_filter")) {
      answer.filter =
          fmt::format("year >= {} AND genres:\"{}\"", entry.at("filter_year_at_least").get<int>(),
                      entry.at("filter_genre_contained").get<std::string>());
      answer.rows_passing = entry.at("rows_passing_filter").get<std::uint64_t>();
    }
    for (const nlohmann::json& hit : entry.at(hits)) {
      answer.hits.emplace_back(hit.at(0).get<std::uint64_t>(), hit.at(1).get<double>());
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace

std::vector<ExpectedAnswer> ExpectedSimilar() {
  return Read("similar_films", "query_media_id", "top_20_excluding_self");
}

std::vector<ExpectedAnswer> ExpectedRecommendations() {
  return Read("user_recommendations", "user_id", "top_20_excluding_liked");
}

std::vector<ExpectedAnswer> ExpectedFilteredRecommendations(bool exclude_seen) {
  return Read("user_recommendations", "user_id",
              exclude_seen ? "top_20_filtered_excluding_liked" : "top_20_filtered_keeping_liked");
}

testing::AssertionResult SameAnswer(const google::protobuf::RepeatedPtrField<v1::Hit>& hits,
                                    const ExpectedAnswer& expected) {
  if (static_cast<std::size_t>(hits.size()) != expected.hits.size()) {
    return testing::AssertionFailure()
           << expected.id << ": " << hits.size() << " hits, not " << expected.hits.size();
  }
  std::vector<bool> found(expected.hits.size());
  for (int index = 0; index < hits.size(); ++index) {
    const v1::Hit& hit = hits[index];
    const auto place = static_cast<std::size_t>(index);
    if (std::abs(hit.score() - expected.hits[place].second) > kTolerance) {
      return testing::AssertionFailure() << expected.id << ", hit " << index << ": score "
                                         << hit.score() << ", not " << expected.hits[place].second;
    }
    bool same = false;
    for (std::size_t other = 0; other < expected.hits.size() && !same; ++other) {
      same = expected.hits[other].first == hit.row() && !found[other] &&
             std::abs(expected.hits[other].second - expected.hits[place].second) <= kTolerance;
      if (same) found[other] = true;
    }
    if (!same) {
      return testing::AssertionFailure() << expected.id << ", hit " << index << ": row "
                                         << hit.row() << ", not " << expected.hits[place].first;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace simile::integration

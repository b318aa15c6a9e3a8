#include "cli/bench/a100_report.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace simile::cli::bench {
namespace {

using testing::HasSubstr;

std::vector<A100Hit> Hits(std::uint32_t count) {
  std::vector<A100Hit> hits;
  for (std::uint32_t rank = 1; rank <= count; ++rank) hits.push_back({rank, "t", 0.5});
  return hits;
}

// All targets are met, none by much.
A100Measurements Good() {
  A100Measurements measured;
  measured.collection = "films";
  measured.rows = 5'000;
  measured.dim = 384;
  measured.similarity.times = {200, 0.99, 1.5};
  measured.similarity.results = Hits(10);
  measured.similarity.franchises = {{"Toy Story", "Toy Story", Hits(3), true}};
  measured.user_times = {100, 1.99, 2.5};
  measured.users = {{"u1", {"Drama"}, Hits(10), 8}, {"u2", {}, Hits(10), 0}};
  measured.batches = {{10, {500, 0.5, 2}}, {100, {50, 10, 29.9}}, {1'000, {10, 80, 100}}};
  measured.filters = {{"year >= 1990", 100, Hits(10), 10}, {"year >= 2030", 0, {}, 0}};
  measured.memory.peak_reserved_bytes = 1'999'000'000;
  return measured;
}

TargetOutcome OutcomeOf(const A100Measurements& measured, const std::string& name) {
  for (const A100Target& target : TargetsOf(measured)) {
    if (target.name == name) return target.outcome;
  }
  ADD_FAILURE() << "no target " << name;
  return TargetOutcome::kNotApplicable;
}

TEST(A100ReportTest, PassesWhatMeetsTheTargets) {
  const auto targets = TargetsOf(Good());
  EXPECT_EQ(targets.size(), 8U);
  for (const A100Target& target : targets) {
    EXPECT_EQ(target.outcome, TargetOutcome::kPass) << target.name << ": " << target.measured;
  }
}

TEST(A100ReportTest, FailsWhatMissesATarget) {
  A100Measurements measured = Good();
  measured.similarity.times.compute_ms = 1;
  measured.user_times.compute_ms = 2;
  measured.batches[1].times.call_ms = 100;
  measured.memory.peak_reserved_bytes = 2'000'000'000;
  measured.similarity.franchises.push_back({"Star Wars", "Star Wars", Hits(3), false});
  measured.users[0].genre_matches = 7;
  measured.filters[0].matches = 9;
  for (const A100Target& target : TargetsOf(measured)) {
    EXPECT_EQ(target.outcome, TargetOutcome::kFail) << target.name << ": " << target.measured;
  }
}

TEST(A100ReportTest, ComparesTheLargestMemoryFigure) {
  A100Measurements measured = Good();
  measured.memory.allocated_bytes = 3'000'000'000;  // of mapped files, which are not resident
  EXPECT_EQ(OutcomeOf(measured, "memory"), TargetOutcome::kFail);
  measured.memory = {};
  EXPECT_EQ(OutcomeOf(measured, "memory"), TargetOutcome::kNotApplicable);
}

TEST(A100ReportTest, SaysWhatTheDataCannotTell) {
  A100Measurements measured = Good();
  measured.users.clear();
  measured.filters.clear();
  measured.similarity.franchises.clear();
  for (const char* name : {"user", "genre match", "filter match", "top 3 of the same franchise"}) {
    EXPECT_EQ(OutcomeOf(measured, name), TargetOutcome::kNotApplicable) << name;
  }
  const auto json = A100Json(measured);
  EXPECT_TRUE(json["test_2_personalization"]["avg_gpu_time_ms"].is_null());
  EXPECT_TRUE(json["test_4_filtering"]["gpu_time_ms"].is_null());
}

TEST(A100ReportTest, HasTheKeysOfTheGuide) {
  A100Measurements measured = Good();
  measured.memory.total_bytes = 80'000'000'000;
  const auto json = A100Json(measured);
  const auto& similarity = json["test_1_similarity"];
  EXPECT_EQ(similarity["gpu_time_ms"], 0.99);
  EXPECT_EQ(similarity["results"].size(), 10U);
  for (const char* key : {"rank", "title", "similarity"}) {
    EXPECT_TRUE(similarity["results"][0].contains(key)) << key;
  }
  EXPECT_EQ(json["test_2_personalization"]["avg_gpu_time_ms"], 1.99);
  EXPECT_EQ(json["test_2_personalization"]["user_results"].size(), 2U);
  const auto& batch = json["test_3_batch"]["batch_1000"];
  EXPECT_EQ(batch["total_time_ms"], 100);
  EXPECT_DOUBLE_EQ(batch["time_per_query_ms"], 0.1);
  EXPECT_DOUBLE_EQ(batch["throughput_qps"], 10'000);
  EXPECT_EQ(json["test_4_filtering"]["filters"][0]["filter"], "year >= 1990");
  const auto& memory = json["test_5_memory"];
  for (const char* key : {"allocated_gb", "reserved_gb", "total_gb", "free_gb", "peak_allocated_gb",
                          "peak_reserved_gb"}) {
    EXPECT_TRUE(memory.contains(key)) << key;
  }
  EXPECT_DOUBLE_EQ(memory["total_gb"], 80);
  EXPECT_TRUE(memory["free_gb"].is_null());
  EXPECT_EQ(similarity["title_beginnings"]["Toy Story"][0], "Toy Story");
  EXPECT_EQ(json["targets"][0]["outcome"], "pass");
  EXPECT_TRUE(json["cost"].is_null());
}

// 3.60 an hour is 0.001 a second, which makes 10,000 queries in batches of 1,000.
TEST(A100ReportTest, ComputesTheCostOfAMillionQueries) {
  EXPECT_DOUBLE_EQ(CostPerMillion(3.6, 10'000), 0.1);
  A100Measurements measured = Good();
  measured.hourly_price = 3.6;
  const auto cost = A100Json(measured)["cost"];
  EXPECT_DOUBLE_EQ(cost["per_million_queries"]["batch_1000"], 0.1);
  EXPECT_DOUBLE_EQ(cost["per_million_queries"]["single"], 1.5);
  EXPECT_THAT(A100Text(measured, {}), HasSubstr("cost of a million"));
}

TEST(A100ReportTest, RecognisesAFranchiseByItsTitleBeginnings) {
  const Franchise& star_wars = Franchises()[0];
  EXPECT_TRUE(IsOf(star_wars, "Star Wars: The Last Jedi"));
  EXPECT_TRUE(IsOf(star_wars, "The Empire Strikes Back"));
  EXPECT_FALSE(IsOf(star_wars, "Star Trek"));
}

}  // namespace
}  // namespace simile::cli::bench

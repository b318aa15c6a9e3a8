#include "cli/bench/a100_report.h"

#include <memory>
#include <random>
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
  measured.similarity.times = {200, 0.99, 1.5, std::nullopt};
  measured.similarity.best_similarity = 0.91;
  measured.similarity.coherence = 0.85;
  measured.similarity.results = Hits(10);
  measured.similarity.franchises = {{"Toy Story", "Toy Story", Hits(3), true}};
  measured.user_times = {100, 1.99, 2.5, std::nullopt};
  measured.users = {{"u1", {"Drama"}, Hits(10), 8, 2}, {"u2", {}, Hits(10), 0, 3}};
  measured.batches = {{10, {500, 0.5, 2, std::nullopt}, 0},
                      {100, {50, 10, 29.9, std::nullopt}, 0},
                      {1'000, {10, 80, 100, std::nullopt}, 0}};
  measured.filter_times = {2, 0.99, 1.5, std::nullopt};
  measured.filters = {{"year >= 1990", 100, Hits(10), 10}, {"year >= 2030", 0, {}, 0}};
  measured.memory.base_bytes = 1'999'000'000;
  measured.memory.peak_reserved_bytes = 3'900'000'000;
  measured.memory.total_bytes = 40'000'000'000;
  return measured;
}

TargetOutcome FindOutcome(const A100Measurements& measured, const std::string& name) {
  for (const A100Target& target : CheckTargets(measured)) {
    if (target.name == name) return target.outcome;
  }
  ADD_FAILURE() << "no target " << name;
  return TargetOutcome::kNotApplicable;
}

TEST(A100ReportTest, PassesWhatMeetsTheTargets) {
  const auto targets = CheckTargets(Good());
  EXPECT_EQ(targets.size(), 16U);
  for (const A100Target& target : targets) {
    EXPECT_EQ(target.outcome, TargetOutcome::kPass) << target.name << ": " << target.measured;
  }
}

TEST(A100ReportTest, FailsWhatMissesATarget) {
  A100Measurements measured = Good();
  measured.similarity.times.compute_ms = 1;
  measured.user_times.compute_ms = 2;
  measured.filter_times.compute_ms = 1;
  measured.batches[0].fallbacks = 1;
  measured.batches[1].times.call_ms = 100;
  measured.batches[2].times.call_ms = 1'001;
  measured.memory.base_bytes = 2'000'000'000;
  measured.memory.peak_reserved_bytes = 5'000'000'000;
  measured.similarity.best_similarity = 0.9;
  measured.similarity.coherence = 0.849;
  measured.users[1].decades = 1;
  measured.similarity.franchises.push_back({"Star Wars", "Star Wars", Hits(3), false});
  measured.users[0].genre_matches = 7;
  measured.filters[0].matches = 9;
  for (const A100Target& target : CheckTargets(measured)) {
    EXPECT_EQ(target.outcome, TargetOutcome::kFail) << target.name << ": " << target.measured;
  }
}

TEST(A100ReportTest, ComparesTheLargerPeak) {
  A100Measurements measured = Good();
  measured.memory.peak_allocated_bytes = 6'000'000'000;  // of mapped files, which are not resident
  EXPECT_EQ(FindOutcome(measured, "peak memory"), TargetOutcome::kFail);
  EXPECT_EQ(FindOutcome(measured, "headroom at peak"), TargetOutcome::kFail);
  measured.memory = {};
  for (const char* name : {"base memory", "peak memory", "headroom at peak"}) {
    EXPECT_EQ(FindOutcome(measured, name), TargetOutcome::kNotApplicable) << name;
  }
}

// The engine's time alone would miss the targets.
TEST(A100ReportTest, ComparesTheGpusOwnTime) {
  A100Measurements measured = Good();
  measured.on_gpu = true;
  measured.similarity.times = {200, 1.2, 1.5, 0.9};
  measured.user_times = {100, 2.2, 2.5, 1.9};
  measured.filter_times = {2, 1.2, 1.5, 0.9};
  for (const char* name : {"single query", "user", "filtered query"}) {
    EXPECT_EQ(FindOutcome(measured, name), TargetOutcome::kPass) << name;
  }
  const auto json = A100Json(measured);
  EXPECT_EQ(json["test_1_similarity"]["gpu_time_ms"], 0.9);
  EXPECT_EQ(json["test_1_similarity"]["engine_time_ms"], 1.2);
  EXPECT_EQ(json["test_2_personalization"]["avg_gpu_time_ms"], 1.9);
  const std::string source = json["gpu_time_source"];
  EXPECT_THAT(source, HasSubstr("device_us"));
  EXPECT_THAT(source, HasSubstr("of batch_10, batch_100, batch_1000 the receipts' compute_us"));
  measured.on_gpu = false;
  EXPECT_THAT(std::string(A100Json(measured)["gpu_time_source"]), HasSubstr("no GPU answered"));
}

TEST(A100ReportTest, SaysWhatTheDataCannotTell) {
  A100Measurements measured = Good();
  measured.users.clear();
  measured.filters.clear();
  measured.similarity.franchises.clear();
  measured.similarity.best_similarity.reset();
  measured.similarity.coherence.reset();
  for (const char* name : {"user", "filtered query", "genre match", "filter match", "similarity",
                           "coherence", "diverse periods", "top 3 of the same franchise"}) {
    EXPECT_EQ(FindOutcome(measured, name), TargetOutcome::kNotApplicable) << name;
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
  for (const char* key : {"base_gb", "allocated_gb", "reserved_gb", "total_gb", "free_gb",
                          "peak_allocated_gb", "peak_reserved_gb"}) {
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
  EXPECT_DOUBLE_EQ(CostPerMillion({3.6, 10'000}), 0.1);
  A100Measurements measured = Good();
  measured.hourly_price = 3.6;
  const auto cost = A100Json(measured)["cost"];
  EXPECT_DOUBLE_EQ(cost["per_million_queries"]["batch_1000"], 0.1);
  EXPECT_DOUBLE_EQ(cost["per_million_queries"]["single"], 1.5);
  EXPECT_THAT(A100Text(measured, {}), HasSubstr("cost of a million"));
}

// The guide's own prices and rates: 16 CPU cores, an A100.
TEST(A100CostsTest, RentsWholeMachinesForAMonth) {
  const RentedMachine cpu{1'408.0 / 720, 608};
  const RentedMachine card{2.2, 10'000};
  EXPECT_NEAR(RentFor(cpu, kQueriesOfMonth).price, 1'408, 1e-9);
  EXPECT_NEAR(RentFor(card, kQueriesOfMonth).price, 1'584, 1e-9);
  EXPECT_NEAR(RentFor(cpu, kQueriesOfMonth).busy, 1e8 / (608.0 * 720 * 3'600), 1e-12);
  const MonthRent ten = RentFor(cpu, 10'000'000'000);
  EXPECT_EQ(ten.machines, 7U);
  EXPECT_NEAR(ten.busy, 1e10 / (608.0 * 720 * 3'600) / 7, 1e-12);
}

TEST(A100CostsTest, FindsTheLoadFromWhichACardPays) {
  // A second CPU machine is needed above 1,575,936,000 queries a month; two cost more than a card.
  const auto pays = CardPaysFrom({1'408.0 / 720, 608}, {2.2, 10'000});
  ASSERT_TRUE(pays.has_value());
  EXPECT_EQ(*pays, 1'575'936'001U);
  EXPECT_EQ(RentFor({1'408.0 / 720, 608}, *pays).machines, 2U);
  EXPECT_EQ(RentFor({1'408.0 / 720, 608}, *pays - 1).machines, 1U);
  EXPECT_EQ(CardPaysFrom({3, 100}, {2, 1'000}), 0U) << "a cheaper machine";
  EXPECT_EQ(CardPaysFrom({1, 100}, {2, 150}), std::nullopt) << "dearer for each query";
  EXPECT_EQ(CardPaysFrom({1, 100}, {1, 100}), std::nullopt) << "the same machine";
  // Between 95 and 100 queries a second the CPU needs two machines and the card one; above 190 and
  // up to 200 three and two, and so on: at some numbers a card pays, from none on does it always.
  EXPECT_EQ(CardPaysFrom({0.9, 95}, {1, 100}), std::nullopt);
}

// Against every number of queries at which either rent changes.
TEST(A100CostsTest, IsNeverDearerFromThereOn) {
  std::mt19937 random(20'261'128);
  std::uniform_real_distribution<double> prices(1, 4);
  std::uniform_real_distribution<double> rates(1, 40);
  unsigned found = 0, paid_before = 0;
  for (int draw = 0; draw < 200; ++draw) {
    const RentedMachine cpu{prices(random), rates(random)};
    const RentedMachine card{prices(random), rates(random)};
    const auto from = CardPaysFrom(cpu, card);
    const auto is_dearer = [&](std::uint64_t queries) {
      return RentFor(card, queries).price > RentFor(cpu, queries).price;
    };
    if (!from) {
      EXPECT_GE(CostPerMillion(card), CostPerMillion(cpu)) << draw;
      continue;
    }
    ++found;
    if (*from > 0) {
      EXPECT_TRUE(is_dearer(*from - 1)) << draw;
      paid_before += is_dearer(0) ? 0 : 1;
    }
    for (int machines = 0; machines < 2'000; ++machines) {
      for (const RentedMachine& machine : {cpu, card}) {
        const auto queries =
            static_cast<std::uint64_t>(machines * machine.queries_per_s * kSecondsOfMonth);
        for (const std::uint64_t number : {queries, queries + 1}) {
          EXPECT_FALSE(number >= *from && is_dearer(number)) << draw << ": " << number;
        }
      }
    }
  }
  EXPECT_GT(found, 50U);
  EXPECT_GT(paid_before, 0U);
}

TEST(A100ReportTest, StandsBesideTheCpu) {
  A100Measurements measured = Good();
  measured.on_gpu = true;
  auto cpu = std::make_shared<A100Measurements>(Good());
  cpu->backend = "cpu: int8-avx2";
  cpu->similarity.times.call_ms = 3;
  cpu->batches[1].times.call_ms = 299;
  cpu->answers = {1, 2, 3};
  measured.answers = {1, 7, 3, 4};
  measured.cpu = cpu;
  measured.hourly_price = 2.2;
  measured.cpu_hourly_price = 2;
  EXPECT_EQ(DifferentAnswers(measured), 2U) << "one differs, one is missing";
  const auto json = A100Json(measured);
  EXPECT_DOUBLE_EQ(json["cpu"]["kinds"]["single"]["times_faster"], 2);
  EXPECT_DOUBLE_EQ(json["cpu"]["kinds"]["batch_100"]["times_faster"], 10);
  EXPECT_EQ(json["cpu"]["answers_different"], 2);
  const auto& month = json["cost"]["month"]["batch_100"];
  EXPECT_DOUBLE_EQ(month["cpu"]["price"], 1'440);
  EXPECT_DOUBLE_EQ(month["one_card"]["price"], 1'584);
  EXPECT_DOUBLE_EQ(month["four_cards"]["price"], 6'336);
  EXPECT_NEAR(month["four_cards"]["busy"].get<double>(), 1e8 / (1e5 / 29.9 * 2'592'000) / 4, 1e-9);
  EXPECT_EQ(month["card_pays_from"], 866'889'633U);
  const std::string text = A100Text(measured, {});
  EXPECT_THAT(text, HasSubstr("2 of 4 answers differ"));
  EXPECT_THAT(text, HasSubstr("866,889,633 a month"));
}

// A server on a CPU is no card.
TEST(A100ReportTest, GivesTheCostOfACpuAlone) {
  A100Measurements measured = Good();
  measured.hourly_price = 2;
  const auto month = A100Json(measured)["cost"]["month"]["batch_100"];
  EXPECT_DOUBLE_EQ(month["cpu"]["price"], 1'440);
  for (const char* key : {"one_card", "four_cards", "card_pays_from"}) {
    EXPECT_TRUE(month[key].is_null()) << key;
  }
}

TEST(A100ReportTest, RecognisesAFranchiseByItsTitleBeginnings) {
  const Franchise& star_wars = Franchises()[0];
  EXPECT_TRUE(HasTitle(star_wars, "Star Wars: The Last Jedi"));
  EXPECT_TRUE(HasTitle(star_wars, "The Empire Strikes Back"));
  EXPECT_FALSE(HasTitle(star_wars, "Star Trek"));
}

}  // namespace
}  // namespace simile::cli::bench

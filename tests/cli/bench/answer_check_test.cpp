#include "cli/bench/answer_check.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::cli::bench {
namespace {

using testing::HasSubstr;
using Result = CheckedAnswer::Result;

// Four rows on a circle, by descending similarity to the first.
QuerySamples Samples() {
  QuerySamples samples;
  samples.collection = "c";
  samples.dim = 2;
  samples.snapshot_id = "s";
  samples.row_count = 4;
  samples.rows = {{"a", {1, 0}}, {"b", {0.8F, 0.6F}}, {"c", {0.6F, 0.8F}}, {"d", {0, 1}}};
  samples.has_all_rows = true;
  samples.users = {{"u", {1, 0}}, {"unknown", {}}};
  return samples;
}

v1::SearchRequest ToA(std::uint32_t k) {
  v1::SearchRequest request;
  request.add_queries()->mutable_vector()->add_values(2);  // any length
  request.mutable_queries(0)->mutable_vector()->add_values(0);
  request.mutable_options()->set_k(k);
  return request;
}

v1::SearchResponse Answer(const std::vector<std::pair<std::string, float>>& hits) {
  v1::SearchResponse response;
  response.mutable_receipt()->set_snapshot_id("s");
  v1::SearchResult& result = *response.add_results();
  for (const auto& [id, score] : hits) {
    v1::Hit& hit = *result.add_hits();
    hit.set_rank(static_cast<std::uint32_t>(result.hits_size()));
    hit.set_id(id);
    hit.set_score(score);
  }
  return response;
}

class VectorCheckTest : public testing::Test {
 protected:
  CheckedAnswer Check(const v1::SearchRequest& request, const v1::SearchResponse& response) const {
    return VectorCheck(samples_).Check(request, response);
  }
  // What is wrong; "right" or "unchecked: WHY" otherwise.
  std::string Said(const v1::SearchRequest& request, const v1::SearchResponse& response) const {
    const CheckedAnswer checked = Check(request, response);
    if (checked.result == Result::kRight) return "right";
    return (checked.result == Result::kUnchecked ? "unchecked: " : "") + checked.why;
  }

  QuerySamples samples_ = Samples();
};

TEST_F(VectorCheckTest, AcceptsTheBestRows) {
  EXPECT_EQ(Said(ToA(3), Answer({{"a", 1}, {"b", 0.8F}, {"c", 0.6F}})), "right");
  EXPECT_EQ(Said(ToA(10), Answer({{"a", 1}, {"b", 0.8F}, {"c", 0.6F}, {"d", 0}})), "right");
  v1::SearchRequest item;
  item.add_queries()->set_id("a");
  EXPECT_EQ(Said(item, Answer({{"b", 0.8F}, {"c", 0.6F}, {"d", 0}})), "right");
  v1::RecommendRequest user;
  user.add_user_ids("u");
  user.mutable_options()->set_k(1);
  v1::RecommendResponse recommended;
  *recommended.add_results() = Answer({{"a", 1}}).results(0);
  recommended.mutable_receipt()->set_snapshot_id("s");
  EXPECT_EQ(VectorCheck(samples_).Check(user, recommended).result, Result::kRight);
}

TEST_F(VectorCheckTest, ExpectsNoSkippedRow) {
  samples_.row_count = 6;
  EXPECT_THAT(Said(ToA(10), Answer({{"a", 1}, {"b", 0.8F}, {"c", 0.6F}, {"d", 0}})),
              HasSubstr("6 rows can be returned"));
  samples_.skipped_rows = 2;
  EXPECT_EQ(Said(ToA(10), Answer({{"a", 1}, {"b", 0.8F}, {"c", 0.6F}, {"d", 0}})), "right");
}

TEST_F(VectorCheckTest, TakesRowsOfZerosAsAnyOther) {
  samples_.metric = Metric::kDot;
  samples_.rows.push_back({"zero", {0, 0}});
  samples_.row_count = 5;
  EXPECT_EQ(Said(ToA(10), Answer({{"a", 2}, {"b", 1.6F}, {"c", 1.2F}, {"d", 0}, {"zero", 0}})),
            "right");
  v1::SearchRequest by_zero;
  by_zero.add_queries()->set_id("zero");
  EXPECT_EQ(Said(by_zero, Answer({{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}})), "right");
  EXPECT_THAT(Said(by_zero, Answer({{"a", 0.1F}, {"b", 0}, {"c", 0}, {"d", 0}})),
              HasSubstr("its score is 0, not 0.1"));
}

TEST_F(VectorCheckTest, NamesWhatIsWrong) {
  const std::pair<v1::SearchResponse, const char*> cases[] = {
      {Answer({{"a", 1}, {"c", 0.6F}}), "queries[0]: b is missing: its score is 0.8"},
      {Answer({{"a", 1}, {"b", 0.80001F}}), "rank 2, b: its score is 0.8"},
      {Answer({{"b", 0.8F}, {"a", 1}}), "rank 2 has a better score than rank 1"},
      {Answer({{"a", 1}, {"a", 1}}), "a is returned twice"},
      {Answer({{"a", 1}}), "1 hits, where k is 2 and 4 rows can be returned"},
      {Answer({{"a", 1}, {"x", 0.8F}}), "the collection has no item x"},
      {Answer({{"a", 1}, {"b", NAN}}), "rank 2, b: its score is nan"},
      {Answer({{"a", INFINITY}, {"b", 0.8F}}), "rank 1, a: its score is inf"},
  };
  for (const auto& [response, message] : cases) {
    EXPECT_THAT(Said(ToA(2), response), HasSubstr(message));
  }
  v1::SearchResponse ranks = Answer({{"a", 1}, {"b", 0.8F}});
  ranks.mutable_results(0)->mutable_hits(1)->set_rank(3);
  EXPECT_THAT(Said(ToA(2), ranks), HasSubstr("hit 2 has rank 3"));
  EXPECT_THAT(Said(ToA(2), {}), HasSubstr("unchecked: answers from other content"));
  v1::SearchRequest item;
  item.add_queries()->set_id("a");
  item.mutable_options()->set_k(1);
  EXPECT_THAT(Said(item, Answer({{"a", 1}})), HasSubstr("a is the query's own item"));
  v1::SearchResponse none = Answer({});
  none.clear_results();
  EXPECT_THAT(Said(ToA(2), none), HasSubstr("0 results for 1 queries"));
}

TEST_F(VectorCheckTest, KnowsOnlySomeRows) {
  samples_.rows.resize(2);
  samples_.has_all_rows = false;
  EXPECT_EQ(Said(ToA(2), Answer({{"a", 1}, {"x", 0.9F}})), "right");
  EXPECT_THAT(Said(ToA(2), Answer({{"x", 0.9F}, {"b", 0.8F}})), HasSubstr("a is missing"));
}

TEST_F(VectorCheckTest, SaysWhatItCannotCheck) {
  v1::SearchRequest filtered = ToA(1);
  filtered.mutable_options()->set_filter("year > 1990");
  EXPECT_EQ(Said(filtered, Answer({})), "unchecked: filters");
  v1::SearchRequest seen = ToA(1);
  seen.mutable_options()->set_exclude_seen(true);
  EXPECT_EQ(Said(seen, Answer({})), "unchecked: exclusions, thresholds and offsets");
  v1::SearchRequest user;
  user.add_queries()->set_user_id("unknown");
  EXPECT_THAT(Said(user, Answer({})), HasSubstr("unchecked: users"));
}

}  // namespace
}  // namespace simile::cli::bench

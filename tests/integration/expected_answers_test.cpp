#include "integration/expected_answers.h"

#include <gtest/gtest.h>

#include "integration/films_server.h"

namespace simile::integration {
namespace {

class ExpectedAnswersTest : public testing::Test {
 protected:
  FilmsServer server_;
  Client client_ = server_.NewClient();
};

TEST_F(ExpectedAnswersTest, SimilarFilmsOneByOne) {
  const auto expected = ExpectedSimilar();
  ASSERT_EQ(expected.size(), 200U);
  for (const ExpectedAnswer& answer : expected) {
    v1::SearchRequest request;
    request.set_collection("films");
    v1::Query& query = *request.add_queries();
    query.set_id(answer.id);
    query.set_k(20);
    request.mutable_options()->set_with_rows(true);
    v1::SearchResponse response;
    const Outcome outcome = client_.Search(request, response);
    ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    EXPECT_TRUE(SameAnswer(response.results(0).hits(), answer));
  }
}

TEST_F(ExpectedAnswersTest, SimilarFilmsInOneCall) {
  const auto expected = ExpectedSimilar();
  v1::SearchRequest request;
  request.set_collection("films");
  request.mutable_options()->set_k(20);
  request.mutable_options()->set_with_rows(true);
  for (const ExpectedAnswer& answer : expected) request.add_queries()->set_id(answer.id);
  v1::SearchResponse response;
  const Outcome outcome = client_.Search(request, response);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  ASSERT_EQ(response.results_size(), 200);
  for (std::size_t index = 0; index < expected.size(); ++index) {
    EXPECT_TRUE(SameAnswer(response.results(static_cast<int>(index)).hits(), expected[index]));
  }
  // How it is cut depends on how long its passes take.
  EXPECT_GT(response.receipt().batch_size(), 1U);
  EXPECT_LE(response.receipt().batch_size(), 200U);
  EXPECT_EQ(response.receipt().rows_scanned(), 200U * kFilmsRows);
}

TEST_F(ExpectedAnswersTest, RecommendationsWithoutWhatWasSeen) {
  const auto expected = ExpectedRecommendations();
  ASSERT_EQ(expected.size(), 100U);
  v1::RecommendRequest request;
  request.set_collection("films");
  request.mutable_options()->set_k(20);
  request.mutable_options()->set_with_rows(true);
  request.mutable_options()->set_exclude_seen(true);
  for (const ExpectedAnswer& answer : expected) request.add_user_ids(answer.id);
  v1::RecommendResponse response;
  const Outcome outcome = client_.Recommend(request, response);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  ASSERT_EQ(response.results_size(), 100);
  for (std::size_t index = 0; index < expected.size(); ++index) {
    const v1::SearchResult& result = response.results(static_cast<int>(index));
    EXPECT_EQ(result.user_id(), expected[index].id);
    EXPECT_GT(result.seen_count(), 0U);
    EXPECT_TRUE(SameAnswer(result.hits(), expected[index]));
  }
}

// Each user with a filter of its own, all in one call.
TEST_F(ExpectedAnswersTest, RecommendationsUnderFilters) {
  for (const bool exclude_seen : {false, true}) {
    const auto expected = ExpectedFilteredRecommendations(exclude_seen);
    ASSERT_EQ(expected.size(), 100U);
    v1::SearchRequest request;
    request.set_collection("films");
    request.mutable_options()->set_k(20);
    request.mutable_options()->set_with_rows(true);
    request.mutable_options()->set_exclude_seen(exclude_seen);
    for (const ExpectedAnswer& answer : expected) {
      v1::Query& query = *request.add_queries();
      query.set_user_id(answer.id);
      query.set_filter(answer.filter);
    }
    v1::SearchResponse response;
    const Outcome outcome = client_.Search(request, response);
    ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    for (std::size_t index = 0; index < expected.size(); ++index) {
      const v1::SearchResult& result = response.results(static_cast<int>(index));
      EXPECT_EQ(result.rows_passing(), expected[index].rows_passing) << expected[index].filter;
      EXPECT_TRUE(SameAnswer(result.hits(), expected[index])) << expected[index].filter;
    }
  }
}

TEST_F(ExpectedAnswersTest, AUserQueryOfSearchAnswersAsRecommendDoes) {
  const ExpectedAnswer answer = ExpectedRecommendations()[42];
  v1::SearchRequest request;
  request.set_collection("films");
  v1::Query& query = *request.add_queries();
  query.set_user_id(answer.id);
  query.set_exclude_seen(true);
  request.mutable_options()->set_with_rows(true);
  query.set_k(20);
  v1::SearchResponse response;
  ASSERT_TRUE(client_.Search(request, response).ok());
  EXPECT_TRUE(SameAnswer(response.results(0).hits(), answer));
}

}  // namespace
}  // namespace simile::integration

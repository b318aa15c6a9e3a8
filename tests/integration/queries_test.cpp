// Examples, blends, groups, diversity, cold starts and pages, over the wire.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/films_client_test.h"

namespace simile::integration {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class QueriesTest : public FilmsClientTest {
 protected:
  QueriesTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() {
    root_ = std::make_unique<ScratchFolder>();
    server_ = std::make_unique<FilmsServer>([](app::Config& config) {
      config.changes_allowed = true;
      config.data_root = root_->path();
    });
  }
  static void TearDownTestSuite() {
    server_.reset();
    root_.reset();
  }

  static v1::SearchRequest Films() {
    v1::SearchRequest request;
    request.set_collection("films");
    return request;
  }
  static v1::RecommendRequest ForUser(const std::string& user) {
    v1::RecommendRequest request;
    request.set_collection("films");
    request.add_user_ids(user);
    return request;
  }
  // Reloads the films with other content than any edition before.
  void Reload() {
    const std::string folder = "edition-" + std::to_string(++edition_);
    CopyFilms(root_->path() / folder, edition_);
    v1::ReloadCollectionRequest request;
    request.set_collection("films");
    request.set_folder(folder);
    ChangeAnswer answer;
    const Outcome outcome = client_.Reload(request, answer);
    ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  }

  inline static std::unique_ptr<ScratchFolder> root_;
  inline static std::unique_ptr<FilmsServer> server_;
  inline static int edition_ = 1;
};

template <class Hits>
std::vector<std::string> Ids(const Hits& hits) {
  std::vector<std::string> ids;
  for (const v1::Hit& hit : hits) ids.push_back(hit.id());
  return ids;
}

TEST_F(QueriesTest, ExamplesRankRowsLikePositivesAboveRowsLikeNegatives) {
  v1::SearchRequest request = Films();
  for (const auto strategy :
       {v1::Examples::STRATEGY_AVERAGE_VECTOR, v1::Examples::STRATEGY_BEST_SCORE,
        v1::Examples::STRATEGY_SUM_SCORES}) {
    v1::Examples& examples = *request.add_queries()->mutable_examples();
    examples.set_strategy(strategy);
    examples.add_positive()->set_id("toy-story-1995");
    examples.add_negative()->set_id("toy-story-2-1999");
  }
  const v1::SearchResponse response = Search(request);
  for (const v1::SearchResult& result : response.results()) {
    ASSERT_EQ(result.hits_size(), 10);
    EXPECT_THAT(Ids(result.hits()), Not(Contains("toy-story-1995")));
    EXPECT_THAT(Ids(result.hits()), Not(Contains("toy-story-2-1999")));
  }
  // Without the negative example, its sequels come first.
  request.clear_queries();
  v1::Examples& alone = *request.add_queries()->mutable_examples();
  alone.set_strategy(v1::Examples::STRATEGY_BEST_SCORE);
  alone.add_positive()->set_id("toy-story-1995");
  EXPECT_THAT(Ids(Search(request).results(0).hits()), Contains("toy-story-3-2010"));
  EXPECT_THAT(Ids(response.results(1).hits()), Not(Contains("toy-story-3-2010")))
      << "nearer to the negative example";
  // With BEST_SCORE, rows nearer to the positive example come first and score above 1/2.
  EXPECT_GT(response.results(1).hits(0).score(), 0.5F);
  EXPECT_TRUE(response.receipt().exact());
  EXPECT_EQ(response.receipt().batch_size(), 3U);
}

TEST_F(QueriesTest, ABlendLiesBetweenItsParts) {
  v1::SearchRequest request = Films();
  for (const float weight : {0.0F, 0.5F, 1.0F}) {
    v1::Blend& blend = *request.add_queries()->mutable_blend();
    blend.set_id("heat-1995");
    blend.set_user_id("user_00042");
    blend.set_user_weight(weight);
  }
  request.add_queries()->set_id("heat-1995");
  request.add_queries()->set_user_id("user_00042");
  request.mutable_options()->set_k(5);
  request.mutable_options()->add_exclude_ids("heat-1995");
  const v1::SearchResponse response = Search(request);
  EXPECT_EQ(Ids(response.results(0).hits()), Ids(response.results(3).hits()));
  EXPECT_EQ(Ids(response.results(2).hits()), Ids(response.results(4).hits()));
  EXPECT_NE(Ids(response.results(1).hits()), Ids(response.results(0).hits()));
  EXPECT_NE(Ids(response.results(1).hits()), Ids(response.results(2).hits()));
}

TEST_F(QueriesTest, GroupsHoldTheBestRowsOfTheBestKeywords) {
  v1::SearchRequest request = Films();
  request.add_queries()->set_id("toy-story-1995");
  v1::GroupBy& group_by = *request.mutable_options()->mutable_group_by();
  group_by.set_field("genres");
  group_by.set_group_size(3);
  request.mutable_options()->set_k(4);
  request.mutable_options()->set_offset(1);
  const v1::SearchResult result = Search(request).results(0);
  EXPECT_EQ(result.hits_size(), 0);
  ASSERT_EQ(result.groups_size(), 4);
  std::set<std::string> keywords;
  float best = 2;
  for (const v1::HitGroup& group : result.groups()) {
    EXPECT_TRUE(keywords.insert(group.keyword()).second) << group.keyword();
    ASSERT_EQ(group.hits_size(), 3) << group.keyword();
    EXPECT_LE(group.hits(0).score(), best);
    best = group.hits(0).score();
    for (const v1::Hit& hit : group.hits()) {
      std::vector<std::string> genres;
      for (const v1::PayloadValue& value : hit.payload().at("genres").list_value().values())
        genres.push_back(value.string_value());
      EXPECT_THAT(genres, Contains(group.keyword())) << hit.id();
    }
  }
  EXPECT_EQ(result.groups(0).rank(), 2U) << "the first is skipped";
  EXPECT_EQ(result.groups(0).hits(0).rank(), 1U);
}

TEST_F(QueriesTest, DiversityReturnsTheBestFirstAndThenLeavesOutSimilarRows) {
  v1::SearchRequest request = Films();
  request.add_queries()->set_id("toy-story-1995");
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_queries(1)->mutable_diversity()->set_lambda(0.5F);
  const v1::SearchResponse response = Search(request);
  EXPECT_EQ(response.results(1).hits(0).id(), response.results(0).hits(0).id());
  EXPECT_EQ(response.results(1).hits_size(), 10);
  EXPECT_THAT(Ids(response.results(0).hits()), Contains("toy-story-3-2010"));
  EXPECT_THAT(Ids(response.results(1).hits()), Not(Contains("toy-story-3-2010")))
      << "too much like Toy Story 2";
  request.mutable_queries(1)->mutable_diversity()->set_lambda(1);
  EXPECT_EQ(Ids(Search(request).results(1).hits()), Ids(response.results(0).hits()));
}

TEST_F(QueriesTest, AUserWithoutAProfileIsNotFoundUnlessThereIsAColdStart) {
  v1::RecommendRequest request = ForUser("a-new-user");
  request.add_user_ids("user_00042");
  v1::RecommendResponse response;
  const Outcome outcome = client_.Recommend(request, response);
  EXPECT_EQ(outcome.code, absl::StatusCode::kNotFound);
  EXPECT_THAT(outcome.message, testing::HasSubstr("user_ids[0]: no user \"a-new-user\" in films"));

  request.mutable_options()->mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
  request.mutable_options()->set_filter("genres:Western");
  response = Recommend(request);
  EXPECT_EQ(response.results(0).cold_start().order(), v1::ColdStart::ORDER_NEWEST);
  EXPECT_EQ(response.results(0).cold_start().field(), "year");
  EXPECT_EQ(response.results(0).score_kind(), v1::SCORE_KIND_NONE);
  ASSERT_EQ(response.results(0).hits_size(), 10);
  std::int64_t year = 3'000;
  for (const v1::Hit& hit : response.results(0).hits()) {
    EXPECT_LE(hit.payload().at("year").int_value(), year);
    year = hit.payload().at("year").int_value();
    EXPECT_EQ(hit.score(), 0);
  }
  EXPECT_FALSE(response.results(1).has_cold_start());
  EXPECT_EQ(response.results(1).score_kind(), v1::SCORE_KIND_COSINE);
  EXPECT_GT(response.results(1).hits(0).score(), 0);

  request.mutable_options()->mutable_cold_start()->set_order(v1::ColdStart::ORDER_MOST_POPULAR);
  response = Recommend(request);
  EXPECT_EQ(response.results(0).cold_start().order(), v1::ColdStart::ORDER_MOST_POPULAR);
  EXPECT_EQ(response.results(0).cold_start().field(), "") << "how many users have seen the row";
}

class PagesTest : public QueriesTest {
 protected:
  // The ids of five pages of ten rows. `reload` reloads the collection after the second page.
  std::vector<std::string> Pages(bool reload) {
    v1::SearchRequest request = Films();
    request.add_queries()->set_id("heat-1995");
    request.mutable_options()->set_paged(true);
    std::vector<std::string> ids;
    for (int page = 0; page < 5; ++page) {
      const v1::SearchResponse response = Search(request);
      for (const v1::Hit& hit : response.results(0).hits()) {
        ids.push_back(hit.id());
        EXPECT_EQ(hit.rank(), ids.size());
      }
      request.mutable_options()->set_page_token(response.next_page_token());
      if (page == 0) snapshot_id_ = response.receipt().snapshot_id();
      EXPECT_EQ(response.receipt().snapshot_id(), snapshot_id_);
      if (reload && page == 1) Reload();
    }
    return ids;
  }

  std::string snapshot_id_;
};

TEST_F(PagesTest, NeitherRepeatNorSkipRowsAcrossAReload) {
  v1::SearchRequest request = Films();
  request.add_queries()->set_id("heat-1995");
  request.mutable_options()->set_k(50);
  const std::vector<std::string> whole = Ids(Search(request).results(0).hits());
  EXPECT_EQ(Pages(false), whole);
  EXPECT_EQ(Pages(true), whole);
}

TEST_F(PagesTest, AreAbortedOnceTheirSnapshotIsGone) {
  v1::SearchRequest request = Films();
  request.add_queries()->set_id("heat-1995");
  request.mutable_options()->set_paged(true);
  v1::SearchResponse response = Search(request);
  request.mutable_options()->set_page_token(response.next_page_token());
  Reload();
  Reload();  // no page of the content between has been requested
  const Outcome outcome = client_.Search(request, response);
  EXPECT_EQ(outcome.code, absl::StatusCode::kAborted);
  EXPECT_EQ(outcome.reason, "PAGE_SNAPSHOT_GONE");
  EXPECT_EQ(outcome.message,
            "films no longer has the content of this page token; start again with the first page");
}

TEST_F(PagesTest, EndWhereTheRowsDo) {
  v1::SearchRequest request = Films();
  request.add_queries()->set_id("heat-1995");
  request.mutable_options()->set_filter("year >= 1931 AND year <= 1932");
  request.mutable_options()->set_k(40);
  request.mutable_options()->set_paged(true);
  std::size_t rows = 0;
  std::uint64_t passing = 0;
  for (int page = 0; page < 10; ++page) {
    const v1::SearchResponse response = Search(request);
    rows += static_cast<std::size_t>(response.results(0).hits_size());
    passing = response.results(0).rows_passing();
    if (response.next_page_token().empty()) break;
    request.mutable_options()->set_page_token(response.next_page_token());
  }
  EXPECT_GT(passing, 40U);
  EXPECT_EQ(rows, passing);
}

TEST_F(PagesTest, EndAtTenThousand) {
  v1::SearchRequest request = Films();
  request.add_queries()->set_id("heat-1995");
  request.mutable_options()->set_k(1'000);
  request.mutable_options()->set_offset(3'500);
  request.mutable_options()->set_paged(true);
  request.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  EXPECT_NE(Search(request).next_page_token(), "");
  request.mutable_options()->mutable_diversity()->set_candidates(1'000);
  request.mutable_options()->set_k(600);
  request.mutable_options()->set_offset(0);
  EXPECT_EQ(Search(request).next_page_token(), "") << "the next 600 are beyond the candidates";
}

TEST_F(PagesTest, ColdStartsHavePagesAndGroups) {
  v1::RecommendRequest request = ForUser("a-new-user");
  request.mutable_options()->mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
  request.mutable_options()->mutable_group_by()->set_field("genres");
  request.mutable_options()->mutable_group_by()->set_group_size(40);
  request.mutable_options()->set_k(5);
  request.mutable_options()->set_filter("year <= 1990");
  request.mutable_options()->set_paged(true);
  std::set<std::string> keywords;
  for (int page = 0; page < 2; ++page) {
    const v1::RecommendResponse response = Recommend(request);
    EXPECT_THAT(response.receipt().engines(), ElementsAre("order"));
    ASSERT_EQ(response.results(0).groups_size(), 5);
    for (const v1::HitGroup& group : response.results(0).groups()) {
      EXPECT_TRUE(keywords.insert(group.keyword()).second) << group.keyword();
      std::int64_t year = 1'990;
      for (const v1::Hit& hit : group.hits()) {
        EXPECT_LE(hit.payload().at("year").int_value(), year) << group.keyword();
        year = hit.payload().at("year").int_value();
      }
    }
    request.mutable_options()->set_page_token(response.next_page_token());
  }
}

TEST_F(PagesTest, AreNotOfferedUnlessRequested) {
  v1::SearchRequest request = Films();
  request.add_queries()->set_id("heat-1995");
  EXPECT_EQ(Search(request).next_page_token(), "");
}

TEST_F(PagesTest, ContinueForUsersAndGroups) {
  v1::RecommendRequest request = ForUser("user_00042");
  request.mutable_options()->set_k(3);
  request.mutable_options()->mutable_group_by()->set_field("genres");
  request.mutable_options()->set_paged(true);
  std::set<std::string> keywords;
  for (int page = 0; page < 3; ++page) {
    const v1::RecommendResponse response = Recommend(request);
    ASSERT_EQ(response.results(0).groups_size(), 3);
    for (const v1::HitGroup& group : response.results(0).groups())
      EXPECT_TRUE(keywords.insert(group.keyword()).second) << group.keyword();
    request.mutable_options()->set_page_token(response.next_page_token());
  }
}

}  // namespace
}  // namespace simile::integration

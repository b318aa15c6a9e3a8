#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/films_client_test.h"

namespace simile::integration {
namespace {

using ::testing::Contains;

class FiltersTest : public FilmsClientTest {
 protected:
  FiltersTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() { server_ = std::make_unique<FilmsServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  static v1::SearchRequest StarWars(const std::string& filter) {
    v1::SearchRequest request;
    request.set_collection("films");
    request.add_queries()->set_id("star-wars-1977");
    request.mutable_options()->set_filter(filter);
    return request;
  }

  inline static std::unique_ptr<FilmsServer> server_;
};

std::vector<std::string> Genres(const v1::Hit& hit) {
  std::vector<std::string> genres;
  for (const v1::PayloadValue& value : hit.payload().at("genres").list_value().values())
    genres.push_back(value.string_value());
  return genres;
}

TEST_F(FiltersTest, ReturnsKHitsThatAllPass) {
  const v1::SearchResult result =
      Search(StarWars("genres:\"Science Fiction\" AND year > 1990")).results(0);
  ASSERT_EQ(result.hits_size(), 10);
  for (const v1::Hit& hit : result.hits()) {
    EXPECT_THAT(Genres(hit), Contains("Science Fiction")) << hit.id();
    EXPECT_GT(hit.payload().at("year").int_value(), 1990) << hit.id();
  }
  EXPECT_GT(result.rows_passing(), 10U);
}

TEST_F(FiltersTest, AQueryUsesTheOptionsFilterUnlessItHasItsOwn) {
  v1::SearchRequest request = StarWars("year < 1950");
  request.add_queries()->set_id("star-wars-1977");
  request.mutable_queries(1)->set_filter("year >= 2000");
  request.add_queries()->set_id("star-wars-1977");
  request.mutable_queries(2)->set_filter("");
  const v1::SearchResponse response = Search(request);
  for (const v1::Hit& hit : response.results(0).hits())
    EXPECT_LT(hit.payload().at("year").int_value(), 1950);
  for (const v1::Hit& hit : response.results(1).hits())
    EXPECT_GE(hit.payload().at("year").int_value(), 2000);
  EXPECT_TRUE(response.results(0).has_rows_passing());
  EXPECT_FALSE(response.results(2).has_rows_passing());
  EXPECT_EQ(response.results(2).hits_size(), 10);
}

TEST_F(FiltersTest, FiltersRecommendations) {
  v1::RecommendRequest request;
  request.set_collection("films");
  request.add_user_ids("user_00042");
  request.mutable_options()->set_exclude_seen(true);
  request.mutable_options()->set_filter("genres:Western AND year >= 1950");
  v1::RecommendResponse response;
  ASSERT_TRUE(client_.Recommend(request, response).ok());
  ASSERT_EQ(response.results(0).hits_size(), 10);
  for (const v1::Hit& hit : response.results(0).hits())
    EXPECT_THAT(Genres(hit), Contains("Western"));
  EXPECT_GE(response.results(0).rows_passing(), 10U);
}

TEST_F(FiltersTest, AFilterThatNoRowPassesReturnsNoHits) {
  const v1::SearchResult result = Search(StarWars("year > 3000")).results(0);
  EXPECT_EQ(result.hits_size(), 0);
  EXPECT_EQ(result.rows_passing(), 0U);
}

TEST_F(FiltersTest, NamesTheErrorAndItsColumn) {
  v1::SearchResponse response;
  Outcome outcome = client_.Search(StarWars("genre:\"Science Fiction\""), response);
  EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(outcome.message,
            "filter, column 1: films has no field \"genre\". Did you mean \"genres\"? Fields: "
            "cast, genres, media_id, title, year.");
  v1::SearchRequest request = StarWars("year > 1990");
  request.add_queries()->set_id("heat-1995");
  request.mutable_queries(1)->set_filter("year = \"1990\"");
  outcome = client_.Search(request, response);
  EXPECT_EQ(outcome.message,
            "queries[1]: filter, column 8: year holds numbers and \"1990\" is text; write 1990");
}

TEST_F(FiltersTest, DescribesFieldsWithTheirCommonValues) {
  v1::DescribeFieldsRequest request;
  request.set_collection("films");
  request.set_values_max(3);
  v1::DescribeFieldsResponse response;
  ASSERT_TRUE(client_.DescribeFields(request, response).ok());
  EXPECT_EQ(response.rows(), static_cast<std::uint64_t>(kFilmsRows));
  EXPECT_EQ(response.snapshot_id().size(), 32U);
  EXPECT_EQ(response.snapshot_version(), 1U);
  ASSERT_EQ(response.fields_size(), 5);
  const v1::FieldDescription& genres = response.fields(1);
  EXPECT_EQ(genres.field().name(), "genres");
  EXPECT_EQ(genres.field().type(), v1::FIELD_TYPE_KEYWORD_LIST);
  ASSERT_EQ(genres.values_size(), 3);
  EXPECT_FALSE(genres.values(0).value().string_value().empty());
  EXPECT_GE(genres.values(0).rows(), genres.values(1).rows());
  EXPECT_GT(genres.distinct_values(), 10U);
  const v1::FieldDescription& year = response.fields(4);
  EXPECT_EQ(year.field().type(), v1::FIELD_TYPE_INTEGER);
  EXPECT_EQ(year.least().int_value(), 1900);
  EXPECT_GT(year.greatest().int_value(), 2000);
  request.set_values_max(1'001);
  EXPECT_EQ(client_.DescribeFields(request, response).message,
            "values_max: 1,001; give 0 to 1,000");
}

}  // namespace
}  // namespace simile::integration

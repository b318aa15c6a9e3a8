#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/films_server.h"

namespace simile::integration {
namespace {

using ::testing::ElementsAre;

class LookupTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<FilmsServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  static v1::FetchRequest Fetch(const std::vector<std::string>& ids) {
    v1::FetchRequest request;
    request.set_collection("films");
    request.mutable_ids()->Add(ids.begin(), ids.end());
    return request;
  }

  static v1::LookupRequest Lookup(const std::string& text) {
    v1::LookupRequest request;
    request.set_collection("films");
    request.set_text(text);
    return request;
  }

  inline static std::unique_ptr<FilmsServer> server_;
  const Client client_ = server_->NewClient();
};

TEST_F(LookupTest, FetchesItemsInTheRequestsOrder) {
  v1::FetchRequest request = Fetch({"toy-story-2-1999", "feeding-sea-lions-1900"});
  request.set_with_rows(true);
  v1::FetchResponse response;
  const Outcome outcome = client_.Fetch(request, response);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  ASSERT_EQ(response.items_size(), 2);
  EXPECT_EQ(response.items(0).payload().at("title").string_value(), "Toy Story 2");
  EXPECT_TRUE(response.items(1).has_row());
  EXPECT_EQ(response.items(1).row(), 0U);
  EXPECT_EQ(response.items(1).payload().at("cast").list_value().values(0).string_value(),
            "Paul Boyton");
  EXPECT_EQ(response.snapshot_version(), 1U);
}

TEST_F(LookupTest, FetchesOnlyTheSelectedFields) {
  v1::FetchRequest request = Fetch({"toy-story-1995"});
  request.mutable_payload()->add_fields("year");
  request.set_with_vectors(true);
  v1::FetchResponse response;
  ASSERT_TRUE(client_.Fetch(request, response).ok());
  EXPECT_EQ(response.items(0).payload_size(), 1);
  EXPECT_EQ(response.items(0).payload().at("year").int_value(), 1995);
  EXPECT_EQ(response.items(0).vector().values_size(), kFilmsDim);
}

TEST_F(LookupTest, NamesTheFirstUnknownId) {
  v1::FetchResponse response;
  const Outcome outcome = client_.Fetch(Fetch({"toy-story-1995", "toy-storey-1995"}), response);
  EXPECT_EQ(outcome.code, absl::StatusCode::kNotFound);
  EXPECT_EQ(outcome.message,
            "ids[1]: no item \"toy-storey-1995\" in films. Did you mean \"toy-story-1995\"?");
}

TEST_F(LookupTest, OffersNoIdWhenNoneIsNear) {
  v1::FetchResponse response;
  EXPECT_EQ(client_.Fetch(Fetch({"qqqqqqqqqqqqqqqqqqqq"}), response).message,
            "no item \"qqqqqqqqqqqqqqqqqqqq\" in films");
}

TEST_F(LookupTest, FindsTitlesWholeMatchesFirst) {
  v1::LookupResponse response;
  const Outcome outcome = client_.Lookup(Lookup("toy story"), response);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  std::vector<std::string> ids;
  for (const v1::LookupMatch& match : response.matches()) ids.push_back(match.item().id());
  EXPECT_THAT(ids, ElementsAre("toy-story-1995", "toy-story-2-1999", "toy-story-3-2010",
                               "toy-story-4-2019"));
  EXPECT_EQ(response.matches(0).quality(), v1::LookupMatch::QUALITY_WHOLE);
  EXPECT_EQ(response.matches(1).quality(), v1::LookupMatch::QUALITY_PREFIX);
  EXPECT_EQ(response.match_count(), 4U);
  EXPECT_EQ(response.whole_match_count(), 1U);
}

TEST_F(LookupTest, CountsTheMatchesPastTheLimit) {
  v1::LookupRequest request = Lookup("batman");
  request.set_limit(2);
  v1::LookupResponse response;
  ASSERT_TRUE(client_.Lookup(request, response).ok());
  EXPECT_EQ(response.matches_size(), 2);
  EXPECT_EQ(response.match_count(), 16U);
}

TEST_F(LookupTest, NamesTheFieldsThatCanBeSearched) {
  v1::LookupRequest request = Lookup("1995");
  request.set_field("year");
  v1::LookupResponse response;
  const Outcome outcome = client_.Lookup(request, response);
  EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(outcome.message,
            "field: films cannot be searched by \"year\". Fields that can: title.");
}

}  // namespace
}  // namespace simile::integration

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "integration/films_client_test.h"

namespace simile::integration {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Calls with `allow_ids`, against the whole ranking with the other items taken out of it.
class AllowedIdsTest : public FilmsClientTest {
 protected:
  AllowedIdsTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() {
    server_ = std::make_unique<FilmsServer>();
    v1::SearchRequest request = Like("toy-story-1995");
    request.mutable_options()->set_k(5'000);
    v1::SearchResponse response;
    ASSERT_TRUE(server_->NewClient().Search(request, response).ok());
    for (const v1::Hit& hit : response.results(0).hits()) ids_.push_back(hit.id());
    ASSERT_THAT(ids_, SizeIs(4'999));
  }
  static void TearDownTestSuite() { server_.reset(); }

  static v1::SearchRequest Like(const std::string& id) {
    v1::SearchRequest request;
    request.set_collection("films");
    request.add_queries()->set_id(id);
    request.mutable_options()->mutable_payload()->set_selection(
        v1::PayloadSelector::SELECTION_NONE);
    return request;
  }

  // So many of the films, in any order, some twice.
  std::vector<std::string> Draw(std::size_t count) {
    std::vector<std::string> drawn = ids_;
    std::ranges::shuffle(drawn, random_);
    drawn.resize(count);
    if (count > 0) drawn.push_back(drawn.front());
    return drawn;
  }

  static void Allow(const std::vector<std::string>& ids, v1::SearchOptions& options) {
    options.mutable_allow_ids()->mutable_ids()->Assign(ids.begin(), ids.end());
  }

  // The first k of a whole ranking that are allowed, with their scores.
  static std::vector<v1::Hit> FirstAllowed(const v1::SearchResult& ranking,
                                           const std::vector<std::string>& ids, std::size_t k) {
    const std::unordered_set<std::string> allowed(ids.begin(), ids.end());
    std::vector<v1::Hit> hits;
    for (const v1::Hit& hit : ranking.hits()) {
      if (hits.size() == k || !allowed.contains(hit.id())) continue;
      hits.push_back(hit);
      hits.back().set_rank(static_cast<std::uint32_t>(hits.size()));
    }
    return hits;
  }

  static void ExpectHits(const v1::SearchResult& result, const std::vector<v1::Hit>& wanted) {
    ASSERT_EQ(static_cast<std::size_t>(result.hits_size()), wanted.size());
    for (int i = 0; i < result.hits_size(); ++i) {
      EXPECT_TRUE(MessageDifferencer::Equals(result.hits(i), wanted[static_cast<std::size_t>(i)]))
          << result.hits(i).ShortDebugString();
    }
  }

  // Asks for the whole ranking, then for 20 hits of the list. Returns the latter, which are the
  // ranking's first allowed ones.
  template <class Request, class Call>
  auto ExpectNarrowed(Request request, const std::vector<std::string>& allowed, const Call& call) {
    request.mutable_options()->set_k(5'000);
    const auto ranking = call(request);
    Allow(allowed, *request.mutable_options());
    request.mutable_options()->set_k(20);
    auto response = call(request);
    ExpectHits(response.results(0), FirstAllowed(ranking.results(0), allowed, 20));
    return response;
  }

  inline static std::unique_ptr<FilmsServer> server_;
  inline static std::vector<std::string> ids_;  // of all films but one
  std::mt19937 random_{20261128};
};

TEST_F(AllowedIdsTest, NarrowASearch) {
  for (const std::size_t count : {0, 1, 10, 1'000, 4'999}) {
    const std::vector<std::string> allowed = Draw(count);
    for (const char* const filter : {"", "year >= 1990 AND NOT genres = Drama"}) {
      v1::SearchRequest request = Like(ids_[random_() % ids_.size()]);
      request.mutable_options()->set_filter(filter);
      const v1::SearchResponse response =
          ExpectNarrowed(request, allowed, [this](const auto& each) { return Search(each); });
      EXPECT_TRUE(response.results(0).has_rows_passing());
      EXPECT_THAT(response.notes(), IsEmpty());
    }
  }
}

TEST_F(AllowedIdsTest, NarrowRecommendationsAndColdStarts) {
  for (const char* const user : {"user_00042", "nobody"}) {
    const std::vector<std::string> allowed = Draw(1'000);
    v1::RecommendRequest request;
    request.set_collection("films");
    request.add_user_ids(user);
    request.mutable_options()->set_exclude_seen(true);
    request.mutable_options()->mutable_payload()->set_selection(
        v1::PayloadSelector::SELECTION_NONE);
    request.mutable_options()->mutable_cold_start()->set_order(v1::ColdStart::ORDER_MOST_POPULAR);
    ExpectNarrowed(request, allowed, [this](const auto& each) { return Recommend(each); });
  }
}

TEST_F(AllowedIdsTest, NarrowEachSearchOfAStream) {
  const std::vector<std::string> allowed = Draw(300);
  std::vector<v1::SearchStreamRequest> requests(4);
  std::vector<v1::SearchResponse> alone(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].set_tag(i);
    v1::SearchRequest& search = *requests[i].mutable_search();
    search = Like(ids_[i]);
    if (i % 2 == 0) Allow(allowed, *search.mutable_options());
    alone[i] = Search(search);
  }
  std::vector<v1::SearchStreamResponse> responses;
  ASSERT_TRUE(client_.SearchStream(requests, responses).ok());
  ASSERT_THAT(responses, SizeIs(requests.size()));
  for (const v1::SearchStreamResponse& response : responses) {
    EXPECT_TRUE(
        MessageDifferencer::Equals(response.search().results(0), alone[response.tag()].results(0)));
  }
}

TEST_F(AllowedIdsTest, CountTheIdsThatAreUnknown) {
  v1::SearchRequest request = Like("toy-story-1995");
  Allow({"heat-1995", "gone", "lost", "heat-1995"}, *request.mutable_options());
  const v1::SearchResponse response = Search(request);
  ASSERT_EQ(response.results(0).hits_size(), 1);
  EXPECT_EQ(response.results(0).hits(0).id(), "heat-1995");
  EXPECT_EQ(response.results(0).rows_passing(), 1U);
  EXPECT_THAT(response.notes(),
              ElementsAre("options.allow_ids: the collection does not have 2 of these ids, which "
                          "allow nothing: \"gone\", \"lost\""));
  EXPECT_THAT(response.results(0).notes(),
              ElementsAre("1 hit, not 10: no other row is in options.allow_ids"));
}

TEST_F(AllowedIdsTest, AllowNothingWhenTheListIsEmpty) {
  v1::SearchRequest request = Like("toy-story-1995");
  request.mutable_options()->mutable_allow_ids();
  const v1::SearchResponse response = Search(request);
  EXPECT_EQ(response.results(0).hits_size(), 0);
  EXPECT_THAT(response.results(0).notes(),
              ElementsAre("0 hits, not 10: options.allow_ids allows no row"));
}

TEST_F(AllowedIdsTest, AreNamedBesideAFilterThatNoneOfThemPasses) {
  v1::SearchRequest request = Like("toy-story-1995");
  Allow({"heat-1995"}, *request.mutable_options());
  request.mutable_options()->set_filter("genres = Animated");
  EXPECT_THAT(Search(request).results(0).notes(),
              ElementsAre("0 hits, not 10: no row of options.allow_ids passes the filter"));
}

TEST_F(AllowedIdsTest, AreRefusedBeyondTheLimit) {
  v1::SearchRequest request = Like("toy-story-1995");
  Allow(std::vector<std::string>(200'001, "heat-1995"), *request.mutable_options());
  v1::SearchResponse response;
  const Outcome outcome = client_.Search(request, response);
  EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(outcome.message,
            "options.allow_ids.ids: 200,001 ids given; at most 200,000. To allow more, mark the "
            "items with a payload field and filter by it");
  Allow({"heat-1995", ""}, *request.mutable_options());
  EXPECT_EQ(client_.Search(request, response).message,
            "options.allow_ids.ids[1]: empty; an id has 1 to 512 bytes");
}

}  // namespace
}  // namespace simile::integration

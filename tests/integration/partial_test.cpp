#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "google/rpc/status.pb.h"
#include "integration/access_server.h"
#include "integration/films_client_test.h"

namespace simile::integration {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr int kQueries = 100;

// A query, and whether it can be answered.
struct Drawn {
  v1::Query query;
  bool good = true;
};

// Calls in which some queries cannot be answered.
class PartialTest : public FilmsClientTest {
 protected:
  PartialTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() {
    server_ = std::make_unique<FilmsServer>();
    const Client client = server_->NewClient();
    v1::SearchRequest request;
    request.set_collection("films");
    request.add_queries()->set_id("toy-story-1995");
    request.mutable_options()->set_k(300);
    v1::SearchResponse response;
    ASSERT_TRUE(client.Search(request, response).ok());
    for (const v1::Hit& hit : response.results(0).hits()) ids_.push_back(hit.id());
  }
  static void TearDownTestSuite() { server_.reset(); }

  std::string GoodId() { return ids_[random_() % ids_.size()]; }
  std::string GoodUser() { return fmt::format("user_{:05}", random_() % 500); }
  std::string BadId() { return fmt::format("no such film {}", random_() % 1'000); }

  // Of every kind of target and option.
  v1::Query GoodQuery() {
    v1::Query query;
    switch (random_() % 5) {
      case 0:
        query.set_id(GoodId());
        break;
      case 1:
        query.set_user_id(GoodUser());
        query.set_exclude_seen(random_() % 2 == 0);
        break;
      case 2:
        for (int i = 0; i < kFilmsDim; ++i) {
          query.mutable_vector()->add_values(static_cast<float>(random_() % 1'000) - 500);
        }
        break;
      case 3: {
        v1::Examples& examples = *query.mutable_examples();
        examples.set_strategy(static_cast<v1::Examples::Strategy>(1 + random_() % 3));
        examples.add_positive()->set_id(GoodId());
        if (random_() % 2 == 0) examples.add_negative()->set_id(GoodId());
        break;
      }
      default:
        query.mutable_blend()->set_id(GoodId());
        query.mutable_blend()->set_user_id(GoodUser());
    }
    query.set_k(static_cast<std::uint32_t>(1 + random_() % 5));
    if (random_() % 4 == 0) query.set_filter("year >= 1990");
    if (random_() % 8 == 0) query.mutable_group_by()->set_field("genres");
    return query;
  }

  // Wrong in the request itself, or for this collection.
  v1::Query BadQuery() {
    v1::Query query = GoodQuery();
    switch (random_() % 10) {
      case 0:
        query.set_id(BadId());
        break;
      case 1:
        query.set_user_id(BadId());
        break;
      case 2:
        query.mutable_vector()->mutable_values()->Resize(3, 1);
        break;
      case 3: {
        v1::Examples& examples = *query.mutable_examples();
        examples.Clear();
        examples.set_strategy(v1::Examples::STRATEGY_BEST_SCORE);
        examples.add_positive()->set_id(BadId());
        examples.add_negative()->set_id(BadId());
        break;
      }
      case 4:
        query.mutable_blend()->set_id(GoodId());
        query.mutable_blend()->set_user_id(BadId());
        break;
      case 5:
        query.set_k(0);
        break;
      case 6:
        query.set_filter("no_such_field = 3");
        break;
      case 7:
        query.mutable_group_by()->set_field("years");
        break;
      case 8:
        query.clear_target();
        break;
      default:
        query.set_offset(20'000);
    }
    return query;
  }

  // Draws kQueries queries. `bad_count` of them, at random places, cannot be answered.
  std::vector<Drawn> DrawQueries(int bad_count) {
    std::vector<Drawn> drawn(kQueries);
    for (int i = 0; i < bad_count; ++i) drawn[static_cast<std::size_t>(i)].good = false;
    std::shuffle(drawn.begin(), drawn.end(), random_);
    for (Drawn& each : drawn) each.query = each.good ? GoodQuery() : BadQuery();
    return drawn;
  }

  static v1::SearchRequest MakeRequest(const std::vector<Drawn>& drawn) {
    v1::SearchRequest request;
    request.set_collection("films");
    for (const Drawn& each : drawn) *request.add_queries() = each.query;
    return request;
  }

  // The result equals the result of the query in a call of its own.
  void ExpectAsAlone(const Drawn& drawn, int index, v1::SearchResult result) {
    v1::SearchResponse alone;
    const Outcome outcome = client_.Search(MakeRequest({drawn}), alone);
    ASSERT_EQ(outcome.ok(), drawn.good) << drawn.query.ShortDebugString();
    EXPECT_EQ(result.index(), static_cast<std::uint32_t>(index));
    if (!drawn.good) {
      ExpectSameError(result.error(), outcome, "queries", index);
      EXPECT_TRUE(result.hits().empty());
      return;
    }
    result.clear_index();
    EXPECT_TRUE(MessageDifferencer::Equals(result, alone.results(0)))
        << drawn.query.ShortDebugString();
  }

  // Code, reason and message equal those of the query in a call of its own. The field is of this
  // call.
  static void ExpectSameError(const google::rpc::Status& error, const Outcome& alone,
                              const std::string& list, int index) {
    const Outcome together = ReadOutcome(error);
    EXPECT_EQ(together.code, alone.code) << alone.message;
    EXPECT_EQ(together.reason, alone.reason) << alone.message;
    EXPECT_EQ(together.message, alone.message);
    const std::string first = list + "[0]";
    ASSERT_THAT(alone.field, StartsWith(first));
    EXPECT_EQ(together.field,
              fmt::format("{}[{}]{}", list, index, alone.field.substr(first.size())));
  }

  double FailedQueries(const std::string& method) {
    return std::max(0.0, MetricValue(ScrapeMetrics(*server_->app().metrics_port()),
                                     fmt::format("simile_failed_queries_total{{rpc_method="
                                                 "\"simile.v1.{}\"}}",
                                                 method)));
  }

  static constexpr std::uint64_t kSeed = 18;
  inline static std::unique_ptr<FilmsServer> server_;
  inline static std::vector<std::string> ids_;
  std::mt19937_64 random_{kSeed};
};

TEST_F(PartialTest, SearchAnswersTheGoodQueriesAsItDoesAlone) {
  std::cout << "seed " << kSeed << "\n";
  for (const int bad : {0, 1, 7, 50, 99, 100}) {
    const std::vector<Drawn> drawn = DrawQueries(bad);
    v1::SearchRequest request = MakeRequest(drawn);
    request.mutable_options()->set_partial(true);
    const double failed_before = FailedQueries("SearchService/Search");
    const v1::SearchResponse response = Search(request);
    ASSERT_EQ(response.results_size(), kQueries);
    EXPECT_EQ(response.failed_count(), static_cast<std::uint32_t>(bad));
    EXPECT_EQ(FailedQueries("SearchService/Search") - failed_before, bad);
    EXPECT_FALSE(response.receipt().snapshot_id().empty());
    EXPECT_EQ(response.receipt().backend(), v1::BACKEND_KIND_CPU);
    for (int i = 0; i < kQueries; ++i) {
      ExpectAsAlone(drawn[static_cast<std::size_t>(i)], i, response.results(i));
    }
    if (bad == 0) continue;
    request.mutable_options()->set_partial(false);
    v1::SearchResponse none;
    EXPECT_FALSE(client_.Search(request, none).ok());
  }
}

TEST_F(PartialTest, StreamsAnswerSuchRequestsAsCalls) {
  std::vector<v1::SearchStreamRequest> requests;
  std::vector<std::vector<Drawn>> drawn;
  for (const int bad : {0, 13, 100}) {
    drawn.push_back(DrawQueries(bad));
    v1::SearchStreamRequest& request = requests.emplace_back();
    *request.mutable_search() = MakeRequest(drawn.back());
    request.mutable_search()->mutable_options()->set_partial(true);
  }
  std::vector<v1::SearchStreamResponse> responses;
  ASSERT_TRUE(client_.SearchStream(requests, responses).ok());
  ASSERT_EQ(responses.size(), requests.size());
  for (std::size_t r = 0; r < responses.size(); ++r) {
    ASSERT_TRUE(responses[r].has_search()) << responses[r].ShortDebugString();
    for (int i = 0; i < kQueries; ++i) {
      ExpectAsAlone(drawn[r][static_cast<std::size_t>(i)], i, responses[r].search().results(i));
    }
  }
}

TEST_F(PartialTest, RecommendAnswersTheKnownUsersAsItDoesAlone) {
  for (const int bad : {0, 3, 100}) {
    v1::RecommendRequest request;
    request.set_collection("films");
    request.mutable_options()->set_k(3);
    for (int i = 0; i < kQueries; ++i) {
      const std::string unknown = i % 2 == 0 ? BadId() : std::string();
      request.add_user_ids(i < bad ? unknown : GoodUser());
    }
    std::shuffle(request.mutable_user_ids()->begin(), request.mutable_user_ids()->end(), random_);
    v1::RecommendRequest partial = request;
    partial.mutable_options()->set_partial(true);
    v1::RecommendResponse response = Recommend(partial);
    EXPECT_EQ(response.failed_count(), static_cast<std::uint32_t>(bad));
    for (int i = 0; i < kQueries; ++i) {
      v1::RecommendRequest one = request;
      one.clear_user_ids();
      one.add_user_ids(request.user_ids(i));
      v1::RecommendResponse alone;
      const Outcome outcome = client_.Recommend(one, alone);
      v1::SearchResult& result = *response.mutable_results(i);
      EXPECT_EQ(result.user_id(), request.user_ids(i));
      EXPECT_EQ(result.index(), static_cast<std::uint32_t>(i));
      if (!outcome.ok()) {
        ExpectSameError(result.error(), outcome, "user_ids", i);
        continue;
      }
      result.clear_index();
      EXPECT_TRUE(MessageDifferencer::Equals(result, alone.results(0)));
    }
  }
}

TEST_F(PartialTest, FetchReturnsTheKnownItemsAsItDoesAlone) {
  for (const int bad : {0, 5, 100}) {
    v1::FetchRequest request;
    request.set_collection("films");
    request.set_with_vectors(true);
    request.set_partial(true);
    for (int i = 0; i < kQueries; ++i) {
      const std::string unknown = i % 2 == 0 ? BadId() : std::string();
      request.add_ids(i < bad ? unknown : GoodId());
    }
    std::shuffle(request.mutable_ids()->begin(), request.mutable_ids()->end(), random_);
    const double failed_before = FailedQueries("LookupService/Fetch");
    v1::FetchResponse response;
    const Outcome together = client_.Fetch(request, response);
    ASSERT_TRUE(together.ok()) << together.message;
    EXPECT_EQ(response.failed_count(), static_cast<std::uint32_t>(bad));
    EXPECT_EQ(FailedQueries("LookupService/Fetch") - failed_before, bad);
    for (int i = 0; i < kQueries; ++i) {
      v1::FetchRequest one = request;
      one.set_partial(false);
      one.clear_ids();
      one.add_ids(request.ids(i));
      v1::FetchResponse alone;
      const Outcome outcome = client_.Fetch(one, alone);
      EXPECT_EQ(response.items(i).id(), request.ids(i));
      if (!outcome.ok()) {
        ExpectSameError(response.items(i).error(), outcome, "ids", i);
        continue;
      }
      EXPECT_TRUE(MessageDifferencer::Equals(response.items(i), alone.items(0)));
    }
  }
}

TEST_F(PartialTest, PagesGoOnWhereAQueryFails) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("no such film");
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_options()->set_partial(true);
  request.mutable_options()->set_paged(true);
  request.mutable_options()->set_k(2);
  std::vector<std::string> ids;
  for (int page = 0; page < 3; ++page) {
    const v1::SearchResponse response = Search(request);
    EXPECT_EQ(ReadOutcome(response.results(0).error()).reason, "ITEM_NOT_FOUND");
    for (const v1::Hit& hit : response.results(1).hits()) ids.push_back(hit.id());
    ASSERT_FALSE(response.next_page_token().empty());
    request.mutable_options()->set_page_token(response.next_page_token());
  }
  EXPECT_EQ(ids, std::vector<std::string>(ids_.begin(), ids_.begin() + 6));
  request.mutable_options()->set_partial(false);
  v1::SearchResponse none;
  EXPECT_EQ(client_.Search(request, none).reason, "INVALID_PAGE_TOKEN") << "another request";
  request.mutable_options()->set_partial(true);
  request.clear_queries();
  request.add_queries()->set_id("no such film");
  request.mutable_options()->clear_page_token();
  EXPECT_TRUE(Search(request).next_page_token().empty()) << "nothing to go on with";
}

TEST_F(PartialTest, StillFailsOfTheCallAndItsOptions) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  v1::SearchOptions& options = *request.mutable_options();
  options.set_partial(true);
  v1::SearchResponse response;
  const auto field = [&] { return client_.Search(request, response).field; };
  options.set_k(0);
  EXPECT_EQ(field(), "options.k");
  options.set_k(3);
  options.set_filter("no_such_field = 3");
  EXPECT_EQ(field(), "options.filter");
  options.clear_filter();
  options.mutable_group_by()->set_field("years");
  EXPECT_EQ(field(), "options.group_by.field");
  options.clear_group_by();
  options.set_reply_bytes_max(1);
  EXPECT_EQ(client_.Search(request, response).reason, "REPLY_TOO_LARGE");
  request.set_collection("nowhere");
  EXPECT_EQ(client_.Search(request, response).reason, "COLLECTION_NOT_FOUND");
}

TEST_F(PartialTest, WithoutItTheErrorNamesAllUnknownIds) {
  v1::RecommendRequest users;
  users.set_collection("films");
  for (const char* const id : {"user_00042", "zz", "yy"}) users.add_user_ids(id);
  v1::RecommendResponse recommended;
  const Outcome of_users = client_.Recommend(users, recommended);
  EXPECT_EQ(of_users.message, "2 ids are not in films: users \"zz\", \"yy\"");
  EXPECT_EQ(of_users.field, "user_ids[1]");
  v1::FetchRequest items;
  items.set_collection("films");
  for (int i = 0; i < 60; ++i) items.add_ids(fmt::format("zz{}", i));
  v1::FetchResponse fetched;
  const Outcome of_items = client_.Fetch(items, fetched);
  EXPECT_THAT(of_items.message, StartsWith("60 ids are not in films: items \"zz0\", \"zz1\""));
  EXPECT_THAT(of_items.message, EndsWith("\"zz19\", and 40 more"));
  EXPECT_EQ(of_items.reason, "ITEM_NOT_FOUND");
  EXPECT_EQ(of_items.field, "ids[0]");
}

TEST(PartialAccessTest, TellsABoundCallerOfHiddenItemsAsOfUnknownOnes) {
  const AccessServer server({AccessServer::Entry(
      "bound", "read", R"("required_filter": "year < 1990", "users": "all")")});
  const Client client = server.NewClient("bound");
  v1::FetchRequest fetch;
  fetch.set_collection("films");
  fetch.set_partial(true);
  for (const char* const id : {"star-wars-1977", "toy-story-1995", "toy-story-1994"}) {
    fetch.add_ids(id);
  }
  v1::FetchResponse fetched;
  const Outcome outcome = client.Fetch(fetch, fetched);
  ASSERT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_FALSE(fetched.items(0).has_error());
  EXPECT_EQ(fetched.items(1).error().message(), "no item \"toy-story-1995\" in films");
  EXPECT_EQ(fetched.items(2).error().message(), "no item \"toy-story-1994\" in films");
  fetch.set_partial(false);
  EXPECT_EQ(client.Fetch(fetch, fetched).message,
            "2 ids are not in films: items \"toy-story-1995\", \"toy-story-1994\"");
}

}  // namespace
}  // namespace simile::integration

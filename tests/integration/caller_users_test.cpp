// Which users exist for a caller. In every call that can name a user, another caller's user is
// answered like a user that nobody has. Popularity counts the clicks of the caller's own users.
#include <algorithm>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "data/load/load.h"
#include "integration/access_server.h"

namespace simile::integration {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kOwn[] = "user_00004";    // of "few"
constexpr char kOther[] = "user_00042";  // another caller's
constexpr char kNobody[] = "user_98765";

// How a call ended, with USER in place of the user's id.
struct Ending {
  std::string reason;
  std::string field;
  std::string message;

  friend bool operator==(const Ending&, const Ending&) = default;
};
void PrintTo(const Ending& ending, std::ostream* out) {
  *out << ending.reason << ' ' << ending.field << ": " << ending.message;
}

Ending MakeEnding(const Outcome& outcome, const std::string& user) {
  Ending ending{outcome.reason, outcome.field, outcome.message};
  const std::size_t at = ending.message.find(user);
  if (at != std::string::npos) ending.message.replace(at, user.size(), "USER");
  return ending;
}

v1::RecommendRequest RecommendFor(const std::string& user) {
  v1::RecommendRequest request;
  request.set_collection("films");
  request.add_user_ids(user);
  request.mutable_options()->set_k(20);
  return request;
}

v1::RecommendRequest PopularFor(const std::string& user) {
  v1::RecommendRequest request = RecommendFor(user);
  request.mutable_options()->mutable_cold_start()->set_order(v1::ColdStart::ORDER_MOST_POPULAR);
  return request;
}

v1::SearchRequest SearchBy(const std::string& user, bool exclude_seen) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_user_id(user);
  request.mutable_options()->set_exclude_seen(exclude_seen);
  return request;
}

v1::SearchRequest BlendWith(const std::string& user) {
  v1::SearchRequest request;
  request.set_collection("films");
  v1::Blend& blend = *request.add_queries()->mutable_blend();
  blend.set_id("toy-story-1995");
  blend.set_user_id(user);
  blend.set_user_weight(0.5F);
  return request;
}

std::vector<std::string> ListHitIds(const v1::RecommendResponse& response) {
  std::vector<std::string> ids;
  for (const v1::Hit& hit : response.results(0).hits()) ids.push_back(hit.id());
  return ids;
}

class CallerUsersTest : public testing::Test {
 protected:
  // How each call that can name a user ends for this user.
  static std::map<std::string, Ending> Endings(const Client& client, const std::string& user) {
    std::map<std::string, Ending> endings;
    v1::RecommendResponse recommended;
    v1::SearchResponse found;
    endings["recommend"] = MakeEnding(client.Recommend(RecommendFor(user), recommended), user);
    v1::RecommendRequest several = RecommendFor(user);
    several.add_user_ids(user);
    endings["several"] = MakeEnding(client.Recommend(several, recommended), user);
    endings["search"] = MakeEnding(client.Search(SearchBy(user, false), found), user);
    endings["unseen"] = MakeEnding(client.Search(SearchBy(user, true), found), user);
    endings["blend"] = MakeEnding(client.Search(BlendWith(user), found), user);
    std::vector<v1::SearchStreamRequest> messages(3);
    *messages[0].mutable_search() = SearchBy(user, true);
    *messages[1].mutable_recommend() = RecommendFor(user);
    *messages[2].mutable_search() = BlendWith(user);
    std::vector<v1::SearchStreamResponse> answers;
    EXPECT_TRUE(client.SearchStream(messages, answers).ok());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      endings["stream " + std::to_string(i)] = MakeEnding(ReadOutcome(answers[i]), user);
    }
    return endings;
  }

  // Item ids by how many of some users have seen each, most first, then by row.
  template <class IsOne>
  static std::vector<std::string> MostSeen(const IsOne& is_one) {
    const auto plan = data::PlanDataset(kFilmsFolder, Limits{});
    const auto films = data::LoadDataset(plan.value(), Limits{}, nullptr);
    const data::Dataset& dataset = films.value();
    std::map<Row, int> counts;
    for (Row user = 0; user < dataset.profiles.ids.size(); ++user) {
      if (!is_one(dataset.profiles.ids.Id(user))) continue;
      for (const Row row : dataset.profiles.seen.Of(user)) ++counts[row];
    }
    std::vector<std::pair<int, Row>> order;
    for (const auto& [row, count] : counts) order.emplace_back(-count, row);
    std::ranges::sort(order);
    std::vector<std::string> ids;
    for (const auto& [count, row] : order) ids.push_back(dataset.ids.Id(row));
    return ids;
  }

  static v1::RecommendResponse Recommended(const Client& client,
                                           const v1::RecommendRequest& request) {
    v1::RecommendResponse response;
    const Outcome outcome = client.Recommend(request, response);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    response.clear_receipt();
    return response;
  }

  const AccessServer server_{{
      AccessServer::Entry("all", "read"),
      AccessServer::Entry("filtered", "read", R"("required_filter": "year > 0")"),
      AccessServer::Entry("few", "read",
                          R"("required_filter": "year > 0", "users": {"prefix": "user_0000"})"),
      AccessServer::Entry("one", "read", R"("users": {"ids": ["user_00042"]})"),
  }};
};

TEST_F(CallerUsersTest, FindsTheUsersOfTheCaller) {
  for (const auto& [caller, user] : std::vector<std::pair<const char*, const char*>>{
           {"all", kOwn}, {"all", kOther}, {"few", kOwn}}) {
    for (const auto& [call, ending] : Endings(server_.NewClient(caller), user)) {
      EXPECT_EQ(ending.reason, "") << caller << call << ending.message;
    }
  }
  EXPECT_EQ(Endings(server_.NewClient("one"), kOther)["recommend"].reason, "");
}

TEST_F(CallerUsersTest, SaysTheSameOfUsersOfOthersAsOfUnknownOnes) {
  for (const char* const caller : {"filtered", "few", "one"}) {
    const Client client = server_.NewClient(caller);
    const std::string user = caller == std::string("one") ? kOwn : kOther;
    const auto unknown = Endings(client, kNobody);
    EXPECT_EQ(Endings(client, user), unknown) << caller;
    EXPECT_EQ(unknown.size(), 8U);
    for (const auto& [call, ending] : unknown) {
      EXPECT_EQ(ending.reason, "USER_NOT_FOUND") << caller << call;
      EXPECT_THAT(ending.message, Not(HasSubstr("Did you mean"))) << caller << call;
    }
  }
}

TEST_F(CallerUsersTest, AnswersForUsersOfOthersAsForNewUsers) {
  const Client client = server_.NewClient("few");
  for (v1::ColdStart::Order order :
       {v1::ColdStart::ORDER_NEWEST, v1::ColdStart::ORDER_MOST_POPULAR}) {
    const auto answer = [&](const std::string& user) {
      v1::RecommendRequest request = RecommendFor(user);
      request.mutable_options()->set_exclude_seen(true);
      request.mutable_options()->mutable_cold_start()->set_order(order);
      v1::RecommendResponse response = Recommended(client, request);
      EXPECT_EQ(response.results(0).user_id(), user);
      response.mutable_results(0)->clear_user_id();
      return response;
    };
    const v1::RecommendResponse other = answer(kOther);
    EXPECT_TRUE(other.results(0).has_cold_start());
    EXPECT_EQ(other.results(0).seen_count(), 0U);
    EXPECT_TRUE(MessageDifferencer::Equals(other, answer(kNobody)));
    EXPECT_FALSE(answer(kOwn).results(0).has_cold_start());
  }
}

TEST_F(CallerUsersTest, CountsTheClicksOfTheCallersUsers) {
  const auto expect_first = [&](const char* caller, std::vector<std::string> expected) {
    std::vector<std::string> hits =
        ListHitIds(Recommended(server_.NewClient(caller), PopularFor(kNobody)));
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(hits.size(), 20U);
    expected.resize(std::min(expected.size(), hits.size()));
    hits.resize(expected.size());
    EXPECT_EQ(hits, expected) << caller;
  };
  expect_first("all", MostSeen([](const std::string&) { return true; }));
  expect_first("few", MostSeen([](const std::string& id) { return id.starts_with("user_0000"); }));
  expect_first("one", MostSeen([](const std::string& id) { return id == kOther; }));
}

TEST_F(CallerUsersTest, RefusesPopularityWithoutUsersAndSaysTheWayOn) {
  v1::RecommendResponse response;
  const Client client = server_.NewClient("filtered");
  const Outcome refused = client.Recommend(PopularFor(kOther), response);
  EXPECT_EQ(refused.reason, "INVALID_FIELD");
  EXPECT_THAT(refused.message, HasSubstr("films has no interactions to tell what is popular; name "
                                         "a field; fields with an order: "));
  v1::RecommendRequest by_field = PopularFor(kOther);
  by_field.mutable_options()->mutable_cold_start()->set_field("year");
  EXPECT_EQ(Recommended(client, by_field).results(0).hits_size(), 20);
}

}  // namespace
}  // namespace simile::integration

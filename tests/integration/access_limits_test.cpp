// What one caller of the real server may take.
#include <chrono>
#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/access_server.h"

namespace simile::integration {
namespace {

using absl::StatusCode;

TEST(AccessLimitsTest, RefusesEachOfTenThousandGuesses) {
  AccessServer server({AccessServer::Entry("ranker", "read")});
  const Client client = server.NewClient("");
  const std::string known = AccessServer::MakeToken("ranker");
  v1::SearchResponse response;
  constexpr int kGuesses = 10'000;
  const auto begin = std::chrono::steady_clock::now();
  for (int guess = 0; guess < kGuesses; ++guess) {
    // Also all beginnings of the token.
    const std::string token = static_cast<std::size_t>(guess) < known.size()
                                  ? known.substr(0, static_cast<std::size_t>(guess)) + "-"
                                  : known + std::to_string(guess);
    const Outcome refused = client.Search(
        ToyStory(), response, {.timeout = {}, .metadata = {{"authorization", "Bearer " + token}}});
    ASSERT_EQ(refused.code, StatusCode::kUnauthenticated) << token;
    ASSERT_EQ(refused.message, "the server does not know the token");
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::printf("%d guesses refused, %.0f a second\n", kGuesses, kGuesses / taken.count());
  EXPECT_TRUE(server.NewClient("ranker").Search(ToyStory(), response).ok());
}

TEST(AccessLimitsTest, BoundsCallsAndQueriesOfACaller) {
  AccessServer server(
      {AccessServer::Entry("slow", "read", R"("limits": {"calls_per_second": 0.001})"),
       AccessServer::Entry("narrow", "read", R"("limits": {"queries_in_flight": 2})"),
       AccessServer::Entry("small", "read", R"("limits": {"bytes_in_flight": 100})"),
       AccessServer::Entry("free", "read")});
  v1::SearchResponse response;
  const Client slow = server.NewClient("slow");
  EXPECT_TRUE(slow.Search(ToyStory(), response).ok());
  const Outcome again = slow.Search(ToyStory(), response);
  EXPECT_EQ(again.code, StatusCode::kResourceExhausted);
  EXPECT_EQ(again.reason, "CALLER_LIMIT");
  EXPECT_EQ(again.message, "slow may make 0.001 calls a second");
  EXPECT_EQ(again.trailers.count("retry-after-ms"), 1U);

  v1::SearchRequest three = ToyStory();
  for (int i = 0; i < 2; ++i) *three.add_queries() = three.queries(0);
  const Client narrow = server.NewClient("narrow");
  const Outcome wide = narrow.Search(three, response);
  EXPECT_EQ(wide.reason, "CALLER_LIMIT");
  EXPECT_EQ(wide.message, "3 queries; narrow may have 2 in flight: send less a call");
  // Calls that ended give back what they took.
  for (int call = 0; call < 10; ++call) EXPECT_TRUE(narrow.Search(ToyStory(), response).ok());

  v1::SearchRequest large = ToyStory();
  for (int i = 0; i < 20; ++i) large.mutable_options()->add_exclude_ids("toy-story-2-1999");
  const Client small = server.NewClient("small");
  EXPECT_EQ(small.Search(large, response).reason, "CALLER_LIMIT");
  EXPECT_TRUE(small.Search(ToyStory(), response).ok());
  EXPECT_TRUE(server.NewClient("free").Search(three, response).ok());
}

}  // namespace
}  // namespace simile::integration

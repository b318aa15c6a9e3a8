#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/document.h"
#include "integration/films_server.h"

namespace simile::integration {
namespace {

using std::chrono::system_clock;
using ::testing::ElementsAreArray;
using ::testing::MatchesRegex;

v1::GetServerInfoResponse FetchInfo(const std::string& address) {
  v1::GetServerInfoResponse info;
  const Outcome outcome = Client(address).GetServerInfo(info);
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  return info;
}

// The names, of small letters, digits and underscores, between these two texts.
std::vector<std::string> NamesBetween(std::string_view before, std::string_view after,
                                      std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::vector<std::string> found;
  for (std::size_t at = text.find(before); at != text.npos; at = text.find(before, at)) {
    at += before.size();
    const std::size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
    if (end == at || !text.substr(end).starts_with(after)) continue;
    found.emplace_back(text.substr(at, end - at));
  }
  return found;
}

TEST(ServerInfoTest, DescribesTheBuild) {
  const auto before = system_clock::to_time_t(system_clock::now());
  const auto app = StartWithoutLoading();
  const v1::GetServerInfoResponse info = FetchInfo(app->address());
  EXPECT_THAT(info.version(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(info.commit(), MatchesRegex("|[0-9a-f]{7,40}.*"));
  EXPECT_THAT(info.compiler(), MatchesRegex("[A-Za-z]+ [0-9.]+"));
  EXPECT_FALSE(info.build_type().empty());
  EXPECT_GE(info.started_at().seconds(), before);
  EXPECT_LE(info.started_at().seconds(), system_clock::to_time_t(system_clock::now()));
}

TEST(ServerInfoTest, ListsTheCapabilitiesOfTheDocument) {
  // A row is a name and the version that brought it.
  const auto documented = NamesBetween("\n| `", "` | 0.", TextOfSource("docs/api.md"));
  ASSERT_FALSE(documented.empty());
  const auto app = StartWithoutLoading();
  EXPECT_THAT(FetchInfo(app->address()).capabilities(), ElementsAreArray(documented));
}

TEST(ServerInfoTest, ListsTheLimitsInForce) {
  const auto app = StartWithoutLoading([](app::Config& config) {
    config.limits.k_max = 77;
    config.limits.search_deadline_max = std::chrono::milliseconds(1'234);
  });
  const auto info = FetchInfo(app->address());
  EXPECT_EQ(info.limits().at("k_max"), 77U);
  EXPECT_EQ(info.limits().at("search_deadline_max_ms"), 1'234U);
  EXPECT_EQ(info.limits().at("reply_bytes_default"), std::uint64_t{4} << 20);
  EXPECT_EQ(info.limits().at("stream_requests_max"), 64U);
  EXPECT_EQ(info.limits().at("collections_page_max"), 1'000U);
}

// Every bound that a .proto file names is among them.
TEST(ServerInfoTest, HasEveryLimitThatTheContractNames) {
  const auto app = StartWithoutLoading();
  const auto info = FetchInfo(app->address());
  int named = 0;
  for (const std::string file : {"admin", "collections", "lookup", "search", "types"}) {
    for (const std::string& limit :
         NamesBetween("(limits.", ")", TextOfSource("proto/simile/v1/" + file + ".proto"))) {
      EXPECT_TRUE(info.limits().contains(limit) || info.limits().contains(limit + "_ms")) << limit;
      ++named;
    }
  }
  EXPECT_GT(named, 20);
}

TEST(ServerInfoTest, SaysWhatAnswersAndWhy) {
  const FilmsServer server;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(server.NewClient().GetServerInfo(info).ok());
  EXPECT_EQ(info.backend().kind(), v1::BACKEND_KIND_CPU);
  EXPECT_FALSE(info.backend().device().empty());
  EXPECT_FALSE(info.backend().reason().empty());
  EXPECT_EQ(info.backend().device_memory_size(), 0);
  v1::ListCollectionsResponse list;
  ASSERT_TRUE(server.NewClient().List(list).ok());
  EXPECT_EQ(info.backend().DebugString(), list.backend().DebugString());
}

TEST(ServerInfoTest, SaysWhetherChangesAreAllowed) {
  EXPECT_FALSE(FetchInfo(StartWithoutLoading()->address()).changes_allowed());
  const auto open = StartWithoutLoading([](app::Config& config) { config.changes_allowed = true; });
  EXPECT_TRUE(FetchInfo(open->address()).changes_allowed());
}

TEST(ServerInfoTest, SaysWhetherStatsAreAllowed) {
  EXPECT_FALSE(FetchInfo(StartWithoutLoading()->address()).admin_allowed());
  const auto open = StartWithoutLoading([](app::Config& config) { config.admin_allowed = true; });
  EXPECT_TRUE(FetchInfo(open->address()).admin_allowed());
}

}  // namespace
}  // namespace simile::integration

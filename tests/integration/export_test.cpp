// Exports that are left, cut, continued, and that go on while the collection changes.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/films_server.h"

namespace simile::integration {
namespace {

v1::ExportRequest OfEveryFilm() {
  v1::ExportRequest request;
  request.set_collection("films");
  request.mutable_options()->set_k(3);
  return request;
}

// How many sources the messages have.
int CountSources(const std::vector<v1::ExportResponse>& messages) {
  int count = 0;
  for (const v1::ExportResponse& message : messages) count += message.source_ids_size();
  return count;
}

void ExpectWhole(const Client& client) {
  std::vector<v1::ExportResponse> messages;
  const Outcome outcome = client.Export(OfEveryFilm(), messages);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_EQ(CountSources(messages), kFilmsRows);
}

// Their memory, and what they count as in flight, is given back: the server goes on.
TEST(ExportTest, CallersMayLeaveAtAnyTime) {
  FilmsServer server;
  std::vector<std::thread> threads;
  std::atomic<int> left = 0;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      const Client client = server.NewClient();
      for (int turn = 0; turn < 40; ++turn) {
        int stay = (turn + number) % 4;
        const Outcome outcome = client.Export(
            OfEveryFilm(), [&](const v1::ExportResponse&) { return stay-- > 0; },
            {.timeout = turn % 5 == 0 ? std::chrono::milliseconds(turn) : std::chrono::minutes(1),
             .metadata = {}});
        // The last where the deadline is too near for what waits.
        EXPECT_THAT(outcome.code, testing::AnyOf(absl::StatusCode::kCancelled,
                                                 absl::StatusCode::kDeadlineExceeded,
                                                 absl::StatusCode::kResourceExhausted))
            << testing::PrintToString(outcome);
        ++left;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, 120);
  ExpectWhole(server.NewClient());
  EXPECT_TRUE(AwaitMetric(*server.app().metrics_port(), kInFlight, testing::Eq(0)));
}

TEST(ExportTest, StaysWithItsContentWhileTheCollectionChanges) {
  const ScratchFolder scratch;
  CopyFilms(scratch.path() / "1");
  CopyFilms(scratch.path() / "2", 2);
  FilmsServer server([&](app::Config& config) {
    config.changes_allowed = true;
    config.data_root = scratch.path();
  });
  const Client client = server.NewClient();
  const auto reload = [&](const std::string& folder) {
    v1::ReloadCollectionRequest request;
    request.set_collection("films");
    request.set_folder(folder);
    ChangeAnswer answer;
    const Outcome outcome = server.NewClient().Reload(request, answer);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  };
  std::vector<v1::ExportResponse> messages;
  const Outcome outcome = client.Export(OfEveryFilm(), [&](const v1::ExportResponse& message) {
    if (messages.empty()) reload("2");
    messages.push_back(message);
    return true;
  });
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_EQ(CountSources(messages), kFilmsRows);
  for (const v1::ExportResponse& message : messages) {
    EXPECT_EQ(message.answer().receipt().snapshot_id(),
              messages.front().answer().receipt().snapshot_id());
  }
  // A cursor of content that is gone says so.
  v1::ExportRequest request = OfEveryFilm();
  request.set_cursor(messages.front().cursor());
  reload("1");
  reload("2");
  std::vector<v1::ExportResponse> rest;
  const Outcome continued = client.Export(request, rest);
  if (continued.ok()) {  // edition 1 is served again, and leased
    EXPECT_EQ(CountSources(rest), kFilmsRows - messages.front().source_ids_size());
  } else {
    EXPECT_EQ(continued.reason, "PAGE_SNAPSHOT_GONE");
  }
}

TEST(ExportTest, HasFewerSourcesAMessageWhereTheReplyIsBounded) {
  FilmsServer server;
  v1::ExportRequest request = OfEveryFilm();
  request.mutable_options()->set_k(100);
  request.mutable_options()->set_reply_bytes_max(100'000);
  request.set_source_filter("year = 1995");
  std::vector<v1::ExportResponse> messages;
  const Outcome outcome = server.NewClient().Export(request, messages);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  ASSERT_GT(messages.size(), 2U);
  EXPECT_EQ(CountSources(messages), static_cast<int>(messages.back().source_count()));
  for (const v1::ExportResponse& message : messages) {
    EXPECT_LE(message.ByteSizeLong(), 100'000U);
  }
  request.mutable_options()->set_reply_bytes_max(100);
  EXPECT_EQ(server.NewClient().Export(request, messages).reason, "REPLY_TOO_LARGE");
}

TEST(ExportTest, EndsWhenTheServerStops) {
  FilmsServer server;
  const Client client = server.NewClient();
  std::thread stop;
  std::vector<v1::ExportResponse> messages;
  v1::ExportRequest request = OfEveryFilm();
  request.mutable_options()->set_k(1'000);  // some seconds of work
  const Outcome outcome = client.Export(request, [&](const v1::ExportResponse& message) {
    if (messages.empty()) stop = std::thread([&] { server.app().Drain(); });
    messages.push_back(message);
    return true;
  });
  stop.join();
  EXPECT_EQ(outcome.reason, "STOPPING") << testing::PrintToString(outcome);
  EXPECT_LT(CountSources(messages), kFilmsRows);
  EXPECT_NE(messages.back().cursor(), "");
}

}  // namespace
}  // namespace simile::integration

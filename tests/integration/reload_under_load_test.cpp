#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/expected_answers.h"
#include "integration/films_server.h"

namespace simile::integration {
namespace {

TEST(ReloadUnderLoadTest, EveryAnswerIsExactAndVersionsOnlyGrow) {
  constexpr int kReloads = 10;
  constexpr int kClients = 4;
  const ScratchFolder scratch;
  CopyFilms(scratch.path() / "1");
  CopyFilms(scratch.path() / "2", 2);
  FilmsServer server([&](app::Config& config) {
    config.changes_allowed = true;
    config.data_root = scratch.path();
  });
  const std::vector<ExpectedAnswer> expected = ExpectedSimilar();
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> answers = 0;

  std::vector<std::thread> threads;
  threads.reserve(kClients);
  for (int number = 0; number < kClients; ++number) {
    threads.emplace_back([&, number] {
      const Client client = server.NewClient();
      std::uint64_t version = 0;
      for (std::size_t turn = static_cast<std::size_t>(number); !stop; ++turn) {
        const ExpectedAnswer& answer = expected[turn % expected.size()];
        v1::SearchRequest request;
        request.set_collection("films");
        request.add_queries()->set_id(answer.id);
        request.mutable_options()->set_k(20);
        request.mutable_options()->set_with_rows(true);
        v1::SearchResponse response;
        const Outcome outcome = client.Search(request, response);
        ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
        ASSERT_TRUE(SameAnswer(response.results(0).hits(), answer));
        ASSERT_GE(response.receipt().snapshot_version(), version);
        version = response.receipt().snapshot_version();
        ++answers;
      }
    });
  }
  const Client client = server.NewClient();
  for (int reload = 0; reload < kReloads; ++reload) {
    v1::ReloadCollectionRequest request;
    request.set_collection("films");
    request.set_folder(reload % 2 == 0 ? "2" : "1");
    ChangeAnswer answer;
    const Outcome outcome = client.Reload(request, answer);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    EXPECT_EQ(answer.collection.snapshot_version(), static_cast<std::uint64_t>(reload) + 2);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(answers, 0U);
  RecordProperty("answers_during_reloads", std::to_string(answers));
}

}  // namespace
}  // namespace simile::integration

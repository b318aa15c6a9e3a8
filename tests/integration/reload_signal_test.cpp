#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/server_process.h"

namespace simile::integration {
namespace {

using ::testing::HasSubstr;

// The program, serving two collections from folders that the test changes.
class ReloadSignalTest : public testing::Test {
 protected:
  ReloadSignalTest() {
    CopyFilms(films_);
    CopyFilms(books_);
  }

  std::vector<std::string> Arguments() const {
    return {"--collection", "films=" + films_.string(),
            "--collection", "books=" + books_.string(),
            "--port",       "0",
            "--no-metrics"};
  }
  // Replaces a collection's folder, as a job that writes it anew does.
  static void Replace(const std::filesystem::path& folder, int edition) {
    std::filesystem::remove_all(folder);
    CopyFilms(folder, edition);
  }
  static std::string FetchSnapshotId(const Client& client, const std::string& collection) {
    v1::GetCollectionResponse response;
    const Outcome outcome = client.Get(collection, response);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return response.collection().snapshot_id();
  }

  const ScratchFolder scratch_;
  const std::filesystem::path films_ = scratch_.path() / "films";
  const std::filesystem::path books_ = scratch_.path() / "books";
};

TEST_F(ReloadSignalTest, ReloadsTheCollectionsWhoseFilesChanged) {
  ServerProcess server(Arguments());
  const Client client(server.AwaitListening());
  const std::string films = FetchSnapshotId(client, "films");
  const std::string books = FetchSnapshotId(client, "books");
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.AwaitOutput("reloaded=\"\" unchanged=2 failed=\"\" unfit=\"\" overlap=\"\"\n"))
      << server.output();

  Replace(books_, 2);
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.AwaitOutput(
      "reloaded=books unchanged=1 failed=\"\" unfit=\"\" overlap=\"books: 100.0 %\"\n"))
      << server.output();
  EXPECT_TRUE(
      server.AwaitOutput("audit change=\"reload by SIGHUP\" result=done collection=books\n"))
      << server.output();
  EXPECT_EQ(FetchSnapshotId(client, "films"), films);
  EXPECT_NE(FetchSnapshotId(client, "books"), books);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST_F(ReloadSignalTest, ServesOnWhatCannotBeReloaded) {
  ServerProcess server(Arguments());
  const Client client(server.AwaitListening());
  const std::string films = FetchSnapshotId(client, "films");
  std::filesystem::remove(films_ / "content_vectors.npy");
  Replace(books_, 2);
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.AwaitOutput(
      "reloaded=books unchanged=0 failed=films unfit=\"\" overlap=\"books: 100.0 %\"\n"))
      << server.output();
  EXPECT_THAT(server.output(), HasSubstr("collection not reloaded collection=films error="));
  EXPECT_EQ(FetchSnapshotId(client, "films"), films);
}

// One folder is broken at the start; it is mended later.
TEST_F(ReloadSignalTest, TriesAgainWhatTheServerStartedWithout) {
  std::filesystem::rename(films_ / "content_vectors.npy", films_ / "kept");
  std::vector<std::string> arguments{"--collection",
                                     "films=" + films_.string(),
                                     "--collection",
                                     "books=" + books_.string(),
                                     "--port",
                                     "0",
                                     "--metrics-port",
                                     "0",
                                     "--skip-failed-collections"};
  ServerProcess server(arguments);
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const Client client(address);
  EXPECT_THAT(server.output(), HasSubstr("collection not loaded: the server goes on without it "
                                         "collection=films error="));
  EXPECT_EQ(client.CheckHealth("films"), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("books"), Health::kServing);
  EXPECT_EQ(client.CheckHealth(""), Health::kServing);
  EXPECT_THAT(GetPage(server.MetricsPort(), "/readyz"), HasSubstr("serving without films\n"));
  EXPECT_THAT(GetPage(server.MetricsPort(), "/metrics"),
              HasSubstr("simile_last_load_successful{collection=\"films\"} 0\n"));
  v1::GetCollectionResponse response;
  ASSERT_TRUE(client.Get("films", response).ok());
  EXPECT_EQ(response.collection().state(), v1::Collection::STATE_FAILED);
  EXPECT_THAT(response.collection().load_error(), HasSubstr("content_vectors.npy"));

  server.Signal(SIGHUP);
  ASSERT_TRUE(server.AwaitOutput("unchanged=1 failed=films")) << server.output();
  std::filesystem::rename(films_ / "kept", films_ / "content_vectors.npy");
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.AwaitOutput("reloaded=films unchanged=1 failed=\"\"")) << server.output();
  EXPECT_EQ(client.CheckHealth("films"), Health::kServing);
  EXPECT_THAT(GetPage(server.MetricsPort(), "/readyz"), HasSubstr("\r\n\r\nserving\n"));
}

TEST_F(ReloadSignalTest, DoesNotStartWithoutAnyCollection) {
  std::filesystem::remove(films_ / "content_vectors.npy");
  std::filesystem::remove(books_ / "content_vectors.npy");
  std::vector<std::string> arguments = Arguments();
  arguments.emplace_back("--skip-failed-collections");
  ServerProcess server(arguments);
  EXPECT_EQ(server.AwaitExit(), 1);
  EXPECT_THAT(server.output(), HasSubstr("content_vectors.npy"));
}

TEST_F(ReloadSignalTest, FollowsTheStartWhenItComesDuringThat) {
  ServerProcess::Circumstances circumstances;
  circumstances.variables.insert(
      circumstances.variables.end(),
      {"LD_PRELOAD=" SIMILE_HOLD_READS_FILE, "HOLD_READS_OF=/metadata.jsonl",
       "HOLD_READS_UNTIL=" + (scratch_.path() / "go").string()});
  ServerProcess server(Arguments(), circumstances);
  ASSERT_TRUE(server.AwaitOutput("cpu engine")) << server.output();
  server.Signal(SIGHUP);
  scratch_.Write("go", "");
  EXPECT_NE(server.AwaitListening(), "");
  EXPECT_TRUE(server.AwaitOutput("reloaded=\"\" unchanged=2 failed=\"\" unfit=\"\" overlap=\"\"\n"))
      << server.output();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST_F(ReloadSignalTest, IsIgnoredWhileTheServerStops) {
  ServerProcess::Circumstances circumstances;
  circumstances.variables.emplace_back("SIMILE_LIMITS_DRAIN_DELAY=600000");
  ServerProcess server(Arguments(), circumstances);
  ASSERT_NE(server.AwaitListening(), "");
  server.Signal(SIGTERM);
  ASSERT_TRUE(server.AwaitOutput("calls are still taken")) << server.output();
  server.Signal(SIGHUP);
  EXPECT_TRUE(server.AwaitOutput("SIGHUP ignored: the server stops")) << server.output();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 128 + SIGTERM);
}

}  // namespace
}  // namespace simile::integration

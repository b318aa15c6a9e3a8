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
  static std::string SnapshotOf(const Client& client, const std::string& collection) {
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
  const std::string films = SnapshotOf(client, "films");
  const std::string books = SnapshotOf(client, "books");
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.AwaitOutput("reloaded=\"\" unchanged=2 failed=\"\" unfit=\"\"\n"))
      << server.output();

  Replace(books_, 2);
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.AwaitOutput("reloaded=books unchanged=1 failed=\"\" unfit=\"\"\n"))
      << server.output();
  EXPECT_TRUE(
      server.AwaitOutput("audit change=\"reload by SIGHUP\" result=done collection=books\n"))
      << server.output();
  EXPECT_EQ(SnapshotOf(client, "films"), films);
  EXPECT_NE(SnapshotOf(client, "books"), books);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST_F(ReloadSignalTest, ServesOnWhatCannotBeReloaded) {
  ServerProcess server(Arguments());
  const Client client(server.AwaitListening());
  const std::string films = SnapshotOf(client, "films");
  std::filesystem::remove(films_ / "content_vectors.npy");
  Replace(books_, 2);
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.AwaitOutput("reloaded=books unchanged=0 failed=films unfit=\"\"\n"))
      << server.output();
  EXPECT_THAT(server.output(), HasSubstr("collection not reloaded collection=films error="));
  EXPECT_EQ(SnapshotOf(client, "films"), films);
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
  EXPECT_TRUE(server.AwaitOutput("reloaded=\"\" unchanged=2 failed=\"\" unfit=\"\"\n"))
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

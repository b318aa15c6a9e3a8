#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/film_folder.h"
#include "files/scratch_folder.h"
#include "integration/films_server.h"

namespace simile::integration {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Pair;

// A server whose data root has a copy of the films, an empty folder and a link that leads out.
class CollectionsTest : public testing::Test {
 protected:
  CollectionsTest() {
    CopyFilms(root_ / "more");
    std::filesystem::create_directory(root_ / "empty");
    std::filesystem::create_directory_symlink(kFilmsFolder, root_ / "out");
    server_ = std::make_unique<FilmsServer>([this](app::Config& config) {
      config.changes_allowed = true;
      config.data_root = root_;
    });
    client_ = std::make_unique<Client>(server_->NewClient());
  }

  Outcome Load(const std::string& name, const std::string& folder) {
    ChangeAnswer answer;
    return client_->Load(name, folder, answer);
  }
  Outcome Reload(const std::string& name, const std::string& folder = "") {
    v1::ReloadCollectionRequest request;
    request.set_collection(name);
    request.set_folder(folder);
    ChangeAnswer answer;
    return client_->Reload(request, answer);
  }
  v1::Collection Get(const std::string& name) {
    v1::GetCollectionResponse response;
    const Outcome outcome = client_->Get(name, response);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return response.collection();
  }

  const ScratchFolder scratch_;
  const std::filesystem::path& root_ = scratch_.path();
  std::unique_ptr<FilmsServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(CollectionsTest, DescribesACollection) {
  v1::ListCollectionsResponse list;
  ASSERT_TRUE(client_->List(list).ok());
  ASSERT_EQ(list.collections_size(), 1);
  v1::Collection films = Get("films");
  for (v1::Collection* const described : {&films, list.mutable_collections(0)}) {
    described->clear_search_times();  // which are measured meanwhile
  }
  EXPECT_EQ(films.DebugString(), list.collections(0).DebugString());
  EXPECT_EQ(films.name(), "films");
  EXPECT_EQ(films.state(), v1::Collection::STATE_SERVING);
  EXPECT_FALSE(films.has_progress());
  EXPECT_THAT(films.snapshot_id(), MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(films.snapshot_version(), 1U);
  EXPECT_EQ(films.rollback_snapshot_id(), "");
  EXPECT_EQ(films.folder(), "") << "outside the data root";
  EXPECT_GT(films.loaded_at().seconds(), 1'700'000'000);
  EXPECT_EQ(films.rows(), static_cast<std::uint64_t>(kFilmsRows));
  EXPECT_EQ(films.dim(), static_cast<std::uint32_t>(kFilmsDim));
  EXPECT_EQ(films.metric(), v1::Collection::METRIC_COSINE);
  EXPECT_EQ(films.users(), 500U);
  EXPECT_GT(films.interactions(), 0U);
  EXPECT_EQ(films.bytes().vectors(), 8U << 20) << "5,000 x 384 x 4 bytes in whole huge pages";
  EXPECT_GT(films.bytes().payload(), 0U);
  EXPECT_GT(films.bytes().users(), 0U);
  EXPECT_EQ(films.bytes().device(), 0U);
  EXPECT_EQ(films.index_built(), 1);
  EXPECT_EQ(films.index_problem(), "");
  ASSERT_EQ(films.fields_size(), 5);
  EXPECT_EQ(films.fields(4).name(), "year");
  EXPECT_EQ(films.fields(4).type(), v1::FIELD_TYPE_INTEGER);
  EXPECT_EQ(films.fields(4).rows(), static_cast<std::uint64_t>(kFilmsRows));
  EXPECT_THAT(films.lookup_fields(), Contains("title"));
  EXPECT_EQ(films.backend().kind(), v1::BACKEND_KIND_CPU);
  EXPECT_FALSE(films.backend().reason().empty());
  EXPECT_THAT(films.notes(), Contains(HasSubstr("preference_vectors.npy: 500 rows normalized")));
}

TEST_F(CollectionsTest, MeasuresHowLongSearchesTake) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::map<std::uint32_t, std::uint64_t> times;
  while (times.count(256) == 0 && std::chrono::steady_clock::now() < end) {
    times.clear();
    const v1::Collection films = Get("films");
    for (const v1::SearchTime& time : films.search_times()) {
      times[time.queries()] = time.search_us();
    }
  }
  EXPECT_THAT(times,
              ElementsAre(Pair(1, Gt(0U)), Pair(8, Gt(0U)), Pair(64, Gt(0U)), Pair(256, Gt(0U))));
}

// One that is scanned plainly, and one with an index.
TEST_F(CollectionsTest, NamesTheEngineThatReceiptsNameAndLeavesNothingToBuild) {
  WriteFilmFolder(root_ / "few", 30, 1);
  ASSERT_TRUE(Load("few", "few").ok());
  std::set<std::string> engines;
  for (const auto& [name, id] :
       {std::pair("films", "toy-story-1995"), std::pair("few", "film-0")}) {
    v1::SearchRequest request;
    request.set_collection(name);
    request.add_queries()->set_id(id);
    v1::SearchResponse response;
    ASSERT_TRUE(client_->Search(request, response).ok()) << name;
    const v1::Collection collection = Get(name);
    EXPECT_THAT(response.receipt().engines(), Contains(collection.backend().engine())) << name;
    EXPECT_EQ(collection.index_built(), 1) << name;
    EXPECT_EQ(collection.index_problem(), "") << name;
    engines.insert(collection.backend().engine());
  }
  EXPECT_EQ(engines.size(), 2U) << "each size has an engine of its own";
}

TEST_F(CollectionsTest, NamesTheFilesOfTheFolder) {
  std::ofstream(root_ / "more" / "metadata.csv") << "id,title";
  ASSERT_TRUE(Load("more", "more").ok());
  const v1::Collection more = Get("more");
  std::vector<std::string> read;
  std::vector<std::string> unread;
  for (const v1::CollectionFile& file : more.files()) {
    if (file.role() == v1::CollectionFile::ROLE_UNSPECIFIED) {
      unread.push_back(file.name());
      EXPECT_NE(file.unread_reason(), "") << file.name();
    } else {
      read.push_back(v1::CollectionFile::Role_Name(file.role()) + ": " + file.name());
      EXPECT_EQ(file.unread_reason(), "") << file.name();
      EXPECT_EQ(file.bytes(), std::filesystem::file_size(root_ / "more" / file.name()));
    }
  }
  EXPECT_THAT(
      read, ElementsAre("ROLE_VECTORS: content_vectors.npy", "ROLE_PAYLOAD: metadata.jsonl",
                        "ROLE_USER_IDS: user_ids.json", "ROLE_USER_VECTORS: preference_vectors.npy",
                        "ROLE_INTERACTIONS: interactions.jsonl"));
  EXPECT_THAT(unread, Contains("metadata.csv"));
  EXPECT_EQ(more.unread_files(), unread.size());
  EXPECT_EQ(more.skipped_rows(), 0U);
}

TEST_F(CollectionsTest, LoadsServesAndUnloadsACollection) {
  EXPECT_EQ(client_->CheckHealth("more"), Health::kUnknownService);
  ChangeAnswer answer;
  const Outcome loaded = client_->Load("more", "more", answer);
  ASSERT_TRUE(loaded.ok()) << testing::PrintToString(loaded);
  EXPECT_EQ(answer.collection.rows(), static_cast<std::uint64_t>(kFilmsRows));
  EXPECT_EQ(answer.collection.state(), v1::Collection::STATE_SERVING);
  EXPECT_EQ(answer.collection.folder(), "more");
  EXPECT_EQ(answer.collection.snapshot_id(), Get("films").snapshot_id()) << "the same files";
  EXPECT_EQ(client_->CheckHealth("more"), Health::kServing);
  CopyFilms(root_ / "other", 2);
  const Outcome other = Load("more", "other");
  EXPECT_EQ(other.code, absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(other.reason, "COLLECTION_EXISTS");

  ASSERT_TRUE(client_->Unload("more").ok());
  EXPECT_EQ(client_->CheckHealth("more"), Health::kNotServing);
  EXPECT_EQ(client_->CheckHealth("films"), Health::kServing);
  EXPECT_EQ(client_->CheckHealth(""), Health::kServing);
  EXPECT_EQ(Reload("more").message, "no collection \"more\"; this server has films");
}

TEST_F(CollectionsTest, ReloadsOtherContentAsTheNextVersion) {
  CopyFilms(root_ / "other", 2);
  const v1::Collection before = Get("films");
  ASSERT_TRUE(Reload("films", "other").ok());
  const v1::Collection after = Get("films");
  EXPECT_EQ(after.snapshot_version(), 2U);
  EXPECT_NE(after.snapshot_id(), before.snapshot_id());
  EXPECT_EQ(after.rollback_snapshot_id(), before.snapshot_id());
  EXPECT_EQ(after.folder(), "other");
}

TEST_F(CollectionsTest, ReloadsTheSameContentAsTheSameVersion) {
  const v1::Collection before = Get("films");
  ASSERT_TRUE(Reload("films").ok());
  EXPECT_EQ(Get("films").snapshot_version(), 1U);
  EXPECT_EQ(Get("films").snapshot_id(), before.snapshot_id());
}

TEST_F(CollectionsTest, KeepsServingTheOldSnapshotWhenAReloadFails) {
  ASSERT_TRUE(Load("more", "more").ok());
  std::filesystem::resize_file(root_ / "more" / "content_vectors.npy", 100'000);
  const Outcome outcome = Reload("more");
  EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument) << testing::PrintToString(outcome);
  EXPECT_THAT(outcome.message, HasSubstr("content_vectors.npy"));
  EXPECT_THAT(outcome.message, Not(HasSubstr(root_.string())));
  EXPECT_EQ(Get("more").snapshot_version(), 1U);
  EXPECT_EQ(Get("more").state(), v1::Collection::STATE_SERVING);
  const std::string metrics = ScrapeMetrics(*server_->app().metrics_port());
  EXPECT_EQ(MetricValue(metrics, "simile_last_load_successful{collection=\"films\"}"), 1);
  EXPECT_EQ(MetricValue(metrics, "simile_last_load_successful{collection=\"more\"}"), 0);
  EXPECT_EQ(MetricValue(metrics, "simile_reload_total{result=\"failed\"}"), 1);
  EXPECT_EQ(MetricValue(metrics, "simile_reload_total{result=\"published\"}"), 2);
}

TEST_F(CollectionsTest, LoadsNothingOutsideItsDataRoot) {
  const std::string rule = "; name a folder inside the server's data root, relative to it";
  EXPECT_EQ(Load("x", "../more").message, "folder: \"../more\" contains `..`" + rule);
  EXPECT_EQ(Load("x", kFilmsFolder).code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load("x", "out").message,
            "folder: \"out\" leads out of the data root through a link" + rule);
  EXPECT_EQ(Load("x", "none").message, "folder: the server's data root has no \"none\"");
  const Outcome empty = Load("x", "empty");
  EXPECT_FALSE(empty.ok());
  EXPECT_THAT(empty.message, Not(HasSubstr(root_.string())));
  EXPECT_EQ(Load("a/b", "more").code, absl::StatusCode::kInvalidArgument);
  v1::ListCollectionsResponse list;
  ASSERT_TRUE(client_->List(list).ok());
  EXPECT_EQ(list.collections_size(), 1);
}

TEST(CollectionChangesTest, AreRefusedUnlessAllowed) {
  const FilmsServer server;
  const Client client = server.NewClient();
  ChangeAnswer answer;
  const std::string message =
      "this server does not let collections be changed over the wire; start it with "
      "--allow-changes (collections.changes_allowed)";
  const Outcome reload = client.Reload("films", answer);
  EXPECT_EQ(reload.code, absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(reload.reason, "CHANGES_NOT_ALLOWED");
  EXPECT_EQ(reload.message, message);
  EXPECT_EQ(client.Unload("films").message, message);
  EXPECT_EQ(client.Load("films", "x", answer).message, message);
  EXPECT_EQ(client.Rollback("films", answer).message, message);
}

TEST(CollectionChangesTest, NeedADataRootForFoldersThatTheyName) {
  const FilmsServer server([](app::Config& config) { config.changes_allowed = true; });
  const Client client = server.NewClient();
  ChangeAnswer answer;
  const Outcome load = client.Load("more", "more", answer);
  EXPECT_EQ(load.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(load.reason, "OUTSIDE_DATA_ROOT");
  EXPECT_EQ(load.message,
            "folder: this server has no data root to load from; start it with --data-root FOLDER");
  EXPECT_TRUE(client.Reload("films", answer).ok()) << "the folder that it was started with";
}

}  // namespace
}  // namespace simile::integration

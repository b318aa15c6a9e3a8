#include "data/load/folder_files.h"

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/load/load.h"
#include "data/load/plan.h"
#include "data/sample_folder.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FolderFilesTest : public testing::Test {
 protected:
  FolderFilesTest() { folder_.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2)); }

  FolderListing Listing(const Limits& limits = {}) const {
    const absl::StatusOr<DatasetPlan> plan = PlanDataset(folder_.path(), limits);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? plan->listing : FolderListing();
  }
  // `NAME: REASON` of each unread file.
  std::vector<std::string> Unread() const {
    std::vector<std::string> unread;
    for (const FolderFile& file : Listing().files) {
      if (!file.role)
        unread.push_back(fmt::format("{}: {}", file.display_name, file.unread_reason));
    }
    return unread;
  }
  std::string PlanError(const ScratchFolder& folder) const {
    return std::string(PlanDataset(folder.path(), Limits{}).status().message());
  }

  const ScratchFolder folder_;
};

TEST_F(FolderFilesTest, ListsWhatIsReadByRoleAndThenWhatIsNotByName) {
  const ScratchFolder sample;
  WriteSample(sample);
  sample.Write("zebra.txt", "12345");
  sample.Write("apple.txt", "");
  const absl::StatusOr<DatasetPlan> plan = PlanDataset(sample.path(), Limits{});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  for (const FolderFile& file : plan->listing.files) names.push_back(file.display_name);
  EXPECT_THAT(names,
              ElementsAre("collection.json", "media/content_vectors.npy", "media/metadata.jsonl",
                          "users/user_ids.json", "users/preference_vectors.npy",
                          "users/interactions.jsonl", "apple.txt", "zebra.txt"));
  EXPECT_EQ(plan->listing.files[1].role, FileRole::kVectors);
  EXPECT_EQ(plan->listing.files[1].bytes, 128U + 6 * sizeof(float));
  EXPECT_EQ(plan->listing.files[7].bytes, 5U);
  EXPECT_EQ(plan->listing.files[7].role, std::nullopt);
  EXPECT_EQ(plan->listing.unread_files, 2U);
  const absl::StatusOr<Dataset> dataset = LoadDataset(*plan, Limits{}, nullptr);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->files.size(), 8U);
  EXPECT_EQ(dataset->unread_files, 2U);
}

TEST_F(FolderFilesTest, NotesAFileThatLooksLikeThePayload) {
  for (const char* name : {"metadata.csv", "metadata.parquet", "metadata.json", "metadata.ndjson",
                           "Metadata.TSV", "metadata.jsonl.gz", "items.csv"}) {
    const ScratchFolder folder;
    folder.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
    folder.Write(name, "x");
    const auto plan = PlanDataset(folder.path(), Limits{});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(plan->listing.notes,
                ElementsAre(fmt::format("{}: not read: payload is read from metadata.jsonl, one "
                                        "JSON object a line",
                                        name)));
    const auto dataset = LoadDataset(*plan, Limits{}, nullptr);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ(dataset->notes, plan->listing.notes);
  }
}

TEST_F(FolderFilesTest, TellsEachPartThatIsLeftOutOnce) {
  folder_.Write("metadata.csv", "id\n");
  folder_.Write("metadata.parquet", "PAR1");
  folder_.Write("users.json", "[]");
  folder_.Write("user_vectors.npy", "x");
  EXPECT_THAT(Listing().left_out,
              ElementsAre("payload: metadata.csv is not read; pandas.read_csv(\"metadata.csv\")"
                          ".to_json(\"metadata.jsonl\", orient=\"records\", lines=True) writes "
                          "metadata.jsonl",
                          "users: user_vectors.npy is not read"));
  folder_.Write("metadata.jsonl", "{}\n{}\n");
  EXPECT_THAT(Listing().left_out, ElementsAre("users: user_vectors.npy is not read"));
  const ScratchFolder misspelt;
  misspelt.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
  misspelt.Write("metdata.jsonl", "{}\n{}\n");
  EXPECT_THAT(PlanDataset(misspelt.path(), Limits{})->listing.left_out,
              ElementsAre("payload: metdata.jsonl is not read; rename it to metadata.jsonl"));
}

TEST_F(FolderFilesTest, SaysByItsBytesHowAFileOfJsonBecomesThePayload) {
  struct Case {
    const char* name;
    const char* text;
    const char* advice;
  };
  for (const Case& each : {
           Case{"metadata.json", "{\"id\": 1}\n{\"id\": 2}\n",
                "; `mv metadata.json metadata.jsonl`"},
           Case{"metadata.ndjson", "\xEF\xBB\xBF{\"id\": 1}\r\n\r\n{\"id\": 2}\r\n",
                "; `mv metadata.ndjson metadata.jsonl`"},
           Case{"metadata.json", "[{\"id\": 1},\n{\"id\": 2}]",
                "; `jq -c '.[]' metadata.json > metadata.jsonl`"},
           Case{"metadata.json", R"({"r1": {"t": 1}, "r2": {"t": 2}})",
                "; `jq -c 'to_entries[] | {id: .key} + .value' metadata.json > metadata.jsonl`"},
           Case{"metadata.json", R"({"id": {"0": "a", "1": "b"}})",
                "; `jq -c '(first(.[]) | keys_unsorted[]) as $i | map_values(.[$i])' metadata.json "
                "> metadata.jsonl`"},
           Case{"metadata.json", "[\"a\", \"b\"]", ""},
           Case{"metadata.json", R"({"columns": ["id"], "data": [["a"], ["b"]]})", ""},
       }) {
    const ScratchFolder folder;
    folder.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
    folder.Write(each.name, each.text);
    EXPECT_THAT(PlanDataset(folder.path(), Limits{})->listing.left_out,
                ElementsAre(fmt::format("payload: {} is not read{}", each.name, each.advice)));
  }
}

TEST_F(FolderFilesTest, KnowsInteractionsUnderAnotherNameByTheirFirstLine) {
  const std::string advice =
      "interactions are read from interactions.jsonl, one JSON object a line; "
      "rename it, or name it in collection.json: {\"interactions\": "
      "\"clicks.jsonl\"}";
  for (const char* const line :
       {R"({"user": "u1", "recipe_id": "r1", "ts": 1})", R"({"user_id": 7, "item_id": 9})",
        R"({"userId": 7, "movieId": 9})", R"({"item": "a", "uid": "b"})"}) {
    folder_.Write("clicks.jsonl", line);
    EXPECT_THAT(Unread(), ElementsAre("clicks.jsonl: " + advice)) << line;
    EXPECT_THAT(Listing().left_out, ElementsAre("interactions: clicks.jsonl is not read; rename it "
                                                "to interactions.jsonl"));
  }
  for (const char* const line :
       {R"({"id": 1, "user_id": 7, "title": "Sofa"})", R"({"user": {"name": "a"}, "post_id": 1})",
        R"({"user": "a", "text": "b"})", R"({"recipe_id": 1, "title": "a"})", "user,item"}) {
    folder_.Write("clicks.jsonl", line);
    EXPECT_THAT(Listing().left_out,
                ElementsAre("payload: clicks.jsonl is not read; rename it to metadata.jsonl"));
  }
  folder_.Write("metadata.jsonl", "{}\n{}\n");
  EXPECT_THAT(Listing().left_out, IsEmpty());
  folder_.Write("clicks.jsonl", R"({"user_id": 7, "item_id": 9})");
  EXPECT_THAT(Unread(), ElementsAre("clicks.jsonl: " + advice));
  folder_.Write("interactions.jsonl", "");
  EXPECT_THAT(Unread(), ElementsAre("clicks.jsonl: no part of a collection has this name"));
}

TEST_F(FolderFilesTest, NamesTheFileThatMayBeTheUsersOtherPart) {
  folder_.Write("preference_vectors.npy", NpyFile({1, 0}, 2));
  EXPECT_EQ(PlanError(folder_),
            "preference_vectors.npy: has no ids beside it; user_ids.json with one id a row is "
            "needed");
  folder_.Write("users.json", "[1]");
  EXPECT_EQ(PlanError(folder_),
            "preference_vectors.npy: has no ids beside it; user_ids.json with one id a row is "
            "needed: rename users.json to user_ids.json, or name it in collection.json: "
            "{\"user_ids\": \"users.json\"}");
  const ScratchFolder other;
  other.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
  other.Write("user_ids.json", "[1]");
  other.Write("user_vectors.npy", NpyFile({1, 0}, 2));
  EXPECT_EQ(PlanError(other),
            "user_ids.json: has no vectors beside it; preference_vectors.npy with one row an id is "
            "needed: rename user_vectors.npy to preference_vectors.npy, or name it in "
            "collection.json: {\"user_vectors\": \"user_vectors.npy\"}");
}

TEST_F(FolderFilesTest, SaysWhyEachFileIsNotRead) {
  folder_.Write("embeddings.npy", "x");
  folder_.Write("vectors.pt", "x");
  folder_.Write("users.json", "[]");
  folder_.Write("films.jsonl", "{}");
  folder_.Write("interactions.jsonl", "");
  folder_.Write("collection.yaml", "");
  folder_.Write("LICENSE", "");
  folder_.Write("data/metadata.jsonl", "");
  folder_.Write("users/metadata.jsonl", "");
  EXPECT_THAT(
      Unread(),
      ElementsAre(
          "LICENSE: no part of a collection has this name",
          "collection.yaml: settings are read from collection.json in the folder itself",
          "data/: of the subfolders only media/ and users/ are looked into",
          "embeddings.npy: vectors are read from content_vectors.npy",
          "films.jsonl: payload is read from metadata.jsonl, one JSON object a line; rename it, or "
          "name it in collection.json: {\"payload\": \"films.jsonl\"}",
          "users.json: user ids are read from user_ids.json, one JSON list; rename it, or name it "
          "in collection.json: {\"user_ids\": \"users.json\"}",
          "users/metadata.jsonl: payload is read from metadata.jsonl, one JSON object a line, here "
          "or in media/",
          "vectors.pt: vectors are read from content_vectors.npy"));
  EXPECT_EQ(Listing().notes.size(), 6U);
}

TEST_F(FolderFilesTest, DoesNotNoteAFileBesideOneThatTheSettingsName) {
  folder_.Write("v.npy", NpyFile({1, 0, 0, 1}, 2));
  folder_.Write("collection.json", R"({"vectors": "v.npy"})");
  EXPECT_THAT(Unread(), ElementsAre("content_vectors.npy: vectors are read from v.npy, which "
                                    "collection.json names"));
  EXPECT_THAT(Listing().notes, IsEmpty());
}

TEST_F(FolderFilesTest, KnowsAFileThatIsReadByAnyOfItsPaths) {
  folder_.Write("data/metadata.jsonl", "{}\n{}\n");
  folder_.Write("collection.json",
                R"({"vectors": "./content_vectors.npy", "payload": "data//metadata.jsonl"})");
  EXPECT_THAT(Unread(), IsEmpty());
}

TEST_F(FolderFilesTest, LeavesOutHiddenFilesAndBackups) {
  for (const char* name : {".DS_Store", ".metadata.jsonl.swp", "metadata.jsonl~",
                           "#metadata.jsonl#", "metadata.jsonl.bak", "media/.hidden"}) {
    folder_.Write(name, "x");
  }
  const FolderListing listing = Listing();
  EXPECT_EQ(listing.files.size(), 1U);
  EXPECT_EQ(listing.unread_files, 0U);
  EXPECT_THAT(listing.notes, IsEmpty());
}

TEST_F(FolderFilesTest, CountsMoreFilesThanItLists) {
  for (int i = 0; i < 30; ++i) folder_.Write(fmt::format("part-{:02}.jsonl", i), "{}");
  Limits limits;
  limits.unread_files_max = 7;
  const FolderListing listing = Listing(limits);
  ASSERT_EQ(listing.files.size(), 8U);
  EXPECT_EQ(listing.files.back().display_name, "part-06.jsonl");
  EXPECT_EQ(listing.unread_files, 30U);
  ASSERT_EQ(listing.notes.size(), 9U);
  EXPECT_EQ(listing.notes.back(),
            "22 files more that look like a part of the collection are not read");
}

TEST_F(FolderFilesTest, ShowsANameOfAnyBytesAsText) {
  folder_.Write("a\xFF\x1B[31m.txt", "x");
  EXPECT_THAT(Unread(),
              ElementsAre("a\uFFFD\uFFFD[31m.txt: no part of a collection has this name"));
}

TEST_F(FolderFilesTest, OpensNoUnreadLinkAndNoPipe) {
  const std::filesystem::path secret = folder_.path() / "secret.jsonl";
  const ScratchFolder elsewhere;
  elsewhere.Write("clicks", R"({"user_id": 7, "item_id": 9})");
  std::filesystem::create_symlink(elsewhere.path() / "clicks", secret);
  std::filesystem::create_symlink("/", folder_.path() / "root");
  ASSERT_EQ(mkfifo((folder_.path() / "metadata.json").c_str(), 0600), 0);
  const FolderListing listing = Listing();
  EXPECT_THAT(listing.left_out, ElementsAre("payload: metadata.json is not read"));
  for (const std::string& note : listing.notes) EXPECT_THAT(note, HasSubstr("payload is read"));
  EXPECT_EQ(listing.unread_files, 3U);
  for (const FolderFile& file : listing.files) {
    EXPECT_EQ(file.bytes > 0, file.role.has_value()) << file.display_name;
  }
}

TEST_F(FolderFilesTest, AdvisesHowToNameVectors) {
  const std::string looked_for =
      "no vectors in the folder: looked for content_vectors.npy, vectors.npy, "
      "content_vectors.safetensors, vectors.safetensors, here and in media/; ";
  const ScratchFolder one;
  one.Write("embeddings.npy", "x");
  EXPECT_EQ(PlanError(one), looked_for +
                                "rename embeddings.npy to content_vectors.npy, or name it in "
                                "collection.json: {\"vectors\": \"embeddings.npy\"}");
  one.Write("media/model.safetensors", "x");
  EXPECT_EQ(PlanError(one), looked_for +
                                "there are embeddings.npy, media/model.safetensors: choose "
                                "one and name it in collection.json: {\"vectors\": "
                                "\"embeddings.npy\"}");
  const ScratchFolder other;
  other.Write("vectors.pt", "x");
  other.Write("preference_vectors.npy", "x");
  EXPECT_EQ(PlanError(other), looked_for +
                                  "vectors.pt is of another format: save the vectors with "
                                  "np.save(\"content_vectors.npy\", x)");
  const ScratchFolder shouted;
  shouted.Write("CONTENT_VECTORS.NPY", "x");
  EXPECT_EQ(PlanError(shouted), looked_for + "rename CONTENT_VECTORS.NPY to content_vectors.npy");
  const ScratchFolder above;
  above.Write("films/vectors.npy", "x");
  EXPECT_EQ(PlanError(above),
            looked_for + "films/vectors.npy is there: give the folder that it is in");
  const ScratchFolder empty;
  EXPECT_EQ(PlanError(empty),
            looked_for + "another name can be given in collection.json: \"vectors\"");
}

}  // namespace
}  // namespace simile::data

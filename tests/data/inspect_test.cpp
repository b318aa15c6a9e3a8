#include "data/load/inspect.h"

#include <filesystem>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "data/sample_folder.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kFilms = fs::path(SIMILE_SOURCE_DIR) / "examples/films";

// The text of a fact; empty when the fact was not found.
std::string FindText(const absl::StatusOr<Inspection>& inspection, const std::string& key) {
  EXPECT_TRUE(inspection.ok()) << inspection.status();
  if (!inspection.ok()) return {};
  for (const InspectedFact& fact : inspection->facts) {
    if (fact.key == key) return fact.text;
  }
  return {};
}

PayloadValue FindFact(const absl::StatusOr<Inspection>& inspection, const std::string& key) {
  for (const InspectedFact& fact : inspection->facts) {
    if (fact.key == key) return fact.value;
  }
  return {};
}

TEST(InspectTest, DescribesVectors) {
  const auto inspection = InspectFile(kFilms / "content_vectors.npy", Limits{});
  EXPECT_EQ(FindText(inspection, "file_bytes"), "3,840,128");
  EXPECT_EQ(inspection->kind, "vectors");
  EXPECT_TRUE(inspection->status.ok());
  EXPECT_EQ(FindFact(inspection, "rows"), PayloadValue{std::int64_t{5'000}});
  EXPECT_EQ(FindText(inspection, "dimensions"), "384");
  EXPECT_EQ(FindText(inspection, "type"), "float16");
  EXPECT_THAT(FindText(inspection, "lengths"), HasSubstr("0.9999"));
}

TEST(InspectTest, DescribesPayloadInteractionsAndIds) {
  const auto payload = InspectFile(kFilms / "metadata.jsonl", Limits{});
  EXPECT_EQ(FindText(payload, "lines"), "5,000");
  EXPECT_EQ(payload->kind, "payload");
  EXPECT_EQ(FindText(payload, "ids_from"), "\"media_id\"");
  ASSERT_FALSE(payload->fields.empty());
  EXPECT_EQ(payload->fields.back().name, "year");
  EXPECT_EQ(payload->fields.back().type, FieldType::kInteger);
  EXPECT_EQ(payload->fields.back().values.count(), 5'000U);
  const auto interactions = InspectFile(kFilms / "interactions.jsonl", Limits{});
  EXPECT_EQ(FindText(interactions, "lines"), "4,444");
  EXPECT_EQ(interactions->kind, "interactions");
  const auto ids = InspectFile(kFilms / "user_ids.json", Limits{});
  EXPECT_EQ(FindText(ids, "last_id"), "\"user_00500\"");
  EXPECT_EQ(ids->kind, "ids");
}

TEST(InspectTest, ReportsTheErrorOfALoad) {
  const auto inspection =
      InspectFile(fs::path(SIMILE_SOURCE_DIR) / "tests/data/corpus/npy/bad/nan.npy", Limits{});
  EXPECT_EQ(FindText(inspection, "rows"), "2");
  EXPECT_EQ(inspection->status,
            base::Error(base::ErrorReason::kInvalidFiles,
                        "nan.npy: row 1 holds NaN at column 1; vectors must be finite (1 of 2 rows "
                        "is affected)"));
}

TEST(InspectTest, ChecksAFolderAsALoadDoes) {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;
  const auto inspection =
      InspectFile(kFilms, Limits{}, {.quick = false, .progress = [&](const ReadProgress& read) {
                                       bytes_read = read.bytes_read;
                                       bytes_total = read.bytes_total;
                                     }});
  EXPECT_EQ(FindText(inspection, "users"), "500");
  EXPECT_EQ(inspection->kind, "collection");
  EXPECT_TRUE(inspection->status.ok()) << inspection->status;
  EXPECT_THAT(inspection->unchecked, IsEmpty());
  EXPECT_GT(bytes_total, 3'840'128U);
  EXPECT_EQ(bytes_read, bytes_total);
  const auto plan = PlanDataset(kFilms, Limits{});
  const auto films = LoadDataset(*plan, Limits{}, nullptr);
  ASSERT_TRUE(films.ok()) << films.status();
  EXPECT_EQ(FindText(inspection, "content_id"), films->content_id);
  EXPECT_EQ(FindText(inspection, "lookup_fields"), "title");
  EXPECT_EQ(FindText(inspection, "first_id"), base::Quoted(films->ids.Id(0)));
  EXPECT_EQ(inspection->notes, films->notes);
  EXPECT_EQ(inspection->fields.size(), films->payload.fields().size());
  EXPECT_EQ(inspection->listing.files.size(), films->files.size());
}

TEST(InspectTest, RefusesAFolderForWhatOnlyAFullReadFinds) {
  const auto refusal = [](const std::string& file, const std::string& bytes) {
    const ScratchFolder folder;
    WriteSample(folder);
    folder.Write(file, bytes);
    const auto inspection = InspectFile(folder.path(), Limits{});
    const auto quick = InspectFile(folder.path(), Limits{}, {.quick = true, .progress = {}});
    EXPECT_TRUE(quick->status.ok()) << quick->status;
    EXPECT_EQ(FindText(inspection, "rows"), "3");
    return std::string(inspection->status.message());
  };
  EXPECT_THAT(refusal("media/content_vectors.npy", NpyFile({1, 0, 0, 0, 3, 4}, 2)),
              HasSubstr("row 1 is all zeros"));
  EXPECT_THAT(refusal("media/metadata.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n"),
              HasSubstr("2 lines, but media/content_vectors.npy has 3 rows"));
  EXPECT_THAT(refusal("media/metadata.jsonl", "{\"id\": 1}\n{\"id\": 1}\n{\"id\": 2}\n"),
              HasSubstr("ids must be distinct"));
  EXPECT_THAT(refusal("media/metadata.jsonl", "id,title\na,First\n"),
              HasSubstr("metadata.jsonl: looks like CSV"));
  EXPECT_THAT(refusal("users/user_ids.json", "user_id,name\nu,U\nv,V\n"),
              HasSubstr("user_ids.json: looks like CSV; one JSON list of ids is needed"));
  EXPECT_THAT(refusal("users/user_ids.json", "u\nv\n"),
              HasSubstr("user_ids.json: looks like lines of text; one JSON list of ids is needed, "
                        "as `jq -Rn '[inputs]'` writes it of a text with one id a line"));
  EXPECT_THAT(refusal("users/user_ids.json", std::string("\xFF\xFE[\0]\0", 6)),
              HasSubstr("user_ids.json: is UTF-16; save as UTF-8"));
  EXPECT_THAT(refusal("users/user_ids.json", "\x1F\x8B\x08"),
              HasSubstr("user_ids.json: is compressed with gzip; unpack it"));
  EXPECT_THAT(refusal("users/user_ids.json", "[\"u\"]"),
              HasSubstr("1 id, but users/preference_vectors.npy has 2 rows"));
  EXPECT_THAT(refusal("users/user_ids.json", "[\"u\", \"u\"]"), HasSubstr("ids must be distinct"));
  EXPECT_THAT(refusal("users/interactions.jsonl", "{\"user_id\": \"u\"}\n"),
              HasSubstr("line 1: names no item"));
  EXPECT_THAT(refusal("collection.json", R"({"field_types": {"title": "integer"}})"),
              HasSubstr("\"title\" does not fit collection.json, which says \"field_types\": "
                        "{\"title\": \"integer\"}"));
}

TEST(InspectTest, SaysWhatAQuickLookLeavesUnchecked) {
  const auto inspection = InspectFile(kFilms, Limits{}, {.quick = true, .progress = {}});
  EXPECT_EQ(FindText(inspection, "rows"), "5,000");
  EXPECT_EQ(FindText(inspection, "content_id"), "");
  EXPECT_THAT(inspection->unchecked,
              ElementsAre("the rows of content_vectors.npy", "the lines of metadata.jsonl",
                          "the ids of user_ids.json", "the rows of preference_vectors.npy",
                          "the lines of interactions.jsonl", "counts across files"));
  const auto file =
      InspectFile(kFilms / "content_vectors.npy", Limits{}, {.quick = true, .progress = {}});
  EXPECT_THAT(file->unchecked, ElementsAre("the rows"));
  EXPECT_EQ(FindText(file, "lengths"), "");
}

TEST(InspectTest, CountsSkippedRows) {
  const ScratchFolder folder;
  folder.Write("collection.json", R"({"on_zero_row": "skip"})");
  folder.Write("content_vectors.npy", NpyFile({1, 0, 0, 0, 0, 0, 3, 4}, 2));
  const auto inspection = InspectFile(folder.path(), Limits{});
  EXPECT_TRUE(inspection->status.ok()) << inspection->status;
  EXPECT_EQ(FindText(inspection, "skipped_rows"), "2");
  EXPECT_THAT(inspection->notes, Contains("content_vectors.npy: 2 of 4 rows are all zeros and are "
                                          "skipped, the first is row 1"));
  const auto dataset = LoadDataset(*PlanDataset(folder.path(), Limits{}), Limits{}, nullptr);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->skipped_rows, (std::vector<Row>{1, 2}));
  EXPECT_EQ(dataset->ids.Id(2), "2");
  EXPECT_EQ(dataset->vectors.view()[2][1], 0);
}

TEST(InspectTest, GivesAnEmptyFolderTheReasonOfALoad) {
  const ScratchFolder empty;
  EXPECT_EQ(base::ReasonOf(InspectFile(empty.path(), Limits{})->status),
            base::ErrorReason::kInvalidFiles);
}

TEST(InspectTest, RefusesFilesItCannotOpenOrRead) {
  const ScratchFolder folder;
  folder.Write("notes.txt", "x");
  EXPECT_EQ(
      InspectFile(folder.path() / "none.npy", Limits{}).status(),
      absl::NotFoundError((folder.path() / "none.npy").string() + ": no such file or folder"));
  EXPECT_EQ(InspectFile("none/of/these", Limits{}).status(),
            absl::NotFoundError("none/of/these: no such file or folder"));
  EXPECT_EQ(std::string(InspectFile(folder.path() / "notes.txt", Limits{}).status().message()),
            "notes.txt: is of no kind that is read here: .npy, .safetensors, .jsonl, .json, or a "
            "folder");
}

}  // namespace
}  // namespace simile::data

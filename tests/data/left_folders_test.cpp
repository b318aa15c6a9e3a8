// Folders as other programs leave them: each is loaded, or refused with what mends it.
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/load/inspect.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kVectors = NpyFile({1, 0, 0, 1, 1, 1}, 2);
const std::string kRows = "{\"id\": \"a\"}\n{\"id\": \"b\"}\n{\"id\": \"c\"}\n";

// A .npy file [3, 2] with this type and data.
std::string Typed(const std::string& descr, const std::string& data, bool by_column = false) {
  std::string header = fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': (3, 2), }}", descr,
                                   by_column ? "True" : "False");
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + data;
}

// A collection of three items, with other files in the place of some.
class LeftFolderTest : public testing::Test {
 protected:
  LeftFolderTest() {
    folder_.Write("content_vectors.npy", kVectors);
    folder_.Write("metadata.jsonl", kRows);
  }

  Inspection Inspect() const { return Inspect(folder_.path()); }
  static Inspection Inspect(const fs::path& folder) {
    absl::StatusOr<Inspection> inspection = InspectFile(folder, Limits{});
    EXPECT_TRUE(inspection.ok()) << inspection.status();
    std::cout << (inspection->status.ok() ? "loads" : inspection->status.message()) << '\n';
    for (const std::string& note : inspection->notes) std::cout << "  note " << note << '\n';
    return *std::move(inspection);
  }
  // Of the folder with another file.
  Inspection With(const std::string& name, const std::string& bytes) const {
    folder_.Write(name, bytes);
    return Inspect();
  }
  std::string Refusal(const std::string& name, const std::string& bytes) const {
    const Inspection inspection = With(name, bytes);
    EXPECT_FALSE(inspection.status.ok()) << name;
    return std::string(inspection.status.message());
  }
  // Loads, with notes of nothing but lengths. Returns the first id.
  std::string Loads(const std::string& name, const std::string& bytes) const {
    const Inspection inspection = With(name, bytes);
    EXPECT_TRUE(inspection.status.ok()) << inspection.status;
    EXPECT_THAT(inspection.left_out, IsEmpty());
    for (const std::string& note : inspection.notes) EXPECT_THAT(note, HasSubstr("normalized"));
    for (const InspectedFact& fact : inspection.facts) {
      if (fact.key == "first_id") return fact.text;
    }
    return {};
  }

  const ScratchFolder folder_;
};

TEST_F(LeftFolderTest, PandasLines) {
  EXPECT_EQ(Loads("metadata.jsonl", "{\"id\":12.0}\n{\"id\":13.0}\n{\"id\":14.0}\n"), "\"12\"");
  EXPECT_EQ(Loads("metadata.jsonl",
                  "{\"index\":0,\"id\":7}\n{\"index\":1,\"id\":8}\n"
                  "{\"index\":2,\"id\":9}\n"),
            "\"7\"");
  EXPECT_EQ(Loads("metadata.jsonl",
                  "{\"id\":\"a\",\"year\":1995.0,\"x\":null}\r\n{\"id\":\"b\",\"year\":"
                  "null,\"x\":null}\r\n{\"id\":\"c\",\"year\":2001.0,\"x\":null}\r\n"),
            "\"a\"");
  EXPECT_EQ(Loads("metadata.jsonl", "\xEF\xBB\xBF" + kRows), "\"a\"");
  EXPECT_EQ(Loads("metadata.jsonl", kRows + "\n\n"), "\"a\"");
}

TEST_F(LeftFolderTest, PandasInOtherShapes) {
  EXPECT_THAT(
      Refusal("metadata.jsonl", "[{\"id\":1},{\"id\":2},{\"id\":3}]"),
      HasSubstr("is one list of objects; one JSON object a line is needed, as `mv metadata.jsonl "
                "metadata.json` and then `jq -c '.[]' metadata.json > metadata.jsonl` write "
                "them"));
  EXPECT_THAT(Refusal("metadata.jsonl", "{\n  \"id\": 1\n}\n{\n  \"id\": 2\n}\n"),
              HasSubstr("looks indented"));
  EXPECT_THAT(Refusal("metadata.jsonl", ",id,title\n0,a,First\n"),
              HasSubstr("looks like CSV; one JSON object a line is needed, as `mv metadata.jsonl "
                        "metadata.csv` and then pandas.read_csv(\"metadata.csv\")"
                        ".to_json(\"metadata.jsonl\", orient=\"records\", lines=True) write them"));
  EXPECT_THAT(Refusal("metadata.jsonl", "id\ttitle\na\tFirst\n"),
              HasSubstr("pandas.read_csv(\"metadata.csv\", sep=\"\\t\").to_json"));
  EXPECT_THAT(Refusal("metadata.jsonl",
                      "{\"id\":\"a\",\"t\":NaN}\n{\"id\":\"b\",\"t\":1}\n"
                      "{\"id\":\"c\",\"t\":-Infinity}\n"),
              AllOf(HasSubstr("2 faults\n  line 1, column 15: NaN is not a JSON value; write null"),
                    HasSubstr("\n  line 3, column 15: -Infinity is not a JSON value")));
}

// Each with the program of jq that writes its objects.
TEST_F(LeftFolderTest, OneObjectOfAllRows) {
  const std::string by_name = "is one object of objects; one JSON object a line is needed, as `mv ";
  const std::string by_name_program = "`jq -c 'to_entries[] | {id: .key} + .value' metadata.json ";
  const std::string columns = "is one object of columns, as pandas writes without";
  const std::string columns_program =
      "`jq -c '(first(.[]) | keys_unsorted[]) as $i | map_values(.[$i])' metadata.json ";
  const std::string wide(70'000, 'x');
  std::string many = "{\"r\": {\"t\": 1}";
  for (int row = 0; row < 2'000; ++row) many += fmt::format(", \"r{}\": {{\"t\": 1}}", row);
  struct Case {
    std::string text;
    std::string what;
    std::string program;
  };
  for (const Case& each : std::vector<Case>{
           {R"({"a": {"t": 1}, "b": {"t": 2}, "c": {"t": 3}})", by_name, by_name_program},
           {"{\n  \"a\": {\n    \"t\": 1\n  },\n  \"b\": {\n    \"t\": 2\n  }\n}\n", by_name,
            by_name_program},
           {"{\"a\": {\"t\": 1},\n\"b\": {\"t\": 2}}\n", by_name, by_name_program},
           {fmt::format(R"({{"a": {{"t": "{}"}}, "b": {{"t": 2}}}})", wide), by_name,
            by_name_program},
           {many + "}\n", by_name, by_name_program},
           {R"({"id":{"0":"a","1":"b","2":"c"},"t":{"0":1,"1":2,"2":3}})", columns,
            columns_program},
           {R"({"id":{"0":"a","1":"b","2":"c"}})", columns, columns_program},
           {"{\n  \"id\":{\n    \"0\":\"a\"\n  }\n}", columns, columns_program},
           {R"({"items": [{"id": "a"}, {"id": "b"}], "total": 2})",
            "is one object with a list of objects inside; one JSON object a line is needed",
            "`jq -c 'first(.[])[]' metadata.json "},
           {"{\n \"t\": {\"en\": 1},\n \"u\": {\"en\": 1}\n}\n{\n \"t\": {\"en\": 2}\n}\n",
            "looks indented", "`jq -c '.' metadata.json "}}) {
    EXPECT_THAT(Refusal("metadata.jsonl", each.text),
                AllOf(HasSubstr("metadata.jsonl: " + each.what),
                      HasSubstr(each.program + "> metadata.jsonl` write them")));
  }
}

// A row may have nothing but objects; so may each of several.
TEST_F(LeftFolderTest, RowsOfObjects) {
  const std::string row = R"({"name": {"en": "a"}, "plot": {"en": "b"}})";
  EXPECT_EQ(Loads("metadata.jsonl", row + "\n" + row + "\n" + row + "\n"), "\"0\"");
  EXPECT_THAT(Refusal("metadata.jsonl", row + "\n" + row + "\n"),
              HasSubstr("2 lines, but content_vectors.npy has 3 rows"));
  folder_.Write("content_vectors.npy", NpyFile({1, 0}, 2));
  EXPECT_EQ(Loads("metadata.jsonl", row + "\n"), "\"0\"");
  const auto alone = InspectFile(folder_.path() / "metadata.jsonl", Limits{});
  EXPECT_TRUE(alone->status.ok()) << alone->status;
  EXPECT_THAT(alone->notes, Contains(HasSubstr("metadata.jsonl: is one object of objects; ")));
}

TEST_F(LeftFolderTest, LinesOfBareValues) {
  for (const auto& [line, what] : {std::pair{"\"r0\"", "a string"}, std::pair{"3", "a number"},
                                   std::pair{"[1]", "a list"}, std::pair{"null", "null"}}) {
    const Inspection bare = With("metadata.jsonl", fmt::format("{0}\n{0}\n{0}\n", line));
    EXPECT_EQ(
        bare.status.message(),
        fmt::format("metadata.jsonl: 3 faults\n  line 1, column 1: expected an object {{...}}, "
                    "found {0}\n  line 2, column 1: expected an object {{...}}, found {0}\n  "
                    "line 3, column 1: expected an object {{...}}, found {0}",
                    what));
  }
}

// A file that collection.json names keeps what it has: no command writes into it.
TEST_F(LeftFolderTest, NamedFilesOfOtherFormats) {
  folder_.Write("collection.json", R"({"payload": "recipes.csv"})");
  EXPECT_EQ(Refusal("recipes.csv", "id,title\na,First\n"),
            "recipes.csv: looks like CSV; one JSON object a line is needed, as "
            "pandas.read_csv(\"recipes.csv\").to_json(\"recipes.jsonl\", orient=\"records\", "
            "lines=True) writes them; name recipes.jsonl in collection.json");
  EXPECT_THAT(Refusal("recipes.csv", "id;title\na;First\n"),
              HasSubstr("pandas.read_csv(\"recipes.csv\", sep=\";\")"));
  folder_.Write("collection.json", R"({"interactions": "data/clicks.json"})");
  EXPECT_EQ(Refusal("data/clicks.json", "[{\"user_id\": 1, \"id\": \"a\"}]"),
            "data/clicks.json: is one list of objects; one JSON object a line is needed, as `jq -c "
            "'.[]' data/clicks.json > data/clicks.jsonl` writes them; name data/clicks.jsonl in "
            "collection.json");
}

TEST_F(LeftFolderTest, HandWrittenLines) {
  EXPECT_THAT(Refusal("metadata.jsonl", "{'id': 'a'}\n{'id': 'b'}\n{'id': 'c'}\n"),
              AllOf(HasSubstr("3 faults"), HasSubstr("JSON takes double quotes")));
  EXPECT_THAT(Refusal("metadata.jsonl", "{\"id\": \"a\"},\n{\"id\": \"b\"},\n{\"id\": \"c\"}\n"),
              AllOf(HasSubstr("2 faults"), HasSubstr("the comma after the value is one too many")));
  EXPECT_THAT(Refusal("metadata.jsonl", "{\"id\": \"a\",}\n{\"id\": \"b\"}\n{\"id\": \"c\"}\n"),
              HasSubstr("the comma before '}' is one too many"));
  EXPECT_THAT(
      Refusal("metadata.jsonl", "{\"id\": \"a\", \"t\": None}\n{\"id\": \"b\"}\n{\"id\": \"c\"}\n"),
      HasSubstr("missing values are null"));
  EXPECT_THAT(Refusal("metadata.jsonl", "{\"id\": \"a\"}{\"id\": \"b\"}\n{\"id\": \"c\"}\n"),
              HasSubstr("a second object begins here"));
  EXPECT_THAT(Refusal("metadata.jsonl", "{\"id\": \"a\"}\n\n{\"id\": \"c\"}\n"),
              AllOf(HasSubstr("2 lines, but content_vectors.npy has 3 rows"),
                    HasSubstr("1 blank line is skipped, the first is line 2")));
  const Inspection blank =
      With("metadata.jsonl", "{\"id\": \"a\"}\n\n \n{\"id\": \"b\"}\n{\"id\": \"c\"}\n");
  EXPECT_TRUE(blank.status.ok()) << blank.status;
  EXPECT_THAT(blank.notes,
              Contains("metadata.jsonl: 2 blank lines are skipped, the first is line 2"));
}

TEST_F(LeftFolderTest, IdsUnderOtherNames) {
  EXPECT_EQ(
      Loads("metadata.jsonl", "{\"item_id\":\"x\"}\n{\"item_id\":\"y\"}\n{\"item_id\":\"z\"}\n"),
      "\"x\"");
  for (const std::string field : {"_id", "ID", "movieId", "asin", "uuid", "product_id"}) {
    const Inspection found =
        With("metadata.jsonl", fmt::format("{{\"t\":1,\"{0}\":\"x\"}}\n{{\"t\":1,\"{0}\":\"y\"}}\n"
                                           "{{\"t\":1,\"{0}\":\"z\"}}\n",
                                           field));
    ASSERT_FALSE(found.notes.empty());
    EXPECT_EQ(found.notes.front(),
              fmt::format("metadata.jsonl: ids are row numbers; \"{0}\" is distinct in every row, "
                          "and \"id_field\": \"{0}\" in collection.json makes it the id",
                          field));
  }
  EXPECT_THAT(
      With("metadata.jsonl", "{\"movieId\":1.0}\n{\"movieId\":2.0}\n{\"movieId\":3.0}\n").notes,
      Contains(HasSubstr("\"movieId\" is distinct in every row")));
  EXPECT_THAT(
      Refusal("metadata.jsonl", "{\"item_id\":\"x\"}\n{\"item_id\":\"x\"}\n{\"item_id\":\"y\"}\n"),
      HasSubstr("id \"x\" is also that of row 0; ids must be distinct; \"id_field\" in "
                "collection.json can name another field"));
  EXPECT_THAT(Refusal("metadata.jsonl", "{\n{\"id\":\"x\"}\n{\"id\":\"x\"}\n"),
              HasSubstr("looks indented"));
  EXPECT_THAT(Refusal("metadata.jsonl", "{]\n{\"id\":\"x\"}\n{\"id\":\"x\"}\n"),
              AllOf(HasSubstr("2 faults\n  line 1"), HasSubstr("id \"x\" is also that of row 1")));
  for (const std::string rows :
       {"{\"genre_id\":1}\n{\"genre_id\":2}\n{\"genre_id\":1}\n",
        "{\"valid\":1}\n{\"valid\":2}\n{\"valid\":3}\n", "{\"_id\":1}\n{}\n{\"_id\":2}\n"}) {
    for (const std::string& note : With("metadata.jsonl", rows).notes) {
      EXPECT_THAT(note, Not(HasSubstr("row numbers")));
    }
  }
  EXPECT_THAT(With("metadata.jsonl", "{\"t\":1}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n").notes,
              Contains("metadata.jsonl: ids are row numbers, because line 1 has no \"id\"; 2 of 3 "
                       "lines have one: give every line one"));
}

TEST_F(LeftFolderTest, UserIds) {
  folder_.Write("preference_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
  EXPECT_EQ(Loads("user_ids.json", "[12.0, 13.0]"), "\"a\"");
  EXPECT_EQ(Loads("user_ids.json", "[12, 13]"), "\"a\"");
  EXPECT_THAT(Refusal("user_ids.json", "[1.5, null]"),
              AllOf(HasSubstr("2 faults"), HasSubstr("row 0 is 1.5"),
                    HasSubstr("row 1 is null; an id is a string or an integer")));
  EXPECT_THAT(Refusal("user_ids.json", "user\n1\n2\n"), HasSubstr("looks like lines of text"));
  folder_.Write("user_ids.json", "[12, 13]");
  EXPECT_EQ(Loads("interactions.jsonl",
                  "{\"user_id\":12.0,\"item_id\":\"a\",\"weight\":null,\"time\":null}\n"
                  "{\"user_id\":13.0,\"item_id\":\"b\",\"weight\":2.5,\"time\":\"2024-05-01\"}\n"),
            "\"a\"");
}

TEST_F(LeftFolderTest, Times) {
  const auto type_of = [&](const std::string& time) {
    const Inspection read = With(
        "metadata.jsonl", fmt::format("{{\"at\":{0}}}\n{{\"at\":{0}}}\n{{\"at\":{0}}}\n", time));
    return read.fields.empty() ? FieldType::kOther : read.fields.front().type;
  };
  for (const char* const time :
       {"\"2024-05-01\"", "\"2024-05-01T12:00:00\"", "\"2024-05-01 12:00:00\"",
        "\"2024-05-01T12:00:00.123\"", "\"2024-05-01 12:00:00.123456\"", "\"2024-05-01T12:00\"",
        "\"2024-05-01T12:00:00+0200\"", "\"2024-05-01 12:00:00+00:00\"",
        "\"2024-05-01 12:00:00 UTC\"", "\"2024-05-01T12:00:00.000Z\""}) {
    EXPECT_EQ(type_of(time), FieldType::kTime) << time;
  }
  for (const char* const time : {"\"05/01/2024\"", "\"2024-13-01\"", "\"12:00\"", "\"\""}) {
    EXPECT_EQ(type_of(time), FieldType::kKeyword) << time;
  }
  EXPECT_THAT(
      With("metadata.jsonl",
           "{\"at\":\"2024-05-01\"}\n{\"at\":\"soon\"}\n"
           "{\"at\":\"2024-05-02\"}\n")
          .notes,
      Contains("metadata.jsonl: \"at\" is of type keyword, not time, because 1 of its 3 "
               "values is no time: \"soon\" in row 1; \"field_types\": {\"at\": \"time\"} in "
               "collection.json makes it a time"));
}

TEST_F(LeftFolderTest, Arrays) {
  const std::string eight(8 * 6, '\x3C');
  const std::string numbers = NpyFile({1, 2, 3, 4, 6, 7}, 2).substr(128);
  EXPECT_EQ(Loads("content_vectors.npy", Typed("'<f4'", numbers, true)), "\"a\"");
  EXPECT_EQ(Loads("content_vectors.npy", Typed("'<f2'", "\x01<\x02<\x03<\x04<\x05<\x07<")),
            "\"a\"");
  EXPECT_THAT(Refusal("content_vectors.npy", Typed("'<i8'", eight)),
              HasSubstr("float16, float32 and float64 are served; save with np.save"));
  EXPECT_THAT(Refusal("content_vectors.npy", Typed("'>f4'", eight.substr(0, 24))),
              HasSubstr("big-endian"));
  EXPECT_THAT(Refusal("content_vectors.npy", Typed("'|O'", "\x80\x04]\x94.")),
              HasSubstr("holds pickled Python objects, which are never read; save with "
                        "np.save(file, np.stack(x).astype(np.float32))"));
  for (const char* const type :
       {"[('v', '<f4', (2,))]", "[('id', '<i8'), ('w', '<U9', (3,)), ('v', '>f8', (2,))]"}) {
    EXPECT_THAT(Refusal("content_vectors.npy", Typed(type, eight)),
                HasSubstr("holds records (a structured type); save one field, with np.save(file, "
                          "x[\"v\"].astype(np.float32))"));
  }
  for (const char* const type : {"[('x', '<f4'), ('y', '<f4')]", "[('v', [('x', '<f4')], (2,))]"}) {
    EXPECT_THAT(Refusal("content_vectors.npy", Typed(type, eight)),
                HasSubstr("save the fields that are floats as columns, with np.save(file, "));
  }
  EXPECT_THAT(Refusal("content_vectors.npy", "\x80\x04\x95\x10"), HasSubstr("a Python pickle"));
  EXPECT_THAT(Refusal("content_vectors.npy", "PK\x03\x04rest of an archive"),
              HasSubstr("a zip archive, as np.savez writes"));
  EXPECT_THAT(Refusal("content_vectors.npy", NpyFile({1, 0, 1, 0, 1, 0}, 3)),
              HasSubstr("3 lines, but content_vectors.npy has 2 rows; one object a row is needed"));
}

TEST(TransposedTest, IsAskedAboutWhereThereAreAsManyLinesAsDimensions) {
  const ScratchFolder folder;
  folder.Write("content_vectors.npy", NpyFile(std::vector<float>(4 * 20, 1), 20));
  std::string lines;
  for (int row = 0; row < 20; ++row) lines += "{\"title\": \"a\"}\n";
  folder.Write("metadata.jsonl", lines);
  const auto refusal = [&] {
    return std::string(InspectFile(folder.path(), Limits{})->status.message());
  };
  EXPECT_EQ(refusal(),
            "metadata.jsonl: 20 lines, but content_vectors.npy has 4 rows of 20 dimensions, so it "
            "looks transposed: save the array's transpose, array.T; one object a row is needed");
  folder.Write("content_vectors.npy", NpyFile(std::vector<float>(20 * 4, 1), 4));
  folder.Write("user_ids.json", "[\"u\"]");
  folder.Write("preference_vectors.npy", NpyFile(std::vector<float>(4 * 3, 1), 3));
  EXPECT_EQ(refusal(),
            "preference_vectors.npy: 3 dimensions, but content_vectors.npy has 4; "
            "preference_vectors.npy looks transposed: save the array's transpose, array.T");
}

TEST(TransposedTest, IsAskedAboutWhereNoOtherFileSaysHowManyRowsThereAre) {
  const ScratchFolder folder;
  folder.Write("content_vectors.npy", NpyFile(std::vector<float>(4 * 20, 1), 20));
  const std::string note =
      "content_vectors.npy: more dimensions (20) than rows (4): if it is transposed, save the "
      "array's transpose, array.T";
  const auto notes = [&](const fs::path& path) { return InspectFile(path, Limits{})->notes; };
  EXPECT_THAT(notes(folder.path()), Contains(note));
  EXPECT_THAT(notes(folder.path() / "content_vectors.npy"), ElementsAre(note));
  folder.Write("metadata.jsonl", "{}\n{}\n{}\n{}\n");
  EXPECT_THAT(notes(folder.path()), Not(Contains(note)));
  folder.Write("content_vectors.npy", NpyFile(std::vector<float>(20 * 20, 1), 20));
  EXPECT_THAT(notes(folder.path() / "content_vectors.npy"), IsEmpty());
}

TEST_F(LeftFolderTest, EqualVectors) {
  EXPECT_THAT(With("content_vectors.npy", NpyFile({1, 1, 0, 1, 1, 1}, 2)).notes,
              Contains("content_vectors.npy: 2 rows share one vector, the first is row 0; a search "
                       "returns them in row order"));
  const Inspection all = With("content_vectors.npy", NpyFile({1, 1, 1, 1, 1, 1}, 2));
  EXPECT_TRUE(all.status.ok()) << all.status;
  EXPECT_THAT(all.notes, Contains("content_vectors.npy: all 3 rows share one vector; every search "
                                  "returns them in row order"));
}

TEST_F(LeftFolderTest, Tensors) {
  fs::remove(folder_.path() / "content_vectors.npy");
  folder_.Write("collection.json", "{\"tensor\": \"e\"}");
  for (const char* const dtype : {"F8_E8M0", "F4", "C64", "U16", "BOOL", "F6_E2M3", "I4"}) {
    std::string header =
        fmt::format(R"({{"e":{{"dtype":"BF16","shape":[3,2],"data_offsets":[0,12]}},)"
                    R"("scale":{{"dtype":"{}","shape":[7],"data_offsets":[12,20],"more":1}}}})",
                    dtype);
    header.resize(200, ' ');
    std::string file = std::string("\xC8\0\0\0\0\0\0\0", 8) + header;
    file += std::string("\x80\x3F\0\0\0\0\x80\x3F\x80\x3F\x80\x3F", 12) + std::string(8, '\x7F');
    EXPECT_EQ(Loads("content_vectors.safetensors", file), "\"a\"") << dtype;
  }
}

// The cache of Hugging Face: a snapshot is a folder of links into blobs/.
TEST_F(LeftFolderTest, HuggingFaceCache) {
  const ScratchFolder cache;
  cache.Write("blobs/4d7a", kVectors);
  cache.Write("blobs/9e01", kRows);
  cache.Write("refs/main", "r1");
  fs::create_directories(cache.path() / "snapshots/r1");
  fs::create_symlink("../../blobs/4d7a", cache.path() / "snapshots/r1/content_vectors.npy");
  fs::create_symlink("../../blobs/9e01", cache.path() / "snapshots/r1/metadata.jsonl");
  EXPECT_TRUE(Inspect(cache.path() / "snapshots/r1").status.ok());
}

// DVC links into its cache, beside .dvc files; git-annex into .git, where a file may be absent.
TEST_F(LeftFolderTest, DvcAndGitAnnex) {
  const ScratchFolder repository;
  repository.Write(".dvc/cache/files/md5/ab/cdef", kVectors);
  repository.Write("films/content_vectors.npy.dvc", "outs:\n- md5: abcdef\n");
  repository.Write("films/.gitignore", "/content_vectors.npy\n");
  fs::create_symlink(repository.path() / ".dvc/cache/files/md5/ab/cdef",
                     repository.path() / "films/content_vectors.npy");
  fs::create_symlink("../.git/annex/objects/Zx/9q/SHA256E-s33--1/SHA256E-s33--1",
                     repository.path() / "films/metadata.jsonl");
  const Inspection absent = Inspect(repository.path() / "films");
  EXPECT_THAT(std::string(absent.status.message()),
              HasSubstr("metadata.jsonl: is a link to a file that is not there; fetch that file, "
                        "as `git annex get`"));
  repository.Write(".git/annex/objects/Zx/9q/SHA256E-s33--1/SHA256E-s33--1", kRows);
  EXPECT_TRUE(Inspect(repository.path() / "films").status.ok());
}

TEST_F(LeftFolderTest, GitLfsPointers) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  EXPECT_THAT(Refusal("metadata.jsonl", pointer), HasSubstr("`git lfs pull` fetches the file"));
  EXPECT_THAT(Refusal("content_vectors.npy", pointer), HasSubstr("`git lfs pull` fetches"));
  fs::remove(folder_.path() / "content_vectors.npy");
  EXPECT_THAT(Refusal("content_vectors.safetensors", pointer), HasSubstr("`git lfs pull` fetches"));
}

// What failed downloads and copies leave, under the names of each kind of file.
TEST_F(LeftFolderTest, FilesOfOtherKinds) {
  const std::pair<std::string, std::string> kinds[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
       "is a pointer of Git LFS"},
      {"\n<!DOCTYPE html>\n<html><head><title>Not found, sorry</title></head></html>\n",
       "is a web page (HTML)"},
      {"<html>\n<head></head>\n</html>", "is a web page (HTML)"},
      {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code></Error>",
       "is XML"},
      {"<Error><Code>NoSuchKey, or no rights</Code></Error>", "is XML"},
  };
  folder_.Write("preference_vectors.npy", kVectors);
  const std::pair<std::string, std::string> files[] = {
      {"content_vectors.npy", kVectors},
      {"metadata.jsonl", kRows},
      {"user_ids.json", "[\"u\", \"v\", \"w\"]"},
      {"collection.json", "{}"},
      {"interactions.jsonl", ""},
  };
  for (const auto& [name, right] : files) folder_.Write(name, right);
  for (const auto& [text, what] : kinds) {
    for (const auto& [name, right] : files) {
      EXPECT_THAT(Refusal(name, text), HasSubstr(fmt::format("{}: {}", name, what)));
      folder_.Write(name, right);
    }
    fs::remove(folder_.path() / "content_vectors.npy");
    EXPECT_THAT(Refusal("content_vectors.safetensors", text),
                HasSubstr("content_vectors.safetensors: " + what));
    fs::remove(folder_.path() / "content_vectors.safetensors");
    folder_.Write("content_vectors.npy", kVectors);
  }
}

TEST_F(LeftFolderTest, EmptyFiles) {
  EXPECT_THAT(With("interactions.jsonl", "").notes, Contains("interactions.jsonl: is empty"));
  EXPECT_THAT(Refusal("collection.json", ""), HasSubstr("collection.json: is empty"));
  fs::remove(folder_.path() / "collection.json");
  EXPECT_THAT(Refusal("metadata.jsonl", ""), HasSubstr("metadata.jsonl: 0 lines, but"));
  EXPECT_THAT(Refusal("content_vectors.npy", ""), HasSubstr("content_vectors.npy: is empty"));
}

TEST_F(LeftFolderTest, FilesThatAreCutShort) {
  EXPECT_THAT(
      Refusal("metadata.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b"),
      HasSubstr("metadata.jsonl: line 2, column 10: a string is not closed; expected '\"'; the "
                "file ends there: it may be cut short"));
  EXPECT_THAT(Refusal("metadata.jsonl", "{\"id\": \"a\"\n{\"id\": \"b\"}\n{\"id\": \"c\"}\n"),
              Not(HasSubstr("cut short")));
}

// Spark writes folders of parts with checksums.
TEST_F(LeftFolderTest, Spark) {
  fs::remove(folder_.path() / "metadata.jsonl");
  folder_.Write("metadata.jsonl/part-00000-ab.json", kRows);
  folder_.Write("metadata.jsonl/.part-00000-ab.json.crc", "crc");
  folder_.Write("metadata.jsonl/_SUCCESS", "");
  EXPECT_THAT(std::string(Inspect().status.message()),
              HasSubstr("metadata.jsonl: is a folder; a regular file is needed: `cat "
                        "metadata.jsonl/part-* > new && rm -r metadata.jsonl && mv new "
                        "metadata.jsonl`"));
}

TEST_F(LeftFolderTest, FilesBeside) {
  for (const char* const name : {".DS_Store", "._metadata.jsonl", "metadata.jsonl~", "_SUCCESS",
                                 ".metadata.jsonl.crc", "README.md", "Thumbs.db"}) {
    folder_.Write(name, "x");
  }
  EXPECT_EQ(Loads("notes.txt", "x"), "\"a\"");
  EXPECT_THAT(
      With("metadata.parquet", "PAR1").notes,
      Contains(HasSubstr("metadata.parquet: not read: payload is read from metadata.jsonl")));
  fs::remove(folder_.path() / "metadata.jsonl");
  EXPECT_THAT(Inspect().left_out, ElementsAre(HasSubstr("pandas.read_parquet(")));
  fs::remove(folder_.path() / "metadata.parquet");
  EXPECT_THAT(With("metadata.jsonl.gz", "\x1F\x8B").left_out,
              ElementsAre(HasSubstr("metadata.jsonl.gz is not read; `gunzip metadata.jsonl.gz`")));
  EXPECT_THAT(Refusal("metadata.jsonl", "\x1F\x8B"), HasSubstr("compressed with gzip; unpack it"));
}

}  // namespace
}  // namespace simile::data

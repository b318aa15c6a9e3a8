#include "cli/collection_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/output_text.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

v1::BackendStatus Cpu() {
  v1::BackendStatus cpu;
  cpu.set_kind(v1::BACKEND_KIND_CPU);
  cpu.set_device("AMD EPYC, 2 threads");
  cpu.set_engine("int8-avx2");
  cpu.set_reason("no NVIDIA driver");
  return cpu;
}

v1::Collection Films() {
  v1::Collection films;
  films.set_name("films");
  films.set_state(v1::Collection::STATE_SERVING);
  films.set_snapshot_version(2);
  films.set_snapshot_id("3f9a12c4d5e6f708192a3b4c5d6e7f80");
  films.mutable_loaded_at()->set_seconds(1'700'000'000);
  films.set_rows(5'000);
  films.set_dim(384);
  films.set_metric(v1::Collection::METRIC_COSINE);
  films.set_users(500);
  films.set_interactions(2'500);
  films.mutable_bytes()->set_vectors(7'680'000);
  films.mutable_bytes()->set_payload(1 << 20);
  *films.mutable_backend() = Cpu();
  v1::PayloadField& title = *films.add_fields();
  title.set_name("title");
  title.set_type(v1::FIELD_TYPE_KEYWORD);
  title.set_rows(4'999);
  films.add_lookup_fields("title");
  films.set_index_built(1);
  films.add_notes("500 user vectors were normalized");
  return films;
}

v1::ListCollectionsResponse Listed(const std::vector<v1::Collection>& collections) {
  v1::ListCollectionsResponse listed;
  for (const v1::Collection& collection : collections) *listed.add_collections() = collection;
  *listed.mutable_backend() = Cpu();
  return listed;
}

TEST(CollectionTextTest, PrintsOneLinePerCollectionAndTheBackend) {
  v1::Collection books;
  books.set_name("books");
  books.set_state(v1::Collection::STATE_LOADING);
  books.mutable_progress()->set_share(0.4);
  EXPECT_EQ(CollectionTable(Listed({books, Films()}), Terminal{}),
            "collection  state         rows x dim  metric  users   memory  snapshot      backend\n"
            "books       loading 40%\n"
            "films       serving      5,000 x 384  cosine    500  8.3 MiB  2 (3f9a12c4)  cpu\n"
            "cpu: no NVIDIA driver\n");
}

TEST(CollectionTextTest, ShowsGpuMemoryAndFoldersWhereACollectionHasThem) {
  v1::Collection films = Films();
  films.mutable_bytes()->set_device(3 << 20);
  films.set_folder("films-2");
  EXPECT_EQ(CollectionTable(Listed({films}), Terminal{}),
            "collection  state     rows x dim  metric  users   memory  on the GPU  snapshot      "
            "folder   backend\n"
            "films       serving  5,000 x 384  cosine    500  8.3 MiB     3.0 MiB  2 (3f9a12c4)  "
            "films-2  cpu\n"
            "cpu: no NVIDIA driver\n");
}

TEST(CollectionTextTest, SaysWhyACollectionDidNotLoad) {
  v1::Collection books;
  books.set_name("books");
  books.set_state(v1::Collection::STATE_FAILED);
  books.set_load_error("ids.json: line 3 is empty");
  EXPECT_THAT(CollectionTable(Listed({books, Films()}), Terminal{}),
              AllOf(HasSubstr("books       failed\n"),
                    HasSubstr("books did not load: ids.json: line 3 is empty\ncpu: ")));
  EXPECT_THAT(CollectionDetails(books, Terminal{}),
              HasSubstr("  state  failed\n  why    ids.json: line 3 is empty\n"));
  EXPECT_EQ(CollectionJson(books)["load_error"], "ids.json: line 3 is empty");
}

TEST(CollectionTextTest, SaysWhereTheContentIsAndHowMuchOfTheAnswersStayed) {
  v1::Collection films = Films();
  films.set_folder("current");
  films.set_loaded_from("films-2");
  films.set_overlap(0.005);
  EXPECT_THAT(
      CollectionDetails(films, Terminal{}),
      AllOf(HasSubstr("loaded from     films-2\n"), HasSubstr("a reload reads  current\n"),
            HasSubstr(
                "overlap         0.5 % of sampled answers are those of the snapshot before\n")));
  EXPECT_EQ(CollectionJson(films)["overlap"], 0.005);
  EXPECT_TRUE(CollectionJson(Films())["overlap"].is_null());
}

TEST(CollectionTextTest, SaysWhyACollectionHasAnotherBackendThanTheServer) {
  v1::Collection films = Films();
  films.mutable_backend()->set_reason("does not fit");
  v1::ListCollectionsResponse listed = Listed({films});
  listed.mutable_backend()->set_kind(v1::BACKEND_KIND_GPU);
  listed.mutable_backend()->clear_reason();
  EXPECT_THAT(CollectionTable(listed, Terminal{}), HasSubstr("  cpu: does not fit\ngpu\n"));
}

TEST(CollectionTextTest, ShowsTheProgressOfTheIndex) {
  v1::Collection films = Films();
  films.set_index_built(0.4F);
  EXPECT_THAT(CollectionDetails(films, Terminal{}), HasSubstr("state     serving, index 40%\n"));
  films.set_index_problem("no memory for the index of 5,000 rows");
  const std::string details = CollectionDetails(films, Terminal{});
  EXPECT_THAT(details, HasSubstr("state     serving, no index\n"));
  EXPECT_THAT(details, HasSubstr("index     no memory for the index of 5,000 rows\n"));
}

TEST(CollectionTextTest, ShowsDetailsFieldsAndNotes) {
  const std::string details = CollectionDetails(Films(), Terminal{});
  EXPECT_THAT(details, HasSubstr("rows      5,000 of 384 dimensions, cosine\n"));
  EXPECT_THAT(details, HasSubstr("users     500, 2,500 interactions\n"));
  EXPECT_THAT(details, HasSubstr("memory    8.3 MiB: vectors 7.3 MiB, payload 1.0 MiB\n"));
  EXPECT_THAT(details, HasSubstr("snapshot  2, loaded 2023-11-14 22:13:20 UTC\n"));
  EXPECT_THAT(details, HasSubstr("content   3f9a12c4d5e6f708192a3b4c5d6e7f80\n"));
  EXPECT_THAT(details, HasSubstr("engine    int8-avx2 on AMD EPYC, 2 threads\n"));
  EXPECT_THAT(details, HasSubstr("title  keyword  4,999\n"));
  EXPECT_THAT(details, HasSubstr("note: 500 user vectors were normalized\n"));
}

TEST(CollectionTextTest, ShowsHowLongSearchesOfSomeSizesTake) {
  v1::Collection films = Films();
  for (const auto& [queries, us] :
       {std::pair(1, 430), std::pair(2, 500), std::pair(8, 1'200), std::pair(64, 5'500)}) {
    v1::SearchTime& time = *films.add_search_times();
    time.set_queries(queries);
    time.set_search_us(us);
  }
  EXPECT_THAT(CollectionDetails(films, Terminal{}),
              HasSubstr("a search takes  430 us for 1 query, 1.2 ms for 8, 5.5 ms for 64\n"));
  const nlohmann::ordered_json described = CollectionJson(films);
  ASSERT_EQ(described["search_times"].size(), 4U);
  EXPECT_EQ(described["search_times"][1].dump(), R"({"queries":2,"search_us":500})");
  EXPECT_THAT(CollectionDetails(Films(), Terminal{}), Not(HasSubstr("a search takes")))
      << "before the first is measured";
}

v1::Collection FilmsWithFiles() {
  v1::Collection films = Films();
  const auto add = [&](const char* name, v1::CollectionFile::Role role, std::uint64_t bytes,
                       const char* unread_reason) {
    v1::CollectionFile& file = *films.add_files();
    file.set_name(name);
    file.set_role(role);
    file.set_bytes(bytes);
    file.set_unread_reason(unread_reason);
  };
  add("content_vectors.npy", v1::CollectionFile::ROLE_VECTORS, 7'680'128, "");
  add("users/user_ids.json", v1::CollectionFile::ROLE_USER_IDS, 9'000, "");
  add("metadata.csv", v1::CollectionFile::ROLE_UNSPECIFIED, 12, "a payload is a .jsonl file");
  films.set_unread_files(24);
  return films;
}

TEST(CollectionTextTest, ShowsWhichFilesWereReadAndWhyOthersWereNot) {
  EXPECT_THAT(CollectionDetails(FilmsWithFiles(), Terminal{}),
              HasSubstr("\n\n  file                    size  read as\n"
                        "  content_vectors.npy  7.3 MiB  vectors\n"
                        "  users/user_ids.json  8.8 KiB  user_ids\n"
                        "  metadata.csv            12 B  not read: a payload is a .jsonl file\n"
                        "  and 23 more files, not read\n\n  note: "));
  v1::Collection films = FilmsWithFiles();
  films.add_notes("metadata.csv: not read: a payload is a .jsonl file");
  EXPECT_EQ(CollectionDetails(films, Terminal{}), CollectionDetails(FilmsWithFiles(), Terminal{}));
  films.set_unread_files(1);
  EXPECT_THAT(CollectionDetails(films, Terminal{}), testing::Not(HasSubstr(" more")));
  EXPECT_THAT(CollectionDetails(Films(), Terminal{}), testing::Not(HasSubstr("read as")));
}

TEST(CollectionTextTest, SaysHowManyRowsWereSkipped) {
  v1::Collection films = Films();
  EXPECT_THAT(CollectionDetails(films, Terminal{}), testing::Not(HasSubstr("skipped")));
  films.set_skipped_rows(3);
  EXPECT_THAT(CollectionDetails(films, Terminal{}),
              HasSubstr("skipped   3 rows of zeros, which no search returns\n"));
}

TEST(CollectionTextTest, SaysWhereRollbackReturnsTo) {
  v1::Collection films = Films();
  EXPECT_THAT(CollectionDetails(films, Terminal{}), testing::Not(HasSubstr("rollback")));
  films.set_rollback_snapshot_id("7d02e1aa5b6c7d8e9fa0b1c2d3e4f506");
  EXPECT_THAT(CollectionDetails(films, Terminal{}),
              HasSubstr("rollback  returns to 7d02e1aa5b6c7d8e9fa0b1c2d3e4f506\n"));
}

TEST(CollectionTextTest, ShowsAChangeInProgress) {
  v1::Collection films = Films();
  films.set_state(v1::Collection::STATE_RELOADING);
  v1::ChangeProgress& progress = *films.mutable_progress();
  progress.set_stage(v1::ChangeProgress::STAGE_READING);
  progress.set_file("content_vectors.npy");
  progress.set_share(0.4);
  progress.set_bytes_read(3 << 20);
  progress.set_bytes_total(8 << 20);
  EXPECT_THAT(
      CollectionDetails(films, Terminal{}),
      HasSubstr("state     reloading 40%: reading 3.0 MiB of 8.0 MiB, content_vectors.npy\n"));
  films.clear_snapshot_version();
  films.set_state(v1::Collection::STATE_LOADING);
  EXPECT_THAT(CollectionDetails(films, Terminal{}), testing::Not(HasSubstr("dimensions")));
}

TEST(CollectionTextTest, DescribesACollectionInOneLine) {
  EXPECT_EQ(CollectionLine(Films()),
            "films: 5,000 rows x 384 (cosine), 500 users, 8.3 MiB, snapshot 2 (3f9a12c4)");
}

TEST(CollectionJsonTest, HasTheProtoFieldsByName) {
  const json films = json::parse(JsonLine(CollectionJson(Films())));
  EXPECT_EQ(films["state"], "serving");
  EXPECT_EQ(films["metric"], "cosine");
  EXPECT_EQ(films["loaded_at"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(films["bytes"]["vectors"], 7'680'000);
  EXPECT_EQ(films["fields"], json::parse(R"([{"name":"title","type":"keyword","rows":4999}])"));
  EXPECT_EQ(films["backend"]["kind"], "cpu");
  EXPECT_EQ(films["backend"]["reason"], "no NVIDIA driver");
  EXPECT_EQ(films["snapshot_id"], "3f9a12c4d5e6f708192a3b4c5d6e7f80");
  EXPECT_TRUE(films["progress"].is_null());
  EXPECT_EQ(films["notes"].size(), 1U);
}

TEST(CollectionJsonTest, HasTheFilesAndTheSkippedRows) {
  v1::Collection films = FilmsWithFiles();
  films.set_skipped_rows(3);
  const json parsed = json::parse(JsonLine(CollectionJson(films)));
  ASSERT_EQ(parsed["files"].size(), 3U);
  EXPECT_EQ(parsed["files"][1], json::parse(R"({"name":"users/user_ids.json","role":"user_ids",
      "bytes":9000,"unread_reason":null})"));
  EXPECT_EQ(parsed["files"][2], json::parse(R"({"name":"metadata.csv","role":null,"bytes":12,
      "unread_reason":"a payload is a .jsonl file"})"));
  EXPECT_EQ(parsed["unread_files"], 24);
  EXPECT_EQ(parsed["skipped_rows"], 3);
}

TEST(CollectionJsonTest, CountsTheIndexAmongTheBytesOfTheHost) {
  v1::Collection films = Films();
  films.mutable_bytes()->set_users(500);
  films.mutable_bytes()->set_index(2'000);
  films.mutable_bytes()->set_device(30'000);
  EXPECT_EQ(json::parse(JsonLine(CollectionJson(films)))["bytes"],
            json::parse(R"({"vectors":7680000,"payload":1048576,"users":500,"index":2000,
                            "host":8731076,"device":30000})"));
}

TEST(CollectionJsonTest, ListsCollectionsUnderOneKey) {
  v1::ListCollectionsResponse listed;
  EXPECT_EQ(json::parse(CollectionsJson(listed))["collections"], json::array());
  *listed.add_collections() = Films();
  EXPECT_EQ(json::parse(CollectionsJson(listed))["collections"][0]["name"], "films");
}

TEST(CollectionJsonTest, ShowsTheBackendWithItsDeviceMemory) {
  v1::ListCollectionsResponse listed;
  listed.mutable_backend()->set_kind(v1::BACKEND_KIND_GPU);
  v1::DeviceMemory& memory = *listed.mutable_backend()->add_device_memory();
  memory.set_kind("workspace");
  memory.set_bytes(7);
  memory.set_peak_bytes(9);
  const json backend = json::parse(CollectionsJson(listed))["backend"];
  EXPECT_EQ(backend["kind"], "gpu");
  EXPECT_EQ(backend["device_memory"],
            json::parse(R"([{"kind":"workspace","bytes":7,"peak_bytes":9}])"));
}

TEST(CollectionJsonTest, HasTheProgressOfAChange) {
  v1::Collection films = Films();
  films.mutable_progress()->set_stage(v1::ChangeProgress::STAGE_INDEXING);
  films.mutable_progress()->set_share(0.5);
  EXPECT_EQ(
      json::parse(JsonLine(CollectionJson(films)))["progress"],
      json::parse(R"({"stage":"indexing","file":"","share":0.5,"bytes_read":0,"bytes_total":0})"));
}

TEST(CollectionJsonTest, HasNoTimeBeforeTheFirstLoad) {
  EXPECT_TRUE(json::parse(JsonLine(CollectionJson(v1::Collection())))["loaded_at"].is_null());
}

v1::DescribeFieldsResponse FilmFields() {
  v1::DescribeFieldsResponse described;
  described.set_rows(5'000);
  described.set_snapshot_id("3f9a12c4d5e6f708192a3b4c5d6e7f80");
  described.set_snapshot_version(2);
  v1::FieldDescription& genres = *described.add_fields();
  genres.mutable_field()->set_name("genres");
  genres.mutable_field()->set_type(v1::FIELD_TYPE_KEYWORD_LIST);
  genres.mutable_field()->set_rows(4'984);
  genres.set_distinct_values(42);
  genres.set_bytes(40'960);
  v1::ValueCount& drama = *genres.add_values();
  drama.mutable_value()->set_string_value("Drama");
  drama.set_rows(1'850);
  v1::ValueCount& comedy = *genres.add_values();
  comedy.mutable_value()->set_string_value("Comedy");
  comedy.set_rows(1'409);
  v1::FieldDescription& year = *described.add_fields();
  year.mutable_field()->set_name("year");
  year.mutable_field()->set_type(v1::FIELD_TYPE_INTEGER);
  year.mutable_field()->set_rows(5'000);
  year.set_distinct_values(121);
  year.mutable_least()->set_int_value(1902);
  year.mutable_greatest()->set_int_value(2023);
  year.set_bytes(61'440);
  return described;
}

TEST(FieldsCommandTest, PrintsOneLinePerField) {
  EXPECT_EQ(
      FieldsTable(FilmFields(), Terminal{}),
      "field   type               rows  different  most common, or range            memory\n"
      "genres  list of keywords  4,984         42  Drama (1,850), Comedy (1,409)  40.0 KiB\n"
      "year    integer           5,000        121  1902 to 2023                   60.0 KiB\n");
}

TEST(FieldsCommandTest, LeavesOutTheMemoryOnANarrowTerminal) {
  Terminal terminal;
  terminal.width = 80;
  EXPECT_THAT(FieldsTable(FilmFields(), terminal), testing::HasSubstr("memory"));
  terminal.width = 60;
  EXPECT_EQ(FieldsTable(FilmFields(), terminal),
            "field   type               rows  different  most common, or…\n"
            "genres  list of keywords  4,984         42  Drama (1,850),…\n"
            "year    integer           5,000        121  1902 to 2023\n");
}

TEST(FieldsCommandTest, ListsTheValuesOfOneField) {
  EXPECT_EQ(FieldValuesTable(FilmFields().fields(0), Terminal{}),
            "genres: list of keywords, in 4,984 rows, 42 different values\n"
            "  value    rows\n"
            "  Drama   1,850\n"
            "  Comedy  1,409\n"
            "  and 40 more; --values shows more\n");
  EXPECT_EQ(FieldValuesTable(FilmFields().fields(1), Terminal{}),
            "year: integer, in 5,000 rows, 1902 to 2023\n");
}

TEST(FieldsCommandTest, CutsLongValuesAmongOthers) {
  v1::DescribeFieldsResponse described = FilmFields();
  described.mutable_fields(0)->mutable_values(0)->mutable_value()->set_string_value(
      std::string(50, 'x'));
  EXPECT_THAT(FieldsTable(described, Terminal{}),
              testing::HasSubstr("  " + std::string(39, 'x') + "… (1,850), Comedy (1,409)  "));
}

TEST(FieldsCommandTest, PrintsTheSameAsJson) {
  const auto fields = nlohmann::json::parse(FieldsJson("films", FilmFields()));
  EXPECT_EQ(fields["collection"], "films");
  EXPECT_EQ(fields["rows"], 5'000);
  EXPECT_EQ(fields["fields"][0]["values"][1]["value"], "Comedy");
  EXPECT_EQ(fields["fields"][0]["values"][1]["rows"], 1'409);
  EXPECT_EQ(fields["fields"][1]["type"], "integer");
  EXPECT_EQ(fields["snapshot_id"], "3f9a12c4d5e6f708192a3b4c5d6e7f80");
  EXPECT_EQ(fields["fields"][0]["least"], nullptr);
  EXPECT_EQ(fields["fields"][0]["type"], "list of keywords");
  EXPECT_EQ(fields["fields"][1]["least"], 1902);
  EXPECT_EQ(fields["fields"][1]["greatest"], 2023);
  EXPECT_EQ(fields["fields"][1]["distinct_values"], 121);
}

TEST(FieldsCommandTest, PrintsNumbersAsNumbersAndTimesAsText) {
  v1::DescribeFieldsResponse described = FilmFields();
  v1::FieldDescription& year = *described.mutable_fields(1);
  const auto least = [&] {
    return nlohmann::json::parse(FieldsJson("films", described))["fields"][1]["least"].dump();
  };
  year.mutable_least()->set_int_value(9'007'199'254'740'993);
  EXPECT_EQ(least(), "9007199254740993");
  year.mutable_least()->set_double_value(-0.5);
  EXPECT_EQ(least(), "-0.5");
  year.mutable_least()->set_string_value("2024-05-31T12:00:00Z");
  EXPECT_EQ(least(), R"("2024-05-31T12:00:00Z")");
}

TEST(FieldsCommandTest, OffersAFilterThatManyRowsPass) {
  v1::DescribeFieldsResponse described = FilmFields();
  EXPECT_EQ(FilterExample(described), "genres:\"Drama\"");
  described.mutable_fields(0)->mutable_field()->set_name("main genre");
  EXPECT_EQ(FilterExample(described), "\"main genre\":\"Drama\"");
  described.mutable_fields(0)->mutable_values(0)->mutable_value()->set_string_value("Rock'n'Roll");
  EXPECT_EQ(FilterExample(described), "\"main genre\":\"Comedy\"");
  described.mutable_fields(0)->mutable_values(1)->mutable_value()->set_string_value(
      std::string(41, 'x'));
  EXPECT_EQ(FilterExample(described), "");
}

}  // namespace
}  // namespace simile::cli

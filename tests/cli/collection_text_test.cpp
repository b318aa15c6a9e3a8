#include "cli/collection_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

v1::Collection Films() {
  v1::Collection films;
  films.set_name("films");
  films.set_state(v1::Collection::SERVING);
  films.set_snapshot_version(2);
  films.mutable_loaded_at()->set_seconds(1'700'000'000);
  films.set_rows(5'000);
  films.set_dim(384);
  films.set_metric(v1::Collection::COSINE);
  films.set_users(500);
  films.set_interactions(2'500);
  films.mutable_bytes()->set_vectors(7'680'000);
  films.mutable_bytes()->set_payload(1 << 20);
  films.mutable_backend()->set_name("cpu");
  films.mutable_backend()->set_reason("no NVIDIA driver");
  v1::Field& title = *films.add_fields();
  title.set_name("title");
  title.set_type("string");
  title.set_rows(4'999);
  films.add_lookup_fields("title");
  films.set_index_built(1);
  films.add_notes("500 user vectors were normalized");
  return films;
}

TEST(CollectionTextTest, PrintsOneLinePerCollection) {
  v1::Collection books;
  books.set_name("books");
  books.set_state(v1::Collection::LOADING);
  books.set_progress(0.4F);
  EXPECT_EQ(CollectionTable({books, Films()}, Terminal{}),
            "collection  state         rows x dim  metric  users   memory  snapshot  backend\n"
            "books       loading 40%        0 x 0              0      0 B         0\n"
            "films       serving      5,000 x 384  cosine    500  8.3 MiB         2  "
            "cpu: no NVIDIA driver\n");
}

TEST(CollectionTextTest, ShowsGpuMemoryWhenACollectionHasSome) {
  v1::Collection films = Films();
  films.mutable_bytes()->set_device(3 << 20);
  EXPECT_EQ(CollectionTable({films}, Terminal{}),
            "collection  state     rows x dim  metric  users   memory  on the GPU  snapshot  "
            "backend\n"
            "films       serving  5,000 x 384  cosine    500  8.3 MiB     3.0 MiB         2  "
            "cpu: no NVIDIA driver\n");
}

TEST(CollectionTextTest, ShowsGpuMemoryByPurpose) {
  v1::Backend backend;
  EXPECT_EQ(DeviceMemoryTable(backend, Terminal{}), "");
  v1::DeviceMemory& memory = *backend.add_device_memory();
  memory.set_kind("rows-fp16");
  memory.set_bytes(2 << 20);
  memory.set_peak_bytes(4 << 20);
  EXPECT_EQ(DeviceMemoryTable(backend, Terminal{}),
            "GPU memory      now     peak\n"
            "rows-fp16   2.0 MiB  4.0 MiB\n");
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
  EXPECT_THAT(details, HasSubstr("title  string  4,999\n"));
  EXPECT_THAT(details, HasSubstr("note: 500 user vectors were normalized\n"));
}

TEST(CollectionTextTest, DescribesACollectionInOneLine) {
  EXPECT_EQ(CollectionLine(Films()),
            "films: 5,000 rows x 384 (cosine), 500 users, 8.3 MiB, snapshot 2");
}

TEST(CollectionJsonTest, HasTheProtoFieldsByName) {
  const json films = json::parse(CollectionJson(Films()));
  EXPECT_EQ(films["state"], "serving");
  EXPECT_EQ(films["metric"], "cosine");
  EXPECT_EQ(films["loaded_at"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(films["bytes"]["vectors"], 7'680'000);
  EXPECT_EQ(films["fields"], json::parse(R"([{"name":"title","type":"string","rows":4999}])"));
  EXPECT_EQ(films["backend"]["reason"], "no NVIDIA driver");
  EXPECT_EQ(films["notes"].size(), 1U);
}

TEST(CollectionJsonTest, ListsCollectionsUnderOneKey) {
  v1::ListCollectionsResponse listed;
  EXPECT_EQ(json::parse(CollectionsJson(listed))["collections"], json::array());
  *listed.add_collections() = Films();
  EXPECT_EQ(json::parse(CollectionsJson(listed))["collections"][0]["name"], "films");
}

TEST(CollectionJsonTest, ShowsTheBackendWithItsDeviceMemory) {
  v1::ListCollectionsResponse listed;
  listed.mutable_backend()->set_name("gpu");
  v1::DeviceMemory& memory = *listed.mutable_backend()->add_device_memory();
  memory.set_kind("workspace");
  memory.set_bytes(7);
  memory.set_peak_bytes(9);
  const json backend = json::parse(CollectionsJson(listed))["backend"];
  EXPECT_EQ(backend["name"], "gpu");
  EXPECT_EQ(backend["device_memory"],
            json::parse(R"([{"kind":"workspace","bytes":7,"peak_bytes":9}])"));
}

TEST(CollectionJsonTest, HasNoTimeBeforeTheFirstLoad) {
  EXPECT_TRUE(json::parse(CollectionJson(v1::Collection()))["loaded_at"].is_null());
}

}  // namespace
}  // namespace simile::cli

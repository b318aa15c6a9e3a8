// Filters that callers saved keep their meaning although a cell of the new files is odd: after a
// reload, at a first load and after a start, by RPC, by SIGHUP and by the program's commands.
#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/npy_file.h"
#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/server_process.h"

namespace simile::integration {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Ids = std::set<std::string>;

constexpr int kRows = 100;
constexpr int kOddRow = 57;

// A field, a filter on it that some rows pass, and values that do not fit its type, as JSON.
struct TypedField {
  std::string name;
  std::string type;  // as notes name it
  std::string filter;
  std::vector<std::string> odd;
};

const std::vector<TypedField>& Fields() {
  static const std::vector<TypedField> fields = {
      {"price", "integer", "price < 5", {R"("N/A")", R"("")", "10.5", "true"}},
      {"weight", "number", "weight < 5.25", {R"("N/A")", "[1]"}},
      {"stock", "boolean", "stock = true", {R"("yes")", "1"}},
      {"added", "time", "added >= \"2024-05-01\"", {R"("")", R"("soon")", "20240501"}},
      {"tags", "list of keywords", "tags = a1", {"7", R"(["a1", 2])", R"({"a1": 1})"}},
      {"codes", "list of integers", "codes:1", {"\"1\"", "[1.5]", R"([1, "1"])", "[true]"}},
      {"sizes", "list of numbers", "sizes < 2", {"\"1\"", "[true]", "[null]"}},
      {"marks", "list of booleans", "marks != true", {"1", "[0]", R"(["true"])"}},
      {"name", "keyword", "name IN [n1, n2]", {"1", R"(["n1"])", "false"}}};
  return fields;
}

// The value of a field in a row, as JSON.
std::string FormatValue(const std::string& field, int row) {
  if (field == "price") return fmt::format("{}", row % 10);
  if (field == "weight") return fmt::format("{}.5", row % 10);
  if (field == "stock") return row % 2 == 1 ? "true" : "false";
  if (field == "added") return fmt::format("\"2024-0{}-10T00:00:00Z\"", 1 + row % 9);
  if (field == "tags") return fmt::format(R"(["a{}", "b"])", row % 3);
  if (field == "codes") return row % 4 == 0 ? "[]" : fmt::format("[{}, 7.0]", row % 3);
  if (field == "sizes") return fmt::format("[{}.5, 9]", row % 5);
  if (field == "marks") return row % 2 == 1 ? "[false, true]" : "[false]";
  return fmt::format("\"n{}\"", row % 7);
}

// Writes the collection.
//   odd_field  whose value in kOddRow is `odd`; empty for none
//   tag        of every id's payload, so that contents differ
void WriteFolder(const std::filesystem::path& folder, const std::string& odd_field,
                 const std::string& odd, const std::string& tag) {
  std::filesystem::create_directories(folder);
  std::vector<float> vectors;
  std::ofstream payload(folder / "metadata.jsonl");
  for (int row = 0; row < kRows; ++row) {
    vectors.insert(vectors.end(), {1.0F, static_cast<float>(row), static_cast<float>(row % 11)});
    payload << fmt::format(R"({{"id": "i{}", "edition": "{}")", row, tag);
    for (const TypedField& field : Fields()) {
      const bool is_odd = field.name == odd_field && row == kOddRow;
      payload << fmt::format(R"(, "{}": {})", field.name,
                             is_odd ? odd : FormatValue(field.name, row));
    }
    payload << "}\n";
  }
  std::ofstream(folder / "content_vectors.npy", std::ios::binary) << NpyFile(vectors, 3);
}

class FieldTypesTest : public testing::Test {
 protected:
  FieldTypesTest() {
    WriteFolder(root_.path() / "v1", "", "", "1");
    server_ = std::make_unique<FilmsServer>([this](app::Config& config) {
      config.changes_allowed = true;
      config.data_root = root_.path();
    });
    client_ = std::make_unique<Client>(server_->NewClient());
  }

  v1::Collection Load(const std::string& name, const std::string& folder) const {
    ChangeAnswer answer;
    const Outcome outcome = client_->Load(name, folder, answer);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return answer.collection;
  }
  Outcome Reload(const std::string& folder, bool allow_shape_change, ChangeAnswer& answer) const {
    v1::ReloadCollectionRequest request;
    request.set_collection("c");
    request.set_folder(folder);
    request.set_allow_shape_change(allow_shape_change);
    return client_->Reload(request, answer);
  }
  // The ids that pass.
  Ids Passing(const std::string& collection, const std::string& filter) const {
    v1::SearchRequest request;
    request.set_collection(collection);
    request.mutable_options()->set_k(kRows);
    request.mutable_options()->set_filter(filter);
    for (const float number : {1.0F, 2.0F, 3.0F}) {
      if (request.queries().empty()) request.add_queries();
      request.mutable_queries(0)->mutable_vector()->add_values(number);
    }
    v1::SearchResponse response;
    const Outcome outcome = client_->Search(request, response);
    EXPECT_TRUE(outcome.ok()) << filter << ": " << testing::PrintToString(outcome);
    Ids ids;
    if (!outcome.ok()) return ids;
    for (const v1::Hit& hit : response.results(0).hits()) ids.insert(hit.id());
    return ids;
  }
  // The rows that pass each field's filter, its NOT, and has().
  std::vector<Ids> AllPassing(const std::string& collection) const {
    std::vector<Ids> all;
    for (const TypedField& field : Fields()) {
      all.push_back(Passing(collection, field.filter));
      all.push_back(Passing(collection, "NOT (" + field.filter + ")"));
      all.push_back(Passing(collection, "has(" + field.name + ")"));
    }
    return all;
  }
  // The same without the odd row for one field.
  static std::vector<Ids> Without(std::vector<Ids> all, std::size_t field) {
    for (std::size_t i = 3 * field; i < 3 * field + 3; ++i)
      all[i].erase(fmt::format("i{}", kOddRow));
    return all;
  }
  static const v1::PayloadField& FindField(const v1::Collection& collection,
                                           const std::string& name) {
    for (const v1::PayloadField& field : collection.fields()) {
      if (field.name() == name) return field;
    }
    ADD_FAILURE() << "no field " << name;
    return v1::PayloadField::default_instance();
  }
  // Expects that the collection reports the odd cell.
  static void ExpectNamed(const v1::Collection& collection, const TypedField& field) {
    EXPECT_EQ(FindField(collection, field.name).rows(), kRows - 1U);
    EXPECT_EQ(FindField(collection, field.name).unfit_rows(), 1U);
    EXPECT_EQ(FindField(collection, field.name).first_unfit_row(), std::uint64_t{kOddRow});
    EXPECT_THAT(collection.notes(),
                Contains(testing::AllOf(
                    HasSubstr(fmt::format("\"{}\" is of type {}; 1 of its 100 values does not fit",
                                          field.name, field.type)),
                    HasSubstr(fmt::format("in row {}", kOddRow)))));
  }

  const ScratchFolder root_;
  std::unique_ptr<FilmsServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(FieldTypesTest, StayThroughAReloadWithOneOddCell) {
  Load("c", "v1");
  const std::vector<Ids> before = AllPassing("c");
  int edition = 2;
  for (std::size_t i = 0; i < Fields().size(); ++i) {
    const TypedField& field = Fields()[i];
    for (const std::string& odd : field.odd) {
      const std::string folder = fmt::format("v{}", edition++);
      WriteFolder(root_.path() / folder, field.name, odd, folder);
      ChangeAnswer answer;
      const Outcome outcome = Reload(folder, false, answer);
      ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
      EXPECT_EQ(AllPassing("c"), Without(before, i)) << field.name << " " << odd;
      ExpectNamed(answer.collection, field);
      const std::string metric =
          fmt::format("simile_unfit_values{{collection=\"c\",field=\"{}\"}}", field.name);
      EXPECT_EQ(MetricValue(ScrapeMetrics(*server_->app().metrics_port()), metric), 1) << metric;
    }
  }
}

TEST_F(FieldTypesTest, FollowMostValuesAtAFirstLoadWithOneOddCell) {
  Load("c", "v1");
  const std::vector<Ids> before = AllPassing("c");
  for (std::size_t i = 0; i < Fields().size(); ++i) {
    const TypedField& field = Fields()[i];
    for (const std::string& odd : field.odd) {
      if (odd == "10.5" || odd == "[1.5]") continue;  // one makes all of integers one of numbers
      WriteFolder(root_.path() / "first", field.name, odd, "first");
      ExpectNamed(Load("first", "first"), field);
      EXPECT_EQ(AllPassing("first"), Without(before, i)) << field.name << " " << odd;
      ASSERT_TRUE(client_->Unload("first").ok());
    }
  }
}

TEST_F(FieldTypesTest, ChangeOnlyWhenThatIsAllowedAndComeBackWithARollback) {
  Load("c", "v1");
  const std::vector<Ids> before = AllPassing("c");
  std::filesystem::create_directories(root_.path() / "text");
  WriteFolder(root_.path() / "text", "", "", "text");
  // Every price is a text.
  std::ifstream file(root_.path() / "text" / "metadata.jsonl");
  std::string changed;
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find("\"price\": ") + 9;
    changed += line.substr(0, at) + "\"" + line[at] + " EUR\"" + line.substr(at + 1) + "\n";
  }
  std::ofstream(root_.path() / "text" / "metadata.jsonl") << changed;
  ChangeAnswer answer;
  const Outcome refused = Reload("text", false, answer);
  EXPECT_EQ(refused.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.reason, "SHAPE_CHANGE");
  EXPECT_EQ(refused.field, "allow_shape_change");
  EXPECT_THAT(refused.message,
              HasSubstr("\"price\" was last served as integer, and 100 of its 100 values "
                        "do not fit, the first is \"0 EUR\" in row 0"));
  EXPECT_EQ(AllPassing("c"), before);

  const Outcome allowed = Reload("text", true, answer);
  ASSERT_TRUE(allowed.ok()) << testing::PrintToString(allowed);
  EXPECT_EQ(FindField(answer.collection, "price").type(), v1::FIELD_TYPE_KEYWORD);
  EXPECT_THAT(answer.collection.notes(),
              Contains(HasSubstr("\"price\" is of type keyword now; it was integer")));
  EXPECT_THAT(Passing("c", "price = \"4 EUR\""), Not(IsEmpty()));

  ASSERT_TRUE(client_->Rollback("c", answer).ok());
  EXPECT_EQ(AllPassing("c"), before);
}

TEST_F(FieldTypesTest, AreThoseOfItsOwnTimeInAGenerationThatARollbackReadsAgain) {
  // Half of the values do not fit the kept type: another load would guess another one.
  std::string lines;
  for (int row = 0; row < kRows; ++row) {
    lines += fmt::format("{{\"id\": \"i{}\", \"price\": {}}}\n", row,
                         row % 2 == 0 ? std::to_string(row) : "\"N/A\"");
  }
  Load("c", "v1");
  WriteFolder(root_.path() / "half", "", "", "half");
  std::ofstream(root_.path() / "half" / "metadata.jsonl") << lines;
  WriteFolder(root_.path() / "next", "", "", "next");
  ChangeAnswer answer;
  ASSERT_TRUE(Reload("half", false, answer).ok());
  const Ids before = Passing("c", "price < 50");
  EXPECT_EQ(before.size(), 25U);
  ASSERT_TRUE(Reload("next", false, answer).ok());
  ASSERT_TRUE(client_->Rollback("c", answer).ok());
  EXPECT_EQ(FindField(answer.collection, "price").type(), v1::FIELD_TYPE_INTEGER);
  EXPECT_EQ(Passing("c", "price < 50"), before);
}

TEST_F(FieldTypesTest, KeepTheTypeOfAFieldThatIsMissingFromOneGeneration) {
  Load("c", "v1");
  std::filesystem::create_directories(root_.path() / "none");
  WriteFolder(root_.path() / "none", "", "", "none");
  std::string lines;
  for (int row = 0; row < kRows; ++row) lines += fmt::format("{{\"id\": \"i{}\"}}\n", row);
  std::ofstream(root_.path() / "none" / "metadata.jsonl") << lines;
  WriteFolder(root_.path() / "odd", "price", "\"N/A\"", "odd");
  ChangeAnswer answer;
  ASSERT_TRUE(Reload("none", false, answer).ok());
  ASSERT_TRUE(Reload("odd", false, answer).ok());
  ExpectNamed(answer.collection, Fields().front());
}

TEST(FieldTypesProgramTest, StayThroughAReloadBySighupWhichNamesTheOddCell) {
  const ScratchFolder scratch;
  const std::filesystem::path folder = scratch.path() / "c";
  WriteFolder(folder, "", "", "1");
  ServerProcess server({"--collection", "c=" + folder.string(), "--port", "0", "--no-metrics"});
  const Client client(server.AwaitListening());
  const std::filesystem::path next = scratch.path() / "next";
  WriteFolder(next, "price", "\"N/A\"", "2");
  std::filesystem::rename(next / "metadata.jsonl", folder / "metadata.jsonl");
  server.Signal(SIGHUP);
  ASSERT_TRUE(
      server.AwaitOutput("reloaded=c unchanged=0 failed=\"\" unfit=\"c: price (integer): 1 "
                         "value, the first in row 57\" overlap=\"c: 100.0 %\"\n"))
      << server.output();
  v1::GetCollectionResponse response;
  ASSERT_TRUE(client.Get("c", response).ok());
  EXPECT_THAT(response.collection().notes(), Contains(HasSubstr("\"N/A\" in row 57")));
}

}  // namespace
}  // namespace simile::integration

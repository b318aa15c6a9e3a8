// Checks what docs/filters.md and docs/access.md say of filters against a server.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <absl/strings/strip.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "files/document.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"
#include "integration/access_server.h"

namespace simile::integration {
namespace {

using ::nlohmann::json;
using ::testing::ElementsAreArray;
using ::testing::UnorderedElementsAreArray;

constexpr std::size_t kDim = 8;

// The items of the collection, by id.
const char* const kItems[] = {
    R"({"id": "solaris", "title": "Solaris", "year": 1972, "genres": ["Sci-Fi", "Drama"], "rating": 8.1, "country": "DE", "tenant": "acme"})",
    R"({"id": "star-wars-1977", "title": "Star Wars", "year": 1977, "genres": ["Sci-Fi"], "rating": 8.6, "country": "SE", "tenant": "acme"})",
    R"({"id": "star-wars-v", "title": "STAR WARS V", "year": 1980, "genres": ["sci-fi"], "rating": 8.7, "country": "SWEDEN", "tenant": "ACME"})",
    R"({"id": "eighties", "title": "Blue", "year": 1989, "genres": ["Drama"], "rating": 4.5, "country": "DK", "tenant": "beta"})",
    R"({"id": "ninety", "title": "Amélie", "year": 1990, "genres": ["Sci-Fi", "War"], "rating": 4.5, "country": "DE", "tenant": "beta", "category_ids": [3, 9], "meta": {"lang": "en", "year": 1990}})",
    R"({"id": "ninety-one", "title": "Heat", "year": 1991, "genres": ["Comedy", "Crime"], "rating": 7.5, "available": true, "price": 5.5, "sale": false, "country": "de", "category_ids": [5, 7], "meta": {"lang": "en", "year": 1989}})",
    R"({"id": "in-may", "title": "heat", "year": 2001, "genres": ["Horror"], "available": true, "price": 12.5, "sale": true, "added": "2024-05-31T23:59:59Z", "meta": {"lang": "de", "year": 2001}, "category_ids": [5]})",
    R"({"id": "in-june", "title": "Dear", "year": 2002, "genres": ["Crime"], "available": true, "price": 12.5, "sale": false, "added": "2024-06-01T00:00:00Z"})",
    R"({"id": "sold", "title": "Cheap", "year": 2003, "genres": ["Comedy"], "available": false, "price": 1.5, "sale": true, "added": "2024-04-30T23:00:00Z"})",
    R"({"id": "bare", "title": "Bare"})",
};
const std::vector<std::string> kNames = {
    "solaris",    "star-wars-1977", "star-wars-v", "eighties", "ninety",
    "ninety-one", "in-may",         "in-june",     "sold",     "bare"};

// The filters of the document, and the items that pass by what it says of each.
const std::map<std::string, std::vector<std::string>> kPassing = {
    {R"(genres:"Sci-Fi" AND year >= 1990 AND NOT (title = "Solaris" OR rating < 5))", {}},
    {"year = 1990", {"ninety"}},
    {"year != 1990",
     {"solaris", "star-wars-1977", "star-wars-v", "eighties", "ninety-one", "in-may", "in-june",
      "sold"}},
    {"year < 1990", {"solaris", "star-wars-1977", "star-wars-v", "eighties"}},
    {"year <= 1990", {"solaris", "star-wars-1977", "star-wars-v", "eighties", "ninety"}},
    {"year > 1990", {"ninety-one", "in-may", "in-june", "sold"}},
    {"year >= 1990", {"ninety", "ninety-one", "in-may", "in-june", "sold"}},
    {R"(genres:"Sci-Fi")", {"solaris", "star-wars-1977", "star-wars-v", "ninety"}},
    {"folded(title) = amelie", {"ninety"}},
    {"folded(title) != amelie",
     {"solaris", "star-wars-1977", "star-wars-v", "eighties", "ninety-one", "in-may", "in-june",
      "sold", "bare"}},
    {"folded(title) IN [amelie]", {"ninety"}},
    {"year IN [1990, 1991]", {"ninety", "ninety-one"}},
    {"year NOT IN [1990, 1991]",
     {"solaris", "star-wars-1977", "star-wars-v", "eighties", "in-may", "in-june", "sold", "bare"}},
    {"has(year)",
     {"solaris", "star-wars-1977", "star-wars-v", "eighties", "ninety", "ninety-one", "in-may",
      "in-june", "sold"}},
    {"year:*",
     {"solaris", "star-wars-1977", "star-wars-v", "eighties", "ninety", "ninety-one", "in-may",
      "in-june", "sold"}},
    {"year >= 1980 AND year < 1990", {"star-wars-v", "eighties"}},
    {"genres:Comedy AND genres:Crime", {"ninety-one"}},
    {"genres IN [Comedy, Crime]", {"ninety-one", "in-june", "sold"}},
    {"NOT genres:Horror",
     {"solaris", "star-wars-1977", "star-wars-v", "eighties", "ninety", "ninety-one", "in-june",
      "sold", "bare"}},
    {"has(genres) AND NOT genres:Horror",
     {"solaris", "star-wars-1977", "star-wars-v", "eighties", "ninety", "ninety-one", "in-june",
      "sold"}},
    {"category_ids IN [3, 5] AND NOT category_ids = 7", {"ninety", "in-may"}},
    {"meta.lang = en AND meta.year >= 1990", {"ninety"}},
    {R"(title:"star wars" AND id != "star-wars-1977")", {"star-wars-v"}},
    {R"(folded(title) IN ["heat", "solaris"])", {"solaris", "ninety-one", "in-may"}},
    {"available = true AND (price < 10 OR sale = true)", {"ninety-one", "in-may"}},
    {R"(added >= "2024-05-01" AND added < "2024-06-01")", {"in-may"}},
};

// The lines of a section of a document: from its heading to the next one.
std::vector<std::string> FindSection(const std::string& document, const std::string& heading) {
  std::vector<std::string> lines;
  bool inside = false;
  for (const std::string& line : LinesOf(document)) {
    if (line.starts_with("## ")) inside = line == "## " + heading;
    if (inside) lines.emplace_back(line);
  }
  return lines;
}

// The code in the first column of each row of the section's table, as a reader sees it.
std::vector<std::vector<std::string>> FirstColumn(const std::string& document,
                                                  const std::string& heading) {
  static const std::regex code("`([^`]+)`");
  std::vector<std::vector<std::string>> rows;
  for (std::string line : FindSection(document, heading)) {
    if (!line.starts_with("| ")) continue;
    const std::size_t end = std::regex_replace(line, std::regex(R"(\\\|)"), "  ").find(" | ");
    line = std::regex_replace(line.substr(0, end), std::regex(R"(\\\|)"), "|");
    std::vector<std::string> codes;
    for (std::sregex_iterator at(line.begin(), line.end(), code); at != std::sregex_iterator();
         ++at) {
      codes.push_back((*at)[1]);
    }
    if (!codes.empty()) rows.push_back(codes);
  }
  return rows;
}

// An operator that follows `left op value` in its row replaces the operator of that condition.
std::string WithOperator(const std::string& first, const std::string& op) {
  const std::size_t value = first.rfind(' ') + 1;
  const std::size_t left = first.rfind(' ', value - 2);
  const std::string operand = first.substr(value);
  return fmt::format("{} {} {}", first.substr(0, left), op,
                     op == "IN" ? fmt::format("[{}]", operand) : operand);
}

// The filters that the document says can be written.
std::vector<std::string> ListFilters(const std::string& document) {
  const std::string first = FencedBlocks(document).at(0);
  std::vector<std::string> filters = {std::string(absl::StripSuffix(first, "\n"))};
  for (const char* const heading : {"Conditions", "Examples"}) {
    for (const std::vector<std::string>& codes : FirstColumn(document, heading)) {
      for (const std::string& code : codes) {
        const bool is_operator = code.find_first_not_of("<>=!IN") == std::string::npos;
        filters.push_back(is_operator ? WithOperator(codes.front(), code) : code);
      }
    }
  }
  return filters;
}

// A filter, and the part of it that the document says is refused.
std::string FilterWith(const std::string& refused) {
  if (refused == "!") return "!has(year)";
  if (refused == "&&" || refused == "||") return fmt::format("year = 1990 {} year = 1991", refused);
  if (refused.starts_with("IN ")) return "genres " + refused;
  if (refused.starts_with("[")) return "genres IN " + refused;
  if (refused.starts_with("“")) return "title = " + refused;
  if (refused.find_first_of(" x") == std::string::npos && refused != "available") {
    return fmt::format("year {} 1990", refused);
  }
  return refused;
}

class FilterDocumentTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string metadata;
    std::vector<float> vectors;
    for (std::size_t row = 0; row < std::size(kItems); ++row) {
      metadata += std::string(kItems[row]) + '\n';
      for (std::size_t i = 0; i < kDim; ++i) vectors.push_back(i == row % kDim ? 2.0F : 1.0F);
    }
    folder_ = std::make_unique<ScratchFolder>();
    folder_->Write("films/metadata.jsonl", metadata);
    folder_->Write("films/vectors.npy", NpyFile(vectors, kDim));
    folder_->Write("films/user_ids.json", R"(["de-1", "se-1", "acme-1", "ann", "bob", "1024"])");
    folder_->Write("films/preference_vectors.npy",
                   NpyFile(std::vector<float>(vectors.begin(), vectors.begin() + 6 * kDim), kDim));
    server_ = std::make_unique<AccessServer>(
        Principals(), AccessServer::Encryption::kNone, [](app::Config& config) {
          config.collections = {{"films", folder_->path() / "films"}};
        });
  }
  static void TearDownTestSuite() {
    server_.reset();
    folder_.reset();
  }

  // The principals: "anyone", and the examples of docs/access.md with a token that the test knows.
  static std::vector<std::string> Principals() {
    std::vector<std::string> principals = {AccessServer::Entry("anyone", "read")};
    for (const std::string& block : FencedBlocks(TextOfSource("docs/access.md"), "json")) {
      const json file = json::parse(block);
      for (json principal : file.at("principals")) {
        const std::string name = principal.at("name");
        if (principal.contains("token_sha256")) {
          principal["token_sha256"] =
              json::parse(AccessServer::Entry(name, "read")).at("token_sha256");
        }
        principals.push_back(principal.dump());
      }
    }
    return principals;
  }

  static Outcome Search(const std::string& name, const std::string& filter,
                        std::vector<std::string>& ids) {
    const Client client = server_->NewClient(name);
    v1::SearchRequest request;
    request.set_collection("films");
    v1::FloatVector& vector = *request.add_queries()->mutable_vector();
    for (std::size_t i = 0; i < kDim; ++i) vector.add_values(1);
    request.mutable_options()->set_k(100);
    request.mutable_options()->set_filter(filter);
    v1::SearchResponse response;
    const Outcome outcome = client.Search(request, response);
    ids.clear();
    if (outcome.ok()) {
      for (const v1::Hit& hit : response.results(0).hits()) ids.push_back(hit.id());
    }
    return outcome;
  }

  // The users that exist for the caller.
  static std::vector<std::string> ListUsers(const std::string& name) {
    const Client client = server_->NewClient(name);
    std::vector<std::string> users;
    for (const char* const user : {"de-1", "se-1", "acme-1", "ann", "bob", "1024"}) {
      v1::RecommendRequest request;
      request.set_collection("films");
      request.add_user_ids(user);
      v1::RecommendResponse response;
      const Outcome outcome = client.Recommend(request, response);
      if (outcome.ok()) {
        users.emplace_back(user);
      } else {
        EXPECT_EQ(outcome.reason, "USER_NOT_FOUND");
      }
    }
    return users;
  }

  inline static std::unique_ptr<ScratchFolder> folder_;
  inline static std::unique_ptr<AccessServer> server_;
};

TEST_F(FilterDocumentTest, EachFilterPassesWhatTheDocumentSays) {
  const std::vector<std::string> written = ListFilters(TextOfSource("docs/filters.md"));
  for (const std::string& filter : written) {
    const auto expected = kPassing.find(filter);
    ASSERT_NE(expected, kPassing.end()) << filter << ": this test does not know what passes it";
    std::vector<std::string> ids;
    const Outcome outcome = Search("anyone", filter, ids);
    EXPECT_TRUE(outcome.ok()) << filter << testing::PrintToString(outcome);
    EXPECT_THAT(ids, UnorderedElementsAreArray(expected->second)) << filter;
  }
  for (const auto& [filter, passing] : kPassing) {
    EXPECT_THAT(written, testing::Contains(filter)) << "the document no longer has this filter";
  }
}

TEST_F(FilterDocumentTest, WhatTheDocumentSaysIsRefusedIsRefused) {
  std::size_t count = 0;
  for (const auto& codes : FirstColumn(TextOfSource("docs/filters.md"), "What is refused")) {
    for (const std::string& code : codes) {
      if (code == "NOT") continue;  // of the row on nesting, which parser_test has
      const std::string filter = FilterWith(code);
      std::vector<std::string> ids;
      const Outcome outcome = Search("anyone", filter, ids);
      EXPECT_EQ(outcome.reason, "INVALID_FILTER") << filter;
      EXPECT_THAT(outcome.message, testing::HasSubstr("filter, column ")) << filter;
      ++count;
    }
  }
  EXPECT_GT(count, 15U);
}

TEST_F(FilterDocumentTest, ErrorsReadAsTheDocumentShowsThem) {
  std::vector<std::string> messages;
  for (const char* const filter :
       {"a = 1 AND b = 2 OR c = 3", "year == 1990", "year BETWEEN 1990 AND 2000", "available"}) {
    std::vector<std::string> ids;
    const std::string message = Search("anyone", filter, ids).message;
    messages.push_back(message.substr(std::min(message.find("column "), message.size())));
  }
  const std::vector<std::string> blocks = FencedBlocks(TextOfSource("docs/filters.md"));
  EXPECT_THAT(messages, ElementsAreArray(LinesOf(blocks.back())));
}

TEST_F(FilterDocumentTest, TheCallersOfTheAccessDocumentGetTheirOwnRowsAndUsers) {
  struct Expected {
    std::string name;
    std::vector<std::string> ids;
    std::vector<std::string> users;
  };
  const std::vector<std::string> everyone = {"de-1", "se-1", "acme-1", "ann", "bob", "1024"};
  const Expected callers[] = {
      {"ranker", kNames, everyone},
      {"shop-de", {"solaris", "ninety"}, {"de-1"}},
      {"acme", {"solaris", "star-wars-1977"}, {"acme-1"}},
      {"beta", {"eighties", "ninety"}, {"ann", "bob", "1024"}},
      {"items-only", {"solaris", "star-wars-1977", "eighties", "ninety"}, {}},
  };
  for (const Expected& caller : callers) {
    std::vector<std::string> ids;
    const Outcome outcome = Search(caller.name, "", ids);
    EXPECT_TRUE(outcome.ok()) << caller.name << testing::PrintToString(outcome);
    EXPECT_THAT(ids, UnorderedElementsAreArray(caller.ids)) << caller.name;
    EXPECT_EQ(ListUsers(caller.name), caller.users) << caller.name;
  }
}

}  // namespace
}  // namespace simile::integration

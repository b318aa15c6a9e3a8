// How every command names collections, items and users, against a real server of two small
// collections whose ids hold commas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/live_server.h"
#include "cli/program_run.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

using Arguments = std::vector<std::string>;

class NamingTest : public testing::Test {
 protected:
  NamingTest() {
    for (const std::string folder : {"one", "two"}) {
      root_.Write(folder + "/content_vectors.npy",
                  NpyFile({1, 0, 0.8F, 0.6F, 0.6F, 0.8F, 0, 1}, 2));
      root_.Write(folder + "/metadata.jsonl", R"({"id": "a", "title": "A"})"
                                              "\n"
                                              R"({"id": "b", "title": "B"})"
                                              "\n"
                                              R"({"id": "a,b", "title": "A, B"})"
                                              "\n"
                                              R"({"id": "back\\slash", "title": "\\"})"
                                              "\n");
      root_.Write(folder + "/preference_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
      root_.Write(folder + "/user_ids.json", R"(["u", "u,v"])");
    }
    server_.emplace(root_.path() / "one", root_.path());
  }

  ProgramRun Run(const Arguments& arguments, const std::string& input = "") {
    return server_->Run(arguments, input);
  }

  json RunJson(Arguments arguments) {
    arguments.emplace_back("--json");
    const ProgramRun run = Run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return json::parse(run.printed, nullptr, false);
  }

  // The ids of the first result's hits.
  Arguments HitIds(const Arguments& arguments) {
    const json answer = RunJson(arguments);
    Arguments ids;
    for (const json& hit : answer["results"][0]["hits"]) ids.push_back(hit["id"]);
    return ids;
  }

  std::string folder(const std::string& name) const { return root_.path() / name; }

  const ScratchFolder root_;
  std::optional<LiveServer> server_;
};

TEST_F(NamingTest, EveryListFlagNamesIdsThatHoldCommas) {
  const json fetched = RunJson({"fetch", "--id", "a\\,b,back\\slash", "--id", "b"});
  ASSERT_EQ(fetched["items"].size(), 3U);
  EXPECT_EQ(fetched["items"][0]["id"], "a,b");
  EXPECT_EQ(fetched["items"][1]["id"], "back\\slash");
  EXPECT_EQ(fetched["items"][2]["id"], "b");

  EXPECT_THAT(HitIds({"similar", "--id", "a\\,b"}), UnorderedElementsAre("a", "b", "back\\slash"));
  EXPECT_THAT(HitIds({"similar", "--id", "a", "--exclude", "a\\,b"}),
              ElementsAre("b", "back\\slash"));
  EXPECT_THAT(HitIds({"similar", "--id", "a", "--exclude", "b,a\\,b"}), ElementsAre("back\\slash"));
  EXPECT_THAT(HitIds({"similar", "--id", "a", "--exclude", "b", "--exclude", "a\\,b"}),
              ElementsAre("back\\slash"));
  EXPECT_THAT(HitIds({"similar", "--like", "a\\,b,b"}), ElementsAre("a", "back\\slash"));
  EXPECT_THAT(HitIds({"similar", "--id", "a", "--unlike", "a\\,b"}), Not(testing::Contains("a,b")));

  const json users = RunJson({"recommend", "--user", "u\\,v,u"});
  EXPECT_EQ(users["results"][0]["query"]["user_id"], "u,v");
  EXPECT_EQ(users["results"][1]["query"]["user_id"], "u");
  EXPECT_THAT(HitIds({"recommend", "--user", "u", "--like", "a\\,b"}),
              Not(testing::Contains("a,b")));
  const ProgramRun several = Run({"recommend", "--user", "u", "--like", "a,b"});
  EXPECT_EQ(several.exit_code, 64);
  EXPECT_THAT(several.errors, HasSubstr("--like: takes one value; a comma inside it is written \\, "
                                        "as in 'a\\,b'"));
}

TEST_F(NamingTest, ALookUpSearchesEveryLookUpFieldUnlessOneIsNamed) {
  root_.Write("two/collection.json", R"({"lookup_fields": ["title", "by"]})");
  root_.Write("two/metadata.jsonl",
              "{\"id\": \"a\", \"title\": \"A\", \"by\": \"Ann\", \"year\": 1}\n"
              "{\"id\": \"b\", \"title\": \"Ann\", \"by\": \"Bob\", \"year\": 2}\n"
              "{\"id\": \"c\", \"title\": \"C\", \"by\": \"Cy\", \"year\": 3}\n"
              "{\"id\": \"d\", \"title\": \"D\", \"by\": \"Di\", \"year\": 4}\n");
  ASSERT_EQ(Run({"load", "two", "two"}).exit_code, 0);
  EXPECT_EQ(RunJson({"lookup", "two", "ann"})["match_count"], 2);
  EXPECT_EQ(RunJson({"lookup", "two", "ann", "--field", "by"})["matches"][0]["id"], "a");
  EXPECT_THAT(Run({"similar", "two", "Bob", "-k", "1"}).printed,
              testing::StartsWith("in two, like Ann (2), b\n"));
  EXPECT_THAT(Run({"similar", "two", "--title", "Ann", "--field", "by", "-k", "1"}).printed,
              testing::StartsWith("in two, like A (1), a\n"));
  EXPECT_EQ(Run({"similar", "two", "--title", "Zed"}).errors,
            "error: no title or by in two contains \"Zed\". Try fewer words, or name an item with "
            "--id.\n");
  root_.Write("two/collection.json", R"({"lookup_fields": ["title", "year"]})");
  EXPECT_EQ(
      Run({"reload", "two"}).errors,
      "error: collection.json: \"lookup_fields\" names \"year\", which is of type integer and "
      "holds no text to look up; name fields of texts, or of lists of texts\n");
}

TEST_F(NamingTest, EveryCommandTakesTheCollectionAsArgumentAndAsFlag) {
  ASSERT_EQ(Run({"load", "--collection", "two", "two"}).exit_code, 0);
  const std::vector<Arguments> commands{{"similar", "--id", "a"},
                                        {"search", "--vector", "-"},
                                        {"recommend", "--user", "u"},
                                        {"fetch", "--id", "a"},
                                        {"fields"},
                                        {"list"},
                                        {"verify", "--folder", folder("two")},
                                        {"reload"},
                                        {"health"}};
  for (const Arguments& command : commands) {
    const std::string input = command[0] == "search" ? "[1, 0]" : "";
    const auto run = [&](const Arguments& more) {
      Arguments arguments = command;
      arguments.insert(arguments.end(), more.begin(), more.end());
      return Run(arguments, input);
    };
    for (const Arguments& name : {Arguments{"two"}, Arguments{"--collection", "two"},
                                  Arguments{"two", "--collection", "two"}}) {
      const ProgramRun named = run(name);
      EXPECT_EQ(named.exit_code, 0) << command[0] << ": " << named.errors;
    }
    const ProgramRun both = run({"two", "--collection", "films"});
    EXPECT_EQ(both.exit_code, 64) << command[0];
    // These have an argument after the collection.
    const std::string wrong = command[0] == "similar"  ? "\"two\" and --id both name an item"
                              : command[0] == "fields" ? "films has no field \"two\""
                                                       : "two collections are named, \"films\" and "
                                                         "\"two\"";
    EXPECT_THAT(both.errors, HasSubstr(wrong));
    EXPECT_NE(run({"three"}).exit_code, 0) << command[0];
  }
  for (const Arguments& lookup :
       {Arguments{"lookup", "two", "a"}, Arguments{"lookup", "a", "--collection", "two"}}) {
    EXPECT_EQ(RunJson(lookup)["collection"], "two");
  }
  EXPECT_EQ(RunJson({"list", "--collection", "two"})["name"], "two");
  EXPECT_EQ(Run({"unload", "--collection", "two"}).exit_code, 0);
  EXPECT_EQ(RunJson({"lookup", "a"})["collection"], "films");
}

}  // namespace
}  // namespace simile::cli

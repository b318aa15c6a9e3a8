#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/program_run.h"
#include "files/document.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TokenCommandTest, MakesAnEntryOfItsFlags) {
  const json made = json::parse(RunProgram({"token", "--name", "shop de", "--collection",
                                            "films,books", "--expires", "2237-05-31", "--json"})
                                    .printed);
  const json& principal = made["principal"];
  EXPECT_EQ(principal["name"], "shop de");
  EXPECT_EQ(principal["role"], "read");
  EXPECT_EQ(principal["collections"], json::array({"films", "books"}));
  EXPECT_EQ(principal["expires"], "2237-05-31T00:00:00Z");
}

TEST(TokenCommandTest, RefusesWhatTheAccessFileWouldRefuse) {
  struct Mistake {
    std::vector<std::string> flags;
    std::string error;
  };
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"--name", "ranker "}, "--name: \"ranker \" begins or ends with a space"},
           {{"--name", "a\tb"}, "--name: \"a\\u0009b\" holds U+0009, a control character"},
           {{"--name", "x", "--collection", "a b"}, "--collection: \"a b\" is not a name"},
           {{"--name", "x", "--collection", "a,a"}, "--collection: \"a\" is given twice"},
           {{"--name", "x", "--expires", "2027-02-30"}, "--expires: \"2027-02-30\" is not a time"},
           {{"--name", "x", "--expires", "9999-12-31"},
            "--expires: \"9999-12-31\" is not between 1970 and 2262; leave it out"}}) {
    std::vector<std::string> arguments = {"token"};
    arguments.insert(arguments.end(), mistake.flags.begin(), mistake.flags.end());
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 64) << mistake.error;
    EXPECT_THAT(run.errors, StartsWith("error: " + mistake.error));
  }
}

TEST(TokenCommandTest, AddsTheEntryToAFile) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "access.json").string();
  const auto names = [&] {
    std::vector<std::string> found;
    const json read = json::parse(std::ifstream(file));
    for (const json& each : read["principals"]) {
      found.push_back(each["name"]);
    }
    return found;
  };
  const ProgramRun first = RunProgram({"token", "--name", "ann", "--add", file});
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_THAT(first.printed, StartsWith("simile_"));
  EXPECT_THAT(first.printed, HasSubstr(file + " holds its hash."));
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(RunProgram({"token", "--name", "bob", "--role", "write", "--add", file}).exit_code, 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"ann", "bob"}));
  // A further token of a caller that is there.
  const ProgramRun again = RunProgram({"token", "--name", "bob", "--add", file});
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.printed, HasSubstr("Earlier tokens of bob stay valid"));
  EXPECT_EQ(names().size(), 2U);
  EXPECT_THAT(again.printed, HasSubstr("\"role\": \"write\""));
  const json bob = json::parse(std::ifstream(file))["principals"][1];
  EXPECT_EQ(bob["role"], "write");
  EXPECT_EQ(bob["token_sha256"].size(), 2U);
  // What a server would not read, or other rights than are there, change nothing.
  const ProgramRun other = RunProgram({"token", "--name", "bob", "--role", "read", "--add", file});
  EXPECT_EQ(other.exit_code, 64);
  EXPECT_EQ(other.errors,
            "error: " + file +
                ": bob is there already, with its own role, collections and end; leave out --role, "
                "--collection and --expires to add a token to it\n");
  // A single hash as a text, and an access that has ended.
  const std::string hash = "15cc807e6aac32c8cef71cd57d850576b071dad345dff88ce63304c514ef5471";
  folder.Write("access.json",
               R"({"principals": [{"name": "ann", "role": "read", "token_sha256": ")" + hash +
                   R"("}, {"name": "old", "role": "read", "token_sha256": ")" +
                   "2436be340ad589d8e0049d64d17641f7d9798f15d6117d85015439a7e9096165" +
                   R"(", "expires": "2020-01-01"}]})");
  EXPECT_EQ(RunProgram({"token", "--name", "ann", "--add", file}).exit_code, 0);
  EXPECT_EQ(json::parse(std::ifstream(file))["principals"][0]["token_sha256"].size(), 2U);
  EXPECT_THAT(RunProgram({"token", "--name", "old", "--add", file}).errors,
              HasSubstr("the access of old has ended"));
  folder.Write("access.json", "{\"principals\": {}}");
  EXPECT_THAT(RunProgram({"token", "--name", "eve", "--add", file}).errors,
              HasSubstr("no list \"principals\""));
}

TEST(TokenCommandTest, RunsAsTheDocumentationSays) {
  int lines = 0;
  for (const std::string& line : LinesOf(TextOfSource("docs/access.md"))) {
    if (!line.starts_with("simile token ")) continue;
    ++lines;
    std::istringstream words(line.substr(line.find(' ')));
    const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 0) << line << run.errors;
    EXPECT_THAT(run.printed, HasSubstr("\"token_sha256\""));
  }
  EXPECT_GT(lines, 0);
}

}  // namespace
}  // namespace simile::cli

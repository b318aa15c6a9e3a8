#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exit_code.h"

namespace simile::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What a run of a program with two commands did and printed.
struct Outcome {
  int exit_code = -1;
  std::string printed;
  std::string errors;
  std::optional<std::uint32_t> k;
  std::optional<double> threshold;
  std::vector<std::string> ids;
  std::vector<std::string> fields;
  std::string ran;
};

Outcome RunWith(std::vector<const char*> arguments) {
  Outcome outcome;
  CommandLine line("a test", "simile 1.2.3");
  line.Add("search", "Search")
      .Number("-k", outcome.k, "COUNT", "Hits")
      .Real("--score-threshold", outcome.threshold, "SCORE", "Least score")
      .Texts("--id", outcome.ids, "ID", "Ids")
      .List("--fields", outcome.fields, "FIELD", "Fields")
      .Run([&] {
        outcome.ran = "search";
        return 7;
      });
  std::optional<std::string> name;
  line.Add("load", "Load").Positional("NAME", name, "Name").Required().Run([&] {
    outcome.ran = "load " + *name;
    return kSucceeded;
  });
  arguments.insert(arguments.begin(), "simile");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  outcome.exit_code = line.Run(static_cast<int>(arguments.size()), arguments.data());
  std::fflush(stdout);
  outcome.printed = testing::internal::GetCapturedStdout();
  outcome.errors = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(CommandLineTest, RunsTheCommandWithItsFlags) {
  const Outcome outcome = RunWith({"search", "-k", "5", "--id", "a,b", "c", "--id", "d", "--fields",
                                   "title,year", "--score-threshold", "-0.5"});
  EXPECT_EQ(outcome.exit_code, 7) << outcome.errors;
  EXPECT_EQ(outcome.ran, "search");
  EXPECT_EQ(outcome.k, 5U);
  EXPECT_EQ(outcome.threshold, -0.5);
  EXPECT_THAT(outcome.ids, ElementsAre("a,b", "c", "d"));  // ids may hold commas
  EXPECT_THAT(outcome.fields, ElementsAre("title", "year"));
}

TEST(CommandLineTest, SuggestsTheNearestCommand) {
  const Outcome outcome = RunWith({"serch"});
  EXPECT_EQ(outcome.exit_code, kWrongUsage);
  EXPECT_EQ(outcome.errors, "error: no command \"serch\". Did you mean \"search\"?\n");
  EXPECT_EQ(outcome.ran, "");
}

TEST(CommandLineTest, RefusesUnknownFlagsAndBadNumbers) {
  const Outcome unknown = RunWith({"search", "--kk", "5"});
  EXPECT_EQ(unknown.exit_code, kWrongUsage);
  EXPECT_THAT(unknown.errors, HasSubstr("--kk"));
  EXPECT_THAT(unknown.errors, HasSubstr("`simile search --help` explains"));
  for (const char* number : {"five", "-1", "4294967296", "1.5", ""}) {
    const Outcome outcome = RunWith({"search", "-k", number});
    EXPECT_EQ(outcome.exit_code, kWrongUsage) << number;
    EXPECT_THAT(outcome.errors,
                HasSubstr("-k: \"" + std::string(number) + "\" is not a whole number"));
  }
}

TEST(CommandLineTest, RefusesAMissingRequiredArgument) {
  const Outcome outcome = RunWith({"load"});
  EXPECT_EQ(outcome.exit_code, kWrongUsage);
  EXPECT_THAT(outcome.errors, HasSubstr("NAME is required"));
  EXPECT_EQ(RunWith({"load", "films"}).ran, "load films");
}

TEST(CommandLineTest, PrintsHelpAndVersionWhenAsked) {
  EXPECT_EQ(RunWith({"--version"}).printed, "simile 1.2.3\n");
  EXPECT_EQ(RunWith({"--version"}).exit_code, kSucceeded);
  const Outcome help = RunWith({"search", "--help"});
  EXPECT_EQ(help.exit_code, kSucceeded);
  EXPECT_THAT(help.printed, HasSubstr("--score-threshold SCORE"));
  EXPECT_EQ(help.ran, "");
}

TEST(CommandLineTest, ListsTheCommandsWhenNoneIsGiven) {
  const Outcome outcome = RunWith({});
  EXPECT_EQ(outcome.exit_code, kWrongUsage);
  EXPECT_THAT(outcome.printed, HasSubstr("search"));
}

}  // namespace
}  // namespace simile::cli

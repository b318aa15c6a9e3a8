#include "cli/command_line.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/errors.h"

namespace simile::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// What a run of a program with four commands did and printed.
struct Outcome {
  int exit_code = -1;
  std::string printed;
  std::string errors;
  std::optional<std::uint32_t> k;
  std::optional<double> threshold;
  std::vector<std::string> ids;
  std::vector<std::string> fields;
  std::optional<std::string> collection;
  std::optional<std::string> text;  // of `lookup`; --like of `search`, FOLDER of `load`
  bool json = false;
  std::string ran;
};

void AddCommands(CommandLine& line, Outcome& outcome) {
  const auto run = [&outcome](const char* name, int exit_code) {
    return [&outcome, name, exit_code] {
      outcome.ran = name;
      return exit_code;
    };
  };
  line.Add("search", "Search")
      .Collection(outcome.collection, "The collection")
      .Number("-k", outcome.k, "COUNT", "Hits", 1)
      .Real("--score-threshold", outcome.threshold, "SCORE", "Least score")
      .List("--id", outcome.ids, "ID", "Ids")
      .List("--fields", outcome.fields, "FIELD", "Fields")
      .ListValue("--like", outcome.text, "ID", "An id")
      .Switch("--json", outcome.json, "JSON")
      .Run(run("search", 7));
  line.Add("recommend", "Recommend")
      .List("--user", outcome.ids, "ID", "Users")
      .Required()
      .Collection(outcome.collection, "The collection")
      .Run(run("recommend", kSucceeded));
  line.Add("lookup", "Look up")
      .Positional("TEXT", outcome.text, "Text")
      .Required()
      .Collection(outcome.collection, "The collection")
      .Number("--limit", outcome.k, "COUNT", "Items")
      .Run(run("lookup", kSucceeded));
  line.Add("load", "Load")
      .Collection(outcome.collection, "The collection")
      .Required()
      .Positional("FOLDER", outcome.text, "The folder")
      .Required()
      .Run(run("load", kSucceeded));
}

Outcome RunWith(std::vector<const char*> arguments) {
  Outcome outcome;
  CommandLine line("a test", "simile 1.2.3");
  AddCommands(line, outcome);
  arguments.insert(arguments.begin(), "simile");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  outcome.exit_code = line.Run(static_cast<int>(arguments.size()), arguments.data());
  std::fflush(stdout);
  outcome.printed = testing::internal::GetCapturedStdout();
  outcome.errors = testing::internal::GetCapturedStderr();
  return outcome;
}

// The first line of the error that the arguments get, which must be refused.
std::string Refusal(const std::vector<const char*>& arguments) {
  const Outcome outcome = RunWith(arguments);
  EXPECT_EQ(outcome.exit_code, kWrongUsage) << outcome.ran;
  EXPECT_EQ(outcome.ran, "");
  return outcome.errors.substr(0, outcome.errors.find('\n'));
}

TEST(CommandLineTest, RunsTheCommandWithItsFlags) {
  const Outcome outcome = RunWith({"search", "-k", "5", "--id", "a,b", "--id", "d", "--fields",
                                   "title,year", "--score-threshold", "-0.5", "--json"});
  EXPECT_EQ(outcome.exit_code, 7) << outcome.errors;
  EXPECT_EQ(outcome.ran, "search");
  EXPECT_EQ(outcome.k, 5U);
  EXPECT_EQ(outcome.threshold, -0.5);
  EXPECT_THAT(outcome.ids, ElementsAre("a", "b", "d"));
  EXPECT_THAT(outcome.fields, ElementsAre("title", "year"));
  EXPECT_TRUE(outcome.json);
}

TEST(CommandLineTest, TakesAValueFromTheSameTextToo) {
  EXPECT_EQ(RunWith({"search", "-k5"}).k, 5U);
  EXPECT_EQ(RunWith({"search", "-k=5"}).k, 5U);
  EXPECT_THAT(RunWith({"search", "--id=a=b"}).ids, ElementsAre("a=b"));
  EXPECT_THAT(RunWith({"search", "--id=--json"}).ids, ElementsAre("--json"));
  EXPECT_EQ(RunWith({"lookup", "--", "--json"}).text, "--json");
}

TEST(CommandLineTest, EveryLegalIdCanBeNamedInAList) {
  const auto ids = [](const char* text) { return RunWith({"search", "--id", text}).ids; };
  EXPECT_THAT(ids("a\\,b"), ElementsAre("a,b"));
  EXPECT_THAT(ids("a\\,b,c"), ElementsAre("a,b", "c"));
  EXPECT_THAT(ids("\\,"), ElementsAre(","));
  EXPECT_THAT(ids("C:\\x,y"), ElementsAre("C:\\x", "y"));  // a backslash before no comma is itself
  EXPECT_THAT(ids("a\\\\,b"), ElementsAre("a\\,b"));
  EXPECT_THAT(ids("a\\"), ElementsAre("a\\"));
  EXPECT_THAT(ids("a b, c"), ElementsAre("a b", " c"));
}

// The words that a shell makes of a text, one a line.
std::vector<std::string> ShellWords(const std::string& text) {
  std::string printed;
  FILE* pipe = popen(("printf '%s\\n' " + text).c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  for (int letter = 0; pipe != nullptr && (letter = fgetc(pipe)) != EOF;) {
    printed += static_cast<char>(letter);
  }
  EXPECT_EQ(pclose(pipe), 0);
  std::vector<std::string> words;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) words.push_back(line);
  return words;
}

TEST(CommandLineTest, AListFlagIsReadAsItsValueByAShell) {
  for (const std::string value :
       {"a",  "a,b", ",", "a\\", "a\\,b", "\\\\,", "a b",    "it's", "$x", "`x`", "a\"b",
        "!!", "~",   "*", "#",   "-k",    "-k5",   "--json", "--",   "-",  "=x",  "七"}) {
    const std::vector<std::string> words = ShellWords(ListFlag("--id", value));
    std::vector<const char*> arguments{"search"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    const Outcome outcome = RunWith(arguments);
    EXPECT_THAT(outcome.ids, ElementsAre(value)) << outcome.errors;
  }
  EXPECT_EQ(ListFlag("--id", "heat-1995"), "--id heat-1995");
  EXPECT_EQ(ListFlag("--id", "a,b"), "--id 'a\\,b'");
  EXPECT_EQ(ListFlag("--id", "Toy Story"), "--id \"Toy Story\"");
  EXPECT_EQ(ListFlag("--id", "-k"), "--id=-k");
}

TEST(CommandLineTest, AFlagOfOneValueTakesItAsListsDo) {
  EXPECT_EQ(RunWith({"search", "--like", "a\\,b"}).text, "a,b");
  EXPECT_EQ(Refusal({"search", "--like", "a,b"}),
            "error: --like: takes one value; a comma inside it is written \\, as in 'a\\,b'");
  EXPECT_EQ(Refusal({"search", "--like", "a\\,b,c"}),
            "error: --like: takes one value; a comma inside it is written \\, as in 'a\\,b\\,c'");
  EXPECT_EQ(Refusal({"search", "--like="}), "error: --like: the value is empty");
}

TEST(CommandLineTest, RefusesEmptyValuesInLists) {
  EXPECT_EQ(Refusal({"search", "--id", "a,,b"}),
            "error: --id: there is an empty value in \"a,,b\"");
  EXPECT_EQ(Refusal({"search", "--id", "a,"}), "error: --id: there is an empty value in \"a,\"");
  EXPECT_EQ(Refusal({"search", "--id", ""}), "error: --id: the value is empty");
  EXPECT_EQ(Refusal({"search", "--id=", "--fields", "year"}), "error: --id: the value is empty");
}

TEST(CommandLineTest, TakesTheCollectionAsArgumentAndAsFlag) {
  EXPECT_EQ(RunWith({"search", "films", "-k", "5"}).collection, "films");
  EXPECT_EQ(RunWith({"search", "--id", "a", "films"}).collection, "films");
  EXPECT_EQ(RunWith({"search", "--collection", "films"}).collection, "films");
  EXPECT_EQ(RunWith({"search", "films", "--collection=films"}).collection, "films");
  EXPECT_EQ(RunWith({"search"}).collection, std::nullopt);
  EXPECT_EQ(Refusal({"search", "films", "--collection", "books"}),
            "error: COLLECTION: two collections are named, \"books\" and \"films\"; give one");
  EXPECT_EQ(Refusal({"search", "--collection", ""}), "error: --collection: the name is empty");
}

TEST(CommandLineTest, TheCollectionIsTheArgumentThatMayBeLeftOut) {
  const Outcome alone = RunWith({"lookup", "toy story"});
  EXPECT_EQ(alone.text, "toy story");
  EXPECT_EQ(alone.collection, std::nullopt);
  const Outcome both = RunWith({"lookup", "films", "toy story"});
  EXPECT_EQ(both.text, "toy story");
  EXPECT_EQ(both.collection, "films");
  const Outcome flag = RunWith({"lookup", "toy story", "--collection", "films"});
  EXPECT_EQ(flag.text, "toy story");
  EXPECT_EQ(flag.collection, "films");
  const Outcome load = RunWith({"load", "--collection", "films", "folder"});
  EXPECT_EQ(load.ran, "load") << load.errors;
  EXPECT_EQ(load.text, "folder");
  EXPECT_EQ(RunWith({"load", "films", "folder"}).text, "folder");
}

TEST(CommandLineTest, SuggestsTheNearestCommand) {
  EXPECT_EQ(RunWith({"serch"}).errors, "error: no command \"serch\". Did you mean \"search\"?\n");
  EXPECT_THAT(RunWith({"export"}).errors,
              HasSubstr("of the Python package simile-search, which is not installed here"));
  EXPECT_EQ(Refusal({"frobnicate"}),
            "error: no command \"frobnicate\"; `simile --help` lists them");
}

TEST(CommandLineTest, SuggestsTheNearestFlag) {
  EXPECT_EQ(RunWith({"search", "--colection", "films"}).errors,
            "error: search has no flag \"--colection\". Did you mean \"--collection\"?\n"
            "`simile search --help` explains\n");
  EXPECT_EQ(Refusal({"search", "--jsno"}),
            "error: search has no flag \"--jsno\". Did you mean \"--json\"?");
  EXPECT_EQ(Refusal({"search", "-collection", "films"}),
            "error: search has no flag \"-collection\". Did you mean \"--collection\"?");
  EXPECT_EQ(Refusal({"search", "--frobnicate"}), "error: search has no flag \"--frobnicate\"");
}

TEST(CommandLineTest, SuggestsAFlagThatEndsInTheSameWordWhenNoNameIsNear) {
  for (const char* flag : {"--top-k", "--top-k=4"}) {
    EXPECT_EQ(Refusal({"search", flag, "4"}),
              "error: search has no flag \"--top-k\". Did you mean \"-k\"?");
  }
  EXPECT_EQ(Refusal({"search", "--threshold", "2"}),
            "error: search has no flag \"--threshold\". Did you mean \"--score-threshold\"?");
  EXPECT_EQ(Refusal({"lookup", "-k", "4", "toy"}), "error: lookup has no flag \"-k\"");
  EXPECT_EQ(Refusal({"search", "--id-"}),
            "error: search has no flag \"--id-\". Did you mean \"--id\"?");
  EXPECT_EQ(Refusal({"search", "---"}), "error: search has no flag \"---\"");
}

TEST(CommandLineTest, TellsTheFirstUnknownFlagBeforeWhatIsMissing) {
  EXPECT_EQ(Refusal({"recommend", "--usr", "u", "--bogus"}),
            "error: recommend has no flag \"--usr\". Did you mean \"--user\"?");
}

TEST(CommandLineTest, TellsTheFirstMistakeOfALine) {
  EXPECT_EQ(Refusal({"search", "--bogus", "-k", "five"}), "error: search has no flag \"--bogus\"");
  EXPECT_EQ(Refusal({"search", "-k", "five", "--bogus"}),
            "error: -k: \"five\" is not a whole number, 1 or more");
}

TEST(CommandLineTest, RefusesBadNumbers) {
  for (const char* number : {"five", "-1", "1.5", ""}) {
    EXPECT_EQ(Refusal({"search", "-k", number}),
              "error: -k: \"" + std::string(number) + "\" is not a whole number, 1 or more");
  }
  EXPECT_EQ(Refusal({"search", "-k", "0"}), "error: -k: 0 is too small; give 1 or more");
  EXPECT_EQ(Refusal({"search", "-k", "4294967296"}), "error: -k: \"4294967296\" is too large");
  EXPECT_EQ(Refusal({"search", "--score-threshold", "high"}),
            "error: --score-threshold: \"high\" is not a number");
}

TEST(CommandLineTest, RefusesFlagsWithoutTheirValueTwiceOrWithOneTooMany) {
  EXPECT_EQ(Refusal({"search", "-k"}), "error: -k needs a value: -k COUNT");
  EXPECT_EQ(Refusal({"search", "--id", "--json"}), "error: --id needs a value: --id ID,...");
  EXPECT_EQ(Refusal({"search", "-k", "5", "-k", "6"}), "error: -k is given twice");
  for (const char* flag : {"--json=", "--json=true"}) {
    EXPECT_EQ(Refusal({"search", flag}), "error: --json takes no value") << flag;
    EXPECT_EQ(RunWith({"search", flag}).printed, "") << flag;
  }
  EXPECT_EQ(Refusal({"search", "--json", "true"}), "error: --json takes no value");
}

TEST(CommandLineTest, RefusesAMissingRequiredArgument) {
  EXPECT_EQ(Refusal({"load"}), "error: COLLECTION is required");
  EXPECT_EQ(Refusal({"load", "films"}), "error: FOLDER is required");
  EXPECT_EQ(Refusal({"load", "--collection", "films"}), "error: FOLDER is required");
  EXPECT_EQ(Refusal({"lookup"}), "error: TEXT is required");
  EXPECT_EQ(Refusal({"recommend"}), "error: --user ID,... is required");
  EXPECT_EQ(
      Refusal({"recommend", "user 42"}),
      "error: --user ID,... is required; \"user 42\" alone names the collection. Did you mean "
      "--user \"user 42\"?");
}

TEST(CommandLineTest, NamesTheCommandThatFindsItemsByWords) {
  CommandLine line("a test", "simile 1.2.3");
  std::optional<std::string> vector;
  std::optional<std::string> collection;
  line.Add("search", "Search")
      .File("--vector", vector, "FILE", "Vectors")
      .Required()
      .Collection(collection, "The collection");
  const auto refusal = [&](const char* text) {
    collection.reset();
    const char* const arguments[] = {"simile", "search", text};
    testing::internal::CaptureStderr();
    EXPECT_EQ(line.Run(3, arguments), kWrongUsage);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(
      refusal("fresh bread"),
      HasSubstr("This takes vectors; `simile lookup \"fresh bread\"` finds items by words."));
  EXPECT_THAT(refusal("bread.npy"), HasSubstr("Did you mean --vector bread.npy?"));
}

TEST(CommandLineTest, RefusesEmptyTexts) {
  EXPECT_EQ(Refusal({"lookup", ""}), "error: TEXT: the value is empty");
  EXPECT_EQ(Refusal({"load", "films", ""}), "error: FOLDER: the value is empty");
}

TEST(CommandLineTest, RefusesOneArgumentTooMany) {
  EXPECT_EQ(Refusal({"search", "films", "-k", "5", "toy"}),
            "error: search takes only COLLECTION; \"toy\" is one too many. Write a text that holds "
            "spaces in quotes.");
  EXPECT_EQ(Refusal({"lookup", "the", "toy", "story"}),
            "error: lookup takes only COLLECTION and TEXT; \"story\" is one too many. Write a text "
            "that holds spaces in quotes.");
  EXPECT_EQ(
      Refusal({"recommend", "films", "u"}),
      "error: recommend takes only COLLECTION; \"u\" is one too many. Did you mean --user u?");
  EXPECT_EQ(Refusal({"search", "--id", "a", "b", "c"}),
            "error: search takes only COLLECTION; \"c\" is one too many. Join several values by "
            "commas: --id A,B");
}

TEST(CommandLineTest, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(Refusal({"search", "--id", "\xFF"}), HasSubstr("is not UTF-8"));
  EXPECT_THAT(Refusal({"search", "\xFF"}), HasSubstr("is not UTF-8"));
}

TEST(CommandLineTest, PrintsMistakesAsJsonWhereJsonIsAskedFor) {
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{"search", "--colection", "films", "--json"},
                                             {"search", "--json", "-k", "five"},
                                             {"search", "--id=", "--json"},
                                             {"search", "\xFF", "--json"},
                                             {"recommend", "--json"},
                                             {"serch", "--json"},
                                             {"--json", "search"}}) {
    const Outcome outcome = RunWith(arguments);
    EXPECT_EQ(outcome.exit_code, kWrongUsage);
    EXPECT_THAT(outcome.printed,
                StartsWith("{\"error\":{\"code\":\"INVALID_ARGUMENT\",\"reason\":null,\"field\":"
                           "null,\"retry_after_ms\":null,\"message\":\""));
    EXPECT_EQ(std::ranges::count(outcome.printed, '\n'), 1);
    EXPECT_THAT(outcome.printed, testing::Not(HasSubstr("explains")));
    EXPECT_THAT(outcome.errors, StartsWith("error: "));
  }
  EXPECT_EQ(RunWith({"search", "-k", "five"}).printed, "");
  EXPECT_EQ(RunWith({"lookup", "-k", "--", "--json"}).printed, "");
}

TEST(CommandLineTest, SaysThatFlagsFollowTheCommand) {
  EXPECT_EQ(Refusal({"--json", "search"}),
            "error: --json comes after the command: simile search --json");
  EXPECT_EQ(Refusal({"-k=5", "search"}),
            "error: -k comes after the command: simile search -k COUNT");
  EXPECT_EQ(
      Refusal({"--versoin"}),
      "error: simile has no flag \"--versoin\" before a command. Did you mean \"--version\"?");
  EXPECT_EQ(
      Refusal({"-V"}),
      "error: simile has no flag \"-V\" before a command; `simile --help` lists the commands");
}

TEST(CommandLineTest, PrintsHelpAndVersionWhenAsked) {
  EXPECT_EQ(RunWith({"--version"}).printed, "simile 1.2.3\n");
  EXPECT_EQ(RunWith({"--version"}).exit_code, kSucceeded);
  EXPECT_EQ(RunWith({"--version", "--verbose"}).exit_code, kWrongUsage) << "has no such command";
  for (const char* flag : {"--help", "-h"}) {
    const Outcome help = RunWith({"recommend", flag});
    EXPECT_EQ(help.exit_code, kSucceeded);
    EXPECT_THAT(help.printed,
                StartsWith("Recommend\nUsage: simile recommend --user ID,... [OPTIONS] "
                           "[COLLECTION]\n\nArguments:\n  COLLECTION  The collection\n\n"
                           "Options:\n  -h, --help         Print this help and exit\n"
                           "  --user ID,...      Users (required)\n"
                           "  --collection NAME  The same as COLLECTION\n"
                           "\nA flag with \",...\" takes several values, "));
    EXPECT_EQ(help.ran, "");
  }
}

TEST(CommandLineTest, ListsTheCommandsWhenNoneIsGiven) {
  const Outcome outcome = RunWith({});
  EXPECT_EQ(outcome.exit_code, kWrongUsage);
  EXPECT_THAT(outcome.printed, HasSubstr("\n  search     Search\n"));
  EXPECT_EQ(RunWith({"--help"}).printed, outcome.printed);
  EXPECT_EQ(RunWith({"--help"}).exit_code, kSucceeded);
}

}  // namespace
}  // namespace simile::cli

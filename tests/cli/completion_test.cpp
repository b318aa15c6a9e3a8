// What the program prints for shells and for `man`, as those read it. bash is everywhere; checks
// with zsh, fish and groff are skipped where these are missing.
#include <array>
#include <cstdio>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program_run.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct ShellRun {
  int exit_code = -1;
  std::string printed;  // standard output and error
};

ShellRun RunShell(const std::string& command) {
  ShellRun run;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer{};
  for (std::size_t bytes = 0; (bytes = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    run.printed.append(buffer.data(), bytes);
  }
  run.exit_code = pclose(pipe);
  return run;
}

bool IsInstalled(const std::string& program) {
  return RunShell("command -v " + program).exit_code == 0;
}

class CompletionTest : public testing::Test {
 protected:
  // Writes what the program prints to the file `printed`.
  void Print(const std::vector<std::string>& arguments) {
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    scratch_.Write("printed", run.printed);
  }

  // In the folder of that file, whose path may hold what shells read as more than one word.
  ShellRun RunBesideIt(const std::string& command) const {
    return RunShell("cd '" + scratch_.path().string() + "' && " + command);
  }

  // What bash offers for the last of the words, the first of which is the program.
  std::vector<std::string> OfferedByBash(const std::string& words) {
    Print({"completion", "bash"});
    const ShellRun run =
        RunBesideIt("bash -c 'source ./printed; compopt() { echo \"$@\"; }; COMP_WORDS=(" + words +
                    "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _simile; "
                    "echo \"${COMPREPLY[@]}\"'");
    EXPECT_EQ(run.exit_code, 0);
    std::istringstream printed(run.printed);
    return {std::istream_iterator<std::string>(printed), {}};
  }

 private:
  ScratchFolder scratch_;
};

TEST_F(CompletionTest, BashCompletesCommandsFlagsAndValues) {
  EXPECT_THAT(OfferedByBash("simile rel"), ElementsAre("reload"));
  EXPECT_THAT(OfferedByBash("simile \"\""),
              AllOf(Contains("serve"), Contains("help"), Contains("--version")));
  EXPECT_THAT(OfferedByBash("simile similar --un"), ElementsAre("--unlike"));
  EXPECT_THAT(OfferedByBash("simile similar films --titl"), ElementsAre("--title"));
  EXPECT_THAT(OfferedByBash("simile similar --strategy \"\""),
              ElementsAre("average-vector", "best-score", "sum-scores"));
  EXPECT_THAT(OfferedByBash("simile similar --strategy = b"), ElementsAre("best-score"));
  EXPECT_THAT(OfferedByBash("simile serve --backend g"), ElementsAre("gpu"));
  EXPECT_THAT(OfferedByBash("simile completion f"), ElementsAre("fish"));
  EXPECT_THAT(OfferedByBash("simile help reco"), ElementsAre("recommend"));
  EXPECT_THAT(OfferedByBash("simile similar --title --un"), IsEmpty());  // a title, whatever it is
  EXPECT_THAT(OfferedByBash("simile similar \"\""), IsEmpty());
}

TEST_F(CompletionTest, BashCompletesFoldersWhereFoldersAreMeant) {
  for (const std::string words :
       {"load films mi", "reload films --folder mi", "verify --folder mi", "serve mine = ../mi",
        "serve mine =", "serve --collection mine = ../mi", "serve --collection = mine = ../mi"}) {
    EXPECT_THAT(OfferedByBash("simile " + words), ElementsAre("-o", "dirnames")) << words;
  }
  EXPECT_THAT(OfferedByBash("simile serve --data-root mi"), ElementsAre("-o", "default"));
  EXPECT_THAT(OfferedByBash("simile serve mi"), IsEmpty());
  EXPECT_THAT(OfferedByBash("simile serve films=/et"),
              ElementsAre("-o", "nospace", "films=/etc/"));  // = is no word break
}

TEST_F(CompletionTest, BashOffersEveryFlagOfTheHelp) {
  for (const std::string command : {"serve", "similar", "recommend", "bench", "fetch"}) {
    const std::vector<std::string> offered = OfferedByBash("simile " + command + " -");
    std::istringstream help(RunProgram({command, "--help"}).printed);
    for (std::string line; std::getline(help, line);) {
      if (!line.starts_with("  -") || line.starts_with("  -h")) continue;
      EXPECT_THAT(offered, Contains(line.substr(2, line.find(' ', 2) - 2))) << command;
    }
    EXPECT_THAT(offered, Contains("--help")) << command;
  }
}

TEST_F(CompletionTest, ScriptsHaveNoSyntaxErrors) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    Print({"completion", shell});
    if (!IsInstalled(shell)) continue;
    EXPECT_EQ(RunBesideIt(shell + " -n ./printed").printed, "") << shell;
  }
}

TEST_F(CompletionTest, ZshAndFishGetDescriptionsAndValues) {
  const std::string zsh = RunProgram({"completion", "zsh"}).printed;
  EXPECT_THAT(zsh, testing::StartsWith("#compdef simile\n"));
  EXPECT_THAT(zsh, HasSubstr("'similar:Find the items most like given ones'"));
  EXPECT_THAT(zsh, HasSubstr(":NAME:(average-vector best-score sum-scores)'"));
  EXPECT_THAT(zsh, HasSubstr("'*--id=["));
  EXPECT_THAT(zsh, HasSubstr("'-k+[Hits wanted (default 10)]:COUNT: '"));
  const std::string fish = RunProgram({"completion", "fish"}).printed;
  EXPECT_THAT(fish, HasSubstr("complete -c simile -n __fish_use_subcommand -a similar -d 'Find"));
  EXPECT_THAT(fish, HasSubstr("'__fish_seen_subcommand_from search' -l vector -d '"));
  EXPECT_THAT(fish, HasSubstr(" -r -F\n"));
  EXPECT_THAT(fish, HasSubstr(" -r -f -a 'average-vector best-score sum-scores'\n"));
}

TEST_F(CompletionTest, FishCompletesCommandsFlagsAndValues) {
  if (!IsInstalled("fish")) GTEST_SKIP() << "fish is not installed";
  Print({"completion", "fish"});
  const auto offered = [&](const std::string& line) {
    return RunBesideIt("HOME=/nonexistent fish -c 'source ./printed; complete -C \"" + line + "\"'")
        .printed;
  };
  EXPECT_THAT(offered("simile rel"), HasSubstr("reload\tRead a collection"));
  EXPECT_THAT(offered("simile similar --unl"), HasSubstr("--unlike\tItems to be unlike"));
  EXPECT_THAT(offered("simile serve --backend g"), testing::StartsWith("gpu\t"));
}

TEST_F(CompletionTest, NamesTheShellsForAnother) {
  const ProgramRun run = RunProgram({"completion", "tcsh"});
  EXPECT_EQ(run.exit_code, 64);
  EXPECT_EQ(run.errors, "error: no completion for \"tcsh\"; give bash, zsh or fish\n");
  EXPECT_EQ(RunProgram({"completion"}).exit_code, 64);
}

TEST_F(CompletionTest, TheManualHasEveryCommandAndFlag) {
  const std::string page = RunProgram({"man"}).printed;
  EXPECT_THAT(page, testing::StartsWith(".TH SIMILE 1 \"\" \"simile 0."));
  EXPECT_THAT(page, HasSubstr("\n.SS recommend\nRecommend items to users.\n.PP\n\\fBsimile "
                              "recommend \\-\\-user ID,... "));
  EXPECT_THAT(page, HasSubstr("\n.TP\n\\fB\\-\\-cold\\-start ORDER\\fR\n"));
  EXPECT_THAT(page, HasSubstr("\\fBsimile load [OPTIONS] COLLECTION FOLDER\\fR\n"));
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_THAT(line, Not(IsEmpty()));
}

TEST_F(CompletionTest, TheManualIsCleanRoff) {
  Print({"man"});
  if (!IsInstalled("groff")) GTEST_SKIP() << "groff is not installed";
  const ShellRun warnings = RunBesideIt("groff -man -ww -Tascii -z ./printed");
  EXPECT_EQ(warnings.exit_code, 0);
  EXPECT_EQ(warnings.printed, "");
  const std::string text = RunBesideIt("groff -man -Tascii -P-cbou ./printed").printed;
  EXPECT_THAT(text, HasSubstr("simile similar --title \"Toy Story\" -k 5"));
  EXPECT_THAT(text, HasSubstr("'genres:\"Drama\" AND year"));
}

}  // namespace
}  // namespace simile::cli

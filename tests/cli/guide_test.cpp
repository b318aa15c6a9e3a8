// The commands of docs/guide.md, run by a shell as a reader would, against a real server.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/live_server.h"
#include "files/document.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

const std::filesystem::path kFilmsExample = SIMILE_SOURCE_DIR "/examples/films";
constexpr std::size_t kDim = 384;

// The commands of the guide's blocks, without `simile serve`: this test starts the server.
std::vector<std::string> ReadCommands(const std::string& document) {
  std::vector<std::string> commands;
  for (const std::string& block : FencedBlocks(document)) {
    for (const std::string& line : LinesOf(block)) {
      if (line.starts_with("simile ") && !line.starts_with("simile serve ")) {
        commands.emplace_back(line);
      }
    }
  }
  return commands;
}

TEST(GuideTest, EachCommandDoesWhatTheGuideSays) {
  const ScratchFolder folder;
  for (const char* const name : {"books", "books-2"}) {
    std::filesystem::copy(kFilmsExample, folder.path() / name);
  }
  std::filesystem::remove(folder.path() / "books-2" / "interactions.jsonl");  // other content
  folder.Write("query.npy", NpyFile(std::vector<float>(kDim, 1), kDim));
  const LiveServer server(kFilmsExample.string(), folder.path().string());

  const std::vector<std::string> commands = ReadCommands(TextOfSource("docs/guide.md"));
  EXPECT_GE(commands.size(), 20U);
  const std::filesystem::path program = SIMILE_PROGRAM;
  for (const std::string& command : commands) {
    const ProgramRun run = RunProgram(
        {"-ec", "cd '" + folder.path().string() + "'; " + command}, "",
        {"PATH=" + program.parent_path().string(), "SIMILE_SERVER=" + server.address()}, "/bin/sh");
    EXPECT_EQ(run.exit_code, 0) << command << '\n' << run.errors;
    EXPECT_FALSE(run.printed.empty()) << command;
  }
}

}  // namespace
}  // namespace simile::cli

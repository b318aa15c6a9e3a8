// The commands that change what a server serves, as a shell runs them, against a real server of a
// small collection.
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
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kServedAlready =
    "this content was served already; nothing was loaded; the next reload reads ";

class ChangeCommandsTest : public testing::Test {
 protected:
  ChangeCommandsTest() {
    WriteRows("small", {1, 0, 0, 1}, 2);
    WriteRows("larger", {1, 0, 0, 1, 3, 4}, 2);
    WriteRows("deeper", {1, 0, 0, 0, 1, 0}, 3);
    server_.emplace(root_.path() / "small", root_.path());
  }

  void WriteRows(const std::string& folder, const std::vector<float>& numbers, std::size_t dim) {
    root_.Write(folder + "/content_vectors.npy", NpyFile(numbers, dim));
  }

  // Of items that no other folder has.
  void WriteRenamed() {
    WriteRows("renamed", {1, 0, 0, 1}, 2);
    root_.Write("renamed/metadata.jsonl", "{\"id\": \"one\"}\n{\"id\": \"two\"}\n");
  }

  ProgramRun Run(const std::vector<std::string>& arguments) { return server_->Run(arguments); }

  // The JSON that a command prints. The command must succeed.
  json RunJson(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const ProgramRun run = Run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return json::parse(run.printed, nullptr, false);
  }

  // The reason of a command that must fail.
  json Refusal(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const ProgramRun run = Run(arguments);
    const json reason = json::parse(run.printed, nullptr, false)["error"]["reason"];
    EXPECT_EQ(run.exit_code, reason == "OUTSIDE_DATA_ROOT" ? 64 : 1) << run.printed;
    return reason;
  }

 private:
  const ScratchFolder root_;
  std::optional<LiveServer> server_;
};

TEST_F(ChangeCommandsTest, LoadSaysWhatIsServedAndIsRepeatable) {
  const ProgramRun first = Run({"load", "copy", "larger"});
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_THAT(first.printed, AllOf(StartsWith("copy: 3 rows x 2 (cosine), 0 users, "),
                                   HasSubstr(", snapshot 1 (")));
  EXPECT_THAT(first.printed, Not(HasSubstr("already")));
  EXPECT_EQ(first.errors, "");
  const ProgramRun again = Run({"load", "copy", "larger"});
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.printed, EndsWith(kServedAlready + "larger\n"));
  EXPECT_EQ(RunJson({"load", "copy", "larger"})["served_already"], true);
  EXPECT_EQ(RunJson({"list"})["collections"].size(), 2U);
  EXPECT_EQ(Refusal({"load", "copy", "small"}), "COLLECTION_EXISTS");
}

TEST_F(ChangeCommandsTest, ReloadSwapsChangedFilesIn) {
  const std::string first = RunJson({"list", "films"})["snapshot_id"];
  EXPECT_THAT(Run({"reload", "films"}).printed, EndsWith(kServedAlready + "small\n"));
  WriteRows("small", {1, 0, 0, 1, 3, 4}, 2);
  const json reloaded = RunJson({"reload", "films"});
  EXPECT_EQ(reloaded["served_already"], false);
  EXPECT_EQ(reloaded["rows"], 3);
  EXPECT_EQ(reloaded["snapshot_version"], 2);
  EXPECT_NE(reloaded["snapshot_id"], first);
  // The former content is gone from the folder.
  EXPECT_EQ(Refusal({"rollback", "films"}), "NOTHING_TO_ROLL_BACK");
  EXPECT_EQ(RunJson({"list", "films"})["snapshot_id"], reloaded["snapshot_id"]);
}

TEST_F(ChangeCommandsTest, RollbackReturnsAndIsRepeatable) {
  const std::string first = RunJson({"list", "films"})["snapshot_id"];
  const json reloaded = RunJson({"reload", "films", "--folder", "larger"});
  EXPECT_EQ(reloaded["rollback_snapshot_id"], first);
  const json rolled_back = RunJson({"rollback", "films"});
  EXPECT_EQ(rolled_back["snapshot_id"], first);
  EXPECT_EQ(rolled_back["rows"], 2);
  EXPECT_EQ(rolled_back["served_already"], false);
  EXPECT_THAT(Run({"rollback", "films"}).printed, EndsWith(kServedAlready + "small\n"));
}

TEST_F(ChangeCommandsTest, ReloadReadsAnotherFolder) {
  const json reloaded = RunJson({"reload", "films", "--folder", "larger"});
  EXPECT_EQ(reloaded["folder"], "larger");
  EXPECT_EQ(reloaded["rows"], 3);
  const ProgramRun list = Run({"list"});
  EXPECT_THAT(list.printed, HasSubstr("  larger  cpu\n"));
}

TEST_F(ChangeCommandsTest, ReloadChangesTheShapeOnlyWhenAllowed) {
  EXPECT_EQ(Refusal({"reload", "films", "--folder", "deeper"}), "SHAPE_CHANGE");
  EXPECT_EQ(RunJson({"reload", "films", "--folder", "deeper", "--allow-shape-change"})["dim"], 3);
  EXPECT_EQ(Refusal({"rollback", "films"}), "SHAPE_CHANGE");
  EXPECT_EQ(RunJson({"rollback", "films", "--allow-shape-change"})["dim"], 2);
}

TEST_F(ChangeCommandsTest, ReloadRefusesLessOverlapThanAsked) {
  WriteRenamed();
  EXPECT_EQ(Refusal({"reload", "films", "--folder", "renamed", "--min-overlap", "0.5"}),
            "OVERLAP_TOO_LOW");
  const ProgramRun outside = Run({"reload", "films", "--min-overlap", "80"});
  EXPECT_EQ(outside.exit_code, 64);
  EXPECT_EQ(outside.errors, "error: --min-overlap 80: give a share of the answers, 0 to 1\n");
  EXPECT_EQ(
      RunJson({"reload", "films", "--folder", "renamed", "--min-overlap", "0"})["served_already"],
      false);
}

TEST_F(ChangeCommandsTest, ChangesOnlyTheExpectedContent) {
  const std::string first = RunJson({"list", "films"})["snapshot_id"];
  const std::string other(32, '0');
  EXPECT_EQ(Refusal({"reload", "films", "--folder", "larger", "--expect-snapshot", other}),
            "SNAPSHOT_MISMATCH");
  const std::vector<std::string> reload{
      "reload", "films", "--folder", "larger", "--expect-snapshot", first.substr(0, 8)};
  EXPECT_EQ(RunJson(reload)["served_already"], false);
  EXPECT_EQ(RunJson(reload)["served_already"], true);
  EXPECT_EQ(Refusal({"unload", "films", "--expect-snapshot", first}), "SNAPSHOT_MISMATCH");
}

TEST_F(ChangeCommandsTest, UnloadStopsServing) {
  EXPECT_EQ(RunJson({"load", "copy", "larger"})["snapshot_version"], 1);
  const ProgramRun unnamed = Run({"similar", "--id", "0"});
  EXPECT_EQ(unnamed.exit_code, 64);
  EXPECT_THAT(unnamed.errors, HasSubstr("name one with --collection: copy, films"));
  EXPECT_EQ(Run({"unload", "copy"}).printed, "copy is no longer served\n");
  const ProgramRun list = Run({"list"});
  EXPECT_THAT(list.printed, HasSubstr("films"));
  EXPECT_THAT(list.printed, Not(HasSubstr("copy")));
  EXPECT_EQ(Refusal({"reload", "copy"}), "COLLECTION_NOT_FOUND");
}

TEST_F(ChangeCommandsTest, SaysWhyAChangeWasRefused) {
  EXPECT_EQ(Refusal({"rollback", "films"}), "NOTHING_TO_ROLL_BACK");
  EXPECT_EQ(Refusal({"load", "copy", "../elsewhere"}), "OUTSIDE_DATA_ROOT");
  WriteRows("small", {0, 0, 0, 1}, 2);
  const ProgramRun run = Run({"reload", "films"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, StartsWith("error: content_vectors.npy: row 0 "));
  EXPECT_EQ(RunJson({"list", "films"})["rows"], 2);
}

}  // namespace
}  // namespace simile::cli

#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/terminal_pair.h"
#include "cli/live_server.h"
#include "cli/program_run.h"
#include "cli/top/terminal_program.h"
#include "integration/server_process.h"

namespace simile::cli::top {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kEnters = "\x1b[?1049h";
constexpr const char* kLeaves = "\x1b[?1049l";

class TopTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<LiveServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  static std::vector<std::string> Live() {
    return {"top", "--server", server_->address(), "--interval", "100ms"};
  }

  inline static std::unique_ptr<LiveServer> server_;
};

// The view, which needs a terminal.
class TopViewTest : public TopTest {
 protected:
  void SetUp() override {
    if (!base::TerminalPair().exists()) GTEST_SKIP() << base::TerminalPair::kMissing;
  }
};

TEST_F(TopTest, PrintsOneIntervalAsText) {
  ASSERT_EQ(server_->Run({"similar", "--id", "toy-story-1995"}).exit_code, 0);
  const ProgramRun run = server_->Run({"top", "--count", "1", "--interval", "100ms"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, StartsWith("simile "));
  EXPECT_THAT(run.printed, HasSubstr("\nbackend    cpu: the configuration asks for the CPU\n"));
  EXPECT_THAT(run.printed, HasSubstr("\nfilms       5,000  "));
  EXPECT_THAT(run.printed, HasSubstr("\nSearch "));
  EXPECT_THAT(run.printed, Not(HasSubstr("GetStats")));
  EXPECT_THAT(run.printed, Not(HasSubstr("\x1b")));
}

TEST_F(TopTest, PrintsOneLineOfJsonAnInterval) {
  const ProgramRun run = server_->Run({"top", "--json", "--count", "3", "--interval", "100ms"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  std::istringstream lines(run.printed);
  int count = 0;
  double seconds = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_GT(json["seconds"], 0);  // little after one that was printed late
    seconds += json["seconds"].get<double>();
    EXPECT_EQ(json["collections"][0]["name"], "films");
    EXPECT_EQ(json["queue_capacity"], 1'024);
  }
  EXPECT_EQ(count, 3);
  EXPECT_GE(seconds, 0.29);  // three times 100 ms, rounded
}

TEST_F(TopTest, RefusesAnIntervalThatIsNone) {
  EXPECT_THAT(server_->Run({"top", "--interval", "soon"}).errors,
              HasSubstr("--interval: \"soon\" is no time"));
  EXPECT_THAT(server_->Run({"top", "--interval", "5ms"}).errors,
              HasSubstr("--interval: \"5ms\" is too short; give 100 ms or more"));
}

// The flags of a server that lets nobody read its metrics.
std::vector<std::string> WithoutAdmin() {
  return {"--collection",
          "films=" SIMILE_SOURCE_DIR "/examples/films",
          "--no-metrics",
          "--log-level",
          "error",
          "--port",
          "0"};
}

TEST(TopWithoutAdminTest, SaysHowToStartTheServer) {
  integration::ServerProcess server(WithoutAdmin());
  const ProgramRun run = RunProgram({"top", "--server", server.AwaitListening(), "--json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, HasSubstr("does not let clients read its metrics; start it with "
                                    "`simile serve --allow-admin ...`"));
  EXPECT_THAT(run.printed, HasSubstr("\"ADMIN_NOT_ALLOWED\""));
}

TEST_F(TopViewTest, SaysHowToStartAServerThatLetsNobodyRead) {
  integration::ServerProcess server(WithoutAdmin());
  TerminalProgram view({"top", "--server", server.AwaitListening()}, 80, 24);
  EXPECT_EQ(view.AwaitExit(), 1);
  const std::string written = view.TakeOutput();
  EXPECT_THAT(written, HasSubstr("`simile serve --allow-admin ...`"));
  EXPECT_THAT(written, Not(HasSubstr(kEnters)));
}

TEST_F(TopViewTest, RestoresTheTerminalAtQ) {
  TerminalProgram view(Live(), 80, 24);
  ASSERT_TRUE(view.AwaitOutput("queue ")) << view.TakeOutput();
  EXPECT_FALSE(view.HasUsualMode());
  view.Type("xq");
  EXPECT_EQ(view.AwaitExit(), 0);
  const std::string written = view.TakeOutput();
  EXPECT_THAT(written, StartsWith(kEnters));
  EXPECT_THAT(written, HasSubstr(std::string("\x1b[?25h") + kLeaves));
  EXPECT_TRUE(view.HasUsualMode());
}

TEST_F(TopViewTest, RestoresTheTerminalAtASignal) {
  TerminalProgram interrupted(Live(), 80, 24);
  ASSERT_TRUE(interrupted.AwaitOutput("queue "));
  interrupted.Type("\x03");  // Ctrl-C
  EXPECT_EQ(interrupted.AwaitExit(), 130);
  EXPECT_THAT(interrupted.TakeOutput(), HasSubstr(kLeaves));
  EXPECT_TRUE(interrupted.HasUsualMode());
  TerminalProgram ended(Live(), 80, 24);
  ASSERT_TRUE(ended.AwaitOutput("queue "));
  ended.Signal(SIGTERM);
  EXPECT_EQ(ended.AwaitExit(), 143);
  EXPECT_THAT(ended.TakeOutput(), HasSubstr(kLeaves));
  EXPECT_TRUE(ended.HasUsualMode());
}

TEST_F(TopViewTest, GivesTheTerminalBackWhileItIsStopped) {
  TerminalProgram view(Live(), 80, 24);
  ASSERT_TRUE(view.AwaitOutput("queue "));
  view.Type("\x1a");  // Ctrl-Z
  view.AwaitStopped();
  EXPECT_TRUE(view.HasUsualMode());
  ASSERT_TRUE(view.AwaitOutput(kLeaves));
  view.TakeOutput();
  view.Signal(SIGCONT);
  EXPECT_TRUE(view.AwaitOutput(kEnters));
  EXPECT_TRUE(view.AwaitOutput("queue "));
  view.Type("q");
  EXPECT_EQ(view.AwaitExit(), 0);
}

TEST_F(TopViewTest, FollowsTheSizeOfTheTerminal) {
  TerminalProgram view(Live(), 80, 40);
  ASSERT_TRUE(view.AwaitOutput("collection "));
  view.TakeOutput();
  view.Resize(80, 6);
  EXPECT_TRUE(view.AwaitOutput("more lines; a taller window shows them"));
  view.Type("q");
  EXPECT_EQ(view.AwaitExit(), 0);
}

TEST_F(TopViewTest, LeavesTheLastPictureAfterItsIntervals) {
  std::vector<std::string> arguments = Live();
  arguments.insert(arguments.end(), {"--count", "2"});
  TerminalProgram view(arguments, 80, 40);
  EXPECT_EQ(view.AwaitExit(), 0);
  const std::string written = view.TakeOutput();
  EXPECT_THAT(written.substr(written.find(kLeaves)), HasSubstr("films "));
}

TEST_F(TopViewTest, GoesOnWhenTheServerIsGone) {
  auto server = std::make_unique<LiveServer>();
  TerminalProgram view({"top", "--server", server->address(), "--interval", "100ms"}, 80, 24);
  ASSERT_TRUE(view.AwaitOutput("queue "));
  server.reset();
  EXPECT_TRUE(view.AwaitOutput("no answer, trying again: cannot reach a server"));
  view.Type("q");
  EXPECT_EQ(view.AwaitExit(), 0);
}

}  // namespace
}  // namespace simile::cli::top

// The program as a shell runs it, without a server.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/program_run.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::filesystem::path kFilms = std::filesystem::path(SIMILE_SOURCE_DIR) / "examples/films";

// A bound port that nothing listens on.
class ClosedPort {
 public:
  ClosedPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, any, length), 0);
    EXPECT_EQ(getsockname(socket_, any, &length), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~ClosedPort() { close(socket_); }
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;

  const std::string& address() const { return address_; }

 private:
  const int socket_;
  std::string address_;
};

TEST(ProgramTest, PrintsItsVersion) {
  const ProgramRun run = RunProgram({"--version"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.printed, StartsWith("simile 0."));
}

TEST(ProgramTest, ExplainsEveryCommand) {
  for (const char* command :
       {"serve", "health", "search", "similar", "recommend", "fields", "info", "list", "load",
        "reload", "rollback", "unload", "inspect", "config"}) {
    const ProgramRun run = RunProgram({command, "--help"});
    EXPECT_EQ(run.exit_code, 0) << command;
    EXPECT_THAT(run.printed, HasSubstr("Usage: simile " + std::string(command))) << command;
    EXPECT_EQ(run.errors, "") << command;
  }
}

TEST(ProgramTest, ExitsWith64OnAWrongCommandLine) {
  EXPECT_EQ(RunProgram({"similar"}).exit_code, 64);
  EXPECT_EQ(RunProgram({"similar", "--id", "a", "--title", "b"}).exit_code, 64);
  EXPECT_EQ(RunProgram({"recommend"}).exit_code, 64);
  EXPECT_EQ(RunProgram({"health", "--colection", "films"}).exit_code, 64);
  EXPECT_EQ(RunProgram({"sevre"}).errors, "error: no command \"sevre\". Did you mean \"serve\"?\n");
}

TEST(ProgramTest, RefusesFormerFlagsAndNamesThePresentOnes) {
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"--fallback"}, {"--fallback", "newest"}, {"--fallback=newest"}}) {
    std::vector<std::string> arguments{"recommend", "--user", "user_00042"};
    arguments.insert(arguments.end(), flag.begin(), flag.end());
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 64);
    EXPECT_EQ(run.errors,
              "error: --fallback is called --cold-start now\n"
              "`simile recommend --help` explains\n");
  }
  const ProgramRun field =
      RunProgram({"recommend", "--user", "user_00042", "--fallback-field", "year"});
  EXPECT_EQ(field.exit_code, 64);
  EXPECT_THAT(field.errors, StartsWith("error: --fallback-field is called --cold-start-field now"));
  EXPECT_THAT(RunProgram({"recommend", "--help"}).printed, Not(HasSubstr("fallback")));
}

TEST(ProgramTest, SaysHowToStartAServerWhenThereIsNone) {
  const ClosedPort port;
  const ProgramRun run = RunProgram({"similar", "--id", "a", "--server", port.address()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.errors, "error: cannot reach a server at " + port.address() +
                            " (connection refused); start one with: simile serve --collection "
                            "NAME=FOLDER\n");
  EXPECT_EQ(run.printed, "");
}

TEST(ProgramTest, PrintsErrorsAsJsonToo) {
  const ClosedPort port;
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"list"},
                                             {"info"},
                                             {"fields"},
                                             {"similar", "--id", "a"},
                                             {"recommend", "--user", "u"},
                                             {"load", "a", "b"},
                                             {"reload", "a"},
                                             {"rollback", "a"},
                                             {"unload", "a"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--json", "--server", port.address()});
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(json::parse(run.printed)["error"]["code"], "UNAVAILABLE") << command[0];
    EXPECT_THAT(run.errors, StartsWith("error: cannot reach a server at "));
  }
}

TEST(ProgramTest, TakesTheServerFromTheEnvironment) {
  const ClosedPort port;
  const ProgramRun run = RunProgram({"list"}, "", {"SIMILE_SERVER=" + port.address()});
  EXPECT_THAT(run.errors, HasSubstr(port.address()));
}

TEST(ProgramTest, HealthExitsWith2WhenUnreachable) {
  const ClosedPort port;
  const ProgramRun run = RunProgram({"health", "--server", port.address(), "--json"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.printed, "{\"status\":\"UNREACHABLE\"}\n");
}

TEST(ProgramTest, ConfigPrintShowsOriginsOfAllThreeSources) {
  const ScratchFolder scratch;
  scratch.Write("simile.json", R"({"log": {"format": "json"}})");
  const std::filesystem::path file = scratch.path() / "simile.json";
  const ProgramRun run =
      RunProgram({"config", "--print", "--json", "--config", file, "--no-metrics"}, "",
                 {"SIMILE_SERVER_PORT=0"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  std::map<std::string, std::string> origins;
  const json printed = json::parse(run.printed);
  for (const json& setting : printed["settings"]) origins[setting["key"]] = setting["origin"];
  EXPECT_EQ(origins["log.format"], "file " + file.string());
  EXPECT_EQ(origins["server.port"], "environment SIMILE_SERVER_PORT");
  EXPECT_EQ(origins["metrics.enabled"], "flag --no-metrics");
  EXPECT_EQ(origins["server.listen"], "default");
}

TEST(ProgramTest, ConfigShowsTheTuningWithoutMeasuring) {
  const ProgramRun table = RunProgram({"config", "--print"});
  EXPECT_THAT(table.printed, HasSubstr("not measured yet; each serve measures"));
  const ProgramRun run = RunProgram({"config", "--json"}, "", {"SIMILE_BACKEND_TUNING=defaults"});
  const json printed = json::parse(run.printed);
  ASSERT_FALSE(printed["tuning"].empty());
  for (const json& value : printed["tuning"]) {
    EXPECT_EQ(value["origin"], "default");
    EXPECT_EQ(value["value"], value["default"]);
  }
}

TEST(ProgramTest, ConfigAndServeRefuseTheSameMistakes) {
  for (const char* command : {"config", "serve"}) {
    const ProgramRun run = RunProgram({command}, "", {"SIMILE_SERVER_PROT=1"});
    EXPECT_EQ(run.exit_code, 1) << command;
    EXPECT_THAT(run.errors, HasSubstr("Did you mean \"SIMILE_SERVER_PORT\"?")) << command;
  }
}

TEST(ProgramTest, InspectSaysThatTheFilmsWouldLoad) {
  const ProgramRun folder = RunProgram({"inspect", kFilms});
  EXPECT_EQ(folder.exit_code, 0) << folder.errors;
  EXPECT_THAT(folder.printed, HasSubstr("would load"));
  const ProgramRun file = RunProgram({"inspect", kFilms / "content_vectors.npy", "--json"});
  EXPECT_EQ(file.exit_code, 0) << file.errors;
  EXPECT_EQ(json::parse(file.printed)["loads"], true);
}

TEST(ProgramTest, InspectSaysWhyAFileWouldNotLoad) {
  const ScratchFolder scratch;
  scratch.Write("bad.npy", "not an array");
  const ProgramRun run = RunProgram({"inspect", scratch.path() / "bad.npy"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, AllOf(StartsWith("error: bad.npy: "), HasSubstr(".npy")));
}

TEST(ProgramTest, RefusesTextThatIsNotUtf8) {
  const ProgramRun run = RunProgram({"similar", "--id", "\xFF"});
  EXPECT_EQ(run.exit_code, 64);
  EXPECT_THAT(run.errors, HasSubstr("is not UTF-8"));
}

TEST(ProgramTest, InspectAcceptsAFileNameOfAnyBytes) {
  const ProgramRun run = RunProgram({"inspect", "/nowhere/\xFF.npy"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, HasSubstr("no such"));
}

TEST(ProgramTest, SearchChecksItsVectorsBeforeItConnects) {
  const ProgramRun run = RunProgram({"search", "--vector", "-"}, "[1, \"two\"]");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.errors, "error: standard input: row 0, column 1: string where a number belongs\n");
}

}  // namespace
}  // namespace simile::cli

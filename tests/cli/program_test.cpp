// The program as a shell runs it, without a server.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/program_run.h"
#include "files/npy_file.h"
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

// The names under `Commands:` of --help, and those after them.
std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  std::istringstream help(RunProgram({"--help"}).printed);
  const std::string about_program = "About the program itself: ";
  for (std::string line; std::getline(help, line);) {
    if (line.starts_with("  ") && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    } else if (line.starts_with(about_program)) {
      std::istringstream listed(line.substr(about_program.size()));
      for (std::string name; listed >> name && name.find_first_of(",.") != std::string::npos;) {
        names.push_back(name.substr(0, name.find_first_of(",.")));
      }
    }
  }
  return names;
}

TEST(ProgramTest, ExplainsEveryCommandWithin80Columns) {
  const std::vector<std::string> names = CommandNames();
  EXPECT_THAT(names,
              testing::IsSupersetOf(
                  {"serve",   "health", "search", "similar", "recommend", "lookup",   "fetch",
                   "fields",  "info",   "list",   "load",    "reload",    "rollback", "unload",
                   "inspect", "verify", "bench",  "config",  "version",   "help",     "completion",
                   "man",     "tune",   "plan",   "top",     "doctor"}));
  for (const std::string& command : names) {
    const ProgramRun run = RunProgram({command, "--help"});
    EXPECT_EQ(run.exit_code, 0) << command;
    EXPECT_THAT(run.printed, HasSubstr("\nUsage: simile " + command)) << command;
    EXPECT_EQ(run.errors, "") << command;
    EXPECT_EQ(RunProgram({"help", command}).printed, run.printed);
    std::istringstream help(run.printed);
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(ProgramTest, TheListOfCommandsFitsOneScreen) {
  const std::string help = RunProgram({"--help"}).printed;
  EXPECT_LE(std::ranges::count(help, '\n'), 30);
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(ProgramTest, VersionAndHelpAreCommandsToo) {
  EXPECT_EQ(RunProgram({"version"}).printed, RunProgram({"--version"}).printed);
  EXPECT_EQ(RunProgram({"version", "--verbose", "--json"}).printed,
            RunProgram({"--version", "--verbose", "--json"}).printed);
  EXPECT_THAT(RunProgram({"--version", "--verbose"}).printed, HasSubstr("nghttp2"));
  EXPECT_THAT(RunProgram({"--version", "--verbos"}).errors, HasSubstr("--verbose"));
  EXPECT_EQ(RunProgram({"help"}).printed, RunProgram({"--help"}).printed);
  const ProgramRun unknown = RunProgram({"help", "simlar"});
  EXPECT_EQ(unknown.exit_code, 64);
  EXPECT_EQ(unknown.errors, "error: no command \"simlar\". Did you mean \"similar\"?\n");
}

TEST(ProgramTest, EveryCommandOfACollectionOffersBothWaysToNameIt) {
  for (const std::string command :
       {"search", "similar", "recommend", "lookup", "fetch", "fields", "list", "load", "reload",
        "rollback", "unload", "verify", "bench", "health"}) {
    const std::string help = RunProgram({command, "--help"}).printed;
    EXPECT_THAT(help, AllOf(HasSubstr("\n  COLLECTION "), HasSubstr("\n  --collection NAME ")))
        << command;
  }
  EXPECT_THAT(RunProgram({"serve", "--help"}).printed,
              AllOf(HasSubstr("[NAME=FOLDER...]"), HasSubstr("--collection NAME=FOLDER ...")));
}

TEST(ProgramTest, ExitsWith64OnAWrongCommandLine) {
  EXPECT_EQ(RunProgram({"similar"}).exit_code, 64);
  EXPECT_EQ(RunProgram({"similar", "--id", "a", "--title", "b"}).exit_code, 64);
  EXPECT_EQ(RunProgram({"recommend"}).exit_code, 64);
  EXPECT_EQ(RunProgram({"health", "--colection", "films"}).exit_code, 64);
  EXPECT_EQ(RunProgram({"sevre"}).errors, "error: no command \"sevre\". Did you mean \"serve\"?\n");
}

TEST(ProgramTest, NamesTheFlagThatWasMeant) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 64);
    return run.errors.substr(0, run.errors.find('\n'));
  };
  EXPECT_EQ(error({"health", "--colection", "films"}),
            "error: health has no flag \"--colection\". Did you mean \"--collection\"?");
  EXPECT_EQ(error({"similar", "--id", "a", "--top-k", "4"}),
            "error: similar has no flag \"--top-k\". Did you mean \"-k\"?");
  EXPECT_EQ(error({"search", "films", "heat-1995", "--vector", "1"}),
            "error: search takes only COLLECTION; \"heat-1995\" is one too many. Write a text that "
            "holds spaces in quotes.");
  EXPECT_EQ(
      error({"recommend", "user_00042"}),
      "error: --user ID,... is required; \"user_00042\" alone names the collection. Did you mean "
      "--user user_00042?");
  EXPECT_EQ(
      error({"fetch", "heat-1995"}),
      "error: --id ID,... is required; \"heat-1995\" alone names the collection. Did you mean "
      "--id heat-1995?");
}

TEST(ProgramTest, SimilarSaysHowToNameAnItem) {
  const ProgramRun run = RunProgram({"similar"});
  EXPECT_EQ(run.exit_code, 64);
  EXPECT_EQ(run.errors,
            "error: say what to compare with: an id or a title, --id ID,..., --title TEXT, or "
            "--like ID,... and --unlike ID,...\n");
  const ProgramRun as_json = RunProgram({"similar", "--collection", "films", "--json"});
  EXPECT_EQ(as_json.exit_code, 64);
  EXPECT_EQ(json::parse(as_json.printed)["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(
      RunProgram({"similar", "films", "heat-1995", "--title", "Heat"}).errors,
      "error: \"heat-1995\" and --title both name an item; give one. Write a title in quotes\n");
  EXPECT_EQ(RunProgram({"similar", "--id", "heat-1995", "--field", "cast"}).errors,
            "error: --field says where to look for --title; give both\n");
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
  EXPECT_EQ(std::ranges::count(run.printed, '\n'), 1);
  const json printed = json::parse(run.printed);
  EXPECT_EQ(printed["status"], "UNREACHABLE");
  EXPECT_EQ(printed["error"]["code"], "UNAVAILABLE");
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

// Before anything is loaded, so that they also explain a start that fails.
TEST(ProgramTest, AStartSaysWhatVariablesOfOtherProgramsDid) {
  const ProgramRun run =
      RunProgram({"serve", "--collection", "a=/nowhere", "--port", "0", "--no-metrics"}, "",
                 {"SIMILE_BACKEND_TUNING=defaults", "USE_GPU=false", "INFERENCE_BATCH_SIZE=64",
                  "CUDA_MODULE_LOADING=LAZY", "NER_BATCH_SIZE=32", "WORKER_API_KEY=secret"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(
      run.errors,
      AllOf(HasSubstr("environment variable read variable=USE_GPU value=false "
                      "reader=\"this server\" effect=\"backend.preference is cpu instead of "
                      "auto\"\n"),
            HasSubstr("environment variables read that change nothing "
                      "variables=\"INFERENCE_BATCH_SIZE=64 (limits.batch_queries_max stays "
                      "1024), CUDA_MODULE_LOADING=LAZY\"\n"),
            HasSubstr("environment variables without effect here; `simile config --print` "
                      "says more variables=\"NER_BATCH_SIZE, WORKER_API_KEY\"\n"),
            Not(HasSubstr("secret"))));
}

TEST(ProgramTest, ConfigShowsTheTuningWithoutMeasuring) {
  const ProgramRun table = RunProgram({"config", "--print"});
  EXPECT_THAT(table.printed, HasSubstr("not measured yet; each serve measures"));
  const ProgramRun run = RunProgram({"config", "--json"}, "", {"SIMILE_BACKEND_TUNING=defaults"});
  json printed = json::parse(run.printed);
  ASSERT_FALSE(printed["tuning"].empty());
  EXPECT_EQ(printed["tuning"][0]["origin"], "every core this process may use");
  printed["tuning"].erase(0);
  for (const json& value : printed["tuning"]) {
    EXPECT_EQ(value["origin"], "default");
    EXPECT_EQ(value["value"], value["default"]);
  }
}

TEST(ProgramTest, TuneWritesWhatConfigThenShows) {
  const ScratchFolder scratch;
  const std::string file = scratch.path() / "tuning.json";
  const ProgramRun tuned =
      RunProgram({"tune", kFilms, "--duration", "1s", "--batch", "64", "--output", file});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.errors;
  EXPECT_THAT(tuned.printed,
              AllOf(HasSubstr("\nfilms: 5,000 vectors x 384\n"), HasSubstr("\ngather_share "),
                    HasSubstr("\nfilms, 1 query "), HasSubstr("\nwrote " + file + "\n")));
  const std::string variable = "SIMILE_BACKEND_TUNING_CACHE=" + file;
  const json printed = json::parse(RunProgram({"config", "--json"}, "", {variable}).printed);
  const std::string gather_share = printed["tuning"][3]["origin"];
  EXPECT_THAT(gather_share, testing::ContainsRegex("^(measured|tuned|default)"));
  // Once more, for the cache that serve reads; JSON this time.
  const std::string cache = scratch.path() / "cache.json";
  const ProgramRun again =
      RunProgram({"tune", "films=" + kFilms.string(), "--duration", "1s", "--json"}, "",
                 {"SIMILE_BACKEND_TUNING_CACHE=" + cache, "SIMILE_LIMITS_BATCH_QUERIES_MAX=16"});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  const json report = json::parse(again.printed);
  EXPECT_EQ(report["file"], cache);
  EXPECT_EQ(report["batch_queries_max"]["now"], 16);
  for (const json& search : report["searches"]) EXPECT_LE(search["batch"], 16);
}

TEST(ProgramTest, TuneSaysWhatItNeeds) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"tune"}, "nothing to measure: "},
      {{"tune", kFilms}, "no file to write to, "},
      {{"tune", kFilms, "--dry-run", "--duration", "6m"}, "--duration: from 1s to 5m"},
      {{"tune", kFilms, "--dry-run", "--duration", "long"}, "--duration: \"long\" is no time"},
      {{"tune", kFilms, "--dry-run", "--batch", "2000"}, "--batch: at most 1024"},
      {{"tune", kFilms, "--dry-run", "-k", "20000"}, "-k: at most 10000"},
      {{"tune", kFilms, "--dry-run", "--threads", "many"}, "--threads: \"many\" is not"}};
  for (const auto& [arguments, reason] : mistakes) {
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 64) << reason;
    EXPECT_THAT(run.errors, StartsWith("error: " + reason));
  }
  const ProgramRun unused =
      RunProgram({"tune", kFilms, "--dry-run"}, "", {"SIMILE_BACKEND_TUNING=defaults"});
  EXPECT_EQ(unused.exit_code, 1);
  EXPECT_THAT(unused.errors, StartsWith("error: backend.tuning is defaults"));
  EXPECT_EQ(RunProgram({"tune", "/nowhere/films", "--dry-run"}).errors,
            "error: films=/nowhere/films: the folder does not exist\n");
}

TEST(ProgramTest, ConfigAndServeRefuseTheSameMistakes) {
  for (const char* command : {"config", "serve"}) {
    const ProgramRun run = RunProgram({command}, "", {"SIMILE_SERVER_PROT=1"});
    EXPECT_EQ(run.exit_code, 64) << command;
    EXPECT_THAT(run.errors, HasSubstr("Did you mean \"SIMILE_SERVER_PORT\"?")) << command;
    const std::vector<std::vector<std::string>> mistakes = {
        {command},  // nothing to serve
        {command, "--allow-changes"},
        {command, "--port", "99999"},
        {command, "--collection", "x"},
        {command, "--collection", "my films=examples/films"},
        {command, "--log-format", "xml"},
        {command, "--config", "/no/such/file"}};
    for (const std::vector<std::string>& mistake : mistakes) {
      const ProgramRun refused = RunProgram(mistake);
      EXPECT_EQ(refused.exit_code, 64) << refused.errors;
      EXPECT_THAT(refused.errors, StartsWith("error: "));
      EXPECT_EQ(refused.printed, "");
    }
    EXPECT_THAT(RunProgram({command}).errors,
                StartsWith("error: nothing to serve: give --collection NAME=FOLDER, or "));
  }
}

TEST(ProgramTest, ServeOffersANameForAFolderThatHasNone) {
  const std::string folder = kFilms.string();
  EXPECT_EQ(RunProgram({"serve", folder}).errors,
            "error: --collection: \"" + folder +
                "\" is not NAME=FOLDER, as in films=examples/films. Did you mean films=" + folder +
                "?\n");
  EXPECT_EQ(RunProgram({"serve", "/nowhere/films"}).errors,
            "error: --collection: \"/nowhere/films\" is not NAME=FOLDER, as in "
            "films=examples/films\n");
}

TEST(ProgramTest, ConfigLooksWhetherFoldersHoldCollections) {
  const ProgramRun valid =
      RunProgram({"config", "--collection", "films=" + kFilms.string(), "--data-root", kFilms});
  EXPECT_EQ(valid.exit_code, 0) << valid.errors;
  EXPECT_THAT(valid.printed, StartsWith("the configuration is valid; 2 of "));

  const std::string gone = "/nowhere/films";
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{}, {"--print"}, {"--json"}}) {
    std::vector<std::string> arguments = {"config", "--collection", "films=" + gone, "--data-root",
                                          "/nowhere"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    const ProgramRun run = RunProgram(arguments);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.errors,
              "error: --collection: films=/nowhere/films: the folder does not exist\n"
              "error: --data-root: /nowhere: the folder does not exist\n");
    if (how == std::vector<std::string>{"--json"}) {
      const json problems = json::parse(run.printed)["problems"];
      ASSERT_EQ(problems.size(), 2U);
      EXPECT_EQ(problems[0]["key"], "collections.serve");
      EXPECT_EQ(problems[1]["message"], "/nowhere: the folder does not exist");
    }
  }
  const ProgramRun served =
      RunProgram({"serve", "--collection", "films=" + gone, "--port", "0", "--no-metrics"});
  EXPECT_EQ(served.exit_code, 1);
  EXPECT_THAT(served.errors,
              testing::EndsWith("error: films=/nowhere/films: the folder does not exist\n"));
  const ProgramRun wrong = RunProgram({"config", "--json", "--port", "99999"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_EQ(json::parse(wrong.printed)["error"]["code"], "INVALID_ARGUMENT");
}

// The exit code of `simile ARGUMENTS` in a shell.
int ExitInShell(const std::string& arguments) {
  const int status = std::system((std::string(SIMILE_PROGRAM) + " " + arguments).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ProgramTest, FailsWhenItsOutputIsLost) {
  EXPECT_EQ(ExitInShell("version >/dev/null"), 0);
  EXPECT_EQ(ExitInShell("version 1>&- 2>/dev/null"), 1);
  EXPECT_EQ(ExitInShell("version >/dev/full 2>/dev/null"), 1);
  EXPECT_EQ(ExitInShell("version 0<&- 1>&- 2>&-"), 1);
  EXPECT_EQ(ExitInShell("search --vector - 0<&- 2>/dev/null"), 64);
}

TEST(ProgramTest, LostErrorsChangeNoExitCode) {
  for (const std::string lost : {"2>&-", "2>/dev/full", "0<&- 2>&-"}) {
    EXPECT_EQ(ExitInShell("version >/dev/null " + lost), 0) << lost;
    EXPECT_EQ(ExitInShell("sevre " + lost), 64) << lost;
    EXPECT_EQ(ExitInShell("list --colection films " + lost), 64) << lost;
    EXPECT_EQ(ExitInShell("serve " + lost), 64) << lost;
    EXPECT_EQ(ExitInShell("inspect /nowhere " + lost), 1) << lost;
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

TEST(ProgramTest, InspectGivesNumbersAsNumbers) {
  const ProgramRun run = RunProgram({"inspect", kFilms, "--json"});
  EXPECT_EQ(std::ranges::count(run.printed, '\n'), 1);
  const json said = json::parse(run.printed);
  EXPECT_EQ(said["loads"], true);
  EXPECT_EQ(said["error"], nullptr);
  EXPECT_EQ(said["facts"]["rows"], 5'000);
  EXPECT_EQ(said["facts"]["dimensions"], 384);
  EXPECT_TRUE(said["facts"]["memory_bytes"]["total"].is_number_unsigned());
  EXPECT_TRUE(said["facts"]["lengths"]["shortest"].is_number_float());
  EXPECT_EQ(said["fields"].back(),
            (json{{"name", "year"}, {"type", "integer"}, {"rows", 5'000}, {"unfit_rows", 0}}));
  EXPECT_EQ(said["files"][0], (json{{"name", "content_vectors.npy"},
                                    {"role", "vectors"},
                                    {"bytes", 3'840'128},
                                    {"unread_reason", nullptr}}));
  EXPECT_EQ(said["unread_files"], said["files"].size() - 5);
}

TEST(ProgramTest, InspectSaysFirstWhatWasPassedOver) {
  const ScratchFolder scratch;
  scratch.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
  scratch.Write("metadata.jsonl",
                "{\"movieId\": 7, \"title\": \"A\"}\n{\"movieId\": 8, \"title\": \"B\"}\n");
  const ProgramRun run = RunProgram({"inspect", scratch.path()});
  EXPECT_THAT(run.printed, HasSubstr(": collection\n  note: metadata.jsonl: ids are row numbers; "
                                     "\"movieId\" is distinct in every row, and "));
}

TEST(ProgramTest, InspectSaysLastWhatWouldBeMissing) {
  const ScratchFolder scratch;
  scratch.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
  scratch.Write("metadata.csv", "id\na\nb\n");
  scratch.Write("user_ids.json", "[\"u\"]");
  scratch.Write("preference_vectors.npy", NpyFile({1, 0}, 2));
  scratch.Write("interactions.jsonl", "{\"user_id\": \"u\", \"id\": \"z\"}\n");
  const ProgramRun run = RunProgram({"inspect", scratch.path()});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, HasSubstr("\nwould load, without payload: metadata.csv is not read; "
                                     "pandas.read_csv(\"metadata.csv\")"));
  EXPECT_TRUE(
      run.printed.ends_with("; without interactions: no line of interactions.jsonl names a "
                            "known user and item\n"))
      << run.printed;
  EXPECT_THAT(run.printed, HasSubstr(" on the CPU (vectors "));
  const json said = json::parse(RunProgram({"inspect", scratch.path(), "--json"}).printed);
  EXPECT_EQ(said["left_out"].size(), 2U);
}

TEST(ProgramTest, InspectListsNoRefusedFileAsRead) {
  const ScratchFolder scratch;
  scratch.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
  scratch.Write("user_ids.json", "[\"u\"]");
  scratch.Write("preference_vectors.npy", NpyFile({1, 0}, 2));
  scratch.Write("interactions.jsonl", "{\"user\": \"u\"}\n");
  const ProgramRun run = RunProgram({"inspect", scratch.path()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.printed, testing::ContainsRegex("interactions.jsonl +[0-9]+ B +refused\n"));
  EXPECT_THAT(run.errors, HasSubstr("line 1: names no item; every line needs one of \"media_id\", "
                                    "\"item_id\", \"id\""));
}

TEST(ProgramTest, InspectReadsEveryRowUnlessToldToBeQuick) {
  const ScratchFolder scratch;
  scratch.Write("content_vectors.npy", NpyFile({1, 0, 0, 0}, 2));
  scratch.Write("metadata.csv", "id\na\nb\n");
  const ProgramRun whole = RunProgram({"inspect", scratch.path()});
  EXPECT_EQ(whole.exit_code, 1);
  EXPECT_THAT(whole.errors, StartsWith("error: content_vectors.npy: row 1 is all zeros"));
  EXPECT_THAT(whole.printed, Not(HasSubstr("would load")));
  EXPECT_THAT(whole.printed, HasSubstr("metadata.csv: not read: payload is read from"));

  const json error = json::parse(RunProgram({"inspect", scratch.path(), "--json"}).printed);
  EXPECT_EQ(error["loads"], false);
  EXPECT_EQ(error["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(error["error"]["reason"], "INVALID_FILES");

  const ProgramRun quick = RunProgram({"inspect", "--quick", scratch.path()});
  EXPECT_EQ(quick.exit_code, 0) << quick.errors;
  EXPECT_THAT(quick.printed, Not(HasSubstr("would load")));
  EXPECT_THAT(quick.printed, HasSubstr("not checked: the rows of content_vectors.npy"));
  const json unchecked =
      json::parse(RunProgram({"inspect", "--quick", scratch.path(), "--json"}).printed);
  EXPECT_EQ(unchecked["loads"], nullptr);
  EXPECT_EQ(unchecked["unchecked"], json::array({"the rows of content_vectors.npy"}));
}

TEST(ProgramTest, InspectGivesAPathThatCannotBeOpenedAsAnError) {
  const ProgramRun run = RunProgram({"inspect", "/nowhere/vectors.npy", "--json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(json::parse(run.printed)["error"]["code"], "NOT_FOUND");
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
  EXPECT_EQ(run.exit_code, 64);
  EXPECT_EQ(run.errors, "error: standard input: row 0, column 1: string where a number belongs\n");
}

}  // namespace
}  // namespace simile::cli

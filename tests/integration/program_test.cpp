#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/await_true.h"
#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/server_process.h"
#include "net/loopback.h"

namespace simile::integration {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Milliseconds = std::chrono::duration<double, std::milli>;

std::vector<std::string> FilmsArguments() {
  return {"--collection",   std::string("films=") + kFilmsFolder,
          "--port",         "0",
          "--metrics-port", "0",
          "--log-level",    "error"};
}

TEST(ProgramTest, PrintsWhatItServesAndStopsOnSigterm) {
  ServerProcess server(FilmsArguments());
  const std::string address = server.AwaitListening();
  ASSERT_FALSE(address.empty()) << server.output();
  EXPECT_THAT(server.output(), StartsWith("simile 0."));
  EXPECT_THAT(server.output(), HasSubstr("cpu engine (int8-"));
  EXPECT_THAT(server.output(), HasSubstr("films     5,000 vectors x 384 (cosine)  500 users"));
  EXPECT_THAT(server.output(), HasSubstr(", metrics on 127.0.0.1:"));
  EXPECT_EQ(Client(address).CheckHealth("films"), Health::kServing);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST(ProgramTest, StopsOnSigintWhileAClientIsConnected) {
  ServerProcess server(FilmsArguments());
  const Client client(server.AwaitListening());
  EXPECT_EQ(client.CheckHealth(""), Health::kServing);
  server.Signal(SIGINT);
  EXPECT_EQ(server.AwaitExit(), 0);
  EXPECT_EQ(client.CheckHealth(""), Health::kUnreachable);
}

TEST(ProgramTest, WritesItsPortIntoAFile) {
  const ScratchFolder scratch;
  std::vector<std::string> arguments = FilmsArguments();
  arguments.insert(arguments.end(), {"--port-file", (scratch.path() / "port").string()});
  ServerProcess server(arguments);
  const std::string address = server.AwaitListening();
  std::uint16_t port = 0;
  std::ifstream(scratch.path() / "port") >> port;
  EXPECT_EQ(address, "127.0.0.1:" + std::to_string(port));
}

// The address of a program whose output is not read, when it serves; empty when it ended first.
std::string AwaitServing(ServerProcess& server, const std::filesystem::path& port_file) {
  std::string address;
  bool serves = false;
  EXPECT_TRUE(base::AwaitTrue([&] {
    std::uint16_t port = 0;
    if (!(std::ifstream(port_file) >> port)) return server.HasEnded();
    address = "127.0.0.1:" + std::to_string(port);
    serves = Client(address).CheckHealth("films") == Health::kServing;
    return serves || server.HasEnded();
  }));
  return serves ? address : "";
}

void ExpectACleanStop(const ServerProcess::Circumstances& circumstances, const std::string& what) {
  const ScratchFolder scratch;
  const std::filesystem::path port_file = scratch.path() / "port";
  std::vector<std::string> arguments = FilmsArguments();
  arguments.insert(arguments.end(), {"--port-file", port_file.string()});
  ServerProcess server(arguments, circumstances);
  EXPECT_NE(AwaitServing(server, port_file), "") << what << server.output();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0) << what << server.output();
}

TEST(ProgramTest, StopsCleanlyWhicheverStandardStreamsAreClosed) {
  for (const std::vector<int>& closed :
       std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}) {
    ServerProcess::Circumstances circumstances;
    circumstances.closed_streams = closed;
    std::string what = "without";
    for (const int stream : closed) what += " " + std::to_string(stream);
    ExpectACleanStop(circumstances, what);
  }
}

TEST(ProgramTest, StopsCleanlyWhenItsFirstLinesCannotBeWritten) {
  ServerProcess::Circumstances circumstances;
  circumstances.standard_output = ServerProcess::Output::kFullDevice;
  ExpectACleanStop(circumstances, "/dev/full");
  circumstances.standard_output = ServerProcess::Output::kBrokenPipe;
  ExpectACleanStop(circumstances, "a broken pipe");
}

std::size_t CountOccurrences(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

const std::vector<std::string> kNotACollection = {
    "--collection", "books=" SIMILE_SOURCE_DIR "/src", "--port", "0", "--metrics-port", "0"};

TEST(ProgramTest, FailsWhenACollectionDoesNotLoad) {
  ServerProcess server(kNotACollection);
  EXPECT_EQ(server.AwaitListening(), "");
  EXPECT_EQ(server.AwaitExit(), 1);
  EXPECT_THAT(server.output(),
              HasSubstr("\nerror: books=" SIMILE_SOURCE_DIR "/src: no vectors in the folder"));
  EXPECT_EQ(CountOccurrences("no vectors in the folder", server.output()), 1U) << server.output();
}

// The lines that a server with a log of JSON prints to either stream, each of which must be JSON.
std::vector<json> JsonLines(const std::string& output) {
  std::vector<json> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(json::parse(line, nullptr, false));
    EXPECT_TRUE(lines.back().is_object()) << line;
  }
  return lines;
}

std::vector<std::string> WithJsonLog(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--log-format", "json"});
  return arguments;
}

TEST(ProgramTest, PrintsNothingButALogOfJsonWhenAsked) {
  ServerProcess server(WithJsonLog({"--collection", std::string("films=") + kFilmsFolder, "--port",
                                    "0", "--metrics-port", "0"}));
  const std::string address = server.AwaitListening();
  EXPECT_EQ(Client(address).CheckHealth("films"), Health::kServing) << server.output();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
  std::vector<std::string> messages;
  for (const json& line : JsonLines(server.output())) messages.push_back(line.value("message", ""));
  EXPECT_THAT(messages,
              ::testing::IsSupersetOf({"starting", "collection published", "collection ready",
                                       "note on a collection", "listening", "stopped"}));
}

TEST(ProgramTest, LogsAFailedStartAsOneLineOfJson) {
  ServerProcess server(WithJsonLog(kNotACollection));
  EXPECT_EQ(server.AwaitExit(), 1);
  const std::vector<json> lines = JsonLines(server.output());
  ASSERT_EQ(lines.size(), 2U) << server.output();
  EXPECT_EQ(lines[0].value("message", ""), "starting");
  EXPECT_EQ(lines[1].value("level", ""), "error");
  EXPECT_THAT(lines[1].value("message", ""),
              StartsWith("books=" SIMILE_SOURCE_DIR "/src: no vectors in the folder"));
}

TEST(ProgramTest, LogsMistakesInTheSettingsAsJsonToo) {
  const ScratchFolder scratch;
  std::ofstream(scratch.path() / "simile.json") << R"({"server": {"prot": 1}})";
  ServerProcess::Circumstances by_variable;
  by_variable.variables.emplace_back("SIMILE_LOG_FORMAT=json");
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {},
           {"--port", "99999"},
           {"--collection", "x"},
           {"--config", (scratch.path() / "simile.json").string()}}) {
    ServerProcess by_flag(WithJsonLog(wrong));
    EXPECT_EQ(by_flag.AwaitExit(), 64) << by_flag.output();
    EXPECT_EQ(JsonLines(by_flag.output()).size(), 1U) << by_flag.output();
    ServerProcess named(wrong, by_variable);
    EXPECT_EQ(named.AwaitExit(), 64) << named.output();
    EXPECT_EQ(JsonLines(named.output()).size(), 1U) << named.output();
  }
}

TEST(ProgramTest, AnswersScrapesWhileSixtyConnectionsToTheirPortAreSilent) {
  ServerProcess server(FilmsArguments());
  ASSERT_NE(server.AwaitListening(), "") << server.output();
  // The line of addresses is the last one and was written at once.
  const std::uint16_t port = ParsePort(server.output());
  std::vector<base::FileDescriptor> silent;
  for (int index = 0; index < 60; ++index) silent.push_back(net::ConnectTo(port));
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_EQ(MetricValue(ScrapeMetrics(port), "simile_rows{collection=\"films\"}"), kFilmsRows);
  const Milliseconds took = std::chrono::steady_clock::now() - asked;
  std::printf("scrape beside 60 silent connections %.1f ms\n", took.count());
  // The first of them is given up after two seconds.
  EXPECT_LT(took.count(), 1'000);
}

TEST(ProgramTest, LogsFailedCallsOnly) {
  ServerProcess server({"--collection", std::string("films=") + kFilmsFolder, "--port", "0",
                        "--metrics-port", "0", "--log-format", "json"});
  const Client client(server.AwaitListening());
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  v1::SearchResponse response;
  EXPECT_TRUE(client.Search(request, response, {{}, {{"x-request-id", "the served one"}}}).ok());
  request.mutable_queries(0)->set_k(0);
  EXPECT_FALSE(client.Search(request, response, {{}, {{"x-request-id", "the failed one"}}}).ok());
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
  EXPECT_THAT(server.output(), Not(HasSubstr("the served one")));
  EXPECT_THAT(server.output(),
              ContainsRegex("\\{\"time\":\"[^\"]*\",\"level\":\"warning\",\"message\":\"request "
                            "failed\",\"request_id\":\"the failed one\",\"rpc\":\"simile.v1."
                            "SearchService/Search\",\"duration_us\":[0-9]+,\"code\":"
                            "\"INVALID_ARGUMENT\",\"reason\":\"INVALID_FIELD\",\"error\":"
                            "\"queries.0..k: 0; ask for 1 to 10,000\"\\}\n"));
}

// A program that logs every call into a pipe that nobody reads, until lines of the log were lost.
TEST(ProgramTest, LogsWhatAServedRequestAskedForAndWhoAsked) {
  ServerProcess server({"--collection", std::string("films=") + kFilmsFolder, "--port", "0",
                        "--no-metrics", "--log-requests"});
  const Client client(server.AwaitListening());
  v1::SearchRequest search = ToyStory();
  search.mutable_queries(0)->set_k(3);
  *search.add_queries() = search.queries(0);
  search.mutable_queries(1)->set_k(7);
  v1::SearchResponse found;
  EXPECT_TRUE(client.Search(search, found).ok());
  EXPECT_TRUE(server.AwaitOutput(" collection=films queries=2 k=7 peer=ipv4:127.0.0.1:"))
      << server.output();
  v1::GetCollectionResponse got;
  EXPECT_TRUE(client.Get("films", got).ok());
  EXPECT_TRUE(server.AwaitOutput(" collection=films peer=ipv4:127.0.0.1:"));
}

class UnreadLogTest : public testing::Test {
 protected:
  UnreadLogTest() {
    address_ = server_.AwaitListening();
    const Client client(address_);
    Outcome outcome;
    EXPECT_TRUE(base::AwaitTrue([&] {
      v1::SearchResponse response;
      outcome = client.Search(ToyStory(), response, {{}, {{"x-request-id", id_}}});
      return !outcome.ok() || LinesDropped() >= 100;
    }));
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  }
  double LinesDropped() {
    // A scrape takes much longer than a call.
    if (++calls_ % 500 != 0) return 0;
    return MetricValue(ScrapeMetrics(server_.MetricsPort()), "simile_log_lines_dropped_total");
  }

  const std::string id_ = std::string(128, 'x');
  ServerProcess server_{{"--collection", std::string("films=") + kFilmsFolder, "--port", "0",
                         "--metrics-port", "0", "--log-requests"}};
  std::string address_;
  int calls_ = 0;
};

TEST_F(UnreadLogTest, SaysHowManyLinesAreMissingOnceItIsRead) {
  ASSERT_TRUE(
      server_.AwaitOutput("lines of this log were dropped: standard error did not take them"));
  EXPECT_EQ(Client(address_).CheckHealth("films"), Health::kServing);
  server_.Signal(SIGTERM);
  EXPECT_EQ(server_.AwaitExit(), 0);
  EXPECT_THAT(server_.output(), HasSubstr(" info stopped\n"));
}

TEST_F(UnreadLogTest, DoesNotHoldUpTheStop) {
  server_.Signal(SIGTERM);
  EXPECT_TRUE(base::AwaitTrue([this] { return server_.HasEnded(); }));
  EXPECT_EQ(server_.AwaitExit(), 0);
}

TEST(ProgramTest, ServesAgainAfterAKillAtAnyTime) {
  constexpr int kKills = 50;
  const auto started = std::chrono::steady_clock::now();
  const auto since = [](std::chrono::steady_clock::time_point begin) {
    return Milliseconds(std::chrono::steady_clock::now() - begin).count();
  };
  {
    ServerProcess server(FilmsArguments());
    ASSERT_NE(server.AwaitListening(), "");
  }
  // Kills happen between the first instruction and half as long again as the start takes.
  const double start_ms = since(started);
  const unsigned seed = std::random_device{}();
  std::printf("start to SERVING %.0f ms; times of the kills drawn with seed %u\n", start_ms, seed);
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> kill_after_ms(0, static_cast<int>(1.5 * start_ms));
  double slowest_ms = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    {
      ServerProcess victim(FilmsArguments());
      poll(nullptr, 0, kill_after_ms(random));
      victim.Signal(SIGKILL);
      ASSERT_EQ(victim.AwaitExit(), 128 + SIGKILL);
    }
    const auto restarted = std::chrono::steady_clock::now();
    ServerProcess server(FilmsArguments());
    const std::string address = server.AwaitListening();
    ASSERT_NE(address, "") << "after kill " << kill;
    slowest_ms = std::max(slowest_ms, since(restarted));
    ASSERT_EQ(Client(address).CheckHealth(""), Health::kServing) << "after kill " << kill;
  }
  std::printf("%d kills, SERVING again each time; slowest start %.0f ms\n", kKills, slowest_ms);
}

TEST(ProgramTest, SurvivesAFloodOfConnectionsWithFewDescriptors) {
  ServerProcess server(FilmsArguments(), {.descriptors = 64});
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const std::uint16_t port = ParsePort(address);
  {
    std::vector<base::FileDescriptor> flood;
    flood.reserve(300);
    for (int index = 0; index < 300; ++index) flood.push_back(net::ConnectTo(port));
  }
  const auto ended = std::chrono::steady_clock::now();
  // Serves again once it has seen that the connections are closed.
  EXPECT_TRUE(base::AwaitTrue([&] { return Client(address).CheckHealth("") == Health::kServing; }));
  const Milliseconds taken = std::chrono::steady_clock::now() - ended;
  std::printf("served %.0f ms after a flood of 300 connections\n", taken.count());
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

}  // namespace
}  // namespace simile::integration

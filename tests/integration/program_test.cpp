#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/server_process.h"
#include "net/loopback.h"

namespace simile::integration {
namespace {

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

std::uint16_t PortOf(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
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

TEST(ProgramTest, FailsWhenACollectionDoesNotLoad) {
  const std::string books = "books=" SIMILE_SOURCE_DIR "/src";
  ServerProcess server({"--collection", books, "--port", "0", "--metrics-port", "0"});
  EXPECT_EQ(server.AwaitListening(), "");
  EXPECT_EQ(server.AwaitExit(), 1);
  EXPECT_THAT(server.output(), HasSubstr("error: books: "));
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
  const std::uint16_t port = PortOf(address);
  {
    std::vector<base::FileDescriptor> flood;
    flood.reserve(300);
    for (int index = 0; index < 300; ++index) flood.push_back(net::ConnectTo(port));
  }
  // Serves again once it has seen that the connections are closed.
  while (Client(address).CheckHealth("") != Health::kServing) {
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

}  // namespace
}  // namespace simile::integration

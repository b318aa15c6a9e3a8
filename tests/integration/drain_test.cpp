#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/server_process.h"
#include "integration/stalling_relay.h"

namespace simile::integration {
namespace {

// A request for nine megabytes: more than a client's flow-control window (4 MiB) and the buffers of
// the sockets hold.
v1::SearchRequest LargeAnswer() {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_options()->set_k(kFilmsRows);
  request.mutable_options()->set_with_vectors(true);
  request.mutable_options()->set_reply_bytes_max(64U << 20);
  return request;
}

double InFlight(std::uint16_t metrics_port) {
  return MetricValue(ScrapeMetrics(metrics_port), "simile_requests_in_flight");
}

// A call whose answer is being sent to a client that reads it only after Read().
class HeldCall {
 public:
  HeldCall(std::uint16_t port, std::uint16_t metrics_port) : relay_(port) {
    EXPECT_EQ(client_.CheckHealth(""), Health::kServing);  // connected
    relay_.Stall();
    outcome_ = std::async(std::launch::async, [this] {
      v1::SearchResponse response;
      return client_.Search(LargeAnswer(), response);
    });
    while (InFlight(metrics_port) < 1) {
    }
  }

  void Read() { relay_.Flow(); }
  Outcome AwaitEnd() { return outcome_.get(); }

 private:
  StallingRelay relay_;
  const Client client_{relay_.address()};
  std::future<Outcome> outcome_;
};

TEST(DrainTest, WaitsForACallInFlight) {
  FilmsServer server;
  const std::uint16_t metrics_port = *server.app().metrics_port();
  HeldCall call(server.app().port(), metrics_port);
  std::future<bool> drained =
      std::async(std::launch::async, [&server] { return server.app().Drain(); });
  // The drain has begun when no new connection is accepted; the call is still in flight.
  while (server.NewClient().CheckHealth("") != Health::kUnreachable) {
  }
  EXPECT_EQ(InFlight(metrics_port), 1);
  call.Read();
  const Outcome outcome = call.AwaitEnd();
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_TRUE(drained.get());
}

TEST(DrainTest, EndsBeforeACallThatTakesTooLong) {
  FilmsServer server(
      [](app::Config& config) { config.limits.drain_timeout = std::chrono::milliseconds(20); });
  HeldCall call(server.app().port(), *server.app().metrics_port());
  EXPECT_FALSE(server.app().Drain());
  call.Read();
  EXPECT_TRUE(call.AwaitEnd().ok());
}

const std::vector<std::string> kServeFilms = {
    "--collection", std::string("films=") + kFilmsFolder, "--port", "0", "--metrics-port", "0"};

std::uint16_t PortAtTheEndOf(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

// From the line of addresses, which is one write.
std::uint16_t MetricsPortOf(const std::string& output) {
  const std::string mark = "metrics on 127.0.0.1:";
  return static_cast<std::uint16_t>(std::stoi(output.substr(output.find(mark) + mark.size())));
}

ServerProcess::Circumstances WithDrainDelay(const std::string& milliseconds) {
  ServerProcess::Circumstances circumstances;
  circumstances.variables.push_back("SIMILE_LIMITS_DRAIN_DELAY=" + milliseconds);
  return circumstances;
}

// What a new client meets at a server that only says that it stops.
void ExpectTakesCallsThoughNotServing(const std::string& address) {
  const Client client(address);
  EXPECT_EQ(client.CheckHealth(""), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  v1::SearchResponse response;
  const Outcome outcome = client.Search(ToyStory(), response);
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
}

TEST(DrainDelayTest, TakesCallsUntilItIsOver) {
  ServerProcess server(kServeFilms, WithDrainDelay("2000"));
  const std::string address = server.AwaitListening();
  server.Signal(SIGTERM);
  ASSERT_TRUE(server.AwaitOutput("calls are still taken"));
  ExpectTakesCallsThoughNotServing(address);
  EXPECT_EQ(server.AwaitExit(), 0);
  EXPECT_THAT(server.output(), testing::HasSubstr("no new calls"));
}

TEST(DrainDelayTest, EndsAtOnceOnASecondSignal) {
  ServerProcess server(kServeFilms, WithDrainDelay("600000"));
  const std::string address = server.AwaitListening();
  server.Signal(SIGTERM);
  ASSERT_TRUE(server.AwaitOutput("calls are still taken"));
  ExpectTakesCallsThoughNotServing(address);
  server.Signal(SIGINT);
  EXPECT_EQ(server.AwaitExit(), 128 + SIGINT);
}

// The program, started with --die-with-parent by a shell that then waits for it.
class ParentTest : public testing::Test {
 protected:
  ParentTest() {
    scratch_.Write("parent", "#!/bin/sh\n" SIMILE_PROGRAM
                             " \"$@\" --die-with-parent &\necho \"server is $!.\"\nwait\n");
    const std::filesystem::path script = scratch_.path() / "parent";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    ServerProcess::Circumstances circumstances;
    circumstances.program = script.string();
    parent_.emplace(kServeFilms, circumstances);
    address_ = parent_->AwaitListening();
    EXPECT_NE(address_, "") << parent_->output();
  }

  pid_t ServerPid() const {
    const std::string mark = "server is ";
    const std::string& output = parent_->output();
    return std::stoi(output.substr(output.find(mark) + mark.size()));
  }

  const ScratchFolder scratch_;
  std::optional<ServerProcess> parent_;
  std::string address_;
};

TEST_F(ParentTest, StopsTheServerByItsEnd) {
  parent_->Signal(SIGKILL);
  // Its output ends with the server.
  EXPECT_EQ(parent_->AwaitExit(), 128 + SIGKILL);
  EXPECT_THAT(parent_->output(),
              testing::HasSubstr("the process that started the server has ended"));
  EXPECT_THAT(parent_->output(), testing::EndsWith("stopped\n"));
}

// As when Ctrl-C ends both.
TEST_F(ParentTest, IsNoSecondSignalByItsEnd) {
  HeldCall call(PortAtTheEndOf(address_), MetricsPortOf(parent_->output()));
  kill(ServerPid(), SIGTERM);
  ASSERT_TRUE(parent_->AwaitOutput("stopping"));
  parent_->Signal(SIGKILL);
  while (!parent_->HasEnded()) {
  }
  call.Read();
  const Outcome outcome = call.AwaitEnd();
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  parent_->AwaitExit();
  EXPECT_THAT(parent_->output(), testing::EndsWith("stopped\n"));
}

// The program after SIGTERM, with a call in flight.
class ProgramDrainTest : public testing::Test {
 protected:
  ProgramDrainTest() {
    address_ = server_.AwaitListening();
    metrics_port_ = MetricsPortOf(server_.output());
    call_.emplace(PortAtTheEndOf(address_), metrics_port_);
    server_.Signal(SIGTERM);
    EXPECT_TRUE(server_.AwaitOutput("stopping"));
  }

  ServerProcess server_{kServeFilms};
  std::string address_;
  std::uint16_t metrics_port_ = 0;
  std::optional<HeldCall> call_;
};

TEST_F(ProgramDrainTest, EndsWithTheCallThatWasInFlight) {
  EXPECT_EQ(InFlight(metrics_port_), 1);
  call_->Read();
  EXPECT_TRUE(call_->AwaitEnd().ok());
  EXPECT_EQ(server_.AwaitExit(), 0);
}

TEST_F(ProgramDrainTest, EndsAtOnceOnASecondSignal) {
  server_.Signal(SIGTERM);
  EXPECT_EQ(server_.AwaitExit(), 128 + SIGTERM);
  call_->Read();
  EXPECT_EQ(call_->AwaitEnd().code, absl::StatusCode::kUnavailable);
}

TEST_F(ProgramDrainTest, ExitsWithTheNumberOfTheSecondSignal) {
  server_.Signal(SIGINT);
  EXPECT_EQ(server_.AwaitExit(), 128 + SIGINT);
  call_->Read();
  EXPECT_FALSE(call_->AwaitEnd().ok());
}

}  // namespace
}  // namespace simile::integration

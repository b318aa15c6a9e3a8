#include <chrono>
#include <csignal>
#include <future>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// The program after SIGTERM, with a call in flight.
class ProgramDrainTest : public testing::Test {
 protected:
  ProgramDrainTest() {
    address_ = server_.AwaitListening();
    const std::string mark = "metrics on 127.0.0.1:";
    const std::size_t place = server_.output().find(mark) + mark.size();  // one line, one write
    metrics_port_ = Number(server_.output().substr(place));
    call_.emplace(Number(address_.substr(address_.rfind(':') + 1)), metrics_port_);
    server_.Signal(SIGTERM);
    EXPECT_TRUE(server_.AwaitOutput("stopping"));
  }

  static std::uint16_t Number(const std::string& text) {
    return static_cast<std::uint16_t>(std::stoi(text));
  }

  ServerProcess server_{
      {"--collection", std::string("films=") + kFilmsFolder, "--port", "0", "--metrics-port", "0"}};
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

// What the transport does with callers that misbehave, and with old connections.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <future>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "integration/films_server.h"
#include "integration/honest_client.h"
#include "integration/raw_call.h"
#include "integration/server_process.h"
#include "integration/stalling_relay.h"
#include "service/grpc/messages.h"
#include "simile/v1/search.pb.h"

namespace simile::integration {
namespace {

// Callers that do not read their replies; each has a connection of its own.
class UnreadReplyTest : public testing::Test {
 protected:
  FilmsServer server_{[](app::Config& config) {
    // Far more than a search of six megabytes takes, also on a busy machine.
    config.limits.search_deadline_max = std::chrono::seconds(2);
    config.limits.search_deadline_default = std::chrono::seconds(2);
  }};
  const std::uint16_t metrics_port_ = *server_.app().metrics_port();
};

constexpr char kUnsentBytes[] = "simile_budget_bytes{budget=\"unsent_replies\"}";
constexpr char kOpenConnections[] = "simile_connections{state=\"open\"}";
constexpr char kNotTaken[] = "simile_rejected_total{reason=\"reply_not_taken\"}";

TEST_F(UnreadReplyTest, IsCutAfterTheLongestDeadline) {
  constexpr int kCallers = 4;
  std::vector<RawCall> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back(server_.app().address(), kSearchMethod);
    ASSERT_TRUE(callers.back().Send(SixMegabytes().SerializeAsString()));
    callers.back().HalfClose();
  }
  ASSERT_TRUE(AwaitMetric(metrics_port_, kNotTaken, kCallers));
  ASSERT_TRUE(AwaitMetric(metrics_port_, kInFlight, 0));
  for (RawCall& caller : callers) {
    while (caller.Read()) {
    }
    EXPECT_EQ(caller.AwaitEnd().code, absl::StatusCode::kCancelled);
  }
}

TEST_F(UnreadReplyTest, IsCutWithItsStream) {
  RawCall caller(server_.app().address(), kSearchStreamMethod);
  v1::SearchStreamRequest request;
  *request.mutable_search() = SixMegabytes();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(caller.Send(request.SerializeAsString()));
  ASSERT_TRUE(AwaitMetric(metrics_port_, kNotTaken, 1));
  ASSERT_TRUE(AwaitMetric(metrics_port_, kInFlight, 0));
}

TEST_F(UnreadReplyTest, DoesNotCutAStreamThatIsIdle) {
  RawCall idle(server_.app().address(), kSearchStreamMethod);
  v1::SearchStreamRequest request;
  *request.mutable_search() = ToyStory();
  ASSERT_TRUE(idle.Send(request.SerializeAsString()));
  ASSERT_TRUE(idle.Read().has_value());
  RawCall unread(server_.app().address(), kSearchMethod);
  ASSERT_TRUE(unread.Send(SixMegabytes().SerializeAsString()));
  unread.HalfClose();
  // Meanwhile the longest deadline passes.
  ASSERT_TRUE(AwaitMetric(metrics_port_, kNotTaken, 1));
  ASSERT_TRUE(idle.Send(request.SerializeAsString()));
  EXPECT_TRUE(idle.Read().has_value());
}

// Replies that nobody reads leave no memory: a stream's error is sent all the same, in its shortest
// form.
TEST(UnreadErrorTest, IsSentWithoutItsDetailsWhenThereIsNoMemoryForThem) {
  FilmsServer server([](app::Config& config) { config.limits.unsent_bytes_max = 1U << 20; });
  RawCall stream(server.app().address(), kSearchStreamMethod,
                 {{"x-request-id", std::string(100, 'x')}});
  v1::SearchStreamRequest request;
  *request.mutable_search() = ToyStory();
  request.mutable_search()->mutable_queries(0)->set_filter(std::string(50, 'x') + ":1");
  const auto refuse = [&] {
    EXPECT_TRUE(stream.Send(request.SerializeAsString()));
    v1::SearchStreamResponse response;
    EXPECT_TRUE(response.ParseFromString(stream.Read().value_or("")));
    return response;
  };
  const v1::SearchStreamResponse whole = refuse();
  ASSERT_GT(whole.ByteSizeLong(), service::kUncountedReplyBytes) << whole.DebugString();
  EXPECT_GT(whole.error().details_size(), 0);
  RawCall unread(server.app().address(), kSearchMethod);
  ASSERT_TRUE(unread.Send(SixMegabytes().SerializeAsString()));
  unread.HalfClose();
  const std::uint16_t metrics_port = *server.app().metrics_port();
  ASSERT_TRUE(AwaitMetric(metrics_port, kUnsentBytes, testing::Ge(1U << 20)));
  const v1::SearchStreamResponse shortened = refuse();
  EXPECT_LE(shortened.ByteSizeLong(), service::kUncountedReplyBytes);
  EXPECT_EQ(shortened.error().code(), whole.error().code());
  EXPECT_EQ(shortened.error().message(), whole.error().message());
  EXPECT_EQ(shortened.error().details_size(), 0);
  unread.Cancel();
  EXPECT_TRUE(AwaitMetric(metrics_port, kInFlight, 0));
}

// A peer whose machine hangs: it takes nothing any more, and gRPC waits for it.
TEST(StalledPeerTest, IsDisconnectedAndItsCallEnds) {
  FilmsServer server([](app::Config& config) {
    config.limits.keepalive_timeout = std::chrono::seconds(1);  // the call is seen in flight before
  });
  StallingRelay relay(server.app().port());
  RawCall caller(relay.address(), kSearchMethod);
  const std::uint16_t metrics_port = *server.app().metrics_port();
  v1::SearchRequest request = SixMegabytes();
  request.mutable_options()->set_k(5'000);
  ASSERT_TRUE(caller.Send(request.SerializeAsString()));
  relay.Stall();
  caller.HalfClose();
  ASSERT_TRUE(AwaitMetric(metrics_port, kInFlight, testing::Ge(1)));
  EXPECT_TRUE(AwaitMetric(metrics_port, kInFlight, 0));
}

// A client whose process is stopped, as by SIGSTOP: its kernel still acknowledges, until its
// buffers are full.
struct StoppedClient {
  std::string name;
  std::vector<std::string> flags;  // of `simile bench`
};
void PrintTo(const StoppedClient& client, std::ostream* out) { *out << client.name; }

// A whole reply with payload has 1.2 MB: many fill the buffers.
std::vector<StoppedClient> StoppedClients() {
  return {{"SmallReplies", {}},
          {"LargeReplies", {"-k", "5000", "--payload", "all"}},
          {"LargeRepliesOfAStream", {"-k", "5000", "--payload", "all", "--stream"}}};
}

class StoppedClientTest : public testing::TestWithParam<StoppedClient> {
 protected:
  FilmsServer server_{[](app::Config& config) {
    config.limits.keepalive_time = std::chrono::milliseconds(500);
    config.limits.keepalive_timeout = std::chrono::milliseconds(2'000);
    config.limits.search_deadline_max = std::chrono::minutes(10);  // keepalive alone ends a call
  }};
  const std::uint16_t metrics_port_ = *server_.app().metrics_port();
};

TEST_P(StoppedClientTest, IsCutWhileOthersAreServedAndComesBack) {
  HonestClient honest(server_.NewClient(), ToyStory(), [](const v1::SearchResponse& response) {
    return testing::AssertionResult(response.results(0).hits_size() == 10);
  });
  honest.AwaitAnswer();
  const double connections = MetricValue(ScrapeMetrics(metrics_port_), kOpenConnections);
  std::vector<std::string> arguments = {
      "--server", server_.app().address(), "--connections", "2", "--duration", "10m"};
  std::ranges::copy(GetParam().flags, std::back_inserter(arguments));
  // A connection without calls answers the server's pings as often as gRPC looks at it: each 5 s by
  // default.
  ServerProcess client(
      arguments,
      {.command = "bench", .variables = {"GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS=100"}});
  // Waits for more calls than the one of the honest client.
  const auto await_calls = [&](int connections_of_client) {
    ASSERT_TRUE(AwaitMetric(metrics_port_, kOpenConnections,
                            testing::Ge(connections + connections_of_client)));
    ASSERT_TRUE(AwaitMetric(metrics_port_, kInFlight, testing::Ge(2)));
    ASSERT_FALSE(client.HasEnded());
  };
  await_calls(2);
  if (HasFatalFailure()) return;
  client.Signal(SIGSTOP);
  ASSERT_TRUE(AwaitMetric(metrics_port_, kOpenConnections, connections));
  ASSERT_TRUE(AwaitMetric(metrics_port_, kInFlight, testing::Le(1)));
  honest.AwaitAnswer();
  client.Signal(SIGCONT);
  await_calls(1);
  if (HasFatalFailure()) return;
  std::printf("stopped client: %s\n", SearchTimesText(honest.End()).c_str());
  client.Signal(SIGINT);
  EXPECT_EQ(client.AwaitExit(), 128 + SIGINT) << client.output();
}

INSTANTIATE_TEST_SUITE_P(All, StoppedClientTest, testing::ValuesIn(StoppedClients()),
                         [](const auto& client) { return client.param.name; });

TEST(ConnectionAgeTest, SendsAConnectionAwayThatIsTooOld) {
  FilmsServer server([](app::Config& config) {
    config.limits.connection_age_max = std::chrono::milliseconds(50);
    config.limits.connection_age_grace = std::chrono::minutes(1);  // for the search at the end
  });
  const auto channel =
      grpc::CreateChannel(server.app().address(), grpc::InsecureChannelCredentials());
  const auto deadline = std::chrono::system_clock::now() + std::chrono::minutes(1);
  ASSERT_TRUE(channel->WaitForConnected(deadline));
  EXPECT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY, deadline));
  v1::SearchResponse response;
  EXPECT_TRUE(server.NewClient().Search(ToyStory(), response).ok());
}

// Makes many calls at once on few connections, and cancels some. Each call ends, and none is
// counted twice.
TEST(TransportTest, EndsEveryCallOnceWhateverComesTogether) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 100;
  FilmsServer server;
  std::vector<std::future<void>> callers;
  for (int thread = 0; thread < kThreads; ++thread) {
    callers.push_back(std::async(std::launch::async, [&server, thread] {
      for (int i = 0; i < kCalls; ++i) {
        RawCall call(server.app().address(), kSearchMethod);
        ASSERT_TRUE(call.Send(ToyStory().SerializeAsString()));
        if ((thread + i) % 3 == 0) continue;  // its destructor cancels it
        call.HalfClose();
        ASSERT_TRUE(call.Read().has_value());
        ASSERT_TRUE(call.AwaitEnd().ok());
      }
    }));
  }
  for (std::future<void>& caller : callers) caller.get();
  const std::uint16_t metrics_port = *server.app().metrics_port();
  EXPECT_TRUE(AwaitMetric(metrics_port, kInFlight, 0));
}

}  // namespace
}  // namespace simile::integration

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "simile/v1/search.grpc.pb.h"

namespace simile::integration {
namespace {

TEST(ServingStateTest, AnswersHealthBeforeAndAfterLoading) {
  const auto app = StartWithoutLoading();
  const Client client(app->address());
  EXPECT_EQ(client.CheckHealth(""), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("films"), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("books"), Health::kUnknownService);
  ASSERT_TRUE(app->LoadCollections({}).ok());
  EXPECT_EQ(client.CheckHealth(""), Health::kServing);
  EXPECT_EQ(client.CheckHealth("films"), Health::kServing);
}

TEST(ServingStateTest, IsAliveAndServesWhileCollectionsComeAndGo) {
  const ScratchFolder root;
  CopyFilms(root.path() / "more");
  const FilmsServer server([&](app::Config& config) {
    config.changes_allowed = true;
    config.data_root = root.path();
  });
  const Client client = server.NewClient();
  v1::LoadCollectionRequest request;
  request.set_collection("more");
  request.set_folder("more");
  int checks = 0;
  ChangeAnswer answer;
  const Outcome outcome = client.Load(request, answer, {}, [&](const v1::ChangeProgress&) {
    ++checks;
    EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
    EXPECT_EQ(client.CheckHealth(""), Health::kServing);
    EXPECT_EQ(client.CheckHealth("films"), Health::kServing);
    return true;
  });
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_GT(checks, 0);
  EXPECT_EQ(client.CheckHealth("more"), Health::kServing);
  ASSERT_TRUE(client.Unload("films").ok());
  ASSERT_TRUE(client.Unload("more").ok());
  EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  EXPECT_EQ(client.CheckHealth(""), Health::kServing);
}

TEST(ServingStateTest, LetsNoCollectionTakeTheNameOfItsLiveness) {
  const FilmsServer server([](app::Config& config) {
    config.changes_allowed = true;
    config.data_root = kFilmsFolder;
  });
  ChangeAnswer answer;
  const Outcome outcome = server.NewClient().Load("liveness", ".", answer);
  EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument) << testing::PrintToString(outcome);
  EXPECT_EQ(outcome.reason, "INVALID_FIELD");
  EXPECT_EQ(outcome.field, "collection");
  EXPECT_EQ(server.NewClient().CheckHealth("liveness"), Health::kServing);
}

TEST(ServingStateTest, OffersReflectionOnlyWhenEnabled) {
  const auto closed = StartWithoutLoading();
  std::vector<std::string> services;
  EXPECT_EQ(Client(closed->address()).ListServices(services).code,
            absl::StatusCode::kUnimplemented);
  const auto open = StartWithoutLoading([](app::Config& config) { config.reflection = true; });
  const Outcome outcome = Client(open->address()).ListServices(services);
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_THAT(services, testing::UnorderedElementsAre(
                            "simile.v1.SearchService", "simile.v1.LookupService",
                            "simile.v1.CollectionService", "simile.v1.AdminService",
                            "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                            "grpc.reflection.v1alpha.ServerReflection"));
}

TEST(ServingStateTest, DrainFinishesCallsInFlightAndRefusesNewOnes) {
  FilmsServer server;
  constexpr int kClients = 4;
  std::atomic<int> warm = 0;
  std::vector<std::thread> threads;
  threads.reserve(kClients);
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&] {
      const Client client = server.NewClient();
      for (bool first = true;; first = false) {
        v1::SearchResponse response;
        const Outcome outcome = client.Search(ToyStory(), response);
        if (first) {
          ++warm;
          warm.notify_all();
        }
        if (outcome.ok()) {
          ASSERT_EQ(response.results(0).hits_size(), 10);
          continue;
        }
        // A call can only fail because it came too late.
        ASSERT_EQ(outcome.code, absl::StatusCode::kUnavailable) << testing::PrintToString(outcome);
        return;
      }
    });
  }
  for (int seen = 0; (seen = warm) < kClients;) warm.wait(seen);
  EXPECT_TRUE(server.app().Drain());
  for (std::thread& thread : threads) thread.join();
  // No new connection is accepted.
  EXPECT_EQ(server.NewClient().CheckHealth(""), Health::kUnreachable);
}

TEST(ServingStateTest, EndsACallWhoseDeadlineHasPassed) {
  const FilmsServer server;
  v1::SearchResponse response;
  const Outcome outcome =
      server.NewClient().Search(ToyStory(), response, {std::chrono::seconds(-1), {}});
  EXPECT_EQ(outcome.code, absl::StatusCode::kDeadlineExceeded) << testing::PrintToString(outcome);
}

// Beyond what nanoseconds since 1970 can say.
TEST(ServingStateTest, AnswersACallWithADeadlineInTheYear3000) {
  FilmsServer server;
  const auto stub = v1::SearchService::NewStub(
      grpc::CreateChannel(server.app().address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(gpr_timespec{32'503'680'000, 0, GPR_CLOCK_REALTIME});
  v1::SearchResponse response;
  const grpc::Status status = stub->Search(&context, ToyStory(), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(ServingStateTest, KeepsServingAfterCancelledCalls) {
  const FilmsServer server;
  const Client client = server.NewClient();
  v1::SearchRequest request = ToyStory();
  for (int query = 1; query < 64; ++query) *request.add_queries() = request.queries(0);
  for (int turn = 0; turn < 50; ++turn) {
    const Outcome outcome = client.SearchAndCancel(request);
    EXPECT_TRUE(outcome.ok() || outcome.code == absl::StatusCode::kCancelled)
        << testing::PrintToString(outcome);
  }
  v1::SearchResponse response;
  EXPECT_TRUE(client.Search(ToyStory(), response).ok());
}

TEST(ServingStateTest, LimitsTheConnectionsOfOnePeer) {
  FilmsServer server([](app::Config& config) { config.limits.connections_per_peer_max = 3; });
  std::vector<Client> clients;
  for (int index = 0; index < 3; ++index) {
    clients.push_back(server.NewClient());
    EXPECT_EQ(clients.back().CheckHealth(""), Health::kServing);
  }
  EXPECT_EQ(server.NewClient().CheckHealth(""), Health::kUnreachable);
  const std::uint16_t metrics_port = *server.app().metrics_port();
  EXPECT_EQ(MetricValue(ScrapeMetrics(metrics_port), "simile_connections{state=\"open\"}"), 3);
  EXPECT_GE(MetricValue(ScrapeMetrics(metrics_port),
                        "simile_rejected_total{reason=\"connections_per_peer\"}"),
            1);
  // When one disconnects, another may connect as soon as the socket is closed.
  clients.pop_back();
  EXPECT_TRUE(AwaitMetric(metrics_port, "simile_connections{state=\"open\"}", testing::Ne(3)));
  EXPECT_EQ(server.NewClient().CheckHealth(""), Health::kServing);
}

TEST(ServingStateTest, ExposesMetricsOfItsCalls) {
  FilmsServer server;
  const Client client = server.NewClient();
  v1::SearchResponse response;
  ASSERT_TRUE(client.Search(ToyStory(), response).ok());
  v1::SearchRequest wrong = ToyStory();
  wrong.set_collection("film");
  ASSERT_FALSE(client.Search(wrong, response).ok());
  const std::string metrics = ScrapeMetrics(*server.app().metrics_port());
  const std::string labels =
      "{rpc_method=\"simile.v1.SearchService/Search\",rpc_response_status_code=";
  EXPECT_EQ(MetricValue(metrics, "rpc_server_call_duration_seconds_count" + labels + "\"OK\"}"), 1);
  EXPECT_EQ(
      MetricValue(metrics, "rpc_server_call_duration_seconds_count" + labels + "\"NOT_FOUND\"}"),
      1);
  EXPECT_EQ(MetricValue(metrics, "simile_rows{collection=\"films\"}"), kFilmsRows);
  EXPECT_GT(MetricValue(metrics, "simile_snapshot_loaded_timestamp_seconds{collection=\"films\"}"),
            1.7e9);
  EXPECT_EQ(MetricValue(metrics, "simile_backend_active{backend=\"cpu\"}"), 1);
  EXPECT_EQ(MetricValue(metrics, "simile_batch_size_count"), 1);
  EXPECT_EQ(MetricValue(metrics, "simile_queue_wait_seconds_count"), 1);
  EXPECT_EQ(MetricValue(metrics, "simile_search_duration_seconds_count{backend=\"cpu\"}"), 1);
  EXPECT_EQ(MetricValue(metrics, "simile_rescored_rows_count"), 1);
  EXPECT_EQ(MetricValue(metrics, "simile_queue_depth{lane=\"plain\"}"), 0);
  EXPECT_GT(MetricValue(metrics, "process_resident_memory_bytes"), 9e6);
  EXPECT_THAT(metrics, testing::HasSubstr("simile_build_info{"));
}

}  // namespace
}  // namespace simile::integration

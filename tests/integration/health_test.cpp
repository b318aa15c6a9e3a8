#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/films_server.h"
#include "integration/raw_call.h"

namespace simile::integration {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
// HealthCheckResponse: field 1, the status.
const std::string kServing("\x08\x01");
const std::string kNotServing("\x08\x02");

// A watch of a service's health; Read gives its status now, then each change.
RawCall Watch(const app::App& app, const std::string& service) {
  RawCall call(app.address(), kWatch);
  const std::string field_1 = "\x0a";
  EXPECT_TRUE(call.Send(field_1 + static_cast<char>(service.size()) + service));
  call.HalfClose();
  return call;
}

TEST(HealthTest, IsTrueOfLivenessBeforeTheLoadDuringItAndWhileTheServerStops) {
  const auto app = StartWithoutLoading();
  const Client client(app->address());
  EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  EXPECT_EQ(client.CheckHealth(""), Health::kNotServing);
  std::promise<absl::Status> loaded;
  std::future<absl::Status> result = loaded.get_future();
  std::thread load([&] { loaded.set_value(app->LoadCollections({})); });
  while (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  }
  load.join();
  ASSERT_TRUE(result.get().ok());
  EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  EXPECT_EQ(client.CheckHealth(""), Health::kServing);
  EXPECT_TRUE(app->AnnounceDrain());
  EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  EXPECT_EQ(client.CheckHealth(""), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("films"), Health::kNotServing);
}

TEST(HealthTest, TellsProbesOfTheLoadAndOfTheDrain) {
  const auto app = StartWithoutLoading();
  const std::uint16_t port = *app->metrics_port();
  const auto expect_ready = [&](const std::string& status, const std::string& text) {
    const std::string ready = GetPage(port, "/readyz");
    EXPECT_THAT(ready, StartsWith("HTTP/1.1 " + status + "\r\n"));
    EXPECT_THAT(ready, EndsWith("\r\n\r\n" + text + "\n"));
    EXPECT_THAT(GetPage(port, "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  };
  expect_ready("503 Service Unavailable", "starting");
  ASSERT_TRUE(app->LoadCollections({}).ok());
  expect_ready("200 OK", "serving");
  EXPECT_TRUE(app->AnnounceDrain());
  expect_ready("503 Service Unavailable", "draining");
  EXPECT_TRUE(app->Drain());
  expect_ready("503 Service Unavailable", "draining");
}

TEST(HealthTest, SaysNotServingWhileCallsAreStillTaken) {
  FilmsServer server;
  EXPECT_TRUE(server.app().AnnounceDrain());
  const Client client = server.NewClient();
  EXPECT_EQ(client.CheckHealth(""), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("films"), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  v1::SearchResponse response;
  const Outcome outcome = client.Search(ToyStory(), response);
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_FALSE(server.app().AnnounceDrain()) << "nobody is told anything new";
}

TEST(HealthTest, StaysNotServingWhenACollectionComesWhileTheServerStops) {
  const auto app = StartWithoutLoading();
  EXPECT_FALSE(app->AnnounceDrain()) << "nobody was told that it serves";
  ASSERT_TRUE(app->LoadCollections({}).ok());
  EXPECT_EQ(Client(app->address()).CheckHealth("films"), Health::kNotServing);
  EXPECT_EQ(Client(app->address()).CheckHealth(""), Health::kNotServing);
}

TEST(HealthTest, TellsWatchersOfTheLoadAndOfTheDrain) {
  const auto app = StartWithoutLoading();
  RawCall server = Watch(*app, "");
  RawCall films = Watch(*app, "films");
  RawCall liveness = Watch(*app, "liveness");
  EXPECT_EQ(server.Read(), kNotServing);
  EXPECT_EQ(films.Read(), kNotServing);
  EXPECT_EQ(liveness.Read(), kServing);
  ASSERT_TRUE(app->LoadCollections({}).ok());
  EXPECT_EQ(films.Read(), kServing);
  EXPECT_EQ(server.Read(), kServing);
  EXPECT_TRUE(app->Drain());
  EXPECT_EQ(server.Read(), kNotServing);
  EXPECT_EQ(films.Read(), kNotServing);
}

TEST(HealthTest, DoesNotKnowACollectionThatWasNeverServed) {
  const auto app = StartWithoutLoading();
  RawCall call(app->address(), "/grpc.health.v1.Health/Check");
  const std::string field_1_other("\x0a\x05other");
  EXPECT_TRUE(call.Send(field_1_other));
  call.HalfClose();
  EXPECT_EQ(call.Read(), std::nullopt);
  EXPECT_EQ(call.AwaitEnd().code, absl::StatusCode::kNotFound);
}

TEST(HealthTest, TellsWatchersOfACollectionThatComesAndGoes) {
  FilmsServer server([](app::Config& config) {
    config.changes_allowed = true;
    config.data_root = std::filesystem::path(kFilmsFolder).parent_path();
  });
  RawCall other = Watch(server.app(), "other");
  const std::string unknown("\x08\x03");
  EXPECT_EQ(other.Read(), unknown);
  const Client client = server.NewClient();
  ChangeAnswer answer;
  ASSERT_TRUE(client.Load("other", "films", answer).ok());
  EXPECT_EQ(other.Read(), kServing);
  ASSERT_TRUE(client.Unload("other").ok());
  EXPECT_EQ(other.Read(), kNotServing);
  EXPECT_EQ(client.CheckHealth("films"), Health::kServing);
}

}  // namespace
}  // namespace simile::integration

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "integration/films_server.h"
#include "integration/raw_call.h"

namespace simile::integration {
namespace {

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

TEST(HealthTest, IsTrueOfLivenessBeforeTheLoadDuringItAndWhileTheServerDrains) {
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
  EXPECT_TRUE(app->Drain());
  EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  EXPECT_EQ(client.CheckHealth(""), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("films"), Health::kNotServing);
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

#include "app/wiring.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class WiringTest : public testing::Test {
 protected:
  WiringTest() {
    config_.port = 0;
    config_.metrics_port = 0;
    config_.tuning = Tuning::kDefaults;
    config_.collections = {{"films", SIMILE_SOURCE_DIR "/examples/films"}};
  }

  std::string Error() const {
    const auto app = App::Create(config_, log_);
    return app.ok() ? "" : std::string(app.status().message());
  }

  const ScratchFolder scratch_;
  const observe::Logger log_{{LogFormat::kText, LogLevel::kError, nullptr}};
  Config config_;
};

TEST_F(WiringTest, ServesTheConfiguredCollections) {
  config_.port_file = scratch_.path() / "port";
  auto app = App::Create(config_, log_);
  ASSERT_TRUE(app.ok()) << app.status();
  std::uint16_t written = 0;
  std::ifstream(config_.port_file) >> written;
  EXPECT_EQ(written, (*app)->port());
  EXPECT_EQ((*app)->address(), "127.0.0.1:" + std::to_string(written));
  EXPECT_NE((*app)->metrics_port().value_or(0), 0);
  EXPECT_EQ((*app)->metrics_address(),
            "127.0.0.1:" + std::to_string((*app)->metrics_port().value_or(0)));
  EXPECT_TRUE((*app)->store().List().empty());

  std::size_t rows = 0;
  const absl::Status loaded = (*app)->LoadCollections(
      [&](const engine::Snapshot& snapshot, Clock::Duration) { rows += snapshot.row_count(); });
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(rows, 5'000U);
  EXPECT_TRUE((*app)->store().Pin("films").ok());
  EXPECT_TRUE((*app)->Drain());
}

TEST_F(WiringTest, RunsWithoutMetricsWhenConfiguredTo) {
  config_.metrics_enabled = false;
  const auto app = App::Create(config_, log_);
  ASSERT_TRUE(app.ok()) << app.status();
  EXPECT_FALSE((*app)->metrics_address().has_value());
}

TEST_F(WiringTest, NamesTheCollectionThatDoesNotLoad) {
  config_.collections = {{"books", scratch_.path()}};
  auto app = App::Create(config_, log_);
  ASSERT_TRUE(app.ok()) << app.status();
  const absl::Status loaded = (*app)->LoadCollections({});
  EXPECT_EQ(loaded.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loaded.message()),
              StartsWith("books=" + scratch_.path().string() + ": no vectors "));
}

TEST_F(WiringTest, RefusesMalformedCollectionNames) {
  config_.collections[0].name = "my films";
  EXPECT_THAT(Error(), StartsWith("collection: \"my films\" is not a name"));
}

TEST_F(WiringTest, RefusesPortsThatAreTaken) {
  const auto first = App::Create(config_, log_);
  ASSERT_TRUE(first.ok()) << first.status();
  config_.port = (*first)->port();
  EXPECT_THAT(Error(), HasSubstr("Address already in use"));
  config_.port = 0;
  config_.metrics_port = *(*first)->metrics_port();
  EXPECT_EQ(Error(), "cannot listen for metrics on " + *(*first)->metrics_address() +
                         ": Address already in use; choose another with --metrics-port (0 takes "
                         "any free one)");
}

TEST_F(WiringTest, RefusesAPortFileItCannotWrite) {
  config_.port_file = scratch_.path() / "no" / "port";
  EXPECT_EQ(Error(), "port file " + config_.port_file.string() +
                         ": cannot be written: No such file or directory");
}

TEST_F(WiringTest, HasAReadyFileWhileItServes) {
  config_.ready_file = scratch_.path() / "ready";
  scratch_.Write("ready", "of a server that was killed");
  const auto app = App::Create(config_, log_);
  ASSERT_TRUE(app.ok()) << app.status();
  EXPECT_FALSE(std::filesystem::exists(config_.ready_file));
  ASSERT_TRUE((*app)->LoadCollections({}).ok());
  std::string address;
  std::ifstream(config_.ready_file) >> address;
  EXPECT_EQ(address, (*app)->address());
  (*app)->AnnounceDrain();
  EXPECT_FALSE(std::filesystem::exists(config_.ready_file));
}

TEST_F(WiringTest, RefusesAReadyFileItCannotRemoveOrWrite) {
  config_.ready_file = scratch_.path() / "ready";
  scratch_.Write("ready/inside", "");
  EXPECT_EQ(Error(), "ready file " + config_.ready_file.string() +
                         ": cannot be removed: Directory not empty");
  config_.ready_file = scratch_.path() / "no" / "ready";
  const auto app = App::Create(config_, log_);
  ASSERT_TRUE(app.ok()) << app.status();
  EXPECT_EQ((*app)->LoadCollections({}).message(),
            "ready file " + config_.ready_file.string() +
                ": cannot be written: No such file or directory");
}

TEST_F(WiringTest, RefusesABackendThisMachineLacks) {
  config_.backend.isa = "avx1024";
  EXPECT_THAT(Error(), HasSubstr("avx1024"));
}

}  // namespace
}  // namespace simile::app

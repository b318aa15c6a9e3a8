#include "app/wiring.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/certificates.h"
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
  config_.metrics_port = *(*first)->metrics_port();
  EXPECT_EQ(Error(), "cannot listen on " + (*first)->address() +
                         ": Address already in use; choose another with --port (0 takes any free "
                         "one); also cannot listen for metrics on " +
                         *(*first)->metrics_address() +
                         ": Address already in use; choose another with --metrics-port (0 takes "
                         "any free one)");
  config_.port = 0;
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

// The name "127.1" is loopback, which only shows when it is looked up: until then the server takes
// it, like every other name, for reached from elsewhere.
TEST_F(WiringTest, WarnsOfAnAddressThatOthersReachUnencrypted) {
  const TestAuthority authority;
  const CertificatePair pair = authority.Issue();
  scratch_.Write("server.pem", pair.certificate);
  scratch_.Write("server.key", pair.key);
  scratch_.Write("access.json", R"({"principals": [{"name": "ranker", "role": "read",
      "token_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}]})");
  const std::string open = "anyone who reaches this address can search, unencrypted";
  const std::string proxied = "tokens and answers cross the network unencrypted, unless a proxy";
  struct Case {
    std::string listen;
    bool has_access_file;
    bool encrypts;
    std::string warning;
  };
  for (const Case& one :
       {Case{"127.1", false, false, open}, Case{"127.1", true, false, proxied},
        Case{"127.1", false, true, ""}, Case{"127.1", true, true, ""},
        Case{"127.0.0.1", false, false, ""}, Case{"127.0.0.1", true, false, ""}}) {
    config_.listen = one.listen;
    config_.plaintext_tokens_allowed = true;
    config_.access_file = one.has_access_file ? scratch_.path() / "access.json" : "";
    config_.tls.certificate = one.encrypts ? scratch_.path() / "server.pem" : "";
    config_.tls.key = one.encrypts ? scratch_.path() / "server.key" : "";
    std::ostringstream lines;
    const observe::Logger log{{LogFormat::kText, LogLevel::kWarning, &lines}};
    const auto app = App::Create(config_, log);
    ASSERT_TRUE(app.ok()) << app.status();
    SCOPED_TRACE(one.listen + (one.has_access_file ? " access" : "") +
                 (one.encrypts ? " TLS" : ""));
    for (const std::string& warning : {open, proxied}) {
      EXPECT_EQ(lines.str().find(warning) != std::string::npos, warning == one.warning)
          << lines.str();
    }
    EXPECT_EQ(lines.str().find((*app)->address()) != std::string::npos, !one.warning.empty());
  }
}

TEST_F(WiringTest, RefusesTokensThatWouldCrossTheNetworkUnencrypted) {
  config_.listen = "127.1";
  config_.access_file = scratch_.path() / "access.json";
  EXPECT_THAT(Error(), StartsWith("tokens would cross the network unencrypted"));
}

TEST_F(WiringTest, RefusesABackendThisMachineLacks) {
  config_.backend.isa = "avx1024";
  EXPECT_THAT(Error(), HasSubstr("avx1024"));
}

}  // namespace
}  // namespace simile::app

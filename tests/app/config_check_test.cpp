#include "app/config_check.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kFilms = SIMILE_SOURCE_DIR "/examples/films";

ConfigReading Read(const std::vector<FlagValue>& flags) {
  const absl::StatusOr<ConfigReading> reading = ReadConfig({"", {}, flags});
  EXPECT_TRUE(reading.ok()) << reading.status();
  return reading.value_or(ConfigReading());
}

absl::Status SomethingToServe(const std::vector<FlagValue>& flags) {
  return CheckSomethingToServe(Read(flags).config);
}

TEST(ConfigCheckTest, RefusesAServerThatCouldNeverAnswer) {
  const FlagValue changes = {"collections.changes_allowed", {"true"}};
  const FlagValue root = {"collections.data_root", {"/srv"}};
  for (const std::vector<FlagValue>& flags :
       std::vector<std::vector<FlagValue>>{{}, {changes}, {root}}) {
    const absl::Status status = SomethingToServe(flags);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()),
              "nothing to serve: give --collection NAME=FOLDER, or --allow-changes and "
              "--data-root FOLDER to load collections later");
  }
  EXPECT_TRUE(SomethingToServe({changes, root}).ok());
  EXPECT_TRUE(SomethingToServe({{"collections.serve", {"films=" + kFilms}}}).ok());
}

TEST(ConfigCheckTest, RefusesSettingsOfAccessThatDoNotGoTogether) {
  const FlagValue certificate = {"server.tls_certificate", {"server.pem"}};
  const FlagValue key = {"server.tls_key", {"server.key"}};
  const FlagValue client_ca = {"server.tls_client_ca", {"ca.pem"}};
  const FlagValue access = {"server.access_file", {"access.json"}};
  const FlagValue reflection = {"server.reflection", {"true"}};
  const FlagValue anywhere = {"server.listen", {"0.0.0.0"}};
  const FlagValue by_name = {"server.listen", {"search.example.org"}};
  const FlagValue proxied = {"server.plaintext_tokens_allowed", {"true"}};
  const std::string pair = "server.tls_certificate and server.tls_key go together";
  const std::string unencrypted =
      "tokens would cross the network unencrypted: server.access_file is set and --listen ";
  struct Case {
    std::vector<FlagValue> flags;
    std::string message;  // the beginning; empty: they go together
  };
  const Case cases[] = {
      {{}, ""},
      {{certificate}, pair},
      {{key}, pair},
      {{key, client_ca}, pair},
      {{certificate, key}, ""},
      {{client_ca}, "server.tls_client_ca needs encrypted connections"},
      {{certificate, key, client_ca}, ""},
      {{reflection}, ""},
      {{access}, ""},
      {{access, reflection}, "server.reflection describes the services to anyone"},
      {{access, certificate, key, reflection},
       "server.reflection describes the services to anyone"},
      {{anywhere}, ""},  // without tokens: App warns
      {{access, {"server.listen", {"127.0.0.2"}}}, ""},
      {{access, {"server.listen", {"::1"}}}, ""},
      {{access, {"server.listen", {"localhost"}}}, ""},
      {{access, anywhere}, unencrypted + "0.0.0.0 is reached from other machines"},
      {{access, {"server.listen", {"::"}}}, unencrypted + ":: is reached from other machines"},
      {{access, by_name}, unencrypted + "search.example.org is reached from other machines"},
      {{access, anywhere, proxied}, ""},
      {{access, anywhere, certificate, key}, ""},
      {{access, anywhere, certificate, key, client_ca}, ""},
  };
  for (const Case& one : cases) {
    std::string flags;
    for (const FlagValue& flag : one.flags) flags += flag.key + "=" + flag.values.front() + " ";
    SCOPED_TRACE(flags);
    const absl::Status status = CheckAccess(Read(one.flags).config);
    EXPECT_EQ(status.code(),
              one.message.empty() ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), StartsWith(one.message));
  }
}

TEST(ConfigCheckTest, FindsNoProblemWithTheFilms) {
  EXPECT_TRUE(FolderProblems(Read({{"collections.serve", {"films=" + kFilms}},
                                   {"collections.data_root", {SIMILE_SOURCE_DIR "/examples"}}}))
                  .empty());
  EXPECT_TRUE(FolderProblems(Read({})).empty());
}

TEST(ConfigCheckTest, NamesEachFolderThatIsMissingOrHoldsNoVectors) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path().string();
  const std::vector<ConfigProblem> problems = FolderProblems(Read(
      {{"collections.serve", {"gone=" + folder + "/gone", "films=" + kFilms, "empty=" + folder}},
       {"collections.data_root", {folder + "/root"}}}));
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(ProblemText(problems[0]),
            "--collection: gone=" + folder + "/gone: the folder does not exist");
  EXPECT_EQ(problems[1].key, "collections.serve");
  EXPECT_THAT(problems[1].message,
              StartsWith("empty=" + folder + ": no vectors in the folder: looked for "));
  EXPECT_EQ(ProblemText(problems[2]),
            "--data-root: " + folder + "/root: the folder does not exist");
}

TEST(ConfigCheckTest, FindsAHeaderThatIsCutOff) {
  const ScratchFolder scratch;
  scratch.Write("vectors.npy", "\x93NUMPY");
  const std::vector<ConfigProblem> problems =
      FolderProblems(Read({{"collections.serve", {"a=" + scratch.path().string()}}}));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].message, HasSubstr(": vectors.npy: "));
}

}  // namespace
}  // namespace simile::app

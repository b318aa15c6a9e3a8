#include "app/config/config_check.h"

#include <string>
#include <utility>
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

using testing::ElementsAre;
using testing::IsEmpty;

using Variables = std::vector<std::pair<std::string, std::string>>;

std::vector<VariableEffect> DescribeEffects(Variables variables,
                                            std::vector<FlagValue> flags = {}) {
  const auto reading = ReadConfig({{}, std::move(variables), std::move(flags)});
  EXPECT_TRUE(reading.ok()) << reading.status();
  return reading.ok() ? DescribeEffects(*reading) : std::vector<VariableEffect>();
}

// `GPU_DEVICE_ID=1, this server: gpu.device is 1 instead of 0`
std::vector<std::string> Changes(const std::vector<VariableEffect>& effects) {
  std::vector<std::string> texts;
  for (const VariableEffect& each : effects) {
    if (!each.has_changed) continue;
    texts.push_back(each.name + "=" + each.value + ", " + each.reader + ": " + each.effect);
  }
  return texts;
}

TEST(VariableEffectsTest, SaysNothingWithoutSuchVariables) {
  EXPECT_THAT(DescribeEffects({{"PATH", "/bin"}, {"SIMILE_SERVER_PORT", "0"}}), IsEmpty());
  EXPECT_EQ(IgnoredVariables({}), "");
  EXPECT_EQ(VariablesWithoutChange({}), "");
}

TEST(VariableEffectsTest, ComparesWithWhatTheFileSays) {
  const ScratchFolder folder;
  folder.Write("simile.json", R"({"backend": {"preference": "cpu"}, "gpu": {"device": 1}})");
  const auto reading = ReadConfig(
      {folder.path() / "simile.json", {{"USE_GPU", "true"}, {"GPU_DEVICE_ID", "1"}}, {}});
  ASSERT_TRUE(reading.ok()) << reading.status();
  const std::vector<VariableEffect> effects = DescribeEffects(*reading);
  EXPECT_THAT(Changes(effects),
              ElementsAre("USE_GPU=true, this server: backend.preference is auto instead of cpu"));
  EXPECT_EQ(VariablesWithoutChange(effects), "GPU_DEVICE_ID=1 (gpu.device is 1)");
}

// The block that services with a T4 paste: all of it is named, and none of it makes them slower.
TEST(VariableEffectsTest, NamesEachVariableOfAPastedBlockOnce) {
  const std::vector<VariableEffect> effects =
      DescribeEffects({{"USE_GPU", "true"},
                       {"GPU_DEVICE_ID", "0"},
                       {"TF32_OVERRIDE", "1"},
                       {"NVIDIA_TF32_OVERRIDE", "1"},
                       {"DOCUMENT_BATCH_SIZE", "16"},
                       {"NER_BATCH_SIZE", "32"},
                       {"INFERENCE_BATCH_SIZE", "64"},
                       {"GPU_MEMORY_FRACTION", "0.8"},
                       {"RESERVE_MEMORY", "1024"},
                       {"WORKER_CONCURRENCY", "2"},
                       {"WORKER_MAX_TASKS_PER_CHILD", "100"},
                       {"CUDA_LAUNCH_BLOCKING", "0"},
                       {"CUDA_MODULE_LOADING", "LAZY"},
                       {"CUDNN_BENCHMARK", "true"},
                       {"ENABLE_AMP", "true"}});
  EXPECT_EQ(effects.size(), 15U);
  EXPECT_THAT(Changes(effects), IsEmpty());
  EXPECT_EQ(IgnoredVariables(effects),
            "NVIDIA_TF32_OVERRIDE, TF32_OVERRIDE, ENABLE_AMP, CUDNN_BENCHMARK, "
            "DOCUMENT_BATCH_SIZE, NER_BATCH_SIZE, WORKER_CONCURRENCY, WORKER_MAX_TASKS_PER_CHILD");
  EXPECT_EQ(VariablesWithoutChange(effects),
            "USE_GPU=true (backend.preference is auto), "
            "INFERENCE_BATCH_SIZE=64 (limits.batch_queries_max stays 1024), "
            "GPU_DEVICE_ID=0 (gpu.device is 0), GPU_MEMORY_FRACTION=0.8 (gpu.memory_fraction is "
            "0.8), RESERVE_MEMORY=1024 (gpu.reserve_mib is 1024), CUDA_LAUNCH_BLOCKING=0, "
            "CUDA_MODULE_LOADING=LAZY");
}

TEST(VariableEffectsTest, NamesFifteenOthersOfTheSameFamiliesOnce) {
  const std::vector<VariableEffect> effects =
      DescribeEffects({{"EMBEDDING_BATCH_SIZE", "8"},
                       {"MAX_BATCH_SIZE", "256"},
                       {"CUDA_DEVICE_MAX_CONNECTIONS", "1"},
                       {"CUDA_HOME", "/usr/local/cuda"},
                       {"CUDA_VISIBLE_DEVICES", "0"},
                       {"CUDNN_LOGINFO_DBG", "1"},
                       {"NVIDIA_VISIBLE_DEVICES", "all"},
                       {"NVIDIA_P2P", "1"},
                       {"TF_CPP_MIN_LOG_LEVEL", "3"},
                       {"TF_ENABLE_ONEDNN_OPTS", "0"},
                       {"PYTORCH_CUDA_ALLOC_CONF", "x"},
                       {"PYTORCH_NVML_BASED_CUDA_CHECK", "1"},
                       {"WORKER_TIMEOUT", "30"},
                       {"WORKER_POOL", "solo"},
                       {"ENABLE_CUDA_GRAPH", "1"}});
  EXPECT_EQ(effects.size(), 15U);
  EXPECT_THAT(Changes(effects),
              ElementsAre("CUDA_VISIBLE_DEVICES=0, the GPU's driver: The GPUs that the driver "
                          "shows; gpu.device counts among these.",
                          "CUDA_DEVICE_MAX_CONNECTIONS=(set), the GPU's driver: The driver reads "
                          "the names that it knows.",
                          "CUDA_HOME=(set), the GPU's driver: The driver reads the names that it "
                          "knows."));
  EXPECT_EQ(VariablesWithoutChange(effects), "NVIDIA_VISIBLE_DEVICES=all");
  EXPECT_EQ(IgnoredVariables(effects),
            "PYTORCH_CUDA_ALLOC_CONF, EMBEDDING_BATCH_SIZE, MAX_BATCH_SIZE, CUDNN_LOGINFO_DBG, "
            "NVIDIA_P2P, TF_CPP_MIN_LOG_LEVEL, TF_ENABLE_ONEDNN_OPTS, "
            "PYTORCH_NVML_BASED_CUDA_CHECK, WORKER_POOL, WORKER_TIMEOUT, ENABLE_CUDA_GRAPH");
}

TEST(VariableEffectsTest, SaysWhatASettingIsInsteadOfItsDefault) {
  EXPECT_THAT(Changes(DescribeEffects({{"GPU_DEVICE_ID", "1"}, {"INFERENCE_BATCH_SIZE", "4096"}})),
              ElementsAre("INFERENCE_BATCH_SIZE=4096, this server: limits.batch_queries_max is "
                          "4096 instead of 1024",
                          "GPU_DEVICE_ID=1, this server: gpu.device is 1 instead of 0"));
}

TEST(VariableEffectsTest, SaysWhatOverrulesAVariable) {
  const std::vector<VariableEffect> effects = DescribeEffects(
      {{"GPU_DEVICE_ID", "1"}, {"USE_GPU", "false"}, {"SIMILE_BACKEND_PREFERENCE", "gpu"}},
      {{"gpu.device", {"2"}}});
  EXPECT_THAT(Changes(effects), IsEmpty());
  EXPECT_EQ(VariablesWithoutChange(effects),
            "USE_GPU=false (backend.preference is gpu, from environment "
            "SIMILE_BACKEND_PREFERENCE), GPU_DEVICE_ID=1 (gpu.device is 2, from flag "
            "--gpu-device)");
}

TEST(VariableEffectsTest, SaysThatTheDriverObeysAVariable) {
  EXPECT_THAT(Changes(DescribeEffects({{"CUDA_LAUNCH_BLOCKING", "1"}})),
              ElementsAre("CUDA_LAUNCH_BLOCKING=1, the GPU's driver: 1 makes the host wait for "
                          "the end of each kernel, which slows every pass: for debugging alone."));
}

}  // namespace
}  // namespace simile::app

#include "app/variable_effects.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Variables = std::vector<std::pair<std::string, std::string>>;

std::vector<VariableEffect> EffectsOf(Variables variables, std::vector<FlagValue> flags = {}) {
  const auto reading = ReadConfig({{}, std::move(variables), std::move(flags)});
  EXPECT_TRUE(reading.ok()) << reading.status();
  return reading.ok() ? EffectsOf(*reading) : std::vector<VariableEffect>();
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
  EXPECT_THAT(EffectsOf({{"PATH", "/bin"}, {"SIMILE_SERVER_PORT", "0"}}), IsEmpty());
  EXPECT_EQ(IgnoredVariables({}), "");
  EXPECT_EQ(VariablesWithoutChange({}), "");
}

TEST(VariableEffectsTest, ComparesWithWhatTheFileSays) {
  const ScratchFolder folder;
  folder.Write("simile.json", R"({"backend": {"preference": "cpu"}, "gpu": {"device": 1}})");
  const auto reading = ReadConfig(
      {folder.path() / "simile.json", {{"USE_GPU", "true"}, {"GPU_DEVICE_ID", "1"}}, {}});
  ASSERT_TRUE(reading.ok()) << reading.status();
  const std::vector<VariableEffect> effects = EffectsOf(*reading);
  EXPECT_THAT(Changes(effects),
              ElementsAre("USE_GPU=true, this server: backend.preference is auto instead of cpu"));
  EXPECT_EQ(VariablesWithoutChange(effects), "GPU_DEVICE_ID=1 (gpu.device is 1)");
}

// The block that services with a T4 paste: all of it is named, and none of it makes them slower.
TEST(VariableEffectsTest, NamesEachVariableOfAPastedBlockOnce) {
  const std::vector<VariableEffect> effects = EffectsOf({{"USE_GPU", "true"},
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
  const std::vector<VariableEffect> effects = EffectsOf({{"EMBEDDING_BATCH_SIZE", "8"},
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
  EXPECT_THAT(Changes(EffectsOf({{"GPU_DEVICE_ID", "1"}, {"INFERENCE_BATCH_SIZE", "4096"}})),
              ElementsAre("INFERENCE_BATCH_SIZE=4096, this server: limits.batch_queries_max is "
                          "4096 instead of 1024",
                          "GPU_DEVICE_ID=1, this server: gpu.device is 1 instead of 0"));
}

TEST(VariableEffectsTest, SaysWhatOverrulesAVariable) {
  const std::vector<VariableEffect> effects = EffectsOf(
      {{"GPU_DEVICE_ID", "1"}, {"USE_GPU", "false"}, {"SIMILE_BACKEND_PREFERENCE", "gpu"}},
      {{"gpu.device", {"2"}}});
  EXPECT_THAT(Changes(effects), IsEmpty());
  EXPECT_EQ(VariablesWithoutChange(effects),
            "USE_GPU=false (backend.preference is gpu, from environment "
            "SIMILE_BACKEND_PREFERENCE), GPU_DEVICE_ID=1 (gpu.device is 2, from flag "
            "--gpu-device)");
}

TEST(VariableEffectsTest, SaysThatTheDriverObeysAVariable) {
  EXPECT_THAT(Changes(EffectsOf({{"CUDA_LAUNCH_BLOCKING", "1"}})),
              ElementsAre("CUDA_LAUNCH_BLOCKING=1, the GPU's driver: 1 makes the host wait for "
                          "the end of each kernel, which slows every pass: for debugging alone."));
}

}  // namespace
}  // namespace simile::app

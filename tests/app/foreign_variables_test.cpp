#include "app/config/foreign_variables.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "app/config/settings.h"

namespace simile::app {
namespace {

std::string FindRowName(std::string_view name) {
  const ForeignVariable* row = FindForeignVariable(name);
  return row == nullptr ? "" : std::string(row->name);
}

TEST(ForeignVariablesTest, SaysOfEachRowWhatItDoes) {
  std::set<std::string_view> names;
  for (const ForeignVariable& row : ForeignVariables()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.effect.ends_with('.')) << row.effect;
    EXPECT_LE(std::ranges::count(row.name, '*'), 1) << row.name;
    EXPECT_TRUE(row.neutral.empty() || row.reader != VariableReader::kNobody) << row.name;
  }
}

TEST(ForeignVariablesTest, CallsNoVariableForeignThatTheServerReads) {
  for (const ForeignVariable& row : ForeignVariables()) {
    EXPECT_FALSE(row.name.starts_with("SIMILE_")) << row.name;
    EXPECT_EQ(std::ranges::find(FamiliarNames(), row.name, &FamiliarName::name),
              FamiliarNames().end())
        << row.name;
  }
}

// Each row is reached: a more general one before it would hide it.
TEST(ForeignVariablesTest, PutsRowsBeforeTheFamiliesThatContainThem) {
  for (const ForeignVariable& row : ForeignVariables()) {
    std::string name(row.name);
    if (row.is_family()) name.replace(name.find('*'), 1, "X");
    EXPECT_EQ(FindRowName(name), row.name);
  }
}

TEST(ForeignVariablesTest, KnowsFamiliesByTheirBeginningOrEnd) {
  EXPECT_EQ(FindRowName("EMBEDDING_BATCH_SIZE"), "*_BATCH_SIZE");
  EXPECT_EQ(FindRowName("OMP_NUM_THREADS"), "*_NUM_THREADS");
  EXPECT_EQ(FindRowName("CUDA_HOME"), "CUDA_*");
  EXPECT_EQ(FindRowName("CUBLASLT_LOG_LEVEL"), "CUBLAS*");
  EXPECT_EQ(FindRowName("CUDNN_LOGINFO_DBG"), "CUDNN_*");
  EXPECT_EQ(FindRowName("TF_CPP_MIN_LOG_LEVEL"), "TF*");
  EXPECT_EQ(FindRowName("PYTORCH_NVML_BASED_CUDA_CHECK"), "PYTORCH_*");
  EXPECT_EQ(FindRowName("WORKER_TIMEOUT"), "WORKER_*");
  EXPECT_EQ(FindRowName("ENABLE_CUDA_GRAPH"), "ENABLE_*");
  for (const char* name : {"PATH", "HOME", "MY_CUDA_HOME", "BATCH_SIZE_MAX", "cuda_home", ""}) {
    EXPECT_EQ(FindRowName(name), "") << name;
  }
}

TEST(ForeignVariablesTest, LeavesOutWhatImagesAndClustersSet) {
  for (const char* name :
       {"CUDA_VERSION", "CUDNN_VERSION", "NVIDIA_REQUIRE_CUDA", "NVIDIA_PRODUCT_NAME",
        "WORKER_SERVICE_HOST", "WORKER_SERVICE_PORT", "WORKER_SERVICE_PORT_HTTP", "WORKER_PORT",
        "WORKER_PORT_6379_TCP", "WORKER_PORT_6379_TCP_ADDR"}) {
    EXPECT_EQ(FindRowName(name), "") << name;
  }
  EXPECT_EQ(FindRowName("WORKER_PORT_COUNT"), "WORKER_*");
}

TEST(ForeignVariablesTest, ShowsNoValueOfAFamily) {
  const auto displayed = [](std::string name) {
    const ForeignVariable* row = FindForeignVariable(name);
    return std::string(ForeignValue{std::move(name), "1234", row}.display_value());
  };
  EXPECT_EQ(displayed("WORKER_API_KEY"), "(set)");
  EXPECT_EQ(displayed("NER_BATCH_SIZE"), "1234");
  EXPECT_EQ(displayed("CUDA_CACHE_MAXSIZE"), "(set)");
  EXPECT_EQ(displayed("CUDA_VISIBLE_DEVICES"), "1234");
}

}  // namespace
}  // namespace simile::app

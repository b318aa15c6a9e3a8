// The GPU benches on the emulated device: plans cover the whole batch, timed passes give the plain
// scan's answers, and the test of tensor-core sums detects a wrong sum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/batch_search.h"
#include "backend/cuda/blas_library.h"
#include "backend/cuda/device_memory.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/segments.h"
#include "bench/gpu/bench_truth.h"
#include "bench/gpu/device_times.h"
#include "bench/gpu/event_timer.h"
#include "bench/gpu/measuring_steps.h"
#include "bench/gpu/planned_passes.h"
#include "bench/gpu/query_specs.h"
#include "bench/gpu/step_log.h"
#include "bench/gpu/tensor_sum_kernels.h"
#include "emulated_cuda/emulated_device.h"
#include "files/scratch_folder.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::Device;
using backend::cuda::DeviceArray;
using backend::cuda::MemoryKind;
using backend::cuda::PassStrategy;

class EnginePassesTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    tests::ResetEmulatedGpu(tests::CardOf(GetParam()), 1);
    options_ = tests::EmulatedOptions();
    const backend::cuda::BlasLibrary blas = backend::cuda::LoadBlas(options_);
    ASSERT_TRUE(blas.loaded()) << blas.missing;
    device_ = std::make_unique<Device>(options_, blas);
    workspace_ = std::make_unique<backend::cuda::Workspace>(*device_, options_.workspace, 1);
  }

  backend::GpuOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<backend::cuda::Workspace> workspace_;
};

TEST_P(EnginePassesTest, PlanOfOneStrategyCoversTheWholeBatch) {
  tests::SeededRandom random(5);
  const auto rows = tests::UnitRows(6'000, 40, random);
  backend::cuda::ResidentRows resident(*device_, tests::SegmentOf(rows),
                                       ResidentSizeOf(*device_, rows->view()));
  for (const PassStrategy strategy :
       {PassStrategy::kInt8Scan, PassStrategy::kRowScan, PassStrategy::kGemm}) {
    if (strategy == PassStrategy::kInt8Scan &&
        !backend::cuda::HasInt8Scan(device_->traits().code_capability)) {
      continue;
    }
    for (const std::size_t batch : {1U, 20U, 70U}) {
      const auto passes =
          PlanBatch(strategy, device_->traits(), workspace_->size(), resident, batch, 10);
      ASSERT_FALSE(passes.empty());
      std::size_t planned = 0;
      for (const PlannedPass& pass : passes) {
        EXPECT_EQ(pass.first, planned);
        EXPECT_EQ(pass.plan.strategy(), strategy);
        planned += pass.count;
      }
      EXPECT_EQ(planned, batch);
    }
  }
}

// The server's plan, margins included: rows within the bound of the gate are hits, too.
TEST_P(EnginePassesTest, PlanWithTheServersMargins) {
  tests::SeededRandom random(7);
  const auto rows = tests::UnitRows(1'000, 4'096, random);
  backend::cuda::ResidentRows resident(*device_, tests::SegmentOf(rows),
                                       ResidentSizeOf(*device_, rows->view()));
  backend::cuda::PassDemand demand = DemandOf(resident, 1, 10, 10, true);
  const auto plan = [&] {
    return PlanPass(device_->traits(), {}, workspace_->size(), resident.size(), demand);
  };
  const auto passes = PlanBatch(device_->traits(), workspace_->size(), resident, 1, 10);
  const auto served = plan();
  ASSERT_EQ(passes.size(), 1U);
  ASSERT_TRUE(served.has_value());
  EXPECT_EQ(passes[0].plan.variant, served->variant);
  EXPECT_EQ(passes[0].plan.capacity, served->capacity);
  demand.scan_margin = demand.int8_margin = demand.gemm_margin = 0;
  EXPECT_LT(plan()->capacity, served->capacity);
}

// Every row of the kernel table that the card admits, a new one too.
TEST_P(EnginePassesTest, EveryVariantGivesTheSameAnswersInAsManyPassesAsItNeeds) {
  tests::SeededRandom random(8);
  const auto rows = tests::UnitRows(600, 32, random);
  const auto queries = tests::UnitRows(70, 32, random);
  backend::cuda::ResidentRows resident(*device_, tests::SegmentOf(rows),
                                       ResidentSizeOf(*device_, rows->view()));
  backend::cuda::PassRunner runner(*device_, *workspace_, resident);
  std::vector<std::vector<kernels::Key>> expected;
  std::size_t variants = 0;
  for (const backend::cuda::KernelVariant& variant : backend::cuda::KernelVariants()) {
    const auto passes = PlanBatch(variant, device_->traits(), workspace_->size(), resident, 70, 2);
    if (device_->traits().code_capability < variant.code_min) {
      EXPECT_TRUE(passes.empty()) << variant.name;
      continue;
    }
    ASSERT_FALSE(passes.empty()) << variant.name;
    if (variant.queries_max < 70) {  // two of 35, not one of 64 and one of 6
      EXPECT_EQ(passes.size(), (70 - 1) / variant.queries_max + 1) << variant.name;
      EXPECT_LE(passes[0].count - passes.back().count, 1U) << variant.name;
    }
    ++variants;
    if (GetParam() != 0) continue;  // every variant runs on the first card
    const DeviceTime time = TimePasses(*device_, runner, passes, queries->view(), 2);
    EXPECT_EQ(time.variant, variant.name);
    EXPECT_EQ(time.unproven, 0U) << variant.name;
    EXPECT_GT(time.kernels.samples, 0U);
    if (variants == 1) expected = time.answers;
    EXPECT_EQ(time.answers, expected) << variant.name;
  }
  EXPECT_GE(variants, 2U);
  EXPECT_EQ(emulated_cuda::TakeReport(), "");
}

// CUDA loads a kernel's code at its first launch, which a capture does not allow.
TEST_P(EnginePassesTest, TimedWorkRunsOnceBeforeItsCapture) {
  tests::SeededRandom random(9);
  const auto rows = tests::UnitRows(5'000, 32, random);
  const auto queries = tests::UnitRows(1, 32, random);
  backend::cuda::ResidentRows resident(*device_, tests::SegmentOf(rows),
                                       ResidentSizeOf(*device_, rows->view()));
  backend::cuda::PassRunner runner(*device_, *workspace_, resident);
  const auto passes = PlanBatch(device_->traits(), workspace_->size(), resident, 1, 10);
  ASSERT_EQ(passes.size(), 1U);
  const std::vector<QuerySpec> specs = AllWanting(1, 10);
  runner.Run(passes[0].plan, {queries->view(), specs}, UnfilteredQueries(1, 10));
  const std::size_t before = emulated_cuda::CallCount();
  const TimedWork work(*device_, workspace_->stream(0),
                       [&] { runner.EnqueuePass(passes[0].plan); });
  const std::vector<std::string> log = emulated_cuda::CallLog();
  const auto begin = log.begin() + static_cast<std::ptrdiff_t>(before);
  const auto capture = std::find(begin, log.end(), "cudaStreamBeginCapture");
  ASSERT_NE(capture, log.end());
  const auto is_launch = [](const std::string& call) { return call.starts_with("launch:"); };
  EXPECT_GT(std::count_if(begin, capture, is_launch), 0);
  EXPECT_EQ(std::count_if(begin, capture, is_launch), std::count_if(capture, log.end(), is_launch));
}

INSTANTIATE_TEST_SUITE_P(Cards, EnginePassesTest, ::testing::Values(0, 3));

// Of the passes that are timed, not only of those that the server runs.
TEST_P(EnginePassesTest, ProvenAnswersAreComparedWithThePlainScans) {
  tests::SeededRandom random(10);
  const auto rows = tests::UnitRows(600, 32, random);
  const auto queries = tests::UnitRows(4, 32, random);
  const auto truth = BenchTruth::Scan(rows->view(), queries->view(), 3, 10, 1);
  ASSERT_TRUE(truth.ok()) << truth.status().ToString();
  backend::cuda::ResidentRows resident(*device_, tests::SegmentOf(rows),
                                       ResidentSizeOf(*device_, rows->view()));
  backend::cuda::PassRunner runner(*device_, *workspace_, resident);
  const auto passes =
      PlanBatch(PassStrategy::kRowScan, device_->traits(), workspace_->size(), resident, 4, 5);
  DeviceTime time = TimePasses(*device_, runner, passes, queries->view(), 5);
  EXPECT_TRUE(time.few_are_unproven());
  EXPECT_EQ(*truth->CheckProven(time.answers, 0, 5), 3U);
  time.answers[1].clear();
  time.unproven = 1;
  EXPECT_FALSE(time.few_are_unproven());
  EXPECT_EQ(*truth->CheckProven(time.answers, 0, 5), 2U);
  time.answers[2][4] ^= 1U;  // of the row
  EXPECT_THAT(truth->CheckProven(time.answers, 0, 5).status().message(),
              ::testing::HasSubstr("query 2, k 5: the card's answer (5 hits) differs"));
}

class ChoicesTest : public EnginePassesTest {
 protected:
  using Measure = void (*)(const StepBench& bench);

  // The lines of a step.
  //   truth_is_of_these_rows  else of others
  nlohmann::json Lines(Measure measure, std::size_t row_count, std::vector<std::string> variants,
                       std::size_t cases_max, bool truth_is_of_these_rows, Card& card) {
    tests::SeededRandom random(11);
    const auto rows = tests::UnitRows(row_count, 32, random);
    const auto queries = tests::UnitRows(100, 32, random);
    const auto others = tests::UnitRows(row_count, 32, random);
    const auto truth = BenchTruth::Scan((truth_is_of_these_rows ? rows : others)->view(),
                                        queries->view(), 8, 100, 1);
    EXPECT_TRUE(truth.ok()) << truth.status().ToString();
    backend::cuda::ResidentRows resident(card.device, tests::SegmentOf(rows),
                                         ResidentSizeOf(card.device, rows->view()));
    const ScratchFolder scratch;
    const std::string path = scratch.path() / "choices.json";
    StepLog log({}, path);
    const StepBench bench{card, resident, queries->view(),     "rows",   10,
                          log,  *truth,   std::move(variants), cases_max};
    try {
      measure(bench);
    } catch (const backend::cuda::DeviceError& error) {
      thrown_ = error.what();
    }
    return nlohmann::json::parse(std::ifstream(path))["lines"];
  }
  // Of a scan and of GEMM, for batches of 1 and 8.
  nlohmann::json LinesOfVariants(bool truth_is_of_these_rows, Card& card) {
    return Lines(MeasureVariants, 600, {"row_scan_registers", "gemm_topk_fp16"}, 2,
                 truth_is_of_these_rows, card);
  }
  nlohmann::json LinesOfVariants(bool truth_is_of_these_rows) {
    Card card(options_, backend::cuda::LoadBlas(options_));
    return LinesOfVariants(truth_is_of_these_rows, card);
  }

  std::string thrown_;
};

// Planned or not. Of tiles the small workspace holds one size.
TEST_P(ChoicesTest, AllGiveThePlainScansAnswers) {
  struct Tried {
    Measure measure;
    std::size_t lines;
  };
  for (const Tried& tried : {Tried{MeasureFinish, 4}, Tried{MeasureTiles, 1}}) {
    Card card(options_, backend::cuda::LoadBlas(options_));
    const nlohmann::json lines = Lines(tried.measure, 1'000, {}, 1, true, card);
    EXPECT_EQ(lines.size(), tried.lines);
    for (const nlohmann::json& line : lines) EXPECT_EQ(line["same_answers"], true) << line;
    EXPECT_EQ(thrown_, "");
  }
}

TEST_P(ChoicesTest, SaysWhetherTheAnswersAreThePlainScans) {
  for (const bool right : {true, false}) {
    const nlohmann::json lines = LinesOfVariants(right);
    ASSERT_EQ(lines.size(), 4U);
    for (const nlohmann::json& line : lines) {
      EXPECT_EQ(line["same_answers"], right) << line;
      EXPECT_EQ(line.contains("difference"), !right) << line;
      EXPECT_GT(line["us"], 0) << line;
    }
  }
  EXPECT_EQ(thrown_, "");
}

TEST_P(ChoicesTest, GoesOnAfterOneThatFails) {
  emulated_cuda::InjectFault({.error = cudaErrorLaunchOutOfResources, .name = "TopkFp16"});
  const nlohmann::json lines = LinesOfVariants(true);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(thrown_, ::testing::HasSubstr("cudaErrorLaunchOutOfResources"));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].contains("error"), i == 1) << lines[i];
    EXPECT_EQ(lines[i].contains("us"), i != 1) << lines[i];
  }
}

TEST_P(ChoicesTest, EndsWithTheErrorWhenTheDeviceIsLost) {
  emulated_cuda::InjectFault(
      {.error = cudaErrorIllegalAddress, .name = "TopkFp16", .sticky = true});
  const nlohmann::json lines = LinesOfVariants(true);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[1].contains("error"));
  EXPECT_THAT(thrown_, ::testing::HasSubstr("cudaErrorIllegalAddress"));
}

TEST_P(ChoicesTest, MeasuresTheScansWithoutCublas) {
  emulated_cuda::InjectFault({.nth = 1, .error = cudaErrorNotSupported, .name = "cublasCreate"});
  EXPECT_THAT(backend::cuda::LoadBlas(options_).missing,
              ::testing::HasSubstr("cuBLAS cannot be used: "));
  backend::GpuOptions without = options_;
  without.blas_libraries = {"libno_such_blas.so"};
  const backend::cuda::BlasLibrary blas = backend::cuda::LoadBlas(without);
  EXPECT_THAT(blas.missing, ::testing::HasSubstr("libno_such_blas.so"));
  Card card(options_, blas);
  const nlohmann::json lines = LinesOfVariants(true, card);
  ASSERT_EQ(lines.size(), 2U);
  for (const nlohmann::json& line : lines) {
    EXPECT_EQ(line["variant"], "row_scan_registers");
    EXPECT_EQ(line["same_answers"], true) << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Cards, ChoicesTest, ::testing::Values(0));

TEST(StepLogTest, NamesWhatIsSkipped) {
  const ScratchFolder scratch;
  const std::string path = scratch.path() / "skipped.json";
  StepLog({}, path).Skip("tile", "cuBLAS cannot be loaded: why");
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(path))["skipped"]["tile"],
            "cuBLAS cannot be loaded: why");
}

TEST(StepLogTest, WritesEachLineAtOnceAndReplacesTheFileInOneStep) {
  const ScratchFolder scratch;
  const std::string path = scratch.path() / "step_log.json";
  StepLog log({{"card", "any"}}, path);
  for (std::size_t lines = 1; lines <= 2; ++lines) {
    log.Add("finish", "9x8", {{"us", 1.5}});
    const nlohmann::json written = nlohmann::json::parse(std::ifstream(path));
    EXPECT_EQ(written["card"], "any");
    EXPECT_EQ(written["lines"].size(), lines);
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  }
  EXPECT_TRUE(log.status().ok());
  StepLog lost({}, path + "/no/folder.json");
  lost.Add("finish", "9x8", {});
  EXPECT_FALSE(lost.status().ok());
}

class TensorSumsTest : public EnginePassesTest {
 protected:
  static constexpr SumShape kShape{.rows = 32, .columns = 64, .length = 48};

  // The largest error of each method as a share of the bound.
  std::array<float, kSumMethodCount> Worst(Terms terms, float spoiled_by) {
    const std::size_t sums = std::size_t{kShape.rows} * kShape.columns;
    const DeviceArray<__half> left(*device_, std::size_t{kShape.rows} * kShape.length,
                                   MemoryKind::kWorkspace);
    const DeviceArray<__half> right(*device_, std::size_t{kShape.columns} * kShape.length,
                                    MemoryKind::kWorkspace);
    const DeviceArray<float> plain(*device_, sums, MemoryKind::kWorkspace);
    const DeviceArray<float> from_start(*device_, sums, MemoryKind::kWorkspace);
    const DeviceArray<unsigned> worst(*device_, kSumMethodCount, MemoryKind::kWorkspace);
    const cudaStream_t stream = workspace_->stream(0);
    const auto check = [&](cudaError_t error) { device_->Check(error, "launch"); };
    check(cudaMemsetAsync(worst.get(), 0, kSumMethodCount * sizeof(unsigned), stream));
    check(LaunchDrawTerms(terms, left.get(), kShape.rows, kShape.length, 1, stream));
    check(LaunchDrawTerms(terms, right.get(), kShape.columns, kShape.length, 2, stream));
    check(LaunchTensorSums(kShape, left.get(), right.get(), 0, plain.get(), stream));
    check(LaunchTensorSums(kShape, left.get(), right.get(), -1.125F + spoiled_by, from_start.get(),
                           stream));
    const double steps = 2.0 * kShape.length + 16;
    check(LaunchCompareSums(kShape, left.get(), right.get(),
                            {plain.get(), from_start.get(), nullptr, nullptr, -1.125F},
                            steps * 0x1p-23 / (1 - steps * 0x1p-23), worst.get(), stream));
    std::array<unsigned, kSumMethodCount> bits{};
    check(cudaMemcpyAsync(bits.data(), worst.get(), sizeof(bits), cudaMemcpyDeviceToHost, stream));
    device_->Await(stream);
    return {std::bit_cast<float>(bits[0]), std::bit_cast<float>(bits[1]),
            std::bit_cast<float>(bits[2]), std::bit_cast<float>(bits[3])};
  }
};

TEST_P(TensorSumsTest, LieWithinTheBoundAndDoRound) {
  for (const Terms terms : {Terms::kSameSign, Terms::kMixed, Terms::kWide}) {
    const auto worst = Worst(terms, 0);
    EXPECT_GT(worst[kTensor], 0.0F);
    EXPECT_LE(worst[kTensor], 1.0F);
    EXPECT_GT(worst[kFromStart], 0.0F);
    EXPECT_LE(worst[kFromStart], 1.0F);
    EXPECT_EQ(worst[kBlasFloats], 0.0F);  // nobody formed them
  }
}

// The emulated tensor core cuts as Volta's do, which lose 1 to 1.25 of the 2 steps for each
// product.
TEST_P(TensorSumsTest, LoseAlmostHalfTheBoundOfTheTermsThatAreCutMost) {
  const auto worst = Worst(Terms::kMostCut, 0);
  EXPECT_GT(worst[kTensor], 0.38F);
  EXPECT_GT(worst[kFromStart], 0.34F) << "of products and the start's 1.125";
  EXPECT_LE(std::max(worst[kTensor], worst[kFromStart]), 0.625F);
  EXPECT_LT(Worst(Terms::kSameSign, 0)[kTensor], 0.38F);
}

TEST_P(TensorSumsTest, AreFoundOutWhenTheyAreWrong) {
  const auto worst = Worst(Terms::kSameSign, 0x1p-10F);
  EXPECT_LE(worst[kTensor], 1.0F);
  EXPECT_GT(worst[kFromStart], 1.0F);
}

INSTANTIATE_TEST_SUITE_P(Cards, TensorSumsTest, ::testing::Values(0, 3));

}  // namespace
}  // namespace simile::bench::gpu

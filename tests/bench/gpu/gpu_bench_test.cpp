// The GPU benches on the emulated device: plans cover the whole batch, timed passes give the plain
// scan's answers, and the test of tensor-core sums detects a wrong sum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/batch_search.h"
#include "backend/cuda/blas_library.h"
#include "backend/cuda/device_memory.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/segments.h"
#include "bench/gpu/bench_truth.h"
#include "bench/gpu/device_times.h"
#include "bench/gpu/event_timer.h"
#include "bench/gpu/planned_passes.h"
#include "bench/gpu/query_specs.h"
#include "bench/gpu/tensor_sum_kernels.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::Device;
using backend::cuda::DeviceArray;
using backend::cuda::MemoryKind;

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

TEST_P(EnginePassesTest, PlanCoversTheWholeBatch) {
  tests::SeededRandom random(5);
  const auto rows = tests::UnitRows(6'000, 40, random);
  backend::cuda::ResidentRows resident(*device_, tests::MakeSegment(rows),
                                       ResidentSizeOf(*device_, rows->view()));
  for (const std::size_t batch : {1U, 20U, 70U, 5'000U}) {
    const auto passes = PlanBatch(device_->traits(), workspace_->size(), resident, batch, 10);
    ASSERT_FALSE(passes.empty());
    std::size_t planned = 0;
    for (const PlannedPass& pass : passes) {
      EXPECT_EQ(pass.first, planned);
      EXPECT_LE(pass.count, pass.plan.slots);
      planned += pass.count;
    }
    EXPECT_EQ(planned, batch);
  }
}

// The server's plan, margins included: rows within the bound of the gate are hits, too.
TEST_P(EnginePassesTest, PlanWithTheServersMargins) {
  tests::SeededRandom random(7);
  const auto rows = tests::UnitRows(1'000, 4'096, random);
  backend::cuda::ResidentRows resident(*device_, tests::MakeSegment(rows),
                                       ResidentSizeOf(*device_, rows->view()));
  backend::cuda::PassDemand demand = MakeDemand(resident, 1, 10, 10, true);
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

// CUDA loads a kernel's code at its first launch, which a capture does not allow.
TEST_P(EnginePassesTest, TimedWorkRunsOnceBeforeItsCapture) {
  tests::SeededRandom random(9);
  const auto rows = tests::UnitRows(5'000, 32, random);
  const auto queries = tests::UnitRows(1, 32, random);
  backend::cuda::ResidentRows resident(*device_, tests::MakeSegment(rows),
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
  backend::cuda::ResidentRows resident(*device_, tests::MakeSegment(rows),
                                       ResidentSizeOf(*device_, rows->view()));
  backend::cuda::PassRunner runner(*device_, *workspace_, resident);
  const auto passes = PlanBatch(device_->traits(), workspace_->size(), resident, 4, 5);
  DeviceTime time = TimePasses(*device_, runner, passes, queries->view(), 5);
  EXPECT_TRUE(time.few_are_unproven());
  EXPECT_EQ(*truth->CheckProven(time.answers, 5), 3U);
  time.answers[1].clear();
  time.unproven = 1;
  EXPECT_FALSE(time.few_are_unproven());
  EXPECT_EQ(*truth->CheckProven(time.answers, 5), 2U);
  ++time.answers[2][4].row;
  EXPECT_THAT(truth->CheckProven(time.answers, 5).status().message(),
              ::testing::HasSubstr("query 2, k 5: the card's answer (5 hits) differs"));
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

// The GPU benches on the emulated device: the timed steps give the engine's answers, and the test
// of tensor-core sums detects a wrong sum.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "backend/cuda/blas_library.h"
#include "backend/cuda/device_memory.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/segments.h"
#include "bench/gpu/pass_steps.h"
#include "bench/gpu/tensor_sum_kernels.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::Device;
using backend::cuda::DeviceArray;
using backend::cuda::MemoryKind;
using backend::cuda::PassPlan;

class PassStepsTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    tests::ResetEmulatedGpu(tests::CardOf(GetParam()), 1);
    options_ = tests::EmulatedOptions();
    const auto blas = backend::cuda::LoadBlas(options_.blas_libraries);
    ASSERT_TRUE(blas.ok()) << blas.status().ToString();
    device_ = std::make_unique<Device>(options_, *blas);
    workspace_ = std::make_unique<backend::cuda::Workspace>(*device_, options_.workspace, 1);
  }

  backend::GpuOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<backend::cuda::Workspace> workspace_;
};

TEST_P(PassStepsTest, GiveTheEnginesAnswersWithBothStrategies) {
  tests::SeededRandom random(5);
  const auto rows = tests::UnitRows(6'000, 40, random);
  const auto queries = tests::UnitRows(70, 40, random);
  backend::cuda::ResidentRows resident(*device_, tests::SegmentOf(rows), true);
  PassSteps steps(*device_, *workspace_, resident);
  for (const unsigned scan_queries_max : {64U, 0U}) {
    backend::GpuTuning tuning;
    tuning.scan_queries_max = scan_queries_max;
    for (const std::size_t batch : {1U, 20U, 70U}) {
      const auto passes =
          PlanBatch(device_->traits(), tuning, workspace_->size(), resident.size(), batch, 10);
      ASSERT_FALSE(passes.empty());
      std::size_t planned = 0;
      for (const PlannedPass& pass : passes) {
        EXPECT_EQ(pass.first, planned);
        planned += pass.count;
        const auto unproven =
            steps.CheckAgainst(pass.plan, queries->view().Slice(pass.first, pass.count), 10);
        ASSERT_TRUE(unproven.ok()) << unproven.status().ToString();
        EXPECT_EQ(*unproven, 0U);
      }
      EXPECT_EQ(planned, batch);
    }
  }
  EXPECT_EQ(emulated_cuda::TakeReport(), "");
}

TEST_P(PassStepsTest, FindNoHitWhenGatesAreRaised) {
  tests::SeededRandom random(6);
  const auto rows = tests::UnitRows(5'000, 64, random);
  const auto queries = tests::UnitRows(16, 64, random);
  backend::cuda::ResidentRows resident(*device_, tests::SegmentOf(rows), true);
  PassSteps steps(*device_, *workspace_, resident);
  const auto passes = PlanBatch(device_->traits(), backend::GpuTuning{}, workspace_->size(),
                                resident.size(), 16, 10);
  ASSERT_EQ(passes.size(), 1U);
  const PassPlan& plan = passes[0].plan;
  steps.Fill(plan, queries->view(), 10, 1);
  steps.EnqueueScan(plan, {.finish = false, .gate_rise = 10, .sample_groups = 1});
  std::vector<unsigned> counts(plan.slots, 1);
  device_->Check(
      cudaMemcpyAsync(counts.data(), steps.PassOf(plan).hit_counts,
                      counts.size() * sizeof(unsigned), cudaMemcpyDeviceToHost, steps.stream()),
      "cudaMemcpyAsync");
  device_->Await(steps.stream());
  EXPECT_EQ(counts, std::vector<unsigned>(plan.slots, 0));
}

INSTANTIATE_TEST_SUITE_P(Cards, PassStepsTest, ::testing::Values(0, 3));

class TensorSumsTest : public PassStepsTest {
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

TEST_P(TensorSumsTest, AreFoundOutWhenTheyAreWrong) {
  const auto worst = Worst(Terms::kSameSign, 0x1p-10F);
  EXPECT_LE(worst[kTensor], 1.0F);
  EXPECT_GT(worst[kFromStart], 1.0F);
}

INSTANTIATE_TEST_SUITE_P(Cards, TensorSumsTest, ::testing::Values(0, 3));

}  // namespace
}  // namespace simile::bench::gpu

// What the GPU engine says it will take is what it takes, to the byte; and what it does where that
// is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/resident_rows.h"
#include "backend/cuda/workspace.h"
#include "backend/segments.h"
#include "certificate/canonical_score.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::backend {
namespace {

using testing::CardOf;
using testing::EmulatedOptions;
using ::testing::HasSubstr;
using testing::SeededRandom;

// A device rounds what it gives out; so much more is enough for all.
constexpr std::uint64_t kRounding = 16U << 10;

std::unique_ptr<Backend> Open(const GpuOptions& options) {
  auto gpu = testing::OpenEmulatedGpu(options);
  EXPECT_TRUE(gpu.ok()) << gpu.status().ToString();
  return *std::move(gpu);
}

std::uint64_t HeldBy(const Backend& backend, const std::string& kind = "") {
  std::uint64_t bytes = 0;
  for (const DeviceMemory& memory : backend.device_memory()) {
    if (kind.empty() || memory.kind == kind) bytes += memory.bytes;
  }
  return bytes;
}

TEST(GpuMemoryTest, PlansWhatItAllocatesForFiftyShapes) {
  SeededRandom random(2);
  testing::ResetEmulatedGpu(CardOf(0), 0);
  const GpuOptions options = EmulatedOptions();
  const auto backend = Open(options);
  const std::uint64_t workspace = cuda::DeviceBytes(options.workspace);
  ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), workspace);
  ASSERT_EQ(HeldBy(*backend), workspace);
  for (int i = 0; i < 50; ++i) {
    const std::size_t row_count = random.Between(1, 3'000), dim = random.Between(1, 200);
    const auto rows = testing::UnitRows(row_count, dim, random);
    const ResidentPlan plan = backend->Plan({row_count, dim, Metric::kCosine});
    const auto index = backend->MakeResident(testing::SegmentOf(rows));
    ASSERT_TRUE(index.ok());
    ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), workspace + plan.device_bytes)
        << row_count << " x " << dim;
    ASSERT_EQ(HeldBy(*backend), workspace + plan.device_bytes);
    ASSERT_EQ((*index)->Resident()->device_bytes, plan.device_bytes);
    const auto queries = testing::UnitRows(3, dim, random);
    const std::vector<QuerySpec> specs = testing::Specs(3, 10);
    SearchResult result;
    ASSERT_TRUE((*index)->Search({queries->view(), specs}, result).ok());
    ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), workspace + plan.device_bytes)
        << "a search allocates nothing";
  }
  ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), workspace) << "all is given back";
}

// Bytes for the workspace and one such segment with or without its fp32 rows.
std::uint64_t BytesFor(const GpuOptions& options, std::size_t rows, std::size_t dim,
                       bool rows_on_device) {
  const cuda::SegmentSize size{static_cast<unsigned>(rows), static_cast<unsigned>(PaddedDim(dim))};
  return cuda::DeviceBytes(options.workspace) + cuda::PlanResident(size, rows_on_device).total();
}

TEST(GpuMemoryTest, ReadsTheFp32RowsFromTheHostWhereTheyDoNotFit) {
  constexpr std::size_t kRows = 20'000, kDim = 96;
  GpuOptions options = EmulatedOptions(testing::ForcedRoad::kRowScan);
  testing::ResetEmulatedGpu(CardOf(0), 5, BytesFor(options, kRows, kDim, true) - 1);
  const auto backend = Open(options);
  SeededRandom random(3);
  const auto rows = testing::UnitRows(kRows, kDim, random);
  const auto index = backend->MakeResident(testing::SegmentOf(rows));
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  EXPECT_EQ(HeldBy(*backend, "rows-fp32"), 0U);
  EXPECT_EQ((*index)->Resident()->device_bytes, HeldBy(*backend) - HeldBy(*backend, "workspace"));
  EXPECT_GE(emulated_cuda::PinnedBytesInUse(), rows->view().bytes());
  const auto queries = testing::UnitRows(2, kDim, random);
  const std::vector<QuerySpec> specs = testing::Specs(2, 10);
  SearchResult result;
  ASSERT_TRUE((*index)->Search({queries->view(), specs}, result).ok());
  for (std::size_t query = 0; query < 2; ++query) {
    for (const Hit& hit : result.Hits(query)) {
      EXPECT_EQ(hit.score, certificate::CanonicalScoreReference(queries->view()[query],
                                                                rows->view()[hit.row]));
    }
  }
}

TEST(GpuMemoryTest, RefusesASecondGenerationThatDoesNotFitBesideTheFirst) {
  constexpr std::size_t kRows = 4'000, kDim = 64;
  GpuOptions options = EmulatedOptions();
  testing::ResetEmulatedGpu(CardOf(0), 5, BytesFor(options, kRows, kDim, true) + kRounding);
  const auto backend = Open(options);
  SeededRandom random(3);
  const auto rows = testing::UnitRows(kRows, kDim, random);
  auto first = backend->MakeResident(testing::SegmentOf(rows));
  ASSERT_TRUE(first.ok());
  const std::size_t calls = emulated_cuda::CallCount();
  const auto second = backend->MakeResident(testing::SegmentOf(rows));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("may be taken"));
  EXPECT_EQ(emulated_cuda::CallCount(), calls) << "the plan alone said so";
  first->reset();
  EXPECT_TRUE(backend->MakeResident(testing::SegmentOf(rows)).ok());
}

TEST(GpuMemoryTest, OpensWithASmallerWorkspaceWhereTheCardIsSmall) {
  GpuOptions options = EmulatedOptions();
  const std::vector<WorkspaceSize> sizes = cuda::SizesToTry(options.workspace);
  testing::ResetEmulatedGpu(CardOf(0), 0, cuda::DeviceBytes(sizes.back()) + kRounding);
  const auto backend = Open(options);
  EXPECT_EQ(HeldBy(*backend), cuda::DeviceBytes(sizes.back()));
}

TEST(GpuMemoryTest, SaysWhatItNeedsWhereNoWorkspaceFits) {
  const GpuOptions options = EmulatedOptions();
  testing::ResetEmulatedGpu(CardOf(0), 0, std::size_t{1} << 20);
  const auto gpu = testing::OpenEmulatedGpu(options);
  EXPECT_EQ(gpu.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(gpu.status().message()), HasSubstr("a workspace takes"));
  EXPECT_THAT(std::string(gpu.status().message()), HasSubstr("gpu.memory_fraction"));
}

TEST(GpuMemoryTest, SaysWhichCublasItMisses) {
  GpuOptions options = EmulatedOptions();
  options.blas_libraries = {"libcublas-that-is-not-here.so.13"};
  testing::ResetEmulatedGpu(CardOf(0), 0);
  const auto gpu = testing::OpenEmulatedGpu(options);
  EXPECT_EQ(gpu.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(gpu.status().message()),
              HasSubstr("cuBLAS cannot be loaded: libcublas-that-is-not-here.so.13"));
}

TEST(GpuMemoryTest, HalvesTheTileThenTheBatchThenGivesItUp) {
  constexpr std::size_t kRows = 6'000, kDim = 32;
  const GpuOptions options = EmulatedOptions(testing::ForcedRoad::kGemm);
  testing::ResetEmulatedGpu(CardOf(0), 0);
  const auto backend = Open(options);
  SeededRandom random(4);
  const auto rows = testing::UnitRows(kRows, kDim, random);
  const auto index = backend->MakeResident(testing::SegmentOf(rows));
  ASSERT_TRUE(index.ok());
  const auto queries = testing::UnitRows(80, kDim, random);
  const std::vector<QuerySpec> specs = testing::Specs(80, 10);
  SearchResult whole;
  ASSERT_TRUE((*index)->Search({queries->view(), specs}, whole).ok());
  const std::vector<WorkspaceSize> sizes = cuda::SizesToTry(options.workspace);
  for (std::size_t smaller = 1; smaller < sizes.size(); ++smaller) {
    emulated_cuda::InjectFault(
        {.nth = 1, .error = cudaErrorMemoryAllocation, .name = "cudaGraphLaunch"});
    SearchResult halved;
    ASSERT_TRUE((*index)->Search({queries->view(), specs}, halved).ok());
    EXPECT_EQ(HeldBy(*backend, "workspace"), cuda::DeviceBytes(sizes[smaller]));
    testing::ExpectSameAnswers(halved, whole, "with less room");
  }
  emulated_cuda::InjectFault(
      {.nth = 1, .error = cudaErrorMemoryAllocation, .name = "cudaGraphLaunch"});
  SearchResult none;
  EXPECT_EQ((*index)->Search({queries->view(), specs}, none).code(),
            absl::StatusCode::kResourceExhausted)
      << "then it is the CPU's";
}

}  // namespace
}  // namespace simile::backend

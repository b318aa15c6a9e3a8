// The GPU engine allocates exactly the bytes that it plans, and copes with too little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
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

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::CardOf;
using tests::EmulatedOptions;
using tests::SeededRandom;

// An upper bound of what the device rounds allocations up by, in total.
constexpr std::uint64_t kRounding = 16U << 10;

std::unique_ptr<Backend> Open(const GpuOptions& options) {
  auto gpu = tests::OpenEmulatedGpu(options);
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
  tests::ResetEmulatedGpu(CardOf(0), 0);
  const GpuOptions options = EmulatedOptions();
  const auto backend = Open(options);
  const std::uint64_t workspace = WorkspaceBytes(options.workspace);
  ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), workspace);
  ASSERT_EQ(HeldBy(*backend), workspace);
  // The emulated device rounds each allocation up.
  const auto expect_card_holds = [&](std::uint64_t bytes) {
    constexpr std::uint64_t kRoundedUpMax = 4'096;
    const std::optional<CardMemory> card = backend->card_memory();
    ASSERT_TRUE(card.has_value());
    ASSERT_GE(card->total_bytes - card->free_bytes, bytes);
    ASSERT_LE(card->total_bytes - card->free_bytes, bytes + kRoundedUpMax);
  };
  expect_card_holds(workspace);
  ASSERT_EQ(emulated_cuda::PinnedBytesInUse(), WorkspaceHostBytes(options.workspace));
  for (int i = 0; i < 50; ++i) {
    const std::size_t row_count = random.Between(1, 3'000), dim = random.Between(1, 200);
    const auto rows = tests::UnitRows(row_count, dim, random);
    const ResidentPlan plan = backend->Plan({row_count, dim, Metric::kCosine});
    const auto index = backend->MakeResident(tests::MakeSegment(rows));
    ASSERT_TRUE(index.ok());
    ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), workspace + plan.device_bytes)
        << row_count << " x " << dim;
    ASSERT_EQ(HeldBy(*backend), workspace + plan.device_bytes);
    expect_card_holds(workspace + plan.device_bytes);
    ASSERT_EQ((*index)->Resident()->device_bytes, plan.device_bytes);
    const auto queries = tests::UnitRows(3, dim, random);
    const std::vector<QuerySpec> specs = tests::Specs(3, 10);
    SearchResult result;
    ASSERT_TRUE((*index)->Search({queries->view(), specs}, result).ok());
    ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), workspace + plan.device_bytes)
        << "a search allocates nothing";
  }
  ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), workspace) << "everything is freed";
  expect_card_holds(workspace);
}

// Bytes of the workspace and one segment of this size, with or without its fp32 rows.
std::uint64_t BytesFor(const GpuOptions& options, std::size_t rows, std::size_t dim,
                       bool rows_on_device) {
  const SegmentSize size{static_cast<unsigned>(rows), static_cast<unsigned>(PaddedDim(dim))};
  return WorkspaceBytes(options.workspace) + PlanResident(size, rows_on_device).total();
}

TEST(GpuMemoryTest, ReadsTheFp32RowsFromTheHostWhereTheyDoNotFit) {
  constexpr std::size_t kRows = 20'000, kDim = 96;
  GpuOptions options = EmulatedOptions(tests::ForcedStrategy::kRowScan);
  tests::ResetEmulatedGpu(CardOf(0), 5, BytesFor(options, kRows, kDim, true) - 1);
  const auto backend = Open(options);
  SeededRandom random(3);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto index = backend->MakeResident(tests::MakeSegment(rows));
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  EXPECT_EQ(HeldBy(*backend, "rows-fp32"), 0U);
  EXPECT_EQ((*index)->Resident()->device_bytes, HeldBy(*backend) - HeldBy(*backend, "workspace"));
  EXPECT_GE(emulated_cuda::PinnedBytesInUse(), rows->view().bytes());
  const auto queries = tests::UnitRows(2, kDim, random);
  const std::vector<QuerySpec> specs = tests::Specs(2, 10);
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
  tests::ResetEmulatedGpu(CardOf(0), 5, BytesFor(options, kRows, kDim, true) + kRounding);
  const auto backend = Open(options);
  SeededRandom random(3);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  auto first = backend->MakeResident(tests::MakeSegment(rows));
  ASSERT_TRUE(first.ok());
  const std::size_t calls = emulated_cuda::CallCount();
  const auto second = backend->MakeResident(tests::MakeSegment(rows));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("may be taken"));
  EXPECT_EQ(emulated_cuda::CallCount(), calls) << "the plan alone decides";
  first->reset();
  EXPECT_TRUE(backend->MakeResident(tests::MakeSegment(rows)).ok());
}

// What reloads without int8 rows reloads with them, whatever memory there is.
TEST(GpuMemoryTest, KeepsInt8RowsOnlyWhereAReloadStillFits) {
  const SegmentSize segment{1'000'000, 768};
  const auto reloads = [&](std::uint64_t budget, bool with_int8) {
    const ResidentSize first = PlanResidentIn(budget, segment, with_int8);
    if (first.total() > budget) return false;
    const std::uint64_t left = budget - first.total();
    return PlanResidentIn(left, segment, with_int8).total() <= left;
  };
  std::size_t kept = 0;
  for (std::uint64_t budget = 1'000'000'000; budget < 12'000'000'000; budget += 50'000'000) {
    EXPECT_TRUE(reloads(budget, true) || !reloads(budget, false)) << budget;
    if (PlanResidentIn(budget, segment, true).int8_rows > 0) ++kept;
  }
  EXPECT_GT(kept, 20U);
}

TEST(GpuMemoryTest, ServesFromFp16WhereInt8RowsCannotBeAllocated) {
  SeededRandom random(12);
  const auto rows = tests::UnitRows(2'000, 64, random);
  const std::vector<QuerySpec> specs = tests::Specs(1, 5);
  std::size_t without = 0;
  for (std::uint64_t nth = 1; nth < 12; ++nth) {
    tests::ResetEmulatedGpu(CardOf(0), 0);
    const auto backend = Open(EmulatedOptions(tests::ForcedStrategy::kInt8Scan));
    const std::uint64_t before = HeldBy(*backend);
    emulated_cuda::InjectFault(
        {.nth = nth, .error = cudaErrorMemoryAllocation, .name = "cudaMalloc"});
    const auto index = backend->MakeResident(tests::MakeSegment(rows));
    if (!index.ok()) continue;
    SearchResult result;
    ASSERT_TRUE((*index)->Search({rows->view().Slice(7, 1), specs}, result).ok());
    EXPECT_EQ(result.Hits(0)[0].row, 7U);
    if (std::string_view(result.Engine(0)) == "int8-scan-sm90") break;  // no allocation failed
    ++without;
    EXPECT_EQ(HeldBy(*backend) - before, (*index)->Resident()->device_bytes) << nth;
    EXPECT_EQ((*index)->Resident()->device_bytes, PlanResident({2'000, 64}, true).total());
  }
  EXPECT_GE(without, 3U) << "codes, terms and signs";
}

// Long answers lie in pinned blocks as long as a result holds them; without a free block they are
// copied.
TEST(GpuMemoryTest, LendsLongAnswersUntilTheirResultIsReleased) {
  constexpr std::size_t kRows = 3'000, kBatch = 8;
  tests::ResetEmulatedGpu(CardOf(0), 3);
  const std::size_t objects = emulated_cuda::LiveObjects();
  SeededRandom random(8);
  const auto rows = tests::UnitRows(kRows, 64, random);
  const auto queries = tests::UnitRows(4 * kBatch, 64, random);
  const std::vector<QuerySpec> specs = tests::Specs(kBatch, 30);
  std::vector<SearchResult> held(4);
  std::vector<std::vector<Hit>> read;  // right after each search
  {
    GpuOptions options = EmulatedOptions(tests::ForcedStrategy::kRowScan);
    options.tuning.lent_hits_min = kBatch * 30;
    const auto backend = Open(options);
    const auto index = backend->MakeResident(tests::MakeSegment(rows, 70));
    ASSERT_TRUE(index.ok());
    const auto search = [&](std::size_t first, SearchResult& result) {
      EXPECT_TRUE((*index)->Search({queries->view().Slice(first, kBatch), specs}, result).ok());
    };
    const std::uint64_t pinned = emulated_cuda::PinnedBytesInUse();
    for (std::size_t i = 0; i < held.size(); ++i) {
      search(i * kBatch, held[i]);
      auto& hits = read.emplace_back();
      for (std::size_t query = 0; query < kBatch; ++query) {
        hits.insert(hits.end(), held[i].Hits(query).begin(), held[i].Hits(query).end());
      }
    }
    EXPECT_EQ(emulated_cuda::PinnedBytesInUse(), pinned) << "a search allocates nothing";
    held[1].Release();
    EXPECT_TRUE(held[1].Hits(0).empty()) << "it was lent";
    EXPECT_FALSE(held[3].Hits(0).empty());
    held[3].Release();
    EXPECT_FALSE(held[3].Hits(0).empty()) << "it was copied";
    search(3 * kBatch, held[3]);  // into the block that was given back
    EXPECT_EQ(held[3].Hits(0)[0], read[3][0]);
    held[3].Release();
    EXPECT_TRUE(held[3].Hits(0).empty()) << "it was lent";
  }
  EXPECT_GT(emulated_cuda::LiveObjects(), objects) << "the blocks outlive the backend";
  for (const std::size_t i : {0U, 2U}) {
    std::size_t at = 0;
    for (std::size_t query = 0; query < kBatch; ++query) {
      for (const Hit& hit : held[i].Hits(query)) {
        ASSERT_EQ(hit, read[i][at++]) << "result " << i << ", query " << query;
        ASSERT_GE(hit.row, 70U);
      }
    }
    EXPECT_EQ(at, kBatch * 30);
  }
  held.clear();
  EXPECT_EQ(emulated_cuda::LiveObjects(), objects);
  EXPECT_EQ(emulated_cuda::TakeReport(), "");
}

TEST(GpuMemoryTest, LentAnswersStayWhereTheWorkspaceShrinksAndTheDeviceIsLost) {
  constexpr std::size_t kBatch = 4;
  tests::ResetEmulatedGpu(CardOf(0), 4);
  SeededRandom random(9);
  const auto rows = tests::UnitRows(2'000, 32, random);
  const auto queries = tests::UnitRows(2 * kBatch, 32, random);
  const std::vector<QuerySpec> specs = tests::Specs(kBatch, 20);
  const auto backend = Open(EmulatedOptions(tests::ForcedStrategy::kRowScan));
  const auto index = backend->MakeResident(tests::MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  const auto search = [&](std::size_t first, SearchResult& result) {
    return (*index)->Search({queries->view().Slice(first, kBatch), specs}, result);
  };
  SearchResult held, result;
  ASSERT_TRUE(search(0, held).ok());
  const std::vector<Hit> read(held.Hits(1).begin(), held.Hits(1).end());
  const std::uint64_t workspace = HeldBy(*backend, "workspace");
  emulated_cuda::InjectFault(
      {.nth = 1, .error = cudaErrorMemoryAllocation, .name = "cudaStreamQuery"});
  ASSERT_TRUE(search(kBatch, result).ok());
  EXPECT_LT(HeldBy(*backend, "workspace"), workspace);
  EXPECT_TRUE(std::ranges::equal(held.Hits(1), read)) << "its workspace is gone";
  emulated_cuda::InjectFault(
      {.nth = 1, .error = cudaErrorIllegalAddress, .name = "cudaStreamQuery"});
  EXPECT_EQ(search(kBatch, result).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(std::ranges::equal(held.Hits(1), read)) << "its device is lost";
  const std::size_t calls = emulated_cuda::CallCount();
  held.Release();
  result.Release();
  EXPECT_EQ(emulated_cuda::CallCount(), calls) << "a lost device is left alone";
}

TEST(GpuMemoryTest, OpensWithASmallerWorkspaceWhereTheCardIsSmall) {
  GpuOptions options = EmulatedOptions();
  const std::vector<WorkspaceSize> sizes = SizesToTry(options.workspace);
  tests::ResetEmulatedGpu(CardOf(0), 0, WorkspaceBytes(sizes.back()) + kRounding);
  const auto backend = Open(options);
  EXPECT_EQ(HeldBy(*backend), WorkspaceBytes(sizes.back()));
}

TEST(GpuMemoryTest, SaysWhatItNeedsWhereNoWorkspaceFits) {
  const GpuOptions options = EmulatedOptions();
  tests::ResetEmulatedGpu(CardOf(0), 0, std::size_t{1} << 20);
  const auto gpu = tests::OpenEmulatedGpu(options);
  EXPECT_EQ(gpu.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(gpu.status().message()), HasSubstr("a workspace takes"));
  EXPECT_THAT(std::string(gpu.status().message()), HasSubstr("gpu.memory_fraction"));
}

TEST(GpuMemoryTest, TakesSeveralScansWithoutCublasAndSaysSo) {
  constexpr std::size_t kRows = 5'000, kDim = 64, kBatch = 150;
  GpuOptions options = EmulatedOptions();
  options.blas_libraries = {"libcublas-that-is-not-here.so.13"};
  tests::ResetEmulatedGpu(CardOf(0), 0);
  const auto backend = Open(options);
  EXPECT_THAT(backend->limitation(),
              AllOf(StartsWith("batches of more than 64 queries take several scans, because cuBLAS "
                               "cannot be loaded: libcublas-that-is-not-here.so.13"),
                    HasSubstr("install the cuBLAS of CUDA 13")));
  WorkspaceSize size = options.workspace;
  size.tile_bytes = size.blas_bytes = 0;
  EXPECT_EQ(HeldBy(*backend), WorkspaceBytes(size)) << "nothing for matrix products";
  SeededRandom random(6);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto index = backend->MakeResident(tests::MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  const auto queries = tests::UnitRows(kBatch, kDim, random);
  const std::vector<QuerySpec> specs = tests::Specs(kBatch, 10);
  SearchResult result, alone;
  ASSERT_TRUE((*index)->Search({queries->view(), specs}, result).ok());
  for (std::size_t query = 0; query < kBatch; ++query) {
    EXPECT_STREQ(result.Engine(query), "int8-scan-sm90");
  }
  for (const std::size_t query : {0U, 63U, 64U, 149U}) {
    const std::span<const QuerySpec> spec(&specs[query], 1);
    ASSERT_TRUE((*index)->Search({queries->view().Slice(query, 1), spec}, alone).ok());
    EXPECT_TRUE(std::ranges::equal(alone.Hits(0), result.Hits(query))) << query;
  }
}

// As with a libcublasLt of another version.
TEST(GpuMemoryTest, ServesWithoutACublasThatDoesNotWork) {
  const GpuOptions options = EmulatedOptions();
  tests::ResetEmulatedGpu(CardOf(0), 0);
  emulated_cuda::InjectFault({.nth = 1, .error = cudaErrorNotSupported, .name = "cublasCreate"});
  EXPECT_EQ(Open(options)->limitation(),
            "batches of more than 64 queries take several scans, because cuBLAS cannot be used: "
            "cuBLAS status 13 at cublasCreate; libcublas and libcublasLt must be of one version");
  tests::ResetEmulatedGpu(CardOf(0), 0);
  emulated_cuda::InjectFault(
      {.nth = 1, .error = cudaErrorMemoryAllocation, .name = "cublasCreate"});
  EXPECT_EQ(Open(options)->limitation(), "") << "a lack of memory says nothing about the library";
}

TEST(GpuMemoryTest, ShrinksTheTileThenTheBatchThenFails) {
  constexpr std::size_t kRows = 6'000, kDim = 32;
  GpuOptions options = EmulatedOptions(tests::ForcedStrategy::kGemm);
  options.tuning.lent_hits_min =
      80 * 10 + 1;  // none: each block that is lent has a graph of its own
  tests::ResetEmulatedGpu(CardOf(0), 0);
  const auto backend = Open(options);
  SeededRandom random(4);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto index = backend->MakeResident(tests::MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  const auto queries = tests::UnitRows(80, kDim, random);
  const std::vector<QuerySpec> specs = tests::Specs(80, 10);
  SearchResult whole;
  ASSERT_TRUE((*index)->Search({queries->view(), specs}, whole).ok());
  const std::vector<WorkspaceSize> sizes = SizesToTry(options.workspace);
  for (std::size_t smaller = 1; smaller < sizes.size(); ++smaller) {
    emulated_cuda::InjectFault(
        {.nth = 1, .error = cudaErrorMemoryAllocation, .name = "cudaGraphLaunch"});
    SearchResult result;
    ASSERT_TRUE((*index)->Search({queries->view(), specs}, result).ok());
    EXPECT_EQ(HeldBy(*backend, "workspace"), WorkspaceBytes(sizes[smaller]));
    tests::ExpectSameAnswers(result, whole, "with a smaller workspace");
  }
  emulated_cuda::InjectFault(
      {.nth = 1, .error = cudaErrorMemoryAllocation, .name = "cudaGraphLaunch"});
  SearchResult none;
  EXPECT_EQ((*index)->Search({queries->view(), specs}, none).code(),
            absl::StatusCode::kResourceExhausted)
      << "the CPU answers then";
}

}  // namespace
}  // namespace simile::backend

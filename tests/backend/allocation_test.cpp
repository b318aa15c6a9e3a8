// A warm search allocates no memory, from the heap or from the system. A program of its own,
// because watched_memory.cpp replaces operator new.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "backend/counted_kernel.h"
#include "backend/cpu/int8_backend.h"
#include "backend/segments.h"
#include "backend/small_blocks.h"
#include "base/memory_pages.h"
#include "memory/watched_memory.h"

namespace simile::backend::cpu {
namespace {

using tests::DrawRowMask;
using tests::MakeSegment;
using tests::SeededRandom;
using tests::UnitRows;
using tests::WatchedMemory;

constexpr std::uint64_t kSeed = 111;
constexpr Row kRowCount = 20'000;
constexpr std::size_t kBatchMax = 1'000;

class AllocationTest : public ::testing::Test {
 protected:
  AllocationTest() {
    Int8Options options = OptionsFor("");
    kernel_.emplace(*options.small);
    options.small = kernel_->kernel();
    options.threads = 2;
    options.tuning.int4_from_code_bytes = 0;  // single queries read int4
    options.foreground_bytes_max = tests::kInForeground;
    options.small_pass_bytes = 0;
    backend_ = MakeInt8Backend(options);
    index_ = backend_->MakeResident(MakeSegment(rows_)).value();
  }

  void Search(std::size_t batch) {
    const SearchBatch batch_of_queries{queries_->view().Slice(0, batch),
                                       std::span(specs_).first(batch)};
    ASSERT_TRUE(index_->Search(batch_of_queries, result_).ok());
  }

  // The allocations of searches of this batch size once three of them have run.
  std::size_t AllocationsOfWarmSearches(std::size_t batch) {
    for (int i = 0; i < 3; ++i) Search(batch);
    const WatchedMemory memory(WatchedMemory::Of::kAllThreads);
    for (int i = 0; i < 5; ++i) Search(batch);
    return memory.allocations();
  }

  SeededRandom random_{kSeed};
  std::optional<tests::CountedKernel> kernel_;
  std::shared_ptr<tests::PaddedRows> rows_ = UnitRows(kRowCount, 96, random_);
  std::shared_ptr<tests::PaddedRows> queries_ = UnitRows(kBatchMax, 96, random_);
  std::vector<QuerySpec> specs_ = tests::Specs(kBatchMax, 10);
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<const SegmentIndex> index_;
  SearchResult result_;
};

TEST_F(AllocationTest, CountsAllocations) {
  const WatchedMemory memory(WatchedMemory::Of::kAllThreads);
  const auto number = std::make_unique<int>(1);
  EXPECT_GE(memory.allocations(), 1U);
  const std::size_t before = memory.allocations();
  const base::PageBuffer pages(100);
  EXPECT_EQ(memory.allocations(), before + 1);
}

TEST_F(AllocationTest, AllocatesNothingInAWarmSearch) {
  for (const std::size_t batch : {1U, 32U, 1'000U})
    EXPECT_EQ(AllocationsOfWarmSearches(batch), 0U) << batch;
  EXPECT_GT(kernel_->int4_scans(), 0U);
}

// The rest of a batch that does not fit one pass may be small enough for int4.
TEST_F(AllocationTest, AllocatesNothingForInt4AfterLargerBatches) {
  for (int i = 0; i < 3; ++i) Search(32);
  const WatchedMemory memory(WatchedMemory::Of::kAllThreads);
  Search(3);
  EXPECT_EQ(memory.allocations(), 0U);
  EXPECT_GT(kernel_->int4_scans(), 0U);
}

TEST_F(AllocationTest, AllocatesNothingForBatchesOfOtherSizesAndHits) {
  for (std::size_t query = 0; query < kBatchMax; ++query)
    specs_[query].k = std::vector<std::uint32_t>{1, 10, 100, 700}[query % 4];
  Search(kBatchMax);
  for (const std::size_t batch : {1'000U, 1U, 17U, 333U, 32U})
    EXPECT_EQ(AllocationsOfWarmSearches(batch), 0U) << batch;
}

TEST_F(AllocationTest, AllocatesNothingUnderMasksAndExclusions) {
  const RowMask few = DrawRowMask(kRowCount, 100, random_);
  const RowMask half = DrawRowMask(kRowCount, 2, random_);
  const std::vector<Row> excluded{1, 5, 100, 10'000};
  for (std::size_t query = 0; query < kBatchMax; ++query) {
    if (query % 3 == 0) specs_[query].mask = &few;
    if (query % 3 == 1) specs_[query].mask = &half;
    specs_[query].excluded_rows = excluded;
  }
  for (const std::size_t batch : {1U, 32U, 1'000U})
    EXPECT_EQ(AllocationsOfWarmSearches(batch), 0U) << batch;
}

}  // namespace
}  // namespace simile::backend::cpu

// A warm search takes no memory, from the heap or from the system. In a program of its own, because
// it replaces operator new and mmap (the latter by the linker's --wrap).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "backend/cpu/int8_backend.h"
#include "backend/segments.h"
#include "data/page_buffer.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<std::size_t> taken{0};

void Count() {
  if (armed.load(std::memory_order_relaxed)) taken.fetch_add(1, std::memory_order_relaxed);
}

void* Allocate(std::size_t bytes, std::size_t alignment) {
  Count();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// Names that the linker gives.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __real_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset) {
  Count();
  return __real_mmap(address, bytes, protection, flags, file, offset);
}
// NOLINTEND(bugprone-reserved-identifier)
}

namespace simile::backend::cpu {
namespace {

using testing::MaskOf;
using testing::SeededRandom;
using testing::SegmentOf;
using testing::UnitRows;

constexpr std::uint64_t kSeed = 111;
constexpr Row kRowCount = 20'000;
constexpr std::size_t kBatchMax = 1'000;

class AllocationTest : public ::testing::Test {
 protected:
  AllocationTest() {
    Int8Options options = OptionsFor("");
    options.threads = 2;
    options.foreground_bytes_max = std::size_t{1} << 40;
    backend_ = MakeInt8Backend(options);
    index_ = backend_->MakeResident(SegmentOf(rows_)).value();
  }

  void Search(std::size_t batch) {
    const SearchBatch asked{queries_->view().Slice(0, batch), std::span(specs_).first(batch)};
    ASSERT_TRUE(index_->Search(asked, result_).ok());
  }

  // What a search of this batch takes once a few of its like have run.
  std::size_t TakenByWarmSearch(std::size_t batch) {
    for (int i = 0; i < 3; ++i) Search(batch);
    taken = 0;
    armed = true;
    for (int i = 0; i < 5; ++i) Search(batch);
    armed = false;
    return taken;
  }

  SeededRandom random_{kSeed};
  std::shared_ptr<testing::PaddedRows> rows_ = UnitRows(kRowCount, 96, random_);
  std::shared_ptr<testing::PaddedRows> queries_ = UnitRows(kBatchMax, 96, random_);
  std::vector<QuerySpec> specs_ = testing::Specs(kBatchMax, 10);
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<const SegmentIndex> index_;
  SearchResult result_;
};

TEST_F(AllocationTest, CountsWhatIsTaken) {
  taken = 0;
  armed = true;
  auto number = std::make_unique<int>(1);
  const data::PageBuffer pages(100);
  armed = false;
  EXPECT_EQ(taken, 2U);
}

TEST_F(AllocationTest, TakesNothingInAWarmSearch) {
  for (const std::size_t batch : {1U, 32U, 1'000U})
    EXPECT_EQ(TakenByWarmSearch(batch), 0U) << batch;
}

TEST_F(AllocationTest, TakesNothingForBatchesOfOtherSizesAndHits) {
  for (std::size_t query = 0; query < kBatchMax; ++query)
    specs_[query].k = std::vector<std::uint32_t>{1, 10, 100, 700}[query % 4];
  Search(kBatchMax);
  for (const std::size_t batch : {1'000U, 1U, 17U, 333U, 32U})
    EXPECT_EQ(TakenByWarmSearch(batch), 0U) << batch;
}

TEST_F(AllocationTest, TakesNothingUnderMasksAndExclusions) {
  const RowMask few = MaskOf(kRowCount, 100, random_);
  const RowMask half = MaskOf(kRowCount, 2, random_);
  const std::vector<Row> excluded{1, 5, 100, 10'000};
  for (std::size_t query = 0; query < kBatchMax; ++query) {
    if (query % 3 == 0) specs_[query].mask = &few;
    if (query % 3 == 1) specs_[query].mask = &half;
    specs_[query].excluded_rows = excluded;
  }
  for (const std::size_t batch : {1U, 32U, 1'000U})
    EXPECT_EQ(TakenByWarmSearch(batch), 0U) << batch;
}

}  // namespace
}  // namespace simile::backend::cpu

// What `simile plan` prints of a card is what the GPU engine allocates on it, to the byte.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/accelerator_kinds.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/segments.h"
#include "cli/plan/capacity.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::backend {
namespace {

using tests::CardOf;
using tests::EmulatedOptions;
using tests::SeededRandom;

std::uint64_t Sum(const std::vector<DeviceMemory>& memory, bool peak) {
  std::uint64_t bytes = 0;
  for (const DeviceMemory& each : memory) bytes += peak ? each.peak_bytes : each.bytes;
  return bytes;
}

std::uint64_t Of(const std::vector<DeviceMemory>& memory, const std::string& kind) {
  for (const DeviceMemory& each : memory) {
    if (each.kind == kind) return each.bytes;
  }
  return 0;
}

cli::PlannedCollection Planned(std::size_t row_count, std::size_t dim) {
  cli::PlannedCollection collection;
  collection.rows = row_count;
  collection.dim = static_cast<std::uint32_t>(dim);
  return collection;
}

// Loads collections of random shapes into cards of random sizes, and replaces the first one.
TEST(GpuPlanTest, IsWhatTheEngineAllocatesForManyShapes) {
  SeededRandom random(7);
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t card_bytes = random.Between(12, 64) << 20;
    tests::ResetEmulatedGpu(CardOf(0), 0, card_bytes);
    const GpuOptions options = EmulatedOptions();
    const std::vector<cli::PlannedCollection> collections = {
        Planned(random.Between(1, 3'000), random.Between(1, 200)),
        Planned(random.Between(1, 3'000), random.Between(1, 200))};
    const cli::DevicePlan plan = cli::PlanDevice(collections, options, card_bytes);
    auto gpu = tests::OpenEmulatedGpu(options);
    ASSERT_EQ(gpu.ok(), plan.workspace_fits) << gpu.status();
    if (!gpu.ok()) continue;
    ASSERT_EQ(Sum((*gpu)->device_memory(), false), plan.workspace_bytes);
    std::vector<std::shared_ptr<const SegmentIndex>> resident;
    for (std::size_t each = 0; each < collections.size(); ++each) {
      const auto rows = tests::UnitRows(collections[each].rows, collections[each].dim, random);
      const auto before = (*gpu)->device_memory();
      const auto index = (*gpu)->MakeResident(tests::MakeSegment(rows));
      ASSERT_EQ(index.ok(), plan.shares[each].fits) << index.status();
      if (!index.ok()) continue;
      resident.push_back(*index);
      const auto after = (*gpu)->device_memory();
      const ResidentSize& size = plan.shares[each].size;
      ASSERT_EQ(Of(after, "rows-fp16") - Of(before, "rows-fp16"), size.fp16_rows);
      ASSERT_EQ(Of(after, "rows-fp32") - Of(before, "rows-fp32"), size.rows);
      ASSERT_EQ(Of(after, "rows-int8") - Of(before, "rows-int8"), size.int8_rows);
      ASSERT_EQ(Of(after, "row-numbers") - Of(before, "row-numbers"), size.row_numbers);
      ASSERT_EQ(Of(after, "filters") - Of(before, "filters"), size.filters);
    }
    ASSERT_EQ(Sum((*gpu)->device_memory(), false), plan.rest_bytes);
    ASSERT_EQ(emulated_cuda::DeviceBytesInUse(), plan.rest_bytes);
    if (!plan.shares[0].fits) continue;
    const auto rows = tests::UnitRows(collections[0].rows, collections[0].dim, random);
    const auto second = (*gpu)->MakeResident(tests::MakeSegment(rows));
    ASSERT_EQ(second.ok(), plan.shares[0].reload_fits) << second.status();
  }
}

TEST(GpuPlanTest, IsTheEnginesPeakOfAReload) {
  SeededRandom random(8);
  for (int i = 0; i < 20; ++i) {
    tests::ResetEmulatedGpu(CardOf(0), 0);
    const GpuOptions options = EmulatedOptions();
    const auto planned = Planned(random.Between(1, 3'000), random.Between(1, 200));
    const cli::DevicePlan plan = cli::PlanDevice({&planned, 1}, options, std::uint64_t{256} << 20);
    const auto gpu = tests::OpenEmulatedGpu(options);
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    const auto rows = tests::UnitRows(planned.rows, planned.dim, random);
    const auto old_rows = (*gpu)->MakeResident(tests::MakeSegment(rows));
    const auto new_rows = (*gpu)->MakeResident(tests::MakeSegment(rows));
    ASSERT_TRUE(old_rows.ok() && new_rows.ok());
    ASSERT_EQ(Sum((*gpu)->device_memory(), true), plan.reload_bytes);
  }
}

// What answers on a card of each capability is what the plan says of it.
TEST(GpuPlanTest, TellsTheStrategiesOfEachCapability) {
  constexpr std::size_t kRows = 6'000, kDim = 32, kLarge = 65;
  SeededRandom random(9);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto queries = tests::UnitRows(kLarge, kDim, random);
  for (const tests::EmulatedCard& card : tests::CardsByCapability()) {
    tests::ResetEmulatedGpu(card, 0);
    GpuOptions options = EmulatedOptions();
    const auto gpu = tests::OpenEmulatedGpu(options);
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    const auto index = (*gpu)->MakeResident(tests::MakeSegment(rows));
    ASSERT_TRUE(index.ok()) << index.status();
    options.int8_rows = card.capability >= kInt8ScanMin;
    const cli::PlannedCollection planned = Planned(kRows, kDim);
    const cli::DevicePlan plan = cli::PlanDevice({&planned, 1}, options, std::uint64_t{256} << 20);
    const ResidentSize& size = plan.shares[0].size;
    EXPECT_EQ(Of((*gpu)->device_memory(), "rows-int8"), size.int8_rows) << card.name;
    for (const std::size_t batch : {std::size_t{1}, kLarge}) {
      const std::vector<QuerySpec> specs = tests::Specs(batch, 10);
      SearchResult result;
      ASSERT_TRUE((*index)->Search({queries->view().Slice(0, batch), specs}, result).ok());
      const cli::PassKind kind =
          cli::ChoosePassKind(planned, static_cast<std::uint32_t>(batch), card.capability, size);
      const bool is_gemm = kind == cli::PassKind::kGemm || kind == cli::PassKind::kFp32Gemm;
      const std::string scan =
          card.capability >= kRingScanMin ? "fp16-scan-sm" : "fp16-scan-registers-sm";
      const std::string engine = kind == cli::PassKind::kInt8Scan ? "int8-scan-sm"
                                 : is_gemm                        ? "fp16-gemm-sm"
                                                                  : scan;
      EXPECT_EQ(result.Engine(0), engine + std::to_string(card.capability)) << "batch " << batch;
    }
  }
}

}  // namespace
}  // namespace simile::backend

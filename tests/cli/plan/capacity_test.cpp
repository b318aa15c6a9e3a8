#include "cli/plan/capacity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::cli {
namespace {

using testing::Contains;
using testing::DoubleEq;
using testing::HasSubstr;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

PlannedCollection Planned(std::uint64_t rows, std::uint32_t dim) {
  PlannedCollection collection;
  collection.name = "films";
  collection.rows = rows;
  collection.dim = dim;
  engine::DataBytes data;
  data.vectors = rows * PaddedDim(dim) * sizeof(float);
  backend::cpu::Int8Options options = backend::cpu::OptionsFor("portable");
  options.threads = 2;
  return PlanCollection(collection, data, options);
}

TEST(CapacityTest, AddsTheProgramAndTheLargestReload) {
  const std::vector<PlannedCollection> collections = {Planned(100'000, 64), Planned(2'000, 64)};
  const std::uint64_t first = collections[0].memory.resident.host();
  const std::uint64_t second = collections[1].memory.resident.host();
  const HostPlan plan = PlanHost(collections, 1'000);
  EXPECT_EQ(plan.rest_bytes, kProgramBytes + 1'000 + first + second);
  EXPECT_EQ(plan.reload_bytes,
            kProgramBytes + 1'000 + second + first + collections[0].memory.peak_bytes());
  EXPECT_EQ(plan.held_bytes, plan.reload_bytes) << "small indexes are built before the swap";
}

TEST(CapacityTest, PlansTheTranscriptOfTenMillionRows) {
  const std::vector<PlannedCollection> big = {Planned(10'000'000, 768)};
  const backend::GpuOptions options;
  const DevicePlan plan = PlanDevice(big, options, 16 * kGiB);
  EXPECT_EQ(plan.budget_bytes, static_cast<std::uint64_t>(16 * 0.8 * 0x1p30) - kGiB);
  EXPECT_TRUE(plan.workspace_fits);
  EXPECT_FALSE(plan.fits());
  EXPECT_EQ(plan.shares[0].size.fp16_rows, 10'000'000ULL * 768 * 2);
  EXPECT_EQ(plan.shares[0].size.rows, 0U);
  EXPECT_EQ(plan.rest_bytes, plan.workspace_bytes) << "the CPU answers";
  const std::vector<std::string> choices = Choices(big, plan, options);
  EXPECT_THAT(choices, Contains(HasSubstr("2 servers with such a card")));
  EXPECT_THAT(choices, Contains(HasSubstr("CPU (")));
}

TEST(CapacityTest, PutsCollectionsOnACardOneAfterTheOther) {
  // Rows in fp32 fit for the first alone.
  const std::vector<PlannedCollection> two = {Planned(1'000'000, 384), Planned(1'000'000, 384)};
  const backend::GpuOptions options;
  const DevicePlan plan = PlanDevice(two, options, 6 * kGiB);
  ASSERT_TRUE(plan.fits());
  EXPECT_GT(plan.shares[0].size.rows, 0U);
  EXPECT_EQ(plan.shares[1].size.rows, 0U);
  EXPECT_EQ(plan.rest_bytes, plan.needed_bytes);
  EXPECT_EQ(plan.rest_bytes,
            plan.workspace_bytes + plan.shares[0].size.total() + plan.shares[1].size.total());
  EXPECT_FALSE(plan.shares[0].reload_fits);
  EXPECT_EQ(plan.reload_bytes, plan.rest_bytes);
  const DevicePlan large = PlanDevice(two, options, 24 * kGiB);
  EXPECT_TRUE(large.shares[0].reload_fits);
  EXPECT_EQ(large.reload_bytes,
            large.rest_bytes + large.shares[0].second_bytes + backend::kResidentBuildBytes);
}

TEST(CapacityTest, ShrinksTheWorkspaceOnASmallCard) {
  backend::GpuOptions options;
  options.reserve_bytes = 0;
  const std::vector<PlannedCollection> films = {Planned(5'000, 384)};
  const DevicePlan plan = PlanDevice(films, options, kGiB / 4);
  EXPECT_TRUE(plan.fits());
  EXPECT_LT(plan.workspace_bytes, backend::WorkspaceBytes(options.workspace));
  EXPECT_FALSE(PlanDevice(films, options, kGiB / 64).fits());
}

TEST(CapacityTest, FloorsAreReadingOrMultiplying) {
  const PlannedCollection million = Planned(1'000'000, 384);
  const std::uint64_t codes = million.batch_bytes;
  EXPECT_EQ(codes, 1'000'000ULL * 384);
  EXPECT_THAT(FloorOnHost(million, 64, {1e9, 0, {}}).seconds,
              DoubleEq(static_cast<double>(codes) / 1e9));
  const SpeedFloor multiplying = FloorOnHost(million, 64, {1e12, 1e9, {}});
  EXPECT_TRUE(multiplying.is_arithmetic);
  EXPECT_THAT(multiplying.seconds, DoubleEq(64 * 384e6 / 1e9));
  EXPECT_THAT(multiplying.queries_per_s(), DoubleEq(1e9 / 384e6));
}

TEST(CapacityTest, FloorsOfSmallPassesAreThoseOfCaches) {
  const SpeedLimits limits{20e9, 0, {{64 << 10, 200e9}, {2 << 20, 60e9}, {32 << 20, 20e9}}};
  EXPECT_EQ(limits.FindRate(1), 200e9);
  EXPECT_EQ(limits.FindRate((2 << 20) - 1), 200e9) << "what is faster: a floor stays one";
  EXPECT_EQ(limits.FindRate(2 << 20), 60e9);
  EXPECT_EQ(limits.FindRate(1 << 30), 20e9);
  const PlannedCollection films = Planned(5'000, 384);
  EXPECT_THAT(FloorOnHost(films, 64, limits).seconds,
              DoubleEq(static_cast<double>(films.batch_bytes) / 200e9));
}

TEST(CapacityTest, ABatchBeyondOnePassReadsAgain) {
  const PlannedCollection million = Planned(1'000'000, 384);
  const backend::WorkspaceSize workspace;
  EXPECT_EQ(backend::PassQueriesMax(workspace, 10), 1'024U);
  EXPECT_LT(backend::PassQueriesMax(workspace, 10'000), 1'024U);
  const backend::ResidentSize fp16 = backend::PlanResident({1'000'000, 384}, true);
  const backend::ResidentSize with_int8 = backend::PlanResident({1'000'000, 384}, true, true);
  const DeviceSpeed limits{{1e12, 0, {}}, 0, 90};
  const double once = FloorOnDevice(million, 1, 10, workspace, limits, fp16).seconds;
  EXPECT_THAT(once, DoubleEq(1e6 * 384 * 2 / 1e12));
  EXPECT_THAT(FloorOnDevice(million, 1'024, 10, workspace, limits, with_int8).seconds,
              DoubleEq(once));
  EXPECT_GT(FloorOnDevice(million, 1'024, 10'000, workspace, limits, fp16).seconds, 2 * once);
  EXPECT_LT(FloorOnDevice(million, 64, 1'000, workspace, limits, with_int8).seconds, 0.52 * once);
  EXPECT_THAT(FloorOnDevice(million, 65, 1'000, workspace, limits, with_int8).seconds,
              DoubleEq(once));
}

TEST(CapacityTest, KindsOfPassesFollowFromTheCapability) {
  const PlannedCollection million = Planned(1'000'000, 384);
  const backend::ResidentSize fp16 = backend::PlanResident({1'000'000, 384}, true);
  const backend::ResidentSize with_int8 = backend::PlanResident({1'000'000, 384}, true, true);
  const auto kind = [&](int capability, std::uint32_t batch, const backend::ResidentSize& size) {
    return ChoosePassKind(million, batch, capability, size);
  };
  for (const int capability : {0, 80, 86, 89, 90, 100, 120}) {
    EXPECT_EQ(kind(capability, 64, with_int8), PassKind::kInt8Scan) << capability;
    EXPECT_EQ(kind(capability, 64, fp16), PassKind::kRingScan) << capability;
    EXPECT_EQ(kind(capability, 65, with_int8), PassKind::kGemm) << capability;
  }
  EXPECT_EQ(kind(75, 64, fp16), PassKind::kRegisterScan);
  EXPECT_EQ(kind(75, 65, fp16), PassKind::kGemm);
  EXPECT_EQ(kind(70, 64, fp16), PassKind::kFp32Scan);
  EXPECT_EQ(kind(70, 65, fp16), PassKind::kGemm);
  EXPECT_EQ(kind(61, 1, fp16), PassKind::kFp32Scan);
  EXPECT_EQ(kind(61, 65, fp16), PassKind::kFp32Gemm);
  EXPECT_EQ(ChoosePassKind(Planned(1'024, 384), 1, 90, with_int8), PassKind::kCanonical);
  EXPECT_EQ(kind(90, 1, with_int8), ChoosePassKind(Planned(1'025, 384), 1, 90, with_int8));
}

TEST(CapacityTest, ScansMultiplyForWholeInstructions) {
  const PlannedCollection million = Planned(1'000'000, 384);
  const backend::WorkspaceSize workspace;
  const backend::ResidentSize fp16 = backend::PlanResident({1'000'000, 384}, true);
  // A P4: 2.75e12 multiply-adds, half of them where shuffles fetch operands.
  const DeviceSpeed p4{{192e9, 2.75e12, {}}, ScanProductsPerS(61, 2.75e12, 2.75e12), 61};
  const SpeedFloor one = FloorOnDevice(million, 1, 10, workspace, p4, fp16);
  EXPECT_TRUE(one.is_arithmetic);
  EXPECT_THAT(one.seconds, DoubleEq(16 * 384e6 / 1.375e12));
  EXPECT_THAT(FloorOnDevice(million, 33, 10, workspace, p4, fp16).seconds,
              DoubleEq(64 * 384e6 / 1.375e12));
  EXPECT_THAT(FloorOnDevice(million, 100, 10, workspace, p4, fp16).seconds,
              DoubleEq(100 * 384e6 / 2.75e12));
  EXPECT_EQ(ScanProductsPerS(70, 62.5e12, 7.85e12), 7.85e12);
  EXPECT_EQ(ScanProductsPerS(75, 32.5e12, 0), 32.5e12);
}

}  // namespace
}  // namespace simile::cli

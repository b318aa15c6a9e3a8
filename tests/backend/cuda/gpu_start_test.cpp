// Searches that the device works on without a thread, two at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/scan_backend.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/too_high_gate.h"
#include "backend/segments.h"
#include "certificate/canonical_score.h"
#include "emulated_cuda/emulated_device.h"
#include "simile/turn.h"

namespace simile::backend {
namespace {

using tests::CardOf;
using tests::EmulatedOptions;
using tests::ForcedStrategy;
using tests::PaddedRows;
using tests::SeededRandom;

class GpuStartTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kRows = 900, kDim = 32, kQueries = 8;

  // A search that was begun, and its answers.
  struct Begun {
    std::vector<QuerySpec> specs;
    SearchBatch batch;
    SearchResult result;
    std::unique_ptr<SearchPass> pass;
    bool started = false;
  };

  void Open(ForcedStrategy strategy, const std::shared_ptr<PaddedRows>& rows) {
    tests::ResetEmulatedGpu(CardOf(0), 4);
    GpuOptions options = EmulatedOptions(strategy);
    options.tuning.mapped_queries_max = 0;  // what is mapped is not started
    options.tuning.canonical_rows_max = 200;
    auto opened = tests::OpenEmulatedGpu(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    gpu_ = *std::move(opened);
    on_gpu_ = gpu_->MakeResident(tests::MakeSegment(rows)).value();
    on_cpu_ = scan_->MakeResident(tests::MakeSegment(rows)).value();
  }
  void Open() {
    SeededRandom random(3);
    queries_ = tests::UnitRows(kQueries, kDim, random);
    Open(ForcedStrategy::kNone, tests::UnitRows(kRows, kDim, random));
  }

  // Queries [first, first + count) for five hits each.
  std::unique_ptr<Begun> Begin(std::size_t first, std::size_t count, const QuerySpec& spec = {},
                               DeviceTime* device_time = nullptr) {
    auto begun = std::make_unique<Begun>();
    begun->specs.assign(count, spec);
    for (QuerySpec& each : begun->specs) each.k = 5;
    begun->batch = {queries_->view().Slice(first, count), begun->specs, device_time};
    begun->pass = on_gpu_->Begin(begun->batch, begun->result).value();
    begun->started = begun->pass->Start();
    return begun;
  }

  void ExpectAnswers(Begun& begun, const std::string& what) {
    const absl::StatusOr<bool> done = begun.pass->Advance(WholeTurn());
    ASSERT_TRUE(done.ok()) << what << ": " << done.status().ToString();
    EXPECT_TRUE(*done) << what;
    SearchResult expected;
    ASSERT_TRUE(on_cpu_->Search({begun.batch.queries, begun.specs}, expected).ok());
    tests::ExpectSameAnswers(begun.result, expected, what);
    EXPECT_EQ(emulated_cuda::TakeReport(), "") << what;
    begun.result.Release();
  }

  const std::unique_ptr<Backend> scan_ =
      cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), 1);
  std::shared_ptr<PaddedRows> queries_;
  std::unique_ptr<Backend> gpu_;
  std::shared_ptr<const SegmentIndex> on_gpu_, on_cpu_;
};

TEST_F(GpuStartTest, TwoSearchesGiveTheirOwnAnswersAndAThirdFindsSpaceBesideThem) {
  Open();
  const std::vector<Row> few{2, 3, 5}, many{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (int round = 0; round < 3; ++round) {  // the second one captures its graphs
    const auto first = Begin(0, 4, {.excluded_rows = few});
    const auto second = Begin(4, 4, {.excluded_rows = many});
    EXPECT_TRUE(first->started);
    EXPECT_TRUE(second->started);
    const auto third = Begin(2, 4);
    EXPECT_FALSE(third->started) << "no answers are free to lend";
    ExpectAnswers(*third, "third");
    ExpectAnswers(*first, "first");
    const auto fourth = Begin(1, 4);
    EXPECT_TRUE(fourth->started);
    ExpectAnswers(*second, "second");
    ExpectAnswers(*fourth, "fourth");
  }
}

TEST_F(GpuStartTest, TheDeviceWorksBeforeAnybodyWaits) {
  Open();
  const auto first = Begin(0, 4);
  ASSERT_TRUE(first->started);
  const std::size_t calls = emulated_cuda::CallCount();
  ExpectAnswers(*first, "first");
  const std::vector<std::string> log = emulated_cuda::CallLog();
  for (std::size_t call = calls; call < log.size(); ++call) {
    EXPECT_FALSE(log[call].starts_with("launch:")) << log[call];
  }
}

// They take another strategy, or wait for the device with a part of their work.
TEST_F(GpuStartTest, LeavesAnyOtherSearchToAThread) {
  Open();
  SeededRandom random(7);
  const RowMask mask = tests::DrawRowMask(kRows, 3, random);
  DeviceTime time;
  QuerySpec with_mask;
  with_mask.mask = &mask;
  const auto masked = Begin(0, 4, with_mask);
  const auto timed = Begin(0, 4, {}, &time);
  std::ranges::fill((*queries_)[2], 0.0F);
  const auto zero = Begin(0, 4);
  EXPECT_FALSE(masked->started);
  EXPECT_FALSE(timed->started);
  EXPECT_FALSE(zero->started);
  ExpectAnswers(*masked, "masked");
  ExpectAnswers(*timed, "timed");
  ExpectAnswers(*zero, "zero");
  EXPECT_TRUE(time.measured);
}

TEST_F(GpuStartTest, OneThatIsGivenUpHarmsNoOther) {
  Open();
  const auto first = Begin(0, 4);
  auto second = Begin(4, 4);
  ASSERT_TRUE(first->started && second->started);
  second.reset();
  ExpectAnswers(*first, "first");
  const auto third = Begin(4, 4);
  EXPECT_TRUE(third->started);
  ExpectAnswers(*third, "third");
}

TEST_F(GpuStartTest, BothSayThatTheDeviceIsLost) {
  Open();
  const auto first = Begin(0, 4);
  const auto second = Begin(4, 4);
  ASSERT_TRUE(first->started && second->started);
  emulated_cuda::InjectFault(
      {.nth = 1, .error = cudaErrorIllegalAddress, .name = "cudaEventQuery", .sticky = true});
  EXPECT_TRUE(absl::IsUnavailable(first->pass->Advance(WholeTurn()).status()));
  EXPECT_TRUE(absl::IsUnavailable(second->pass->Advance(WholeTurn()).status()));
}

// What a pass did not prove is answered with the rows that its own queries exclude, although the
// device's list of them is that of the search that was started after it.
TEST_F(GpuStartTest, AnswersAgainWithItsOwnExcludedRows) {
  constexpr unsigned kWanted = 100;
  tests::ResetEmulatedGpu(CardOf(0), 4);
  const tests::TooHighGate gate{40'000, kWanted, 200, 1e-2F};
  const GpuOptions options = EmulatedOptions(ForcedStrategy::kInt8Scan);
  const auto rows = tests::MakeRows(gate, options);
  queries_ = std::make_shared<PaddedRows>(2, tests::kTooHighGateDim);
  (*queries_)[0][0] = 1;
  (*queries_)[1][1] = 1;
  Open(ForcedStrategy::kInt8Scan, rows);
  SearchResult best;
  const std::vector<QuerySpec> ten = tests::Specs(1, 10);
  ASSERT_TRUE(on_cpu_->Search({queries_->view().Slice(0, 1), ten}, best).ok());
  std::vector<Row> excluded{best.Hits(0)[9].row};
  const std::vector<Row> others{best.Hits(0)[0].row, best.Hits(0)[1].row};
  std::ranges::sort(excluded);
  auto first = std::make_unique<Begun>();
  first->specs = tests::Specs(1, kWanted - 1);
  first->specs[0].excluded_rows = excluded;
  first->batch = {queries_->view().Slice(0, 1), first->specs};
  first->pass = on_gpu_->Begin(first->batch, first->result).value();
  ASSERT_TRUE(first->pass->Start());
  const auto second = Begin(1, 1, {.excluded_rows = others});
  ASSERT_TRUE(second->started);
  const absl::StatusOr<bool> done = first->pass->Advance(WholeTurn());
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(first->result.Cost(0).rescans, 1U);
  SearchResult expected;
  ASSERT_TRUE(on_cpu_->Search({first->batch.queries, first->specs}, expected).ok());
  tests::ExpectSameAnswers(first->result, expected, "again");
  ExpectAnswers(*second, "second");
}

}  // namespace
}  // namespace simile::backend

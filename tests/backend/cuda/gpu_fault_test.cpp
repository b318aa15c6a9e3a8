// Every call to CUDA and cuBLAS fails once, in each way that it can: no wrong answer, no hang, no
// leak, and every answer of the CPU carries the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/accelerator_plugin.h"
#include "backend/cpu/scan_backend.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/too_high_gate.h"
#include "backend/cuda/workspace.h"
#include "backend/failover_backend.h"
#include "backend/segments.h"
#include "certificate/canonical_score.h"
#include "conformance/rotation.h"
#include "emulated_cuda/emulated_device.h"
#include "simile/turn.h"

namespace simile::backend {
namespace {

using ::testing::HasSubstr;
using tests::CardOf;
using tests::EmulatedOptions;
using tests::PaddedRows;
using tests::SeededRandom;

// A clock that advances by 50 ms per reading, so that a hang soon exceeds the timeout.
class RunningClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(std::chrono::milliseconds(50 * ++readings_)); }
  std::chrono::system_clock::time_point WallNow() const override { return {}; }

 private:
  mutable std::atomic<int> readings_{0};
};

std::unique_ptr<Backend> Scan() {
  return cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), 1);
}

// Two segments, four batches, which together use every strategy, and two at once.
class Scenario {
 public:
  static constexpr std::size_t kAnswers = 10;

  Scenario() {
    SeededRandom random(21);
    rows_ = tests::UnitRows(kRows, kDim, random);
    few_rows_ = tests::UnitRows(kFewRows, kDim, random);
    queries_ = tests::UnitRows(kQueries, kDim, random);
    mask_ = std::make_unique<RowMask>(tests::DrawRowMask(kRows, 3, random));
    few_ = std::make_unique<RowMask>(tests::DrawRowMask(kRows, 100, random));
    excluded_ = {3, 5, 800};
    specs_ = tests::Specs(kQueries, 4);
    specs_[1].mask = mask_.get();
    specs_[2].mask = few_.get();
    specs_[3].excluded_rows = excluded_;
    const auto scan = Scan();
    expected_ = Answers(*scan);
    EXPECT_EQ(expected_.size(), kAnswers);
  }

  // Runs everything and checks every answer. Returns how many the CPU gave.
  std::size_t Expect(Backend& backend) const {
    fallbacks_ = 0;
    const std::vector<SearchResult> answers = Answers(backend);
    EXPECT_EQ(answers.size(), expected_.size());
    for (std::size_t i = 0; i < std::min(answers.size(), expected_.size()); ++i) {
      tests::ExpectSameAnswers(answers[i], expected_[i], "batch " + std::to_string(i));
    }
    return fallbacks_;
  }

 private:
  static constexpr std::size_t kRows = 900, kFewRows = 100, kDim = 32, kQueries = 10;

  std::vector<SearchResult> Answers(Backend& backend) const {
    std::vector<SearchResult> answers;
    const auto large = backend.MakeResident(tests::MakeSegment(rows_));
    const auto small = backend.MakeResident(tests::MakeSegment(few_rows_));
    EXPECT_TRUE(large.ok() && small.ok());
    if (!large.ok() || !small.ok()) return answers;
    const std::vector<QuerySpec> plain = tests::Specs(3, 5);
    SearchTwo(**large, answers);
    // One query through mapped memory; the fused scan and a list; GEMM and a list; canonical
    // scores; listed rows. The second run of a pass captures its graph.
    Search(**large, {queries_->view().Slice(0, 1), std::span(specs_).first(1)}, answers);
    Search(**large, {queries_->view().Slice(0, 1), std::span(specs_).first(1)}, answers);
    Search(**large, {queries_->view().Slice(0, 4), std::span(specs_).first(4)}, answers);
    Search(**large, {queries_->view().Slice(0, 4), std::span(specs_).first(4)}, answers);
    Search(**large, {queries_->view(), specs_}, answers);
    Search(**large, {queries_->view(), specs_}, answers);
    Search(**small, {queries_->view().Slice(0, 3), plain}, answers);
    Score(**large, answers);
    return answers;
  }

  void Search(const SegmentIndex& index, const SearchBatch& batch,
              std::vector<SearchResult>& answers) const {
    SearchResult& result = answers.emplace_back();
    const absl::Status status = index.Search(batch, result);
    EXPECT_TRUE(status.ok()) << status.ToString();
    CountFallback(result.fallback() != nullptr ? result.fallback() : index.fallback());
  }

  // Two searches that a device works on at once. None is long enough for a mask.
  void SearchTwo(const SegmentIndex& index, std::vector<SearchResult>& answers) const {
    std::vector<QuerySpec> specs = tests::Specs(4, 6);
    specs[2].excluded_rows = excluded_;
    const SearchBatch first{queries_->view().Slice(0, 4), specs};
    const SearchBatch second{queries_->view().Slice(5, 4), specs};
    SearchResult results[2];
    std::unique_ptr<SearchPass> passes[2]{index.Begin(first, results[0]).value(),
                                          index.Begin(second, results[1]).value()};
    for (auto& pass : passes) static_cast<void>(pass->Start());
    for (std::size_t i = 0; i < 2; ++i) {
      absl::StatusOr<bool> done = false;
      while (done.ok() && !*done) done = passes[i]->Advance(WholeTurn());
      EXPECT_TRUE(done.ok()) << done.status().ToString();
      CountFallback(results[i].fallback() != nullptr ? results[i].fallback() : index.fallback());
      passes[i].reset();
      // A copy, so that the blocks of lent hits are free for the searches after it.
      SearchResult& copied = answers.emplace_back();
      copied.Reset(specs, kRows);
      for (std::size_t query = 0; query < specs.size(); ++query) {
        std::ranges::copy(results[i].Hits(query), copied.Buffer(query).begin());
        copied.SetCount(query, results[i].Hits(query).size());
      }
    }
  }

  // Appends the scores as the answer of one query whose hits are the scored rows.
  void Score(const SegmentIndex& index, std::vector<SearchResult>& answers) const {
    const std::vector<Row> wanted{0, 1, 2, 77, kRows - 1};
    std::vector<float> scores(wanted.size());
    const auto fallback = index.Score(queries_->view().Slice(0, 1), wanted, scores, nullptr);
    EXPECT_TRUE(fallback.ok()) << fallback.status().ToString();
    if (fallback.ok()) CountFallback(*fallback);
    SearchResult& result = answers.emplace_back();
    result.Reset(1, wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) result.Buffer(0)[i] = {wanted[i], scores[i]};
    result.SetCount(0, wanted.size());
  }

  void CountFallback(const FallbackBackend& fallback) const {
    if (fallback == nullptr) return;
    ++fallbacks_;
    EXPECT_EQ(fallback->info.name, "cpu");
    EXPECT_THAT(fallback->reason,
                ::testing::AnyOf(HasSubstr("cuda"), HasSubstr("cuBLAS"), HasSubstr("GPU")));
  }

  std::shared_ptr<PaddedRows> rows_, few_rows_, queries_;
  std::unique_ptr<RowMask> mask_, few_;
  std::vector<Row> excluded_;
  std::vector<QuerySpec> specs_;
  std::vector<SearchResult> expected_;
  mutable std::size_t fallbacks_ = 0;
};

const Scenario& TheScenario() {
  static const Scenario scenario;
  return scenario;
}

GpuOptions OptionsWith(const Clock& clock) {
  GpuOptions options = EmulatedOptions();
  options.clock = &clock;
  options.batch_timeout = std::chrono::seconds(2);
  // A small collection with the strategies of a large one: hundreds of calls fail in turn.
  options.tuning = {.canonical_rows_max = 200,
                    .scan_queries_max = 4,
                    .gather_share = 32,
                    .mapped_queries_max = 1,
                    .lent_hits_min = 20};
  options.workspace.stride_max = 32;
  options.workspace.hits_max = 1U << 14;
  return options;
}

// Opens the GPU with an injected fault and answers everything. Returns the number of calls.
std::size_t RunWith(const emulated_cuda::Fault& fault, bool inject, std::size_t* fallbacks) {
  tests::ResetEmulatedGpu(CardOf(0), 0, std::size_t{8} << 20);
  const RunningClock clock;
  if (inject) emulated_cuda::InjectFault(fault);
  auto gpu = tests::OpenEmulatedGpu(OptionsWith(clock));
  if (!gpu.ok()) {  // then the registry uses the CPU and reports this message
    EXPECT_THAT(std::string(gpu.status().message()),
                ::testing::AnyOf(HasSubstr("cuda"), HasSubstr("cuBLAS"), HasSubstr("GPU")));
    *fallbacks = Scenario::kAnswers;
    return emulated_cuda::CallCount();
  }
  std::vector<GpuEvent> events;
  const auto backend = MakeFailoverBackend(*std::move(gpu), Scan(), WhenFull::kCpu,
                                           [&](const GpuEvent& event) { events.push_back(event); });
  *fallbacks = TheScenario().Expect(*backend);
  EXPECT_EQ(*fallbacks == 0, events.empty());
  return emulated_cuda::CallCount();
}

std::size_t CallsWithoutFaults() {
  std::size_t fallbacks = 0;
  const std::size_t calls = RunWith({}, false, &fallbacks);
  EXPECT_EQ(fallbacks, 0U);
  const std::vector<std::string> log = emulated_cuda::CallLog();
  for (const char* call :
       {"TakeQueriesKernel", "Int8ScanKernel", "ConvertRowsToInt8Kernel",
        "ConvertQueriesToInt8Kernel", "cublasGemmEx", "SampleGateKernel", "TopkFp16Kernel",
        "FinishKernel", "OrderMaskKernel", "CanonicalScanKernel", "SelectKeysKernel",
        "RowScoresKernel", "ConvertRowsToFp16Kernel", "cudaGraphLaunch", "cudaEventQuery"}) {
    EXPECT_TRUE(std::ranges::any_of(
        log, [&](const std::string& line) { return line.find(call) != std::string::npos; }))
        << "the scenario has no " << call;
  }
  EXPECT_EQ(emulated_cuda::LiveObjects(), 0U);
  return calls;
}

struct FaultKind {
  const char* name;
  cudaError_t error;
  bool sticky;
  bool asynchronous;
  bool hang;
};
void PrintTo(const FaultKind& kind, std::ostream* out) { *out << kind.name; }

class GpuFaultTest : public ::testing::TestWithParam<FaultKind> {};

TEST_P(GpuFaultTest, AnswersRightWhicheverCallFails) {
  const FaultKind& kind = GetParam();
  const std::size_t calls = CallsWithoutFaults();
  ASSERT_GT(calls, 100U);
  const conformance::Rotation rotation = conformance::Rotation::FromEnvironment();
  std::size_t failed = 0;
  std::size_t noticed = 0;
  for (std::size_t nth = 1; nth <= calls; ++nth) {
    if (!rotation.Covers(nth)) continue;
    ++failed;
    SCOPED_TRACE("call " + std::to_string(nth));
    std::size_t fallbacks = 0;
    RunWith({.nth = nth,
             .error = kind.error,
             .sticky = kind.sticky,
             .asynchronous = kind.asynchronous,
             .hang = kind.hang},
            true, &fallbacks);
    if (fallbacks > 0) ++noticed;
    // Nothing is freed on a lost device.
    const bool lost = kind.sticky || kind.asynchronous || kind.hang;
    ASSERT_TRUE(lost || emulated_cuda::LiveObjects() == 0U) << "something was not released";
    ASSERT_FALSE(HasFailure());
  }
  // All calls but those that release what a search no longer needs.
  EXPECT_GT(noticed * 2, kind.error == cudaErrorMemoryAllocation ? 0 : failed);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, GpuFaultTest,
    ::testing::Values(FaultKind{"invalid_value", cudaErrorInvalidValue, false, false, false},
                      FaultKind{"out_of_memory", cudaErrorMemoryAllocation, false, false, false},
                      FaultKind{"illegal_address", cudaErrorIllegalAddress, true, false, false},
                      FaultKind{"later", cudaErrorLaunchFailure, false, true, false},
                      FaultKind{"hang", cudaErrorUnknown, false, false, true}),
    [](const auto& test) { return test.param.name; });

// What the scenario above does not cover: longer answers of a scan, which finish in steps. One
// query for kLongAnswer hits, on a device with this memory.
class GpuLongAnswerTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kLongAnswer = 150;

  // Fails each call of a load and a search once.
  //   kernels  that the search must launch, with the least number of launches of each
  void FailEachCall(const std::shared_ptr<PaddedRows>& rows, std::uint64_t memory_bytes,
                    std::initializer_list<std::pair<const char*, std::ptrdiff_t>> kernels) {
    rows_ = rows;
    memory_bytes_ = memory_bytes;
    query_ = std::make_shared<PaddedRows>(1, rows->view().dim());
    (*query_)[0][0] = 1;
    ASSERT_TRUE((*Scan()->MakeResident(tests::MakeSegment(rows)))->Search(Batch(), expected_).ok());
    RunWithFault(0, false);
    const std::vector<std::string> calls = emulated_cuda::CallLog();
    for (const auto& [kernel, launches] : kernels) {
      EXPECT_GE(std::ranges::count_if(calls,
                                      [&](const std::string& line) {
                                        return line.find(kernel) != std::string::npos;
                                      }),
                launches)
          << kernel;
    }
    const std::size_t to_fail = calls.size() - opened_;
    const conformance::Rotation rotation = conformance::Rotation::FromEnvironment();
    for (std::size_t nth = 1; nth <= to_fail && !HasFailure(); ++nth) {
      if (rotation.Covers(nth)) RunWithFault(nth, nth % 2 == 0);
    }
  }

  const RunningClock clock_;
  const GpuOptions options_ = WithoutLending(OptionsWith(clock_));

 private:
  // All passes of a search then use one block, so that the second one captures its graph.
  static GpuOptions WithoutLending(GpuOptions options) {
    options.tuning.lent_hits_min = std::numeric_limits<std::size_t>::max();
    return options;
  }
  SearchBatch Batch() const { return {query_->view(), specs_}; }

  //   nth  of the calls after those that open the GPU, which the test above makes fail; 0: none
  void RunWithFault(std::size_t nth, bool sticky) {
    tests::ResetEmulatedGpu(CardOf(0), 0, memory_bytes_);
    auto gpu = tests::OpenEmulatedGpu(options_);
    ASSERT_TRUE(gpu.ok()) << gpu.status().ToString();
    opened_ = emulated_cuda::CallCount();
    if (nth != 0) {
      emulated_cuda::InjectFault({.nth = nth, .error = cudaErrorLaunchFailure, .sticky = sticky});
    }
    const auto backend = MakeFailoverBackend(*std::move(gpu), Scan(), WhenFull::kCpu, {});
    const auto index = backend->MakeResident(tests::MakeSegment(rows_));
    ASSERT_TRUE(index.ok());
    SearchResult result;
    ASSERT_TRUE((*index)->Search(Batch(), result).ok());
    tests::ExpectSameAnswers(result, expected_, "call " + std::to_string(nth));
  }

  const std::vector<QuerySpec> specs_ = tests::Specs(1, kLongAnswer);
  std::shared_ptr<PaddedRows> rows_, query_;
  SearchResult expected_;
  std::uint64_t memory_bytes_ = 0;
  std::size_t opened_ = 0;  // calls to open the GPU
};

TEST_F(GpuLongAnswerTest, IsRightWhicheverCallFailsWithFp32RowsOnTheHost) {
  constexpr std::size_t kRows = 17'000, kDim = 32;
  SeededRandom random(5);
  const std::uint64_t memory =
      WorkspaceBytes(options_.workspace) + PlanResident({kRows, kDim}, true).total() - 1;
  FailEachCall(tests::UnitRows(kRows, kDim, random), memory,
               {{"cudaHostRegister", 1},
                {"cudaHostUnregister", 1},
                {"RowScanKernel", 1},
                {"PruneKernel", 1},
                {"RescoreKernel", 1},
                {"ConcludeKernel", 1}});
}

// The second scan, whose gate is reached, captures its graph.
TEST_F(GpuLongAnswerTest, IsRightWhicheverCallOfTwoInt8ScansFails) {
  const tests::TooHighGate gate{14'000, kLongAnswer, 150, 1e-2F};
  FailEachCall(tests::MakeRows(gate, options_), std::uint64_t{64} << 20,
               {{"Int8ScanKernel", 2},
                {"PruneKernel", 2},
                {"RescoreKernel", 4},
                {"ListOthersKernel", 2},
                {"ConcludeKernel", 2},
                {"cudaGraphLaunch", 1}});
}

// The code decides whether another plug-in is tried, and what `simile doctor` says.
TEST(GpuOpenTest, ReportsTheCodeOfTheCallThatFails) {
  const RunningClock clock;
  for (const char* call : {"cudaGetDeviceProperties", "cudaFuncSetAttribute", "cudaMalloc"}) {
    tests::ResetEmulatedGpu(CardOf(0), 0);
    emulated_cuda::InjectFault({.nth = 1, .error = cudaErrorDevicesUnavailable, .name = call});
    const auto gpu = tests::OpenEmulatedGpu(OptionsWith(clock));
    EXPECT_EQ(gpu.status().GetPayload(kDeviceErrorPayload), "46") << call << ": " << gpu.status();
  }
}

TEST(GpuLostTest, MakesNoCallAfterTheDeviceIsLost) {
  tests::ResetEmulatedGpu(CardOf(0), 0);
  const RunningClock clock;
  auto gpu = tests::OpenEmulatedGpu(OptionsWith(clock));
  ASSERT_TRUE(gpu.ok());
  SeededRandom random(2);
  const auto rows = tests::UnitRows(5'000, 32, random);
  auto index = (*gpu)->MakeResident(tests::MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  const std::vector<QuerySpec> specs = tests::Specs(1, 5);
  const SearchBatch batch{rows->view().Slice(0, 1), specs};
  SearchResult result;
  ASSERT_TRUE((*index)->Search(batch, result).ok());
  emulated_cuda::InjectFault(
      {.nth = 1, .error = cudaErrorIllegalAddress, .name = "cudaGraphLaunch", .sticky = true});
  const absl::Status lost = (*index)->Search(batch, result);
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.message()), HasSubstr("cudaErrorIllegalAddress at cudaGraphLaunch"));
  EXPECT_EQ(lost.GetPayload(kDeviceErrorPayload), "700");
  const std::size_t calls = emulated_cuda::CallCount();
  EXPECT_EQ((*index)->Search(batch, result).code(), absl::StatusCode::kUnavailable);
  std::vector<float> scores(1);
  EXPECT_EQ((*index)->Score(batch.queries, std::vector<Row>{7}, scores, nullptr).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ((*gpu)->MakeResident(tests::MakeSegment(rows)).status().code(),
            absl::StatusCode::kUnavailable);
  index->reset();
  gpu->reset();
  EXPECT_EQ(emulated_cuda::CallCount(), calls);
}

// One segment on a device whose batches exceed their timeout while it hangs.
class GpuLateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tests::ResetEmulatedGpu(CardOf(0), 0);
    auto gpu = tests::OpenEmulatedGpu(OptionsWith(clock_));
    ASSERT_TRUE(gpu.ok());
    gpu_ = *std::move(gpu);
    SeededRandom random(2);
    rows_ = tests::UnitRows(900, 32, random);
    queries_ = tests::UnitRows(3, 32, random);
    index_ = *gpu_->MakeResident(tests::MakeSegment(rows_));
    on_cpu_ = *scan_->MakeResident(tests::MakeSegment(rows_));
  }

  // Searches for one query, whose answer is compared with the scan's when there is one.
  absl::Status Search(std::size_t query, std::size_t count = 1) {
    const std::vector<QuerySpec> specs = tests::Specs(count, 5);
    const SearchBatch batch{queries_->view().Slice(query, count), specs};
    SearchResult result, expected;
    absl::Status status = index_->Search(batch, result);
    EXPECT_TRUE(on_cpu_->Search(batch, expected).ok());
    if (status.ok()) tests::ExpectSameAnswers(result, expected, "query " + std::to_string(query));
    return status;
  }

  const RunningClock clock_;
  const std::unique_ptr<Backend> scan_ = Scan();
  std::unique_ptr<Backend> gpu_;
  std::shared_ptr<PaddedRows> rows_, queries_;
  std::shared_ptr<const SegmentIndex> index_, on_cpu_;
};

// Through mapped memory and through copies.
TEST_F(GpuLateTest, FailsOneBatchAndWaitsForItsEndBeforeTheNext) {
  for (const std::size_t count : {1U, 2U}) {
    ASSERT_TRUE(Search(0, count).ok());
    emulated_cuda::InjectFault({.nth = 1, .hang = true});
    const absl::Status late = Search(0, count);
    EXPECT_EQ(late, absl::DeadlineExceededError("a batch was not finished after 2000 ms"));
    emulated_cuda::EndHang();
    const std::size_t calls = emulated_cuda::CallCount();
    EXPECT_TRUE(Search(1, count).ok());
    const std::vector<std::string> log = emulated_cuda::CallLog();
    // The late batch's work has ended before the first call that uses the workspace.
    const auto next = std::find_if(log.begin() + static_cast<std::ptrdiff_t>(calls), log.end(),
                                   [](const std::string& call) {
                                     return call != "cudaSetDevice" && call != "cudaStreamQuery";
                                   });
    ASSERT_NE(next, log.end());
    EXPECT_GT(std::count(log.begin() + static_cast<std::ptrdiff_t>(calls), next, "cudaStreamQuery"),
              2)
        << "then: " << *next;
  }
  EXPECT_TRUE(Search(0, 2).ok());
  EXPECT_EQ(emulated_cuda::TakeReport(), "");
}

TEST_F(GpuLateTest, LosesTheDeviceAtTheSecondLateBatchInARow) {
  emulated_cuda::InjectFault({.nth = 1, .hang = true});
  EXPECT_EQ(Search(0).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Search(1),
            absl::UnavailableError(
                "the GPU hangs: two batches in a row were not finished after 2000 ms each"));
  const std::size_t calls = emulated_cuda::CallCount();
  EXPECT_EQ(Search(2).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(emulated_cuda::CallCount(), calls);
}

TEST_F(GpuLateTest, LosesTheDeviceWhenTheBatchAfterALateOneIsLateByItself) {
  emulated_cuda::InjectFault({.nth = 1, .hang = true});
  EXPECT_EQ(Search(0).code(), absl::StatusCode::kDeadlineExceeded);
  emulated_cuda::EndHang();
  emulated_cuda::InjectFault({.nth = 1, .name = "ScanKernel", .hang = true});
  EXPECT_EQ(Search(1).code(), absl::StatusCode::kUnavailable);
}

TEST_F(GpuLateTest, FreesASegmentOnlyAfterItsLateBatch) {
  const auto other = *gpu_->MakeResident(tests::MakeSegment(rows_));
  emulated_cuda::InjectFault({.nth = 1, .hang = true});
  EXPECT_EQ(Search(0).code(), absl::StatusCode::kDeadlineExceeded);
  index_.reset();
  // Its wait has lost the device, which the other segment therefore does not call.
  const std::size_t calls = emulated_cuda::CallCount();
  index_ = other;
  EXPECT_EQ(Search(0),
            absl::UnavailableError(
                "the GPU hangs: two batches in a row were not finished after 2000 ms each"));
  EXPECT_EQ(emulated_cuda::CallCount(), calls);
}

TEST_F(GpuLateTest, FreesEverythingWhenTheLateBatchHasEnded) {
  emulated_cuda::InjectFault({.nth = 1, .hang = true});
  EXPECT_EQ(Search(0).code(), absl::StatusCode::kDeadlineExceeded);
  emulated_cuda::EndHang();
  index_.reset();
  gpu_.reset();
  EXPECT_EQ(emulated_cuda::LiveObjects(), 0U);
}

TEST_F(GpuLateTest, LosesTheDeviceWhenALoadIsLate) {
  emulated_cuda::InjectFault({.nth = 1, .hang = true});
  EXPECT_EQ(gpu_->MakeResident(tests::MakeSegment(rows_)).status(),
            absl::UnavailableError("the GPU hangs: work was not finished after 4000 ms"));
}

}  // namespace
}  // namespace simile::backend

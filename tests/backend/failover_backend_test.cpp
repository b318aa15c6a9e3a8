#include "backend/failover_backend.h"

#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/scan_backend.h"
#include "backend/fake_gpu.h"
#include "backend/segments.h"
#include "base/error_detail.h"

namespace simile::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::FakeGpuControl;
using tests::GpuFailed;
using tests::GpuFull;
using tests::GpuLate;
using tests::GpuLost;
using Call = FakeGpuControl::Call;
using Cause = FallbackCause;

constexpr std::size_t kRows = 300;
constexpr std::size_t kDim = 40;
constexpr std::uint32_t kHits = 7;

std::unique_ptr<Backend> SmallCpu() {
  return cpu::MakeScanBackend(*certificate::FindCanonicalKernel("portable"), 1);
}

class FailoverBackendTest : public ::testing::Test {
 protected:
  FailoverBackendTest() : rows_(tests::UnitRows(kRows, kDim, random_)) { Make(WhenFull::kCpu); }

  void Make(WhenFull when_full, std::unique_ptr<Backend> cpu = SmallCpu()) {
    backend_ = MakeFailoverBackend(tests::MakeFakeGpu(control_), std::move(cpu), when_full,
                                   [this](const GpuEvent& event) {
                                     const std::lock_guard lock(mutex_);
                                     events_.push_back(event);
                                   });
  }

  std::shared_ptr<const SegmentIndex> Load() {
    auto made = backend_->MakeResident(tests::MakeSegment(rows_));
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  // Searches, and checks that the answer is the CPU's.
  SearchResult Search(const SegmentIndex& index) {
    const auto queries = tests::UnitRows(3, kDim, random_);
    const std::vector<QuerySpec> specs = tests::Specs(3, kHits);
    SearchResult result;
    const absl::Status status = index.Search({queries->view(), specs}, result);
    EXPECT_TRUE(status.ok()) << status;
    SearchResult expected;
    const auto cpu = SmallCpu();
    const auto plain = cpu->MakeResident(tests::MakeSegment(rows_));
    EXPECT_TRUE((*plain)->Search({queries->view(), specs}, expected).ok());
    tests::ExpectSameAnswers(result, expected, "after failover");
    return result;
  }

  std::string ReasonOf(const SearchResult& result) const {
    return result.fallback() == nullptr ? "" : result.fallback()->reason;
  }

  std::vector<Cause> Causes() {
    const std::lock_guard lock(mutex_);
    std::vector<Cause> causes;
    for (const GpuEvent& event : events_) causes.push_back(event.cause);
    return causes;
  }

  tests::SeededRandom random_{71};
  std::shared_ptr<tests::PaddedRows> rows_;
  FakeGpuControl control_;
  std::mutex mutex_;  // guards events_
  std::vector<GpuEvent> events_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(FailoverBackendTest, AnswersOnTheGpuWhenNothingFails) {
  const auto index = Load();
  EXPECT_EQ(backend_->info().name, "gpu");
  EXPECT_EQ(backend_->fallback(), nullptr);
  EXPECT_EQ(index->fallback(), nullptr);
  const SearchResult result = Search(*index);
  EXPECT_EQ(result.fallback(), nullptr);
  EXPECT_STREQ(result.Engine(0), "cuda-fake");
  EXPECT_TRUE(events_.empty());
}

TEST_F(FailoverBackendTest, RunsABatchOnTheCpuWhenTheGpuHasNoMemoryForIt) {
  const auto index = Load();
  control_.Next(Call::kSearch, GpuFull());
  const SearchResult moved = Search(*index);
  EXPECT_EQ(ReasonOf(moved),
            "the GPU had no memory for this batch: 300.0 MiB are needed and 12.0 MiB are free");
  EXPECT_EQ(moved.fallback()->info.name, "cpu");
  EXPECT_STREQ(moved.Engine(0), "scan-portable");
  // The next batch runs on the GPU again.
  EXPECT_EQ(Search(*index).fallback(), nullptr);
  EXPECT_EQ(backend_->fallback(), nullptr);
  EXPECT_THAT(Causes(), ElementsAre(Cause::kOutOfMemory));
}

TEST_F(FailoverBackendTest, RunsABatchOnTheCpuWhenADeviceCallFails) {
  const auto index = Load();
  control_.Next(Call::kSearch, GpuFailed());
  EXPECT_EQ(ReasonOf(Search(*index)),
            "the GPU failed at this batch: cudaErrorInvalidValue at cudaMemcpyAsync: invalid "
            "argument");
  EXPECT_EQ(Search(*index).fallback(), nullptr);
  ASSERT_THAT(Causes(), ElementsAre(Cause::kCallFailed));
  EXPECT_EQ(events_[0].device_error, 1);
  EXPECT_EQ(events_[0].reason, "cudaErrorInvalidValue at cudaMemcpyAsync: invalid argument");
}

TEST_F(FailoverBackendTest, RunsABatchOnTheCpuWhenTheGpuIsLate) {
  const auto index = Load();
  control_.Next(Call::kSearch, GpuLate());
  EXPECT_EQ(ReasonOf(Search(*index)), "the GPU was late: a batch was not finished after 2000 ms");
  EXPECT_EQ(Search(*index).fallback(), nullptr);
  EXPECT_EQ(backend_->fallback(), nullptr);
  ASSERT_THAT(Causes(), ElementsAre(Cause::kLate));
  EXPECT_EQ(events_[0].device_error, std::nullopt);
}

TEST_F(FailoverBackendTest, DoesNotUseALostDevice) {
  const auto first = Load();
  const auto second = Load();
  control_.Next(Call::kSearch, GpuLost());
  const std::string reason =
      "the GPU was lost and is left alone until a restart: cudaErrorIllegalAddress at "
      "cudaEventQuery: an illegal memory access was encountered";
  EXPECT_EQ(ReasonOf(Search(*first)), reason);
  EXPECT_EQ(ReasonOf(Search(*first)), reason);
  EXPECT_EQ(ReasonOf(Search(*second)), reason);
  const auto third = Load();
  EXPECT_EQ(ReasonOf(Search(*third)), reason);
  EXPECT_EQ(third->fallback()->reason, reason);
  EXPECT_EQ(backend_->fallback()->reason, reason);
  EXPECT_EQ(control_.calls_after_loss(), 0);
  ASSERT_THAT(Causes(), ElementsAre(Cause::kDeviceLost));
  EXPECT_EQ(events_[0].device_error, 700);
}

TEST_F(FailoverBackendTest, ScoresOnTheCpuWhenTheGpuFails) {
  const auto index = Load();
  const std::vector<Row> rows = {0, 8, 299};
  const MatrixView query = rows_->view().Slice(5, 1);
  const auto score = [&] {
    std::pair<std::vector<float>, FallbackBackend> scored;
    scored.first.resize(rows.size());
    absl::StatusOr<FallbackBackend> fallback = index->Score(query, rows, scored.first, nullptr);
    EXPECT_TRUE(fallback.ok()) << fallback.status();
    if (fallback.ok()) scored.second = *std::move(fallback);
    return scored;
  };
  const auto on_gpu = score();
  EXPECT_EQ(on_gpu.second, nullptr);
  for (const absl::Status& failed : {GpuFull(), GpuFailed(), GpuLost()}) {
    control_.Next(Call::kScore, failed);
    const auto on_cpu = score();
    EXPECT_EQ(on_cpu.first, on_gpu.first);
    ASSERT_NE(on_cpu.second, nullptr) << failed;
    EXPECT_THAT(on_cpu.second->reason, HasSubstr(std::string(failed.message())));
  }
  EXPECT_THAT(Causes(), ElementsAre(Cause::kOutOfMemory, Cause::kCallFailed, Cause::kDeviceLost));
  EXPECT_EQ(control_.calls_after_loss(), 0);
}

TEST_F(FailoverBackendTest, ServesFromTheCpuACollectionThatDoesNotFitOnTheGpu) {
  control_.Next(Call::kLoad, GpuFull());
  const auto index = Load();
  const std::string reason =
      "it does not fit on the GPU: 300.0 MiB are needed and 12.0 MiB are free";
  EXPECT_EQ(index->fallback()->reason, reason);
  EXPECT_EQ(ReasonOf(Search(*index)), reason);
  EXPECT_EQ(index->Resident()->device_bytes, 0U);
  EXPECT_EQ(control_.calls(Call::kSearch), 0);
  // Another collection still goes to the GPU.
  EXPECT_EQ(Search(*Load()).fallback(), nullptr);
  EXPECT_THAT(Causes(), ElementsAre(Cause::kDoesNotFit));
}

// Has no memory for an index.
class FullCpu final : public Backend {
 public:
  const BackendInfo& info() const override { return info_; }
  ResidentPlan Plan(const SegmentShape&) const override { return {}; }
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(const SegmentRows&) override {
    return base::Error(base::ErrorReason::kDoesNotFit, "no memory for the index");
  }

 private:
  const BackendInfo info_{"cpu", "full", "a test"};
};

TEST_F(FailoverBackendTest, TellsASearchThatNoMemoryIsLeftForTheCpusIndex) {
  Make(WhenFull::kCpu, std::make_unique<FullCpu>());
  const auto index = Load();
  control_.Next(Call::kSearch, GpuLost());
  const auto queries = tests::UnitRows(1, kDim, random_);
  SearchResult result;
  const absl::Status status = index->Search({queries->view(), tests::Specs(1, kHits)}, result);
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kOutOfMemory) << status;
  // A load on the CPU is told that it does not fit.
  const auto loaded = backend_->MakeResident(tests::MakeSegment(rows_));
  EXPECT_EQ(base::ReasonOf(loaded.status()), base::ErrorReason::kDoesNotFit) << loaded.status();
}

TEST_F(FailoverBackendTest, RefusesACollectionThatDoesNotFitWhenConfiguredTo) {
  Make(WhenFull::kRefuse);
  control_.Next(Call::kLoad, GpuFull());
  const auto refused = backend_->MakeResident(tests::MakeSegment(rows_));
  EXPECT_EQ(base::ReasonOf(refused.status()), base::ErrorReason::kDoesNotFit);
  EXPECT_EQ(std::string(refused.status().message()),
            "it does not fit on the GPU: 300.0 MiB are needed and 12.0 MiB are free; "
            "gpu.when_full = cpu would serve it from the CPU");
  EXPECT_TRUE(events_.empty());
}

TEST_F(FailoverBackendTest, ServesFromTheCpuACollectionThatTheGpuFailsToLoad) {
  control_.Next(Call::kLoad, GpuFailed());
  EXPECT_THAT(ReasonOf(Search(*Load())), StartsWith("the GPU failed to load it: cudaError"));
  control_.Next(Call::kLoad, GpuLost());
  EXPECT_THAT(ReasonOf(Search(*Load())), StartsWith("the GPU was lost"));
  EXPECT_THAT(Causes(), ElementsAre(Cause::kCallFailed, Cause::kDeviceLost));
  EXPECT_EQ(control_.calls_after_loss(), 0);
}

TEST_F(FailoverBackendTest, PlansForTheIndexOnTheCpuAndBuildsItOnlyWhenNeeded) {
  cpu::Int8Options options = cpu::OptionsFor("portable");
  options.tuning.scan_rows_max = 0;
  const std::uint64_t index_bytes =
      cpu::MakeInt8Backend(options)->Plan({kRows, kDim, Metric::kCosine}).host_bytes;
  ASSERT_GT(index_bytes, 0U);
  Make(WhenFull::kCpu, cpu::MakeInt8Backend(options));
  const ResidentPlan plan = backend_->Plan({kRows, kDim, Metric::kCosine});
  EXPECT_EQ(plan.host_bytes, index_bytes);
  EXPECT_EQ(plan.device_bytes, kRows * kDim * 6);

  const auto index = Load();
  Search(*index);
  EXPECT_EQ(index->Resident()->host_bytes, 0U);
  EXPECT_EQ(index->Resident()->device_bytes, plan.device_bytes);
  EXPECT_EQ(index->Built().value(), 1.0);
  EXPECT_EQ(index->engine(), "");
  control_.Next(Call::kSearch, GpuLost());
  EXPECT_STREQ(Search(*index).Engine(0), "int8-portable");
  EXPECT_EQ(index->engine(), "int8-portable");
  EXPECT_EQ(index->Resident()->host_bytes, index_bytes);
  EXPECT_EQ(index->Built().value(), 1.0);
  // A lost device keeps its memory, and nothing new is loaded onto it.
  EXPECT_EQ(index->Resident()->device_bytes, plan.device_bytes);
  EXPECT_EQ(backend_->Plan({kRows, kDim, Metric::kCosine}).device_bytes, 0U);
}

// Too few rows to pack: the CPU scans them, whatever its backend is called.
TEST_F(FailoverBackendTest, NamesTheEngineThatAnswersOnTheCpu) {
  Make(WhenFull::kCpu, cpu::MakeInt8Backend(cpu::OptionsFor("portable")));
  control_.Next(Call::kLoad, GpuFull());
  const auto index = Load();
  EXPECT_EQ(index->Built().value(), 1.0);
  EXPECT_EQ(index->engine(), Search(*index).Engine(0));
  EXPECT_THAT(std::string(index->engine()), StartsWith("scan-"));
}

TEST_F(FailoverBackendTest, ReportsALostDeviceOnceToItsObserver) {
  constexpr int kThreads = 4;
  const auto index = Load();
  control_.Next(Call::kSearch, GpuLost());
  const auto queries = tests::UnitRows(2, kDim, random_);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const std::vector<QuerySpec> specs = tests::Specs(2, kHits);
      SearchResult result;
      for (int turn = 0; turn < 20; ++turn) {
        ASSERT_TRUE(index->Search({queries->view(), specs}, result).ok());
        ASSERT_EQ(result.Hits(1).size(), kHits);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Causes(), ElementsAre(Cause::kDeviceLost));
}

TEST_F(FailoverBackendTest, ReportsTheDevicesMemory) {
  const auto bytes = [this] {
    std::vector<std::uint64_t> now;
    for (const DeviceMemory& memory : backend_->device_memory()) now.push_back(memory.bytes);
    return now;
  };
  EXPECT_THAT(bytes(), ElementsAre(0, 0, 64U << 20));
  auto index = Load();
  EXPECT_THAT(bytes(), ElementsAre(kRows * kDim * 2, kRows * kDim * 4, 64U << 20));
  index.reset();
  EXPECT_THAT(bytes(), ElementsAre(0, 0, 64U << 20));
  EXPECT_EQ(backend_->device_memory()[0].peak_bytes, kRows * kDim * 2);
}

using std::chrono::seconds;

// 2023-11-14 22:13:20 UTC
constexpr std::chrono::system_clock::time_point kNow{seconds(1'700'000'000)};

std::vector<GpuFault> FaultsAgo(const std::vector<int>& ago_s) {
  std::vector<GpuFault> faults;
  faults.reserve(ago_s.size());
  for (const int ago : ago_s) {
    faults.push_back({kNow - seconds(ago), "an error " + std::to_string(ago) + " s ago"});
  }
  return faults;
}

TEST(GpuFaultsTest, UsesTheGpuAfterFewFaults) {
  EXPECT_EQ(WhyNotTried({}, kNow), "");
  EXPECT_EQ(WhyNotTried(FaultsAgo({2, 1}), kNow), "");
}

TEST(GpuFaultsTest, RefusesTheGpuAfterThreeFaultsInTenMinutes) {
  EXPECT_EQ(WhyNotTried(FaultsAgo({599, 300, 20}), kNow),
            "the GPU was lost 3 times in the last 10 minutes, the last time to an error 20 s ago; "
            "a start from 22:13:21 UTC tries it again");
}

TEST(GpuFaultsTest, ForgetsFaultsAfterTenMinutes) {
  EXPECT_EQ(WhyNotTried(FaultsAgo({600, 300, 20}), kNow), "");
}

TEST(GpuFaultsTest, CountsFaultsInAnyOrder) {
  EXPECT_EQ(WhyNotTried(FaultsAgo({20, 500, 400, 300}), kNow),
            "the GPU was lost 4 times in the last 10 minutes, the last time to an error 20 s ago; "
            "a start from 22:16:40 UTC tries it again");
}

TEST(GpuFaultsTest, IgnoresFaultsInTheFuture) {
  EXPECT_EQ(WhyNotTried(FaultsAgo({-60, -30, 20}), kNow), "");
}

// The time in the reason is the first at which a start uses the GPU.
TEST(GpuFaultsTest, UsesTheGpuAgainFromTheTimeInTheReason) {
  const std::vector<GpuFault> faults = FaultsAgo({500, 400, 300, 20});
  const auto again = kNow - seconds(400) + kGpuFaultsWindow;
  EXPECT_NE(WhyNotTried(faults, again - seconds(1)), "");
  EXPECT_EQ(WhyNotTried(faults, again), "");
}

}  // namespace
}  // namespace simile::backend

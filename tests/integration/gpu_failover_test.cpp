#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/gpu/fault_journal.h"
#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/gpu_machine.h"

namespace simile::integration {
namespace {

using simile::tests::FakeGpuControl;
using simile::tests::GpuFailed;
using simile::tests::GpuFull;
using simile::tests::GpuLost;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Call = FakeGpuControl::Call;

const char kDescription[] = "NVIDIA H200 (139 GiB), CUDA 13.0";

// A films server with a GPU whose outcomes the test sets, and one without a GPU, whose answers the
// first must match.
class GpuFailoverTest : public ::testing::Test {
 protected:
  GpuFailoverTest() { CopyFilms(scratch_.path() / "more"); }

  void Start(const FilmsServer::Change& change = {}) {
    server_ = std::make_unique<FilmsServer>([&](app::Config& config) {
      config.backend.gpu_searches = {FakeGpuSearch("working")};
      config.gpu_fault_journal = journal_;
      config.changes_allowed = true;
      config.data_root = scratch_.path();
      if (change) change(config);
    });
    client_ = std::make_unique<Client>(server_->NewClient());
  }

  // Reloads the films with other content than any edition before.
  Outcome Reload(ChangeAnswer& answer) {
    const std::string folder = "edition-" + std::to_string(++edition_);
    CopyFilms(scratch_.path() / folder, edition_);
    v1::ReloadCollectionRequest request;
    request.set_collection("films");
    request.set_folder(folder);
    return client_->Reload(request, answer);
  }

  static v1::SearchRequest ToyStory(bool diverse = false) {
    v1::SearchRequest request;
    request.set_collection("films");
    request.add_queries()->set_id("toy-story-1995");
    if (diverse) request.mutable_queries(0)->mutable_diversity()->set_candidates(30);
    return request;
  }

  // Checks that the answer is the CPU's, bit for bit, and returns its receipt.
  v1::Receipt Search(const v1::SearchRequest& request = ToyStory()) {
    v1::SearchResponse response;
    v1::SearchResponse expected;
    const Outcome outcome = client_->Search(request, response);
    EXPECT_TRUE(outcome.ok()) << ::testing::PrintToString(outcome);
    EXPECT_TRUE(cpu_client_.Search(request, expected).ok());
    EXPECT_EQ(response.results_size(), 1);
    for (int i = 0; i < response.results_size(); ++i) {
      EXPECT_EQ(response.results(i).DebugString(), expected.results(i).DebugString());
    }
    EXPECT_TRUE(response.receipt().exact());
    return response.receipt();
  }

  double Metric(const std::string& name) {
    return MetricValue(ScrapeMetrics(*server_->app().metrics_port()), name);
  }
  double Fallbacks(const std::string& reason) {
    return Metric("simile_fallback_total{reason=\"" + reason + "\"}");
  }

  v1::ListCollectionsResponse List() {
    v1::ListCollectionsResponse list;
    EXPECT_TRUE(client_->List(list).ok());
    return list;
  }

  const ScratchFolder scratch_;
  const std::filesystem::path journal_ = scratch_.path() / "faults.json";
  FakeGpuControl& gpu_ = WorkingGpu();
  const FilmsServer cpu_server_{
      [](app::Config& config) { config.backend.preference = backend::Preference::kCpu; }};
  const Client cpu_client_ = cpu_server_.NewClient();
  std::unique_ptr<FilmsServer> server_;
  std::unique_ptr<Client> client_;
  int edition_ = 1;
};

TEST_F(GpuFailoverTest, AnswersOnTheGpuAndReportsItsMemory) {
  Start();
  const v1::Receipt receipt = Search();
  EXPECT_EQ(receipt.backend(), kGpu);
  EXPECT_EQ(receipt.device(), "NVIDIA H200");
  EXPECT_THAT(receipt.engines(), ElementsAre("cuda-fake"));
  EXPECT_EQ(receipt.reason(), kDescription);
  const std::uint64_t fp16_bytes = std::uint64_t{kFilmsRows} * kFilmsDim * 2;
  const std::uint64_t rows_bytes = 3 * fp16_bytes;
  EXPECT_EQ(receipt.device_memory_bytes(), rows_bytes + (64U << 20));
  EXPECT_EQ(receipt.device_memory_peak_bytes(), receipt.device_memory_bytes());

  const v1::ListCollectionsResponse list = List();
  EXPECT_EQ(list.collections(0).backend().kind(), kGpu);
  EXPECT_EQ(list.collections(0).backend().reason(), kDescription);
  EXPECT_EQ(list.collections(0).bytes().device(), rows_bytes);
  EXPECT_EQ(list.collections(0).bytes().index(), 0U);
  EXPECT_EQ(list.backend().kind(), kGpu);
  ASSERT_EQ(list.backend().device_memory_size(), 3);
  EXPECT_EQ(list.backend().device_memory(0).kind(), "rows-fp16");
  EXPECT_EQ(list.backend().device_memory(0).bytes(), fp16_bytes);
  v1::GetCollectionResponse films;
  ASSERT_TRUE(client_->Get("films", films).ok());
  EXPECT_EQ(films.backend().DebugString(), list.backend().DebugString());

  EXPECT_EQ(Metric("simile_gpu_requested"), 1);
  EXPECT_EQ(Metric("simile_backend_active{backend=\"gpu\"}"), 1);
  EXPECT_EQ(Metric("simile_gpu_memory_bytes{kind=\"workspace\"}"), 64 << 20);
  EXPECT_EQ(Metric("simile_gpu_memory_peak_bytes{kind=\"rows-fp16\"}"),
            static_cast<double>(fp16_bytes));
  EXPECT_EQ(Metric("simile_search_duration_seconds_count{backend=\"gpu\"}"), 1);
  EXPECT_EQ(Fallbacks("device_lost"), 0);
}

TEST_F(GpuFailoverTest, AnswersABatchOnTheCpuWhenTheGpuFails) {
  Start();
  gpu_.Next(Call::kSearch, GpuFull());
  const v1::Receipt full = Search();
  EXPECT_EQ(full.backend(), kCpu);
  EXPECT_THAT(full.engines(), ElementsAre(StartsWith("int8-")));
  EXPECT_EQ(full.reason(),
            "the GPU had no memory for this batch: 300.0 MiB are needed and 12.0 MiB are free");
  gpu_.Next(Call::kSearch, GpuFailed());
  EXPECT_THAT(Search().reason(), StartsWith("the GPU failed at this batch: cudaErrorInvalidValue"));
  EXPECT_EQ(Search().backend(), kGpu);
  EXPECT_EQ(Fallbacks("out_of_memory"), 1);
  EXPECT_EQ(Fallbacks("call_failed"), 1);
  EXPECT_EQ(Metric("simile_device_errors_total{code=\"1\"}"), 1);
  EXPECT_EQ(Metric("simile_backend_active{backend=\"gpu\"}"), 1);
  EXPECT_EQ(Metric("simile_search_duration_seconds_count{backend=\"cpu\"}"), 2);
  EXPECT_GT(List().collections(0).bytes().index(), 0U);
  EXPECT_FALSE(std::filesystem::exists(journal_));
}

TEST_F(GpuFailoverTest, ReportsTheCpuWhenOnlyScoresRanOnIt) {
  Start();
  EXPECT_EQ(Search(ToyStory(true)).backend(), kGpu);
  gpu_.Next(Call::kScore, GpuFailed());
  const v1::Receipt receipt = Search(ToyStory(true));
  EXPECT_EQ(receipt.backend(), kCpu);
  EXPECT_THAT(receipt.reason(), StartsWith("the GPU failed at this batch"));
  EXPECT_THAT(receipt.engines(), Contains("cuda-fake"));
}

TEST_F(GpuFailoverTest, StaysOnTheCpuOnceTheGpuIsLost) {
  Start();
  gpu_.Next(Call::kSearch, GpuLost());
  const std::string reason =
      "the GPU was lost and is left alone until a restart: cudaErrorIllegalAddress at "
      "cudaEventQuery: an illegal memory access was encountered";
  for (int turn = 0; turn < 3; ++turn) {
    const v1::Receipt receipt = Search(ToyStory(turn == 2));
    EXPECT_EQ(receipt.backend(), kCpu);
    EXPECT_EQ(receipt.reason(), reason);
  }
  EXPECT_EQ(gpu_.calls_after_loss(), 0);
  EXPECT_EQ(List().collections(0).backend().reason(), reason);
  EXPECT_EQ(List().backend().kind(), kCpu);
  EXPECT_EQ(client_->CheckHealth(""), Health::kServing);
  EXPECT_EQ(Fallbacks("device_lost"), 1);
  EXPECT_EQ(Metric("simile_device_errors_total{code=\"700\"}"), 1);
  EXPECT_EQ(Metric("simile_backend_active{backend=\"gpu\"}"), 0);
  EXPECT_EQ(Metric("simile_backend_active{backend=\"cpu\"}"), 1);
  EXPECT_EQ(Metric("simile_gpu_requested"), 1);
  const auto faults = app::ReadFaultJournal(journal_);
  ASSERT_TRUE(faults.ok()) << faults.status();
  ASSERT_EQ(faults->size(), 1U);
  EXPECT_THAT(faults->front().reason, StartsWith("cudaErrorIllegalAddress at cudaEventQuery"));
  // A reload goes to the CPU.
  ChangeAnswer reloaded;
  ASSERT_TRUE(Reload(reloaded).ok());
  EXPECT_EQ(reloaded.collection.backend().reason(), reason);
  EXPECT_EQ(Search().reason(), reason);
  EXPECT_EQ(gpu_.calls_after_loss(), 0);
}

TEST_F(GpuFailoverTest, AnswersConcurrentCallsWhileTheGpuIsLost) {
  Start();
  constexpr int kThreads = 4;
  constexpr int kTurns = 10;
  for (int i = 0; i < kThreads; ++i) gpu_.Next(Call::kSearch, absl::OkStatus());
  gpu_.Next(Call::kSearch, GpuLost());
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  std::atomic<int> answered = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Client client = server_->NewClient();
      for (int turn = 0; turn < kTurns; ++turn) {
        v1::SearchResponse response;
        const Outcome outcome = client.Search(ToyStory(), response);
        ASSERT_TRUE(outcome.ok()) << ::testing::PrintToString(outcome);
        ASSERT_EQ(response.results(0).hits_size(), 10);
        ++answered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Search().backend(), kCpu);
  EXPECT_EQ(Fallbacks("device_lost"), 1);
  std::printf("%d calls of %d answered, the GPU lost at the fifth search\n", answered.load(),
              kThreads * kTurns);
}

TEST_F(GpuFailoverTest, ServesFromTheCpuACollectionThatDoesNotFit) {
  Start();
  gpu_.Next(Call::kLoad, GpuFull());
  ChangeAnswer loaded;
  ASSERT_TRUE(client_->Load("more", "more", loaded).ok());
  const std::string reason =
      "it does not fit on the GPU: 300.0 MiB are needed and 12.0 MiB are free";
  EXPECT_EQ(loaded.collection.backend().kind(), kCpu);
  EXPECT_EQ(loaded.collection.backend().reason(), reason);
  EXPECT_EQ(loaded.collection.bytes().device(), 0U);
  v1::SearchRequest request = ToyStory();
  request.set_collection("more");
  v1::SearchResponse response;
  ASSERT_TRUE(client_->Search(request, response).ok());
  EXPECT_EQ(response.receipt().backend(), kCpu);
  EXPECT_EQ(response.receipt().reason(), reason);
  EXPECT_EQ(Search().backend(), kGpu);
  EXPECT_EQ(Fallbacks("does_not_fit"), 1);
  EXPECT_EQ(Metric("simile_backend_active{backend=\"gpu\"}"), 1);
}

TEST_F(GpuFailoverTest, ServesANewGenerationFromTheCpuUntilItFits) {
  Start();
  const auto reload = [&] {
    ChangeAnswer reloaded;
    const Outcome outcome = Reload(reloaded);
    EXPECT_TRUE(outcome.ok()) << ::testing::PrintToString(outcome);
    return reloaded.collection;
  };
  gpu_.Next(Call::kLoad, GpuFull());  // the first generation still holds its memory
  EXPECT_EQ(reload().backend().kind(), kCpu);
  const v1::Receipt second = Search();
  EXPECT_EQ(second.snapshot_version(), 2U);
  EXPECT_THAT(second.reason(), StartsWith("it does not fit on the GPU"));
  EXPECT_EQ(reload().backend().kind(), kGpu);
  const v1::Receipt third = Search();
  EXPECT_EQ(third.backend(), kGpu);
  EXPECT_EQ(third.snapshot_version(), 3U);
  // The first generation was freed before the third was loaded.
  EXPECT_EQ(third.device_memory_peak_bytes(), third.device_memory_bytes());
}

TEST_F(GpuFailoverTest, RefusesAReloadThatDoesNotFitAndKeepsServing) {
  Start([](app::Config& config) { config.backend.gpu_when_full = backend::WhenFull::kRefuse; });
  gpu_.Next(Call::kLoad, GpuFull());
  ChangeAnswer reloaded;
  const Outcome outcome = Reload(reloaded);
  EXPECT_EQ(outcome.code, absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(outcome.message, HasSubstr("it does not fit on the GPU: 300.0 MiB are needed"));
  const v1::Receipt receipt = Search();
  EXPECT_EQ(receipt.backend(), kGpu);
  EXPECT_EQ(receipt.snapshot_version(), 1U);
}

TEST_F(GpuFailoverTest, DoesNotUseAGpuThatEarlierServersLost) {
  for (int fault = 0; fault < 3; ++fault) {
    ASSERT_TRUE(app::AddToFaultJournal(journal_, {RealClock().WallNow(), "an Xid 79"}).ok());
  }
  Start();
  const v1::Receipt receipt = Search();
  EXPECT_EQ(receipt.backend(), kCpu);
  EXPECT_THAT(receipt.reason(), StartsWith("the GPU was lost 3 times in the last 10 minutes, the "
                                           "last time to an Xid 79; a start from "));
  EXPECT_EQ(receipt.device_memory_bytes(), 0U);
  EXPECT_EQ(gpu_.calls(Call::kLoad), 0);
  EXPECT_EQ(Metric("simile_gpu_requested"), 1);
  EXPECT_EQ(Metric("simile_backend_active{backend=\"cpu\"}"), 1);
}

}  // namespace
}  // namespace simile::integration

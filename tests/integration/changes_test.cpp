#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/gpu_machine.h"

namespace simile::integration {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using GpuCall = simile::tests::FakeGpuControl::Call;
using Progress = v1::ChangeProgress;

std::vector<Progress::Stage> ListStages(const ChangeAnswer& answer) {
  std::vector<Progress::Stage> stages;
  for (const Progress& progress : answer.progress) {
    if (stages.empty() || stages.back() != progress.stage()) stages.push_back(progress.stage());
  }
  return stages;
}

// A call of its own connection and thread, which stays to the end.
class ChangeCall {
 public:
  using Make = std::function<Outcome(const Client&, ChangeAnswer&, const OnProgress&)>;

  ChangeCall(const FilmsServer& server, const Make& make)
      : thread_([this, &server, make] {
          const Client client = server.NewClient();
          outcome_ = make(client, answer_, [this](const Progress&) {
            if (!joined_) progress_.set_value();
            joined_ = true;
            return true;
          });
        }) {}
  ~ChangeCall() {
    if (thread_.joinable()) thread_.join();
  }

  // Until the call takes part in a change.
  void AwaitJoined() { progress_.get_future().wait(); }
  const Outcome& Await() {
    thread_.join();
    return outcome_;
  }
  const ChangeAnswer& answer() const { return answer_; }  // after Await

 private:
  Outcome outcome_;
  ChangeAnswer answer_;
  bool joined_ = false;
  std::promise<void> progress_;
  std::thread thread_;  // last: it uses the members above
};

// A server of the films, and folders for more, whose loads the test can hold up in the index.
class ChangesTest : public testing::Test {
 protected:
  ChangesTest() {
    CopyFilms(root_ / "more");
    server_ = std::make_unique<FilmsServer>([this](app::Config& config) {
      config.backend.gpu_searches = {FakeGpuSearch("working")};
      config.gpu_fault_journal = journal_.path() / "faults.json";
      config.changes_allowed = true;
      config.data_root = root_;
    });
    client_ = std::make_unique<Client>(server_->NewClient());
  }
  ~ChangesTest() override { gpu_.Release(); }

  static Outcome LoadMore(const Client& client, ChangeAnswer& answer, const OnProgress& on_progress,
                          const CallOptions& options = {}) {
    v1::LoadCollectionRequest request;
    request.set_collection("more");
    request.set_folder("more");
    return client.Load(request, answer, options, on_progress);
  }
  std::unique_ptr<ChangeCall> StartLoadingMore() {
    return std::make_unique<ChangeCall>(
        *server_, [](const Client& client, ChangeAnswer& answer, const OnProgress& on_progress) {
          return LoadMore(client, answer, on_progress);
        });
  }
  static v1::ReloadCollectionRequest MakeReload(const std::string& collection,
                                                const std::string& folder = "") {
    v1::ReloadCollectionRequest request;
    request.set_collection(collection);
    request.set_folder(folder);
    return request;
  }
  v1::Collection Load(const std::string& name, const std::string& folder) {
    ChangeAnswer answer;
    const Outcome outcome = client_->Load(name, folder, answer);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return answer.collection;
  }
  v1::Collection Reload(const v1::ReloadCollectionRequest& request) {
    ChangeAnswer answer;
    const Outcome outcome = client_->Reload(request, answer);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return answer.collection;
  }
  Outcome RefusedReload(const v1::ReloadCollectionRequest& request) {
    ChangeAnswer answer;
    return client_->Reload(request, answer);
  }
  v1::Collection Get(const std::string& name) {
    v1::GetCollectionResponse response;
    const Outcome outcome = client_->Get(name, response);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return response.collection();
  }
  // Loads and reloads since the start of the server.
  double Published() const {
    return MetricValue(ScrapeMetrics(*server_->app().metrics_port()),
                       "simile_reload_total{result=\"published\"}");
  }

  simile::tests::FakeGpuControl& gpu_ = WorkingGpu();
  const ScratchFolder scratch_;
  const ScratchFolder journal_;
  const std::filesystem::path& root_ = scratch_.path();
  std::unique_ptr<FilmsServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ChangesTest, LoadsOnceForAClientThatLeavesTimesOutAndCallsAgain) {
  const int loads = gpu_.calls(GpuCall::kLoad);
  gpu_.Hold(GpuCall::kLoad);
  ChangeAnswer answer;
  EXPECT_EQ(LoadMore(*client_, answer, [](const Progress&) { return false; }).code,
            absl::StatusCode::kCancelled);
  gpu_.AwaitHeld();  // it goes on
  EXPECT_EQ(LoadMore(*client_, answer, {}, {std::chrono::milliseconds(100), {}}).code,
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ListStages(answer), ElementsAre(Progress::STAGE_INDEXING)) << "the same load";
  const auto again = StartLoadingMore();
  again->AwaitJoined();
  gpu_.Release();
  const Outcome outcome = again->Await();
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_EQ(again->answer().collection.snapshot_version(), 1U);
  EXPECT_EQ(gpu_.calls(GpuCall::kLoad), loads + 1);
  EXPECT_EQ(Published(), 2) << "films, and more once";
}

TEST_F(ChangesTest, AnswersAllWhoAskForTheSameLoad) {
  const int loads = gpu_.calls(GpuCall::kLoad);
  gpu_.Hold(GpuCall::kLoad);
  std::vector<std::unique_ptr<ChangeCall>> calls;
  for (int call = 0; call < 3; ++call) calls.push_back(StartLoadingMore());
  for (const auto& call : calls) call->AwaitJoined();
  gpu_.Release();
  for (const auto& call : calls) {
    const Outcome outcome = call->Await();
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    EXPECT_EQ(call->answer().collection.DebugString(), calls[0]->answer().collection.DebugString());
  }
  EXPECT_EQ(calls[0]->answer().collection.rows(), static_cast<std::uint64_t>(kFilmsRows));
  EXPECT_EQ(gpu_.calls(GpuCall::kLoad), loads + 1);
}

TEST_F(ChangesTest, ServesTheFormerSnapshotAndRefusesOtherChangesMeanwhile) {
  CopyFilms(root_ / "other", 2);
  const v1::Collection before = Get("films");
  gpu_.Hold(GpuCall::kLoad);
  ChangeCall reload(*server_,
                    [](const Client& client, ChangeAnswer& answer, const OnProgress& on_progress) {
                      return client.Reload(MakeReload("films", "other"), answer, {}, on_progress);
                    });
  gpu_.AwaitHeld();
  const v1::Collection meanwhile = Get("films");
  EXPECT_EQ(meanwhile.state(), v1::Collection::STATE_RELOADING);
  EXPECT_EQ(meanwhile.snapshot_id(), before.snapshot_id());
  EXPECT_EQ(meanwhile.progress().stage(), Progress::STAGE_INDEXING);
  EXPECT_EQ(meanwhile.progress().bytes_read(), meanwhile.progress().bytes_total());

  const Outcome other = RefusedReload(MakeReload("films", "more"));
  EXPECT_EQ(other.code, absl::StatusCode::kAborted);
  EXPECT_EQ(other.reason, "CHANGE_IN_PROGRESS");
  ChangeAnswer answer;
  EXPECT_EQ(client_->Rollback("films", answer).reason, "CHANGE_IN_PROGRESS");
  EXPECT_EQ(client_->Unload("films").reason, "CHANGE_IN_PROGRESS");
  gpu_.Release();
  ASSERT_TRUE(reload.Await().ok());
  EXPECT_EQ(reload.answer().collection.snapshot_version(), 2U);
  EXPECT_EQ(reload.answer().collection.rollback_snapshot_id(), before.snapshot_id());
}

TEST_F(ChangesTest, ShowsHowFarItHasCome) {
  std::uint64_t bytes = 0;
  for (const char* file : {"content_vectors.npy", "metadata.jsonl", "user_ids.json",
                           "preference_vectors.npy", "interactions.jsonl"}) {
    bytes += std::filesystem::file_size(root_ / "more" / file);
  }
  gpu_.Hold(GpuCall::kLoad);
  bool is_indexing = false;
  ChangeAnswer answer;
  const Outcome outcome = LoadMore(*client_, answer, [&](const Progress& progress) {
    is_indexing = is_indexing || progress.stage() == Progress::STAGE_INDEXING;
    if (is_indexing) gpu_.Release();
    return true;
  });
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_TRUE(is_indexing);
  double share = 0;
  std::uint64_t bytes_read = 0;
  for (const Progress& progress : answer.progress) {
    EXPECT_GE(progress.share(), share);
    EXPECT_GE(progress.bytes_read(), bytes_read);
    EXPECT_LE(progress.share(), 1);
    share = progress.share();
    bytes_read = progress.bytes_read();
    EXPECT_TRUE(progress.bytes_total() == 0 || progress.bytes_total() == bytes);
    if (progress.stage() >= Progress::STAGE_INDEXING) {
      EXPECT_EQ(bytes_read, bytes);
      EXPECT_GE(share, 0.8);
      EXPECT_EQ(progress.file(), "");
    }
  }
  EXPECT_EQ(bytes_read, bytes);
}

TEST_F(ChangesTest, ReadsNothingWhenTheFilesAreServedAlready) {
  Load("more", "more");
  const double published = Published();
  ChangeAnswer answer;
  ASSERT_TRUE(client_->Load("more", "more", answer).ok());
  EXPECT_THAT(ListStages(answer), ElementsAre(Progress::STAGE_WAITING));
  EXPECT_EQ(answer.collection.snapshot_version(), 1U);
  ASSERT_TRUE(client_->Reload("more", answer).ok());
  EXPECT_THAT(ListStages(answer), ElementsAre(Progress::STAGE_WAITING));
  EXPECT_EQ(answer.collection.snapshot_version(), 1U);
  EXPECT_EQ(Published(), published);
}

TEST_F(ChangesTest, RollsBackToWhatWasServedBefore) {
  CopyFilms(root_ / "other", 2);
  const v1::Collection first = Load("more", "more");
  const v1::Collection second = Reload(MakeReload("more", "other"));
  EXPECT_EQ(second.rollback_snapshot_id(), first.snapshot_id());
  ChangeAnswer answer;
  Outcome outcome = client_->Rollback("more", answer);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_EQ(answer.collection.snapshot_id(), first.snapshot_id());
  EXPECT_EQ(answer.collection.snapshot_version(), 3U);
  EXPECT_EQ(answer.collection.folder(), "more");
  EXPECT_EQ(answer.collection.rollback_snapshot_id(), "");
  outcome = client_->Rollback("more", answer);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_THAT(answer.progress, IsEmpty());
  EXPECT_EQ(answer.collection.snapshot_version(), 3U) << "repeated";
  EXPECT_EQ(Reload(MakeReload("more", "other")).rollback_snapshot_id(), first.snapshot_id());
}

TEST_F(ChangesTest, RollsBackFromMemoryWhileAnotherReaderPages) {
  CopyFilms(root_ / "other", 2);
  const v1::Collection first = Load("more", "more");
  v1::SearchRequest search;
  search.set_collection("more");
  search.add_queries()->set_id("toy-story-1995");
  search.mutable_options()->set_paged(true);
  v1::SearchResponse page;
  ASSERT_TRUE(client_->Search(search, page).ok());
  Reload(MakeReload("more", "other"));
  std::filesystem::remove_all(root_ / "more");
  ChangeAnswer answer;
  const Outcome outcome = client_->Rollback("more", answer);
  ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_EQ(answer.collection.snapshot_id(), first.snapshot_id());
  EXPECT_THAT(ListStages(answer), ElementsAre(Progress::STAGE_WAITING)) << "nothing was read";
}

TEST_F(ChangesTest, DoesNotRollBackToOtherFiles) {
  Load("more", "more");
  std::filesystem::remove_all(root_ / "more");
  CopyFilms(root_ / "more", 2);
  const v1::Collection second = Reload(MakeReload("more"));
  EXPECT_EQ(second.snapshot_version(), 2U);
  ChangeAnswer answer;
  const Outcome outcome = client_->Rollback("more", answer);
  EXPECT_EQ(outcome.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(outcome.reason, "NOTHING_TO_ROLL_BACK");
  EXPECT_EQ(Get("more").snapshot_id(), second.snapshot_id());
  EXPECT_EQ(Get("more").state(), v1::Collection::STATE_SERVING);
}

TEST_F(ChangesTest, ChangesTheShapeOnlyWhenAllowed) {
  CopyFilms(root_ / "dots");
  std::ofstream(root_ / "dots" / "collection.json") << "{\"metric\": \"dot\"}";
  v1::ReloadCollectionRequest request = MakeReload("films", "dots");
  const Outcome refused = RefusedReload(request);
  EXPECT_EQ(refused.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.reason, "SHAPE_CHANGE");
  EXPECT_EQ(refused.field, "allow_shape_change");
  EXPECT_EQ(Get("films").metric(), v1::Collection::METRIC_COSINE);
  request.set_allow_shape_change(true);
  EXPECT_EQ(Reload(request).metric(), v1::Collection::METRIC_DOT);
}

TEST_F(ChangesTest, ChecksTheSnapshotThatTheCallerExpects) {
  CopyFilms(root_ / "other", 2);
  v1::ReloadCollectionRequest request = MakeReload("films", "other");
  request.set_expected_snapshot_id(std::string(32, '0'));
  const Outcome refused = RefusedReload(request);
  EXPECT_EQ(refused.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.reason, "SNAPSHOT_MISMATCH");
  EXPECT_EQ(refused.field, "expected_snapshot_id");
  const std::string first = Get("films").snapshot_id();
  request.set_expected_snapshot_id(first);
  EXPECT_EQ(Reload(request).snapshot_version(), 2U);
  EXPECT_EQ(Reload(request).snapshot_version(), 2U) << "the repeated call";
  v1::UnloadCollectionRequest unload;
  unload.set_collection("films");
  unload.set_expected_snapshot_id(first);
  EXPECT_EQ(client_->Unload(unload).reason, "SNAPSHOT_MISMATCH");
  unload.set_expected_snapshot_id(Get("films").snapshot_id());
  EXPECT_TRUE(client_->Unload(unload).ok());
}

TEST_F(ChangesTest, AnswersThoseWhoWaitWhenTheServerStops) {
  gpu_.Hold(GpuCall::kLoad);
  const auto call = StartLoadingMore();
  gpu_.AwaitHeld();
  EXPECT_TRUE(server_->app().Drain()) << "the call does not wait for the load";
  const Outcome outcome = call->Await();
  EXPECT_EQ(outcome.code, absl::StatusCode::kUnavailable) << testing::PrintToString(outcome);
  EXPECT_EQ(outcome.reason, "STOPPING");
}

}  // namespace
}  // namespace simile::integration

#pragma once

#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/fake_backend.h"
#include "engine/fake_clock.h"
#include "files/film_folder.h"
#include "files/scratch_folder.h"
#include "observe/build_info.h"
#include "observe/exposed.h"
#include "service/changes/collection_changes.h"
#include "service/unshared_error.h"

namespace simile::service {

// A call that waits for a change.
class ChangeWaiter {
 public:
  using Result = absl::StatusOr<engine::SnapshotPtr>;

  ChangeCaller Caller() {
    ChangeCaller caller;
    caller.progress = [this](const engine::ChangeProgress& progress) {
      stages_.push_back(progress.stage);
    };
    caller.done = [this](const Result& result) {
      answer_.set_value(result.ok() ? result : UnsharedError(result.status()));
    };
    caller.left = left_.get_token();
    return caller;
  }
  void Leave() { left_.request_stop(); }
  // REQUIRES: called once.
  Result Await() { return answer_.get_future().get(); }
  // After Await: the stages of the progress that was sent.
  const std::vector<engine::ChangeStage>& stages() const { return stages_; }

 private:
  std::stop_source left_;
  std::vector<engine::ChangeStage> stages_;
  std::promise<Result> answer_;
};

// Folders of the data root, loaded into a backend that can be held up.
class CollectionChangesFixture : public testing::Test {
 protected:
  using Result = absl::StatusOr<engine::SnapshotPtr>;
  ~CollectionChangesFixture() override {
    backend_.gate.Open();
    queue_.Stop();
  }

  void Write(const std::string& folder, std::size_t row_count, float shift = 1) const {
    WriteFilmFolder(root_ / folder, row_count, shift);
  }
  static ChangeRequest MakeRequest(ChangeKind kind, const std::string& folder = "") {
    ChangeRequest request;
    request.kind = kind;
    request.collection = "films";
    request.folder.path = folder;
    return request;
  }
  static ChangeRequest MakeLoad(const std::string& folder) {
    return MakeRequest(ChangeKind::kLoad, folder);
  }
  static ChangeRequest MakeReload(const std::string& folder = "") {
    return MakeRequest(ChangeKind::kReload, folder);
  }
  static ChangeRequest Rollback() { return MakeRequest(ChangeKind::kRollback); }

  static base::ErrorReason ReasonOf(const Result& result) {
    return base::ReasonOf(result.status());
  }

  // Makes a change and returns its end.
  Result Make(const ChangeRequest& request) {
    ChangeWaiter waiting;
    return Make(request, waiting);
  }
  Result Make(const ChangeRequest& request, ChangeWaiter& waiting) {
    const absl::Status started = changes_.Start(request, waiting.Caller());
    if (!started.ok()) return started;
    return waiting.Await();
  }
  engine::SnapshotPtr MustMake(const ChangeRequest& request) {
    const Result result = Make(request);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : nullptr;
  }
  // Starts a change that the backend holds up.
  void Hold(const ChangeRequest& request, ChangeWaiter& waiting) {
    backend_.gate.Close();
    const std::size_t arrived = backend_.segments_made;
    ASSERT_TRUE(changes_.Start(request, waiting.Caller()).ok());
    backend_.gate.AwaitArrivals(arrived + 1);
  }
  // Asks for a reload of the served collection, and then releases the change that is held up.
  Result ReloadServedWhileHeld() {
    std::latch asking(1);
    std::future<Result> reload = std::async(std::launch::async, [&] {
      asking.count_down();
      return changes_.ReloadServed("films");
    });
    asking.wait();
    backend_.gate.Open();
    return reload.get();
  }
  std::string RollbackId() {
    return changes_.FindOrigin(**store_.Pin("films")).rollback_snapshot_id;
  }
  std::string FolderServed() { return FolderServed(changes_); }
  std::string FolderServed(const CollectionChanges& changes) {
    return changes.FindOrigin(**store_.Pin("films")).folder;
  }
  std::string LoadedFrom() { return changes_.FindOrigin(**store_.Pin("films")).loaded_from; }
  // The value of simile_reload_total{result}.
  std::string Counted(const std::string& result) const {
    const std::string name = "simile_reload_total{result=\"" + result + "\"} ";
    const std::string exposed = observe::Exposed(metrics_);
    const std::size_t place = exposed.find(name);
    if (place == std::string::npos) return "0";
    const std::size_t value = place + name.size();
    return exposed.substr(value, exposed.find('\n', value) - value);
  }

  const ScratchFolder scratch_;
  const std::filesystem::path& root_ = scratch_.path();
  const Limits limits_;
  engine::FakeClock clock_;
  engine::FakeBackend backend_;
  std::ostringstream written_;
  const observe::Logger log_{{observe::LogFormat::kText, observe::LogLevel::kInfo, &written_}};
  observe::Metrics metrics_{observe::GetBuildInfo()};
  engine::SnapshotStore store_{clock_};
  engine::Publisher publisher_{{limits_, 64U << 20}, backend_, store_, clock_};
  engine::ChangeQueue queue_{1};
  CollectionChanges changes_{{true, root_},
                             {publisher_, store_, queue_, metrics_, log_, clock_, limits_}};
};

}  // namespace simile::service

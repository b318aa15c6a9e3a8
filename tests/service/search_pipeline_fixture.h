#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/gate.h"
#include "engine/sample_data.h"
#include "observe/exposed.h"
#include "service/calls/call.h"
#include "service/handlers.h"
#include "service/unshared_error.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

// A call without gRPC. Tests can wait for its end.
class FakeCall final : public Call {
 public:
  explicit FakeCall(const Clock& clock) : arrived_at_(clock.Now()) {}

  std::string_view method() const override { return "simile.v1.SearchService/Search"; }
  std::string_view request_id() const override { return "4f1c"; }
  Clock::TimePoint arrived_at() const override { return arrived_at_; }
  std::optional<Clock::TimePoint> deadline() const override { return deadline_; }
  std::stop_token cancelled() const override { return cancelled_.get_token(); }
  void SetReplyLimit(std::uint64_t bytes_max, std::string_view remedy) override {
    reply_bytes_max_ = bytes_max;
    reply_remedy_ = remedy;
  }
  void ReleaseRequest() override {
    if (release_) release_();
  }
  void Finish(const absl::Status& status) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(end_.has_value()) << "finished twice";
    end_ = UnsharedError(status);
    finished_.notify_all();
  }

  void FinishWith(const Reply& reply) override {
    const absl::Status fits = CheckReplySize(reply, reply_bytes_max_, reply_remedy_);
    if (!fits.ok()) return Finish(fits);
    std::string bytes(reply.bytes(), '\0');
    reply.Write(reinterpret_cast<std::uint8_t*>(bytes.data()));
    EXPECT_TRUE(response_.ParseFromString(bytes));
    Finish(absl::OkStatus());
  }

  void SetDeadline(Clock::TimePoint deadline) { deadline_ = deadline; }
  void SetRelease(std::function<void()> release) { release_ = std::move(release); }
  void Cancel() { cancelled_.request_stop(); }
  absl::Status AwaitEnd() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return end_.has_value(); });
    return *end_;
  }
  // REQUIRES: AwaitEnd has returned.
  const v1::SearchResponse& response() const { return response_; }

 private:
  const Clock::TimePoint arrived_at_;
  std::stop_source cancelled_;
  std::optional<Clock::TimePoint> deadline_;
  std::uint64_t reply_bytes_max_ = 0;
  std::string_view reply_remedy_;
  std::function<void()> release_;
  v1::SearchResponse response_;
  std::mutex mutex_;  // guards end_
  std::condition_variable finished_;
  std::optional<absl::Status> end_;
};

// The pipeline over a fake segment whose passes stop at gate_, with a queue of two queries.
class SearchPipelineFixture : public testing::Test {
 protected:
  static constexpr std::size_t kDim = 5;
  static constexpr const char* kContent = "0123456789abcdef0123456789abcdef";

  SearchPipelineFixture() {
    std::shared_ptr<engine::FakeSegment> segment;
    engine::Snapshot snapshot = engine::MakeSnapshot(engine::RandomDataset(20, kDim, 99), &segment);
    segment->on_search = [this] { gate_.Pass(); };
    EXPECT_TRUE(store_.BeginCreate("films").ok());
    store_.Publish("films", std::move(snapshot));
  }

  v1::SearchRequest Query(const std::string& id) {
    v1::SearchRequest request;
    request.set_collection("films");
    request.add_queries()->set_id(id);
    return request;
  }

  // Replaces the content by other content.
  void Replace(const std::string& id) {
    engine::Snapshot snapshot = engine::MakeSnapshot(engine::RandomDataset(20, kDim, 98));
    snapshot.id = id;
    EXPECT_TRUE(store_.BeginReplace("films").ok());
    store_.Publish("films", std::move(snapshot));
  }

  // Starts a call and returns when its pass waits at the closed gate.
  void Occupy() {
    gate_.Close();
    HandleSearch(pipeline_, first_, request_);
    gate_.AwaitArrivals(1);
  }

  // Starts the two calls that the queue holds, of one query each: a larger one waits beside it.
  void FillQueue() {
    HandleSearch(pipeline_, second_, request_);
    HandleSearch(pipeline_, third_, request_);
  }

  std::string Metrics() const { return observe::Exposed(metrics_); }

  const Limits limits_;
  engine::FakeClock clock_;
  engine::Gate gate_;
  observe::Metrics metrics_{observe::BuildInfo{}};
  engine::SnapshotStore store_{clock_};
  FakeCall first_{clock_};
  FakeCall second_{clock_};
  FakeCall third_{clock_};
  const v1::SearchRequest request_ = Query("1");
  engine::Executor executor_{{.queue_queries_max = 2, .batch_queries_max = 1},
                             {{"cpu", "scan-fake", "a test, 1 thread"}, "the test says so"},
                             clock_,
                             {}};
  ResolveWorkers workers_{{}, clock_};
  const ServedSnapshots snapshots_{store_};
  const SearchPipeline pipeline_{{clock_, snapshots_, executor_, metrics_, limits_, workers_}};
};

}  // namespace simile::service

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/answers.h"
#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/gate.h"
#include "engine/queue/executor.h"
#include "engine/sample_data.h"

namespace simile::engine {

// An executor over a fake segment whose passes stop at gate_, on a clock that the test advances.
class ExecutorTest : public testing::Test {
 protected:
  static constexpr std::size_t kDim = 5;

  ExecutorTest() {
    segment_->on_search = [this] { gate_.Pass(); };
  }

  void Start(std::uint32_t queue_queries_max = 64, std::uint32_t batch_queries_max = 16,
             Executor::Observer observer = {}) {
    options_.queue_queries_max = queue_queries_max;
    options_.batch_queries_max = batch_queries_max;
    executor_ = std::make_unique<Executor>(options_, served_by_, clock_, std::move(observer),
                                           read_device_memory_);
  }

  // A task of `query_count` queries, answered to answers_ under `number`.
  std::unique_ptr<SearchTask> Task(int number, std::size_t query_count = 1) {
    auto task = std::make_unique<SearchTask>();
    task->snapshot = snapshot_;
    task->vectors = RandomMatrix(query_count, kDim, static_cast<std::uint64_t>(number));
    task->queries.resize(query_count);
    for (ResolvedQuery& query : task->queries) {
      query.k = 3;
      query.score_threshold = -2;
    }
    task->arrived_at = clock_.Now();
    task->deadline = clock_.Now() + std::chrono::seconds(10);
    task->done = answers_.For(number);
    return task;
  }

  void Submit(std::unique_ptr<SearchTask> task) {
    const absl::Status status = executor_->Submit(std::move(task));
    ASSERT_TRUE(status.ok()) << status;
  }

  // As an I/O thread does, which calls RunHere afterwards.
  void Gather(std::unique_ptr<SearchTask> task) {
    const absl::Status status = executor_->Gather(std::move(task), arrivals_);
    ASSERT_TRUE(status.ok()) << status;
  }
  bool RunHere() { return executor_->RunHere(arrivals_); }

  // Submits task `number` and returns when its pass has come to the closed gate.
  void BlockWithTask(int number) {
    gate_.Close();
    Submit(Task(number));
    gate_.AwaitArrivals(1);
  }

  // The hits of each query of an answer.
  static std::vector<std::vector<Hit>> ToHits(const absl::StatusOr<SearchAnswer>& answer) {
    std::vector<std::vector<Hit>> hits;
    for (const QueryResult& result : answer.value().results) {
      const std::span<const Hit> answered = result.hits.span();
      hits.emplace_back(answered.begin(), answered.end());
    }
    return hits;
  }

  // What the segment itself answers to the queries of Task(number, query_count).
  std::vector<std::vector<Hit>> Expected(int number, std::size_t query_count = 1) {
    const data::Matrix queries =
        RandomMatrix(query_count, kDim, static_cast<std::uint64_t>(number));
    QuerySpec spec;
    spec.k = 3;
    const std::vector<QuerySpec> specs(query_count, spec);
    SearchResult result;
    const FakeSegment segment(snapshot_->dataset->vectors.view());
    EXPECT_TRUE(segment.Search({queries.view(), specs}, result).ok());
    std::vector<std::vector<Hit>> hits;
    for (std::size_t query = 0; query < query_count; ++query) {
      hits.emplace_back(result.Hits(query).begin(), result.Hits(query).end());
    }
    return hits;
  }

  // Waits until the executor refuses tasks because it is ending, and returns the numbers of the
  // tasks it took until then, `first` onwards.
  int SubmitUntilRefused(int first) {
    for (int number = first;; ++number) {
      const absl::Status status = executor_->Submit(Task(number));
      if (status.code() == absl::StatusCode::kUnavailable) return number;
      if (!status.ok()) --number;  // full: try again with the same one
      std::this_thread::yield();
    }
  }

  FakeClock clock_;
  ServedBy served_by_{{"cpu", "scan-fake", "a test, 1 thread"}, "the test says so"};
  Executor::Options options_;                         // the rest of them: set before Start
  SliceRunner::ReadDeviceMemory read_device_memory_;  // set before Start
  Gate gate_;
  Answers answers_;
  std::shared_ptr<FakeSegment> segment_;
  SnapshotPtr snapshot_ =
      std::make_shared<const Snapshot>(MakeSnapshot(RandomDataset(20, kDim, 99), &segment_));
  TaskList arrivals_;                   // of the test's thread
  std::unique_ptr<Executor> executor_;  // last: it calls into all of the above
};

}  // namespace simile::engine

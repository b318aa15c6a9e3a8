#include "service/search_pipeline.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/payload_builder.h"
#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/gate.h"
#include "engine/sample_data.h"
#include "observe/exposed.h"
#include "service/reply_size.h"
#include "service/search_handlers.h"
#include "service/unshared_error.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

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
class SearchPipelineTest : public testing::Test {
 protected:
  static constexpr std::size_t kDim = 5;
  static constexpr const char* kContent = "0123456789abcdef0123456789abcdef";

  SearchPipelineTest() {
    std::shared_ptr<engine::FakeSegment> segment;
    engine::Snapshot snapshot = engine::SnapshotOf(engine::RandomDataset(20, kDim, 99), &segment);
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

  // Replaces the content by another one.
  void Replace(const std::string& id) {
    engine::Snapshot snapshot = engine::SnapshotOf(engine::RandomDataset(20, kDim, 98));
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

TEST_F(SearchPipelineTest, AnswersWithHitsAndReceipt) {
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.mutable_queries(0)->set_k(3);
  request.mutable_queries(0)->set_offset(1);
  clock_.Advance(std::chrono::microseconds(25));
  HandleSearch(pipeline_, call, request);
  ASSERT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
  const v1::SearchResponse& response = call.response();
  ASSERT_EQ(response.results_size(), 1);
  ASSERT_EQ(response.results(0).hits_size(), 3);
  EXPECT_EQ(response.results(0).hits(0).rank(), 2U);
  for (const v1::Hit& hit : response.results(0).hits()) EXPECT_NE(hit.id(), "7");
  EXPECT_EQ(response.results(0).score_kind(), v1::SCORE_KIND_COSINE);
  EXPECT_THAT(response.receipt().engines(), ElementsAre("scan-fake"));
  EXPECT_EQ(response.receipt().reason(), "the test says so");
  EXPECT_EQ(response.receipt().request_id(), "4f1c");
  EXPECT_EQ(response.receipt().snapshot_version(), 1U);
  EXPECT_EQ(response.receipt().total_us(), 25U);
  EXPECT_TRUE(response.receipt().exact());
}

TEST_F(SearchPipelineTest, SkipsMoreHitsThanThereAre) {
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.mutable_queries(0)->set_offset(500);
  HandleSearch(pipeline_, call, request);
  ASSERT_TRUE(call.AwaitEnd().ok());
  EXPECT_EQ(call.response().results(0).hits_size(), 0);
}

TEST_F(SearchPipelineTest, RefusesCallsThatDoNotFitTheQueueAndSaysWhenToRetry) {
  Occupy();
  FillQueue();
  FakeCall refused(clock_);
  const v1::SearchRequest request = Query("4");
  HandleSearch(pipeline_, refused, request);
  EXPECT_EQ(base::ReasonOf(refused.AwaitEnd()), base::ErrorReason::kQueueFull);
  EXPECT_TRUE(base::RetryAfterOf(refused.AwaitEnd()).has_value());
  EXPECT_THAT(Metrics(), HasSubstr("simile_rejected_total{reason=\"queue_full\"} 1\n"));
  gate_.Open();
  EXPECT_TRUE(first_.AwaitEnd().ok());
  EXPECT_TRUE(second_.AwaitEnd().ok()) << second_.AwaitEnd();
  EXPECT_TRUE(third_.AwaitEnd().ok()) << third_.AwaitEnd();
}

TEST_F(SearchPipelineTest, KeepsNoRequestThatWaits) {
  Occupy();
  const std::uint64_t before = executor_.counts().queue_bytes;
  auto request = std::make_unique<v1::SearchRequest>(Query("7"));
  request->mutable_queries(0)->add_exclude_ids("3");
  for (int id = 0; id < 100; ++id)
    request->mutable_options()->add_exclude_ids(std::string(500, 'x'));
  request->mutable_options()->set_expected_snapshot_id(kContent);
  FakeCall call(clock_);
  call.SetRelease([&] { request.reset(); });
  Replace(kContent);
  HandleSearch(pipeline_, call, *request);
  EXPECT_EQ(request, nullptr);
  EXPECT_LT(executor_.counts().queue_bytes - before, 10'000U);
  gate_.Open();
  EXPECT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
  EXPECT_TRUE(first_.AwaitEnd().ok());
  ASSERT_EQ(call.response().results_size(), 1);
  for (const v1::Hit& hit : call.response().results(0).hits()) EXPECT_NE(hit.id(), "3");
}

TEST_F(SearchPipelineTest, ComputesNothingForACancelledCall) {
  Occupy();
  FakeCall call(clock_);
  const v1::SearchRequest request = Query("2");
  HandleSearch(pipeline_, call, request);
  call.Cancel();
  gate_.Open();
  EXPECT_EQ(call.AwaitEnd().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(first_.AwaitEnd().ok());
  EXPECT_EQ(executor_.counts().cancelled, 1U);
  EXPECT_THAT(Metrics(), HasSubstr("simile_rejected_total{reason=\"cancelled\"} 1\n"));
}

TEST_F(SearchPipelineTest, GivesACallWithoutADeadlineTwoSeconds) {
  Occupy();
  FakeCall call(clock_);
  const v1::SearchRequest request = Query("2");
  HandleSearch(pipeline_, call, request);
  clock_.Advance(std::chrono::milliseconds(2'001));
  gate_.Open();
  EXPECT_EQ(call.AwaitEnd().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(call.AwaitEnd().message()),
              testing::EndsWith("; the call set none, and limits.search_deadline_default is 2,000 "
                                "ms"));
  EXPECT_TRUE(first_.AwaitEnd().ok());
  EXPECT_EQ(executor_.counts().expired, 1U);
  EXPECT_THAT(Metrics(), HasSubstr("simile_rejected_total{reason=\"deadline\"} 1\n"));
}

TEST_F(SearchPipelineTest, CutsLongDeadlinesToTenSeconds) {
  Occupy();
  FakeCall longest(clock_);
  longest.SetDeadline(clock_.Now() + std::chrono::hours(1));
  const v1::SearchRequest request = Query("2");
  HandleSearch(pipeline_, longest, request);
  clock_.Advance(std::chrono::milliseconds(9'999));
  FakeCall other(clock_);
  other.SetDeadline(clock_.Now() + std::chrono::seconds(5));
  HandleSearch(pipeline_, other, request);
  clock_.Advance(std::chrono::milliseconds(2));
  gate_.Open();
  EXPECT_EQ(longest.AwaitEnd().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(longest.AwaitEnd().message()),
      testing::EndsWith("; limits.search_deadline_max is 10,000 ms, though the call allowed "
                        "more"));
  EXPECT_TRUE(other.AwaitEnd().ok()) << other.AwaitEnd();
}

TEST_F(SearchPipelineTest, RefusesAnAnswerThatIsTooLarge) {
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_reply_bytes_max(100);
  request.mutable_options()->set_with_vectors(true);
  HandleSearch(pipeline_, call, request);
  const absl::Status status = call.AwaitEnd();
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kReplyTooLarge);
  EXPECT_THAT(std::string(status.message()),
              MatchesRegex("the answer needs [0-9]+ bytes and may have 100; lower k, select the "
                           "payload fields you need or none, leave out with_vectors, or raise "
                           "options.reply_bytes_max .up to 67,108,864."));
  EXPECT_FALSE(base::RetryAfterOf(status).has_value());
}

TEST_F(SearchPipelineTest, KeepsNothingForAnAnswerThatIsTooLarge) {
  Replace(kContent);
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_paged(true);
  request.mutable_options()->set_k(3);
  request.mutable_options()->set_reply_bytes_max(100);
  HandleSearch(pipeline_, call, request);
  EXPECT_EQ(base::ReasonOf(call.AwaitEnd()), base::ErrorReason::kReplyTooLarge);
  EXPECT_THAT(Metrics(), Not(HasSubstr("simile_queries_total{")));
  Replace(std::string(32, 'b'));
  EXPECT_FALSE(store_.PinContent("films", kContent).ok()) << "no page of it was answered";
}

TEST_F(SearchPipelineTest, KeepsTheContentOfAPagedAnswer) {
  Replace(kContent);
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_paged(true);
  request.mutable_options()->set_k(3);
  HandleSearch(pipeline_, call, request);
  ASSERT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
  EXPECT_THAT(Metrics(), HasSubstr("simile_queries_total{"));
  Replace(std::string(32, 'b'));
  EXPECT_TRUE(store_.PinContent("films", kContent).ok());
}

TEST_F(SearchPipelineTest, RefusesKeywordsThatAreTooLarge) {
  constexpr std::size_t kRows = 20;
  auto dataset = engine::RandomDataset(kRows, kDim, 98);
  data::PayloadTableBuilder payload(kRows, limits_);
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::string studio(1'000, static_cast<char>('a' + row));
    ASSERT_TRUE(payload.Add({{"studio", PayloadValue{studio}}}).ok());
  }
  dataset->payload = std::move(payload).Build();
  ASSERT_TRUE(store_.BeginCreate("plays").ok());
  store_.Publish("plays", engine::SnapshotOf(std::move(dataset)));
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.set_collection("plays");
  request.mutable_options()->mutable_group_by()->set_field("studio");
  request.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  request.mutable_options()->set_reply_bytes_max(5'000);
  HandleSearch(pipeline_, call, request);
  const absl::Status status = call.AwaitEnd();
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kReplyTooLarge) << status;
}

TEST_F(SearchPipelineTest, SaysOfEachQueryHowManyRowsPassItsFilter) {
  constexpr std::size_t kRows = 20;
  auto dataset = engine::RandomDataset(kRows, kDim, 97);
  data::PayloadTableBuilder payload(kRows, limits_);
  for (std::size_t row = 0; row < kRows; ++row) {
    ASSERT_TRUE(payload.Add({{"year", PayloadValue{static_cast<std::int64_t>(row)}}}).ok());
  }
  dataset->payload = std::move(payload).Build();
  ASSERT_TRUE(store_.BeginCreate("plays").ok());
  store_.Publish("plays", engine::SnapshotOf(std::move(dataset)));
  FakeCall call(clock_);
  v1::SearchRequest request;
  request.set_collection("plays");
  for (const char* const filter : {"year < 3", "", "year >= 3", "year < 3", "year >= 3"}) {
    v1::Query& query = *request.add_queries();
    query.set_id("7");
    query.set_filter(filter);
  }
  HandleSearch(pipeline_, call, request);
  ASSERT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
  std::vector<std::uint64_t> passing;
  for (const v1::SearchResult& result : call.response().results()) {
    passing.push_back(result.has_rows_passing() ? result.rows_passing() : kRows);
  }
  EXPECT_THAT(passing, ElementsAre(3, kRows, 17, 3, 17));
}

TEST_F(SearchPipelineTest, EndsCountingAtTheServersOwnLimit) {
  Limits limits;
  limits.reply_bytes_max = 300;
  const SearchPipeline pipeline({clock_, snapshots_, executor_, metrics_, limits, workers_});
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_reply_bytes_max(100);
  request.mutable_options()->set_with_vectors(true);
  HandleSearch(pipeline, call, request);
  EXPECT_THAT(std::string(call.AwaitEnd().message()),
              StartsWith("the answer needs more than 300 bytes and may have 100; lower k, "));
}

TEST_F(SearchPipelineTest, ABriefReceiptHasFourFields) {
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_receipt_detail(v1::RECEIPT_DETAIL_BRIEF);
  clock_.Advance(std::chrono::microseconds(25));
  HandleSearch(pipeline_, call, request);
  ASSERT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
  v1::Receipt brief;
  brief.set_backend(v1::BACKEND_KIND_CPU);
  brief.set_snapshot_id(store_.Pin("films").value()->id);
  brief.set_exact(true);
  brief.set_total_us(25);
  EXPECT_EQ(call.response().receipt().ShortDebugString(), brief.ShortDebugString());
}

TEST_F(SearchPipelineTest, RefusesOtherContentThanExpected) {
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_expected_snapshot_id("00000000000000000000000000000000");
  HandleSearch(pipeline_, call, request);
  EXPECT_EQ(base::ReasonOf(call.AwaitEnd()), base::ErrorReason::kSnapshotMismatch);
  EXPECT_EQ(base::FieldOf(call.AwaitEnd()), "options.expected_snapshot_id");
}

TEST_F(SearchPipelineTest, NamesAnUnknownCollection) {
  FakeCall call(clock_);
  v1::SearchRequest request = Query("7");
  request.set_collection("film");
  HandleSearch(pipeline_, call, request);
  EXPECT_EQ(call.AwaitEnd().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(call.AwaitEnd().message()),
            "no collection \"film\". Did you mean \"films\"?");
}

TEST_F(SearchPipelineTest, SaysThatThereAreNoUsers) {
  FakeCall call(clock_);
  v1::RecommendRequest request;
  request.set_collection("films");
  request.add_user_ids("ada");
  request.add_user_ids("ben");
  HandleRecommend(pipeline_, call, request);
  EXPECT_EQ(base::ReasonOf(call.AwaitEnd()), base::ErrorReason::kUserNotFound);
  EXPECT_EQ(base::FieldOf(call.AwaitEnd()), "user_ids[0]");
  // The message names the field that the caller sent.
  EXPECT_THAT(std::string(call.AwaitEnd().message()), StartsWith("user_ids[0]: "));
}

TEST_F(SearchPipelineTest, FinishesQueuedCallsWhenTheExecutorStops) {
  Occupy();
  FillQueue();
  std::thread stop([this] { executor_.Stop(); });
  // The queue is full, so a probe is refused at once: as such, or because the stop has begun.
  absl::StatusCode refusal = absl::StatusCode::kResourceExhausted;
  while (refusal == absl::StatusCode::kResourceExhausted) {
    FakeCall probe(clock_);
    const v1::SearchRequest request = Query("4");
    HandleSearch(pipeline_, probe, request);
    refusal = probe.AwaitEnd().code();
    std::this_thread::yield();
  }
  EXPECT_EQ(refusal, absl::StatusCode::kUnavailable);
  gate_.Open();
  stop.join();
  EXPECT_EQ(second_.AwaitEnd().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(third_.AwaitEnd().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(first_.AwaitEnd().ok());
}

}  // namespace
}  // namespace simile::service

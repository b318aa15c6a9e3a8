#include "service/search_pipeline.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/payload/payload_table.h"
#include "service/requests/page_token.h"
#include "service/search_pipeline_fixture.h"

namespace simile::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

using SearchPipelineTest = SearchPipelineFixture;

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
  EXPECT_TRUE(base::ReadRetryAfter(refused.AwaitEnd()).has_value());
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
  EXPECT_FALSE(base::ReadRetryAfter(status).has_value());
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
  store_.Publish("plays", engine::MakeSnapshot(std::move(dataset)));
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
  store_.Publish("plays", engine::MakeSnapshot(std::move(dataset)));
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

TEST_F(SearchPipelineTest, AFailingQueryHasItsErrorOnEveryPage) {
  Limits limits;
  limits.k_max = 10;
  const SearchPipeline pipeline({clock_, snapshots_, executor_, metrics_, limits, workers_});
  Replace(kContent);
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_partial(true);
  request.mutable_options()->set_paged(true);
  request.mutable_options()->set_k(10);
  request.mutable_queries(0)->set_k(2);
  request.add_queries()->set_id("nowhere");
  request.add_queries();
  request.add_queries()->mutable_vector()->add_values(1);
  request.add_queries()->set_id("7");
  request.mutable_queries(4)->set_filter("none = 3");
  request.add_queries()->set_id("7");
  request.mutable_queries(5)->set_offset(9);
  std::vector<std::string> errors;  // of the first page
  int pages = 0;
  do {
    FakeCall call(clock_);
    HandleSearch(pipeline, call, request);
    ASSERT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
    ++pages;
    EXPECT_EQ(call.response().results(0).hits_size(), 2);
    std::vector<std::string> of_page;
    for (int i = 1; i < request.queries_size(); ++i) {
      of_page.push_back(call.response().results(i).error().SerializeAsString());
    }
    if (errors.empty()) errors = of_page;
    EXPECT_EQ(of_page, errors) << "page " << pages;
    request.mutable_options()->set_page_token(call.response().next_page_token());
  } while (!request.options().page_token().empty() && pages < 10);
  EXPECT_EQ(pages, 5);
}

TEST_F(SearchPipelineTest, AnswersNoPagePastTheReachOfAQuery) {
  Replace(kContent);
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_paged(true);
  for (const bool partial : {false, true}) {
    request.mutable_options()->set_partial(partial);
    request.mutable_options()->clear_page_token();
    request.mutable_options()->set_page_token(WritePageToken(
        {.snapshot_id = kContent, .page = 1'000'000, .request_hash = HashRequest(request)}));
    FakeCall call(clock_);
    HandleSearch(pipeline_, call, request);
    EXPECT_EQ(call.AwaitEnd().ok(), partial);
    const std::string message = partial ? call.response().results(0).error().message()
                                        : std::string(call.AwaitEnd().message());
    EXPECT_THAT(message, HasSubstr("; offset + k may be at most 10,000, and k is 10"));
  }
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
  // The queue is full, so a probe is refused at once: because of the full queue, or because the
  // stop has begun.
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

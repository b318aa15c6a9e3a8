#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "integration/films_server.h"
#include "integration/raw_call.h"

namespace simile::integration {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::StartsWith;

// The caller's side of a stream.
class Stream {
 public:
  explicit Stream(FilmsServer& server, const std::map<std::string, std::string>& metadata = {})
      : call_(server.app().address(), kSearchStreamMethod, metadata) {}

  bool Send(const v1::SearchStreamRequest& request) {
    return call_.Send(request.SerializeAsString());
  }
  // The next answer; fails the test when there is none.
  v1::SearchStreamResponse Read() {
    v1::SearchStreamResponse response;
    const auto bytes = call_.Read();
    EXPECT_TRUE(bytes.has_value());
    if (bytes) {
      EXPECT_TRUE(response.ParseFromString(*bytes));
    }
    return response;
  }
  // The end, after which there is no answer.
  Outcome AwaitEnd() {
    EXPECT_FALSE(call_.Read().has_value());
    return call_.AwaitEnd();
  }
  RawCall& call() { return call_; }

 private:
  RawCall call_;
};

v1::SearchStreamRequest TaggedToyStory(std::uint64_t tag, std::uint32_t k = 3) {
  v1::SearchStreamRequest request;
  request.set_tag(tag);
  request.mutable_search()->set_collection("films");
  request.mutable_search()->add_queries()->set_id("toy-story-1995");
  request.mutable_search()->mutable_options()->set_k(k);
  return request;
}

std::string ReadReason(const v1::SearchStreamResponse& response) {
  google::rpc::ErrorInfo info;
  for (const auto& detail : response.error().details()) detail.UnpackTo(&info);
  return info.reason();
}

void ExpectFailed(const v1::SearchStreamResponse& response, std::uint64_t tag,
                  absl::StatusCode code, const std::string& reason) {
  EXPECT_EQ(response.tag(), tag);
  EXPECT_EQ(response.error().code(), static_cast<int>(code)) << response.error().message();
  EXPECT_EQ(ReadReason(response), reason) << response.error().message();
  EXPECT_EQ(response.answer_case(), v1::SearchStreamResponse::ANSWER_NOT_SET);
}

// Waits until `count` calls are in flight. Calls that were answered may take a moment to end.
void AwaitInFlight(FilmsServer& server, const testing::Matcher<double>& count) {
  EXPECT_TRUE(AwaitMetric(*server.app().metrics_port(), kInFlight, count));
}

// The metric that counts the messages of streams that ended with this code.
std::string MessagesMetric(const std::string& code) {
  return "rpc_server_call_duration_seconds_count{rpc_method=\"simile.v1.SearchService/"
         "SearchStream\","
         "rpc_response_status_code=\"" +
         code + "\"}";
}

double CountMessages(FilmsServer& server, const std::string& code) {
  return MetricValue(ScrapeMetrics(*server.app().metrics_port()), MessagesMetric(code));
}

// Waits until at least `count` messages have been answered.
void AwaitAnswered(FilmsServer& server, double count) {
  EXPECT_TRUE(AwaitMetric(*server.app().metrics_port(), MessagesMetric("OK"), testing::Ge(count)));
}

class SearchStreamTest : public testing::Test {
 protected:
  HeldClock clock_;
  FilmsServer server_{[](app::Config& config) { config.limits.drain_timeout = kDrainTimeout; },
                      &clock_};
};

TEST_F(SearchStreamTest, AnswersAsCallsOfTheirOwnWould) {
  const Client client = server_.NewClient();
  v1::SearchResponse searched;
  ASSERT_TRUE(client.Search(TaggedToyStory(0, 5).search(), searched).ok());
  v1::RecommendRequest asked;
  asked.set_collection("films");
  asked.add_user_ids("user_00042");
  v1::RecommendResponse recommended;
  ASSERT_TRUE(client.Recommend(asked, recommended).ok());

  Stream stream(server_, {{"x-request-id", "s"}});
  ASSERT_TRUE(stream.Send(TaggedToyStory(7, 5)));
  v1::SearchStreamRequest second;
  second.set_tag(9);
  *second.mutable_recommend() = asked;
  ASSERT_TRUE(stream.Send(second));
  stream.call().HalfClose();
  v1::SearchStreamResponse first = stream.Read();
  EXPECT_EQ(first.tag(), 7U);
  EXPECT_FALSE(first.has_error());
  EXPECT_EQ(first.search().receipt().request_id(), "s/1");
  EXPECT_TRUE(MessageDifferencer::Equals(first.search().results(0), searched.results(0)));
  const v1::SearchStreamResponse other = stream.Read();
  EXPECT_EQ(other.tag(), 9U);
  EXPECT_EQ(other.recommend().receipt().request_id(), "s/2");
  EXPECT_TRUE(MessageDifferencer::Equals(other.recommend().results(0), recommended.results(0)));
  const Outcome end = stream.AwaitEnd();
  EXPECT_TRUE(end.ok()) << testing::PrintToString(end);
  EXPECT_EQ(end.trailers.at("x-request-id"), "s");
  EXPECT_EQ(CountMessages(server_, "OK"), 2);
  AwaitInFlight(server_, 0);
}

TEST_F(SearchStreamTest, AnswersInTheOrderOfTheRequests) {
  constexpr std::uint64_t kRequests = 300;
  Stream stream(server_);
  // Costly and cheap requests by turns, and some that fail at once.
  for (std::uint64_t tag = 0; tag < kRequests; ++tag) {
    v1::SearchStreamRequest request = TaggedToyStory(tag, tag % 3 == 0 ? 500 : 1);
    if (tag % 5 == 0) request.mutable_search()->set_collection("film");
    ASSERT_TRUE(stream.Send(request));
  }
  stream.call().HalfClose();
  for (std::uint64_t tag = 0; tag < kRequests; ++tag) {
    const v1::SearchStreamResponse response = stream.Read();
    ASSERT_EQ(response.tag(), tag);
    ASSERT_EQ(response.has_error(), tag % 5 == 0);
  }
  EXPECT_TRUE(stream.AwaitEnd().ok());
}

TEST_F(SearchStreamTest, AnswersEachOnceInTheOrderOfCompletion) {
  constexpr std::uint64_t kRequests = 300;
  Stream stream(server_);
  for (std::uint64_t tag = 0; tag < kRequests; ++tag) {
    v1::SearchStreamRequest request = TaggedToyStory(tag, tag % 3 == 0 ? 500 : 1);
    if (tag == 0) request.set_answer_order(v1::ANSWER_ORDER_AS_COMPLETED);
    ASSERT_TRUE(stream.Send(request));
  }
  stream.call().HalfClose();
  std::set<std::uint64_t> tags;
  for (std::uint64_t count = 0; count < kRequests; ++count) tags.insert(stream.Read().tag());
  EXPECT_EQ(tags.size(), kRequests);
  EXPECT_EQ(*tags.rbegin(), kRequests - 1);
  EXPECT_TRUE(stream.AwaitEnd().ok());
}

TEST_F(SearchStreamTest, GoesOnAfterRequestsThatFail) {
  Stream stream(server_);
  v1::SearchStreamRequest request = TaggedToyStory(1);
  request.mutable_search()->set_collection("film");
  stream.Send(request);
  ExpectFailed(stream.Read(), 1, absl::StatusCode::kNotFound, "COLLECTION_NOT_FOUND");
  request.Clear();
  request.set_tag(2);
  stream.Send(request);
  ExpectFailed(stream.Read(), 2, absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
  request = TaggedToyStory(3);
  request.mutable_timeout()->set_seconds(-1);
  stream.Send(request);
  ExpectFailed(stream.Read(), 3, absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
  request = TaggedToyStory(4);
  request.mutable_timeout()->set_nanos(1);
  stream.Send(request);
  ExpectFailed(stream.Read(), 4, absl::StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED");
  request = TaggedToyStory(5);
  request.set_answer_order(v1::ANSWER_ORDER_AS_COMPLETED);
  stream.Send(request);
  const v1::SearchStreamResponse reordered = stream.Read();
  ExpectFailed(reordered, 5, absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
  EXPECT_THAT(reordered.error().message(), StartsWith("answer_order: ANSWER_ORDER_AS_COMPLETED"));
  request = TaggedToyStory(6);
  request.mutable_search()->mutable_options()->set_reply_bytes_max(200);
  stream.Send(request);
  ExpectFailed(stream.Read(), 6, absl::StatusCode::kInvalidArgument, "REPLY_TOO_LARGE");
  stream.Send(TaggedToyStory(7));
  EXPECT_EQ(stream.Read().search().results(0).hits_size(), 3);
  stream.call().HalfClose();
  EXPECT_TRUE(stream.AwaitEnd().ok());
  EXPECT_EQ(CountMessages(server_, "OK"), 1);
  EXPECT_EQ(CountMessages(server_, "INVALID_ARGUMENT"), 4);
  EXPECT_EQ(CountMessages(server_, "NOT_FOUND"), 1);
  EXPECT_EQ(CountMessages(server_, "DEADLINE_EXCEEDED"), 1);
}

TEST_F(SearchStreamTest, LeavesNotesOutOfAnAnswerThatWouldBeTooLarge) {
  Stream stream(server_);
  v1::SearchStreamRequest request = TaggedToyStory(1'000'000'000'000);
  v1::SearchOptions& options = *request.mutable_search()->mutable_options();
  options.set_receipt_detail(v1::RECEIPT_DETAIL_BRIEF);
  for (const char* const id : {"zz", "yy", "xx"}) options.add_exclude_ids(id);
  stream.Send(request);
  const v1::SearchStreamResponse whole = stream.Read();
  ASSERT_EQ(whole.search().notes_size(), 1);
  v1::SearchStreamResponse bare = whole;
  bare.mutable_search()->clear_notes();
  constexpr std::size_t kTimeBytes =
      4;  // the time on the receipt takes at most this many bytes more or less
  const std::size_t first = bare.ByteSizeLong() + kTimeBytes;
  const std::size_t last = whole.ByteSizeLong() + kTimeBytes;
  for (std::size_t max = first; max <= last; ++max) {
    options.set_reply_bytes_max(static_cast<std::uint32_t>(max));
    stream.Send(request);
    const v1::SearchStreamResponse response = stream.Read();
    ASSERT_TRUE(response.has_search()) << max << ": " << response.ShortDebugString();
    EXPECT_LE(response.ByteSizeLong(), max);
    EXPECT_EQ(response.search().results_size(), 1);
    if (max == first) {
      EXPECT_EQ(response.search().notes_size(), 0);
    }
    if (max == last) {
      EXPECT_EQ(response.search().notes(0), whole.search().notes(0));
    }
  }
  options.set_reply_bytes_max(static_cast<std::uint32_t>(first - 2 * kTimeBytes - 1));
  stream.Send(request);
  EXPECT_EQ(ReadReason(stream.Read()), "REPLY_TOO_LARGE");
  stream.call().HalfClose();
  EXPECT_TRUE(stream.AwaitEnd().ok());
}

TEST_F(SearchStreamTest, EndsWithAMessageThatCannotBeParsedAfterTheAnswersBefore) {
  Stream stream(server_);
  stream.Send(TaggedToyStory(1, 500));
  stream.call().Send("\xff\xff\xff");
  stream.Send(TaggedToyStory(2));
  EXPECT_EQ(stream.Read().tag(), 1U);
  const Outcome end = stream.AwaitEnd();
  EXPECT_EQ(end.code, absl::StatusCode::kInvalidArgument) << testing::PrintToString(end);
  EXPECT_EQ(end.message, "could not be parsed as simile.v1.SearchStreamRequest");
  EXPECT_EQ(end.reason, "REQUEST_NOT_PARSED");
  EXPECT_EQ(CountMessages(server_, "INVALID_ARGUMENT"), 1);
}

TEST_F(SearchStreamTest, EndsWhenTheCallerHasNothingToSay) {
  Stream stream(server_);
  stream.call().HalfClose();
  EXPECT_TRUE(stream.AwaitEnd().ok());
}

TEST_F(SearchStreamTest, TakesOneRequestAloneWhateverItsAnswerMayHave) {
  Stream stream(server_);
  for (std::uint64_t tag = 1; tag <= 3; ++tag) {
    v1::SearchStreamRequest request = TaggedToyStory(tag);
    request.mutable_search()->mutable_options()->set_reply_bytes_max(64U << 20);
    ASSERT_TRUE(stream.Send(request));
  }
  for (std::uint64_t tag = 1; tag <= 3; ++tag) EXPECT_EQ(stream.Read().tag(), tag);
  stream.call().HalfClose();
  EXPECT_TRUE(stream.AwaitEnd().ok());
}

// A request for a hundred rows with their vectors. Its answer has 200 kB, and the buffers on the
// way hold few such answers.
v1::SearchStreamRequest Large(std::uint64_t tag) {
  v1::SearchStreamRequest request = TaggedToyStory(tag, 100);
  request.mutable_search()->mutable_options()->set_with_vectors(true);
  request.mutable_search()->mutable_options()->set_reply_bytes_max(1U << 20);
  return request;
}

TEST_F(SearchStreamTest, WorksOnABoundedNumberWhileNobodyReads) {
  constexpr int kRequests = 400;
  constexpr int kInFlightMax = 64;
  Stream stream(server_);
  for (int tag = 0; tag < kRequests; ++tag) ASSERT_TRUE(stream.Send(Large(tag)));
  stream.call().HalfClose();
  // The window is full of answers that nobody takes.
  AwaitInFlight(server_, testing::Ge(kInFlightMax));
  AwaitAnswered(server_, kInFlightMax);
  const Client other = server_.NewClient();
  Stream beside(server_);
  for (std::uint64_t turn = 0; turn < 100; ++turn) {
    v1::SearchResponse response;
    const Outcome outcome = other.Search(TaggedToyStory(0).search(), response);
    ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    beside.Send(TaggedToyStory(turn));
    ASSERT_EQ(beside.Read().tag(), turn);
  }
  beside.call().HalfClose();
  EXPECT_TRUE(beside.AwaitEnd().ok());
  AwaitInFlight(server_, kInFlightMax);
  // Most requests are not begun, because answers that were sent fill the way to the caller.
  EXPECT_LT(CountMessages(server_, "OK"), kRequests / 2 + 100);
  for (int tag = 0; tag < kRequests; ++tag) {
    const v1::SearchStreamResponse response = stream.Read();
    ASSERT_EQ(response.tag(), static_cast<std::uint64_t>(tag));
    ASSERT_EQ(response.search().results(0).hits_size(), 100);
  }
  EXPECT_TRUE(stream.AwaitEnd().ok());
  AwaitInFlight(server_, 0);
}

TEST_F(SearchStreamTest, BoundsTheBytesOfTheAnswersInFlight) {
  Stream stream(server_);
  for (int tag = 0; tag < 100; ++tag) {
    v1::SearchStreamRequest request = Large(tag);
    request.mutable_search()->mutable_options()->set_reply_bytes_max(16U << 20);
    ASSERT_TRUE(stream.Send(request));
  }
  // Four times 16 MiB are the 64 MiB that answers may have.
  AwaitInFlight(server_, testing::Ge(4));
  AwaitAnswered(server_, 4);
  const Client other = server_.NewClient();
  for (int turn = 0; turn < 20; ++turn) {
    v1::SearchResponse response;
    ASSERT_TRUE(other.Search(TaggedToyStory(0).search(), response).ok());
    AwaitInFlight(server_, 4);
  }
  stream.call().HalfClose();
  for (int tag = 0; tag < 100; ++tag) stream.Read();
  EXPECT_TRUE(stream.AwaitEnd().ok());
}

// Messages that workers parse, which then wait until the answers before theirs are read.
TEST_F(SearchStreamTest, AnswersLargeMessagesThatWaitForTheirTurn) {
  constexpr std::uint64_t kRequests = 12;
  Stream stream(server_);
  for (std::uint64_t tag = 0; tag < kRequests; ++tag) {
    v1::SearchStreamRequest request = Large(tag);
    request.mutable_search()->mutable_options()->set_reply_bytes_max(64U << 20);  // one at a time
    for (int i = 0; i < 9'000; ++i) {
      request.mutable_search()->mutable_options()->add_exclude_ids("toy-story-2-1999");
    }
    ASSERT_TRUE(stream.Send(request));
  }
  stream.call().HalfClose();
  for (std::uint64_t tag = 0; tag < kRequests; ++tag) {
    const v1::SearchStreamResponse response = stream.Read();
    ASSERT_EQ(response.tag(), tag);
    ASSERT_EQ(response.search().results_size(), 1) << response.error().message();
    ASSERT_EQ(response.search().results(0).hits_size(), 100);
  }
  EXPECT_TRUE(stream.AwaitEnd().ok());
  AwaitInFlight(server_, 0);
}

TEST_F(SearchStreamTest, ForgetsACallerThatLeaves) {
  for (int turn = 0; turn < 20; ++turn) {
    Stream stream(server_);
    for (int tag = 0; tag < 100; ++tag) stream.Send(Large(tag));
    stream.call().Cancel();
  }
  AwaitInFlight(server_, 0);
  v1::SearchResponse response;
  EXPECT_TRUE(server_.NewClient().Search(TaggedToyStory(0).search(), response).ok());
}

TEST_F(SearchStreamTest, EndsWhenTheServerStopsWhileNothingIsAsked) {
  Stream stream(server_);
  stream.Send(TaggedToyStory(1));
  EXPECT_EQ(stream.Read().tag(), 1U);
  EXPECT_TRUE(server_.app().Drain());
  const Outcome end = stream.AwaitEnd();
  EXPECT_EQ(end.code, absl::StatusCode::kUnavailable) << testing::PrintToString(end);
  EXPECT_EQ(end.reason, "STOPPING");
}

TEST_F(SearchStreamTest, SendsTheAnswersOfRequestsTakenBeforeTheServerStops) {
  Stream stream(server_);
  for (int tag = 0; tag < 100; ++tag) stream.Send(Large(tag));
  AwaitInFlight(server_, testing::Ge(64));
  auto drained = std::async(std::launch::async, [this] { return server_.app().Drain(); });
  std::uint64_t answers = 0;
  while (const auto bytes = stream.call().Read()) {
    v1::SearchStreamResponse response;
    ASSERT_TRUE(response.ParseFromString(*bytes));
    ASSERT_EQ(response.tag(), answers);
    ++answers;
  }
  const Outcome end = stream.call().AwaitEnd();
  EXPECT_EQ(end.code, absl::StatusCode::kUnavailable) << testing::PrintToString(end);
  EXPECT_GE(answers, 64U);
  EXPECT_EQ(CountMessages(server_, "OK"), static_cast<double>(answers));
  EXPECT_TRUE(drained.get());
}

TEST_F(SearchStreamTest, AnswersACallerThatIsStillSendingWhenTheServerStops) {
  constexpr int kRequests = 10;
  Stream stream(server_);
  for (int tag = 0; tag < kRequests - 1; ++tag) stream.Send(Large(tag));
  EXPECT_EQ(stream.Read().tag(), 0U);
  clock_.Hold();
  auto drained = std::async(std::launch::async, [this] { return server_.app().Drain(); });
  AwaitRefusal(server_);
  EXPECT_TRUE(stream.Send(Large(kRequests - 1)));
  stream.call().HalfClose();
  for (std::uint64_t tag = 1; tag < kRequests; ++tag) EXPECT_EQ(stream.Read().tag(), tag);
  const Outcome end = stream.AwaitEnd();
  EXPECT_TRUE(end.ok()) << testing::PrintToString(end);
  EXPECT_TRUE(drained.get());
}

}  // namespace
}  // namespace simile::integration

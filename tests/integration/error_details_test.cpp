#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "integration/films_server.h"
#include "integration/raw_call.h"
#include "integration/server_process.h"

namespace simile::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A Search that ends with an error.
class FailedSearch {
 public:
  FailedSearch(const std::string& address, const v1::SearchRequest& request,
               const std::map<std::string, std::string>& metadata = {})
      : call_(address, kSearchMethod, metadata) {
    call_.Send(request.SerializeAsString());
    call_.HalfClose();
    EXPECT_FALSE(call_.Read().has_value());
    outcome_ = call_.AwaitEnd();
    // Stock clients (grpc_status) refuse details that differ from the status.
    EXPECT_EQ(call_.details().code(), static_cast<int>(outcome_.code));
    EXPECT_EQ(call_.details().message(), outcome_.message);
  }

  const Outcome& outcome() const { return outcome_; }
  template <class Detail>
  Detail Find() const {
    Detail detail;
    for (const auto& any : call_.details().details()) any.UnpackTo(&detail);
    return detail;
  }

 private:
  RawCall call_;
  Outcome outcome_;
};

class ErrorDetailsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<FilmsServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  inline static std::unique_ptr<FilmsServer> server_;
};

TEST_F(ErrorDetailsTest, NameTheReasonAndTheRequest) {
  v1::SearchRequest request = ToyStory();
  request.set_collection("film");
  const FailedSearch failed(server_->app().address(), request, {{"x-request-id", "4f1c"}});
  EXPECT_EQ(failed.outcome().code, absl::StatusCode::kNotFound);
  const auto info = failed.Find<google::rpc::ErrorInfo>();
  EXPECT_EQ(info.reason(), "COLLECTION_NOT_FOUND");
  EXPECT_EQ(info.domain(), "simile");
  EXPECT_EQ(info.metadata().at("request_id"), "4f1c");
  EXPECT_EQ(failed.outcome().trailers.at("x-request-id"), "4f1c");
}

TEST_F(ErrorDetailsTest, NameTheFieldThatIsWrong) {
  v1::SearchRequest request = ToyStory();
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_queries(1)->set_k(0);
  const FailedSearch failed(server_->app().address(), request);
  EXPECT_EQ(failed.outcome().reason, "INVALID_FIELD");
  EXPECT_EQ(failed.outcome().field, "queries[1].k");
  const auto bad = failed.Find<google::rpc::BadRequest>();
  EXPECT_EQ(bad.field_violations(0).description(), failed.outcome().message);
}

TEST_F(ErrorDetailsTest, FitTheMetadataOfStockClients) {
  for (const std::string& letter : {std::string("x"), std::string("\xC3\xA9")}) {
    std::string name;
    for (int i = 0; i < 20'000; ++i) name += letter;
    v1::SearchRequest request = ToyStory();
    request.mutable_options()->mutable_payload()->add_fields(name);
    const FailedSearch failed(server_->app().address(), request,
                              {{"x-request-id", std::string(128, 'r')}});
    EXPECT_EQ(failed.outcome().code, absl::StatusCode::kInvalidArgument)
        << testing::PrintToString(failed.outcome());
    EXPECT_FALSE(failed.outcome().reason.empty());
    const FailedSearch replaced(server_->app().address(), request,
                                {{"x-request-id", std::string(129, 'r')}});
    EXPECT_EQ(replaced.outcome().reason, failed.outcome().reason);
  }
}

TEST_F(ErrorDetailsTest, SayHowManyBytesAnAnswerNeeds) {
  v1::SearchRequest request = ToyStory();
  RawCall call(server_->app().address(), kSearchMethod);
  call.Send(request.SerializeAsString());
  call.HalfClose();
  const auto answer = call.Read();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(call.AwaitEnd().ok());
  // Nearly what that took: it is built, measured and refused.
  request.mutable_options()->set_reply_bytes_max(static_cast<std::uint32_t>(answer->size() - 300));
  const FailedSearch failed(server_->app().address(), request);
  EXPECT_EQ(failed.outcome().code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(failed.outcome().reason, "REPLY_TOO_LARGE");
  EXPECT_THAT(failed.outcome().message, HasSubstr("the answer needs "));
}

// Several callers send more at a time than a queue of one query takes, until one is refused.
TEST(OverloadDetailsTest, SayWhenToRetry) {
  constexpr int kCallers = 8;
  FilmsServer server([](app::Config& config) { config.limits.queue_queries_max = 1; });
  v1::SearchRequest request = ToyStory();
  *request.add_queries() = request.queries(0);
  std::atomic<bool> refused = false;
  const auto call_until_refused = [&] {
    while (!refused) {
      RawCall call(server.app().address(), kSearchMethod, {});
      call.Send(request.SerializeAsString());
      call.HalfClose();
      if (call.Read().has_value()) {
        EXPECT_TRUE(call.AwaitEnd().ok());
        continue;
      }
      const Outcome outcome = call.AwaitEnd();
      refused = true;
      EXPECT_EQ(outcome.code, absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(outcome.reason, "QUEUE_FULL");
      google::rpc::RetryInfo retry;
      for (const auto& any : call.details().details()) any.UnpackTo(&retry);
      EXPECT_EQ(retry.retry_delay().seconds(), 0);
      const std::string ms = std::to_string(retry.retry_delay().nanos() / 1'000'000);
      EXPECT_EQ(outcome.trailers.at("retry-after-ms"), ms);
      EXPECT_EQ(outcome.trailers.at("grpc-retry-pushback-ms"), ms);
      EXPECT_GE(retry.retry_delay().nanos(), 10'000'000);
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back(call_until_refused);
  for (std::thread& caller : callers) caller.join();
}

// Log lines of the program.
TEST(TraceTest, PutsTheCallersTraceIntoTheLog) {
  ServerProcess server(
      {"--collection", std::string("films=") + kFilmsFolder, "--port", "0", "--metrics-port", "0"});
  const std::string address = server.AwaitListening();
  ASSERT_FALSE(address.empty()) << server.output();
  v1::SearchRequest request = ToyStory();
  request.set_collection("film");
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  FailedSearch(
      address, request,
      {{"x-request-id", "traced"}, {"traceparent", "00-" + trace + "-00f067aa0ba902b7-01"}});
  FailedSearch(
      address, request,
      {{"x-request-id", "untraced"}, {"traceparent", "00-" + trace + "-0000000000000000-01"}});
  RawCall malformed(address, kSearchMethod, {{"x-request-id", "malformed"}});
  malformed.Send("\xff\xff\xff");
  malformed.HalfClose();
  EXPECT_FALSE(malformed.AwaitEnd().ok());
  ASSERT_TRUE(server.AwaitOutput("request_id=malformed")) << server.output();
  ASSERT_TRUE(server.AwaitOutput("could not be parsed as simile.v1.SearchRequest"));
  const std::string& log = server.output();
  const auto line = [&log](const std::string& mark) {
    const std::size_t place = log.find(mark);
    return log.substr(place, log.find('\n', place) - place);
  };
  EXPECT_THAT(line("request_id=traced"),
              HasSubstr("trace_id=" + trace + " parent_span_id=00f067aa0ba902b7"));
  EXPECT_THAT(line("request_id=traced"), HasSubstr("reason=COLLECTION_NOT_FOUND"));
  EXPECT_THAT(line("request_id=untraced"), Not(HasSubstr("trace_id")));
}

}  // namespace
}  // namespace simile::integration

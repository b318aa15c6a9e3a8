#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "integration/films_server.h"
#include "integration/raw_call.h"

namespace simile::integration {
namespace {

struct Method {
  std::string path;
  std::string request;  // the type of its message
};

// Every method of the server but health and reflection.
std::vector<Method> Methods() {
  return {
      {kSearchMethod, "SearchRequest"},
      {"/simile.v1.SearchService/Recommend", "RecommendRequest"},
      {kSearchStreamMethod, "SearchStreamRequest"},
      {"/simile.v1.LookupService/Fetch", "FetchRequest"},
      {"/simile.v1.LookupService/Lookup", "LookupRequest"},
      {"/simile.v1.CollectionService/ListCollections", "ListCollectionsRequest"},
      {"/simile.v1.CollectionService/GetCollection", "GetCollectionRequest"},
      {"/simile.v1.CollectionService/DescribeFields", "DescribeFieldsRequest"},
      {"/simile.v1.CollectionService/LoadCollection", "LoadCollectionRequest"},
      {"/simile.v1.CollectionService/ReloadCollection", "ReloadCollectionRequest"},
      {"/simile.v1.CollectionService/RollbackCollection", "RollbackCollectionRequest"},
      {"/simile.v1.CollectionService/UnloadCollection", "UnloadCollectionRequest"},
      {"/simile.v1.AdminService/GetServerInfo", "GetServerInfoRequest"},
      {"/simile.v1.AdminService/GetStats", "GetStatsRequest"},
      {"/simile.v1.AdminService/Diagnose", "DiagnoseRequest"},
  };
}

// A collection's name that is not UTF-8, and one that ends early: field 1 of most requests.
const std::string kInvalidUtf8("\x0a\x02\xc3\x28", 4);
const std::string kTruncated(
    "\x0a\x09"
    "films",
    7);
const std::string kNoTag("\xff\xff\xff", 3);

class MalformedRequestsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<FilmsServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  static Outcome Make(const std::string& method, const std::string& bytes) {
    RawCall call(server_->app().address(), method);
    call.Send(bytes);
    call.HalfClose();
    while (call.Read()) {
    }
    return call.AwaitEnd();
  }
  // Calls of the method that ended with this code.
  static double Count(const std::string& path, const std::string& code) {
    return MetricValue(ScrapeMetrics(*server_->app().metrics_port()),
                       "rpc_server_call_duration_seconds_count{rpc_method=\"" + path.substr(1) +
                           "\",rpc_response_status_code=\"" + code + "\"}");
  }
  static void ExpectNotParsed(const Outcome& outcome, const std::string& message) {
    EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument) << testing::PrintToString(outcome);
    EXPECT_EQ(outcome.message, "could not be parsed as simile.v1." + message);
    EXPECT_EQ(outcome.reason, "REQUEST_NOT_PARSED");
    EXPECT_TRUE(outcome.trailers.contains("x-request-id"));
  }

  inline static std::unique_ptr<FilmsServer> server_;
};

TEST_F(MalformedRequestsTest, NamesTheMessageThatEveryMethodExpects) {
  for (const Method& method : Methods()) {
    SCOPED_TRACE(method.path);
    ExpectNotParsed(Make(method.path, kNoTag), method.request);
    ExpectNotParsed(Make(method.path, kTruncated), method.request);
    EXPECT_EQ(Count(method.path, "INVALID_ARGUMENT"), 2);
  }
}

TEST_F(MalformedRequestsTest, RefusesTextThatIsNotUtf8) {
  for (const Method& method : Methods()) {
    if (method.request == "SearchStreamRequest" || method.request == "ListCollectionsRequest" ||
        method.request == "GetServerInfoRequest" || method.request == "GetStatsRequest" ||
        method.request == "DiagnoseRequest") {
      continue;  // no text in field 1
    }
    SCOPED_TRACE(method.path);
    ExpectNotParsed(Make(method.path, kInvalidUtf8), method.request);
  }
}

TEST_F(MalformedRequestsTest, RefusesACallWithoutAMessage) {
  RawCall call(server_->app().address(), kSearchMethod);
  call.HalfClose();
  EXPECT_FALSE(call.Read().has_value());
  EXPECT_FALSE(call.AwaitEnd().ok());
}

TEST_F(MalformedRequestsTest, KnowsNoOtherMethods) {
  EXPECT_EQ(Make("/simile.v1.SearchService/Find", "").code, absl::StatusCode::kUnimplemented);
}

// Every bit of a request may be wrong: the answer is an ordinary one, and the server goes on.
TEST_F(MalformedRequestsTest, AnswersMutatedRequests) {
  v1::SearchStreamRequest request;
  v1::SearchRequest& search = *request.mutable_search();
  search.set_collection("films");
  search.add_queries()->set_id("toy-story-1995");
  search.add_queries()->mutable_vector()->mutable_values()->Resize(kFilmsDim, 0.5F);
  search.mutable_queries(1)->set_filter("year >= 1990");
  search.mutable_options()->set_k(3);
  const std::string whole = request.SerializeAsString();
  const std::string plain = search.SerializeAsString();
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool streamed = seed % 2 == 0;
    std::string bytes = streamed ? whole : plain;
    for (std::uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      // Mostly outside the vector.
      const std::size_t place = random() % (random() % 3 == 0 ? bytes.size() : 40);
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8));
    }
    const Outcome outcome = Make(streamed ? kSearchStreamMethod : kSearchMethod, bytes);
    EXPECT_TRUE(outcome.ok() || outcome.code == absl::StatusCode::kInvalidArgument ||
                outcome.code == absl::StatusCode::kNotFound ||
                outcome.code == absl::StatusCode::kFailedPrecondition)
        << testing::PrintToString(outcome);
  }
  EXPECT_TRUE(Make(kSearchMethod, plain).ok());
}

}  // namespace
}  // namespace simile::integration

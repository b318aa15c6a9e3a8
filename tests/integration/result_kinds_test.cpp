// What an answer says about itself: the meaning of its scores, and its receipt.

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/sample_folder.h"
#include "integration/films_client_test.h"

namespace simile::integration {
namespace {

using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

template <class Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

std::set<std::string> FieldsSet(const google::protobuf::Message& message) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  std::set<std::string> names;
  for (const auto* field : fields) names.insert(field->name());
  return names;
}

// Serves the films, and "dots": three rows whose metric is the dot product.
class ResultKindsTest : public FilmsClientTest {
 protected:
  ResultKindsTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() {
    dots_ = std::make_unique<ScratchFolder>();
    data::WriteSample(*dots_);
    dots_->Write("collection.json", "{\"metric\": \"dot\"}\n");
    server_ = std::make_unique<FilmsServer>([](app::Config& config) {
      config.collections.push_back({"dots", dots_->path()});
    });
  }
  static void TearDownTestSuite() {
    server_.reset();
    dots_.reset();
  }

  v1::SearchResult SearchFirst(const std::string& request) const {
    return Search(Parsed<v1::SearchRequest>(request)).results(0);
  }
  void ExpectKind(const std::string& request, v1::ScoreKind kind) const {
    EXPECT_EQ(v1::ScoreKind_Name(SearchFirst(request).score_kind()), v1::ScoreKind_Name(kind))
        << request;
  }

  inline static std::unique_ptr<ScratchFolder> dots_;
  inline static std::unique_ptr<FilmsServer> server_;
};

// Queries with targets of every kind, in a collection of two dimensions.
std::vector<std::string> TargetsOfDots() {
  return {"vector { values: [3, 4] }",
          "packed_vector { format: FORMAT_F16_LE data: '\\000\\074\\000\\100' }",
          "id: 'a'",
          "user_id: 'u'",
          "examples { strategy: STRATEGY_AVERAGE_VECTOR positive { id: 'a' } }",
          "blend { id: 'a' user_id: 'u' }"};
}

std::string Examples(const std::string& strategy) {
  return "examples { strategy: " + strategy +
         " positive { id: 'heat-1995' } negative { id: 'toy-story-1995' } }";
}

TEST_F(ResultKindsTest, ScoresOfACosineCollectionAreCosines) {
  for (const std::string& target :
       {std::string("id: 'heat-1995'"), std::string("user_id: 'user_00042'"),
        std::string("blend { id: 'heat-1995' user_id: 'user_00042' }"),
        Examples("STRATEGY_AVERAGE_VECTOR"),
        std::string("id: 'heat-1995' diversity { lambda: 0.5 }"),
        std::string("id: 'heat-1995' group_by { field: 'genres' }"),
        std::string("id: 'heat-1995' filter: 'year = 0'")}) {
    ExpectKind("collection: 'films' queries { " + target + " }", v1::SCORE_KIND_COSINE);
  }
}

TEST_F(ResultKindsTest, ScoresOfADotCollectionAreDotProducts) {
  for (const std::string& target : TargetsOfDots()) {
    ExpectKind("collection: 'dots' queries { " + target + " }", v1::SCORE_KIND_DOT);
  }
  const v1::SearchResult result =
      SearchFirst("collection: 'dots' queries { vector { values: [3, 4] } }");
  ASSERT_EQ(result.hits_size(), 3);
  EXPECT_EQ(result.hits(0).score(), 25) << "of 3, 4 with itself: not normalized";
}

TEST_F(ResultKindsTest, ScoresOfExamplesAreThoseOfTheirStrategy) {
  for (const std::string collection : {"films", "dots"}) {
    const bool films = collection == "films";
    const auto query = [&](const std::string& strategy) {
      return "collection: '" + collection + "' queries { " +
             (films ? Examples(strategy)
                    : "examples { strategy: " + strategy + " positive { id: 'a' } }") +
             " }";
    };
    ExpectKind(query("STRATEGY_BEST_SCORE"), v1::SCORE_KIND_BEST_SCORE);
    ExpectKind(query("STRATEGY_SUM_SCORES"), v1::SCORE_KIND_SUM_SCORES);
  }
}

TEST_F(ResultKindsTest, EveryResultOfACallHasItsOwnKind) {
  const v1::SearchResponse response = Search(
      Parsed<v1::SearchRequest>("collection: 'films' queries { id: 'heat-1995' } queries { " +
                                Examples("STRATEGY_SUM_SCORES") +
                                " } queries { user_id: 'nobody' } "
                                "options { cold_start { order: ORDER_NEWEST } }"));
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).score_kind(), v1::SCORE_KIND_COSINE);
  EXPECT_EQ(response.results(1).score_kind(), v1::SCORE_KIND_SUM_SCORES);
  EXPECT_EQ(response.results(2).score_kind(), v1::SCORE_KIND_NONE);
  EXPECT_FALSE(response.results(0).has_cold_start());
  EXPECT_TRUE(response.results(2).has_cold_start());
  EXPECT_GT(response.results(2).hits_size(), 0);
  for (const v1::Hit& hit : response.results(2).hits()) EXPECT_EQ(hit.score(), 0);
}

TEST_F(ResultKindsTest, RecommendSaysWhoseResultItIs) {
  const v1::RecommendResponse response = Recommend(Parsed<v1::RecommendRequest>(
      "collection: 'films' user_ids: ['user_00042', 'nobody', 'user_00007'] "
      "options { cold_start { order: ORDER_MOST_POPULAR } }"));
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).user_id(), "user_00042");
  EXPECT_EQ(response.results(0).score_kind(), v1::SCORE_KIND_COSINE);
  EXPECT_GT(response.results(0).seen_count(), 0U);
  EXPECT_EQ(response.results(1).user_id(), "nobody");
  EXPECT_EQ(response.results(1).score_kind(), v1::SCORE_KIND_NONE);
  EXPECT_EQ(response.results(1).seen_count(), 0U);
  EXPECT_EQ(response.results(2).user_id(), "user_00007");
  // Search has the queries themselves.
  EXPECT_EQ(SearchFirst("collection: 'films' queries { user_id: 'user_00042' }").user_id(), "");
}

TEST_F(ResultKindsTest, TheReceiptIsFullUnlessAskedOtherwise) {
  auto request = Parsed<v1::SearchRequest>("collection: 'films' queries { id: 'heat-1995' }");
  const auto always =
      IsSupersetOf({"backend", "device", "engines", "reason", "snapshot_id", "snapshot_version",
                    "exact", "request_id", "batch_size", "compute_us", "total_us", "rows_scanned"});
  EXPECT_THAT(FieldsSet(Search(request).receipt()), always);
  request.mutable_options()->set_receipt_detail(v1::RECEIPT_DETAIL_FULL);
  EXPECT_THAT(FieldsSet(Search(request).receipt()), always);
  EXPECT_THAT(FieldsSet(Recommend(Parsed<v1::RecommendRequest>(
                                      "collection: 'films' user_ids: 'user_00042'"))
                            .receipt()),
              always);
}

TEST_F(ResultKindsTest, ABriefReceiptHasWhatPricesAndIdentifiesTheAnswer) {
  const auto brief = UnorderedElementsAre("backend", "snapshot_id", "exact", "total_us");
  const v1::Receipt receipt =
      Search(Parsed<v1::SearchRequest>("collection: 'films' queries { id: 'heat-1995' } "
                                       "options { receipt_detail: RECEIPT_DETAIL_BRIEF }"))
          .receipt();
  EXPECT_THAT(FieldsSet(receipt), brief);
  EXPECT_EQ(receipt.backend(), v1::BACKEND_KIND_CPU);
  EXPECT_TRUE(receipt.exact());
  EXPECT_THAT(FieldsSet(Recommend(Parsed<v1::RecommendRequest>(
                                      "collection: 'films' user_ids: 'user_00042' "
                                      "options { receipt_detail: RECEIPT_DETAIL_BRIEF }"))
                            .receipt()),
              brief);
}

TEST_F(ResultKindsTest, ABriefReceiptKeepsTheRequestIdInTheTrailer) {
  auto request = Parsed<v1::SearchRequest>(
      "collection: 'films' queries { id: 'heat-1995' } "
      "options { receipt_detail: RECEIPT_DETAIL_BRIEF }");
  v1::SearchResponse response;
  const Outcome outcome = client_.Search(request, response, {{}, {{"x-request-id", "abc"}}});
  EXPECT_EQ(outcome.trailers.at("x-request-id"), "abc");
}

}  // namespace
}  // namespace simile::integration

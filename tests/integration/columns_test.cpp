// LAYOUT_COLUMNS over the wire has the hits of the other layout, for all kinds of calls.
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/access_server.h"
#include "integration/films_client_test.h"
#include "service/hits_of_columns.h"

namespace simile::integration {
namespace {

using service::CompareLayouts;
using ::testing::StartsWith;

template <class Request>
Request AsColumns(Request request) {
  request.mutable_options()->set_layout(v1::LAYOUT_COLUMNS);
  return request;
}

// Without what differs between two calls of the same: the receipt, and the request id in errors.
v1::SearchResponse OfAnyCall(v1::SearchResponse response) {
  response.clear_receipt();
  for (v1::SearchResult& result : *response.mutable_results()) {
    if (result.has_error()) result.mutable_error()->clear_details();
  }
  return response;
}

// What RecommendResponse has, which has the same fields.
v1::SearchResponse AsSearch(const v1::RecommendResponse& response) {
  v1::SearchResponse search;
  EXPECT_TRUE(search.ParseFromString(response.SerializeAsString()));
  return search;
}

class ColumnsTest : public FilmsClientTest {
 protected:
  ColumnsTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() {
    server_ = std::make_unique<FilmsServer>();
    const Client client = server_->NewClient();
    v1::SearchRequest request;
    request.set_collection("films");
    request.add_queries()->set_id("toy-story-1995");
    request.mutable_options()->set_k(300);
    request.mutable_options()->mutable_payload()->set_selection(
        v1::PayloadSelector::SELECTION_NONE);
    v1::SearchResponse response;
    ASSERT_TRUE(client.Search(request, response).ok());
    for (const v1::Hit& hit : response.results(0).hits()) ids_.push_back(hit.id());
  }
  static void TearDownTestSuite() { server_.reset(); }

  std::uint64_t Draw(std::uint64_t count) { return random_() % count; }
  bool OneIn(std::uint64_t count) { return Draw(count) == 0; }
  std::string DrawId() { return ids_[Draw(ids_.size())]; }
  std::string DrawUser() { return fmt::format("user_{:05}", Draw(500)); }

  v1::Query DrawQuery() {
    v1::Query query;
    switch (Draw(4)) {
      case 0:
        query.set_user_id(DrawUser());
        query.set_exclude_seen(OneIn(2));
        break;
      case 1: {
        std::vector<float> values(kFilmsDim);
        for (float& value : values) value = static_cast<float>(Draw(1'000)) - 500;
        v1::PackedVector& packed = *query.mutable_packed_vector();
        packed.set_format(v1::PackedVector::FORMAT_F32_LE);
        packed.set_data(std::string(reinterpret_cast<const char*>(values.data()),
                                    values.size() * sizeof(float)));
        break;
      }
      default:
        query.set_id(OneIn(30) ? "no such film" : DrawId());
    }
    if (OneIn(4)) query.set_k(static_cast<std::uint32_t>(1 + Draw(20)));
    if (OneIn(5)) query.set_offset(static_cast<std::uint32_t>(Draw(10)));
    if (OneIn(5)) query.set_filter(OneIn(2) ? "year >= 1990" : "genres:\"Comedy\" AND year < 1980");
    if (OneIn(6)) {
      query.mutable_group_by()->set_field(OneIn(2) ? "genres" : "year");
      query.mutable_group_by()->set_group_size(static_cast<std::uint32_t>(1 + Draw(3)));
    } else if (OneIn(6)) {
      query.mutable_diversity();
    }
    return query;
  }

  void DrawOptions(v1::SearchOptions& options) {
    options.set_partial(true);
    options.set_k(static_cast<std::uint32_t>(1 + Draw(5)));
    options.set_with_rows(OneIn(2));
    options.set_with_vectors(OneIn(8));
    v1::PayloadSelector& payload = *options.mutable_payload();
    switch (Draw(4)) {
      case 0:
        payload.set_selection(v1::PayloadSelector::SELECTION_NONE);
        break;
      case 1:
        for (const char* field : {"genres", "year", "title"}) {
          if (OneIn(2)) payload.add_fields(field);
        }
        break;
      default:
        break;
    }
  }

  v1::SearchRequest DrawSearch() {
    v1::SearchRequest request;
    request.set_collection("films");
    for (std::uint64_t i = 1 + Draw(4); i > 0; --i) *request.add_queries() = DrawQuery();
    DrawOptions(*request.mutable_options());
    return request;
  }

  static constexpr std::uint64_t kSeed = 44;
  inline static std::unique_ptr<FilmsServer> server_;
  inline static std::vector<std::string> ids_;
  std::mt19937_64 random_{kSeed};
};

TEST_F(ColumnsTest, HaveTheHitsOfTheOtherLayoutInRandomCalls) {
  std::cout << "seed " << kSeed << "\n";
  // Two calls for each: 1,250 requests of 2.5 queries take some seconds.
  for (int i = 0; i < 1'250; ++i) {
    const v1::SearchRequest request = DrawSearch();
    ASSERT_EQ(CompareLayouts(OfAnyCall(Search(AsColumns(request))), OfAnyCall(Search(request))), "")
        << request.ShortDebugString();
  }
}

TEST_F(ColumnsTest, AreOfRecommendToo) {
  for (int i = 0; i < 100; ++i) {
    v1::RecommendRequest request;
    request.set_collection("films");
    for (std::uint64_t user = 1 + Draw(3); user > 0; --user) request.add_user_ids(DrawUser());
    request.mutable_options()->set_exclude_seen(OneIn(2));
    DrawOptions(*request.mutable_options());
    ASSERT_EQ(CompareLayouts(OfAnyCall(AsSearch(Recommend(AsColumns(request)))),
                             OfAnyCall(AsSearch(Recommend(request)))),
              "");
  }
}

TEST_F(ColumnsTest, AreInTheAnswersOfAStream) {
  std::vector<v1::SearchStreamRequest> requests(8);
  for (std::size_t i = 0; i < requests.size(); i += 2) {
    const v1::SearchRequest search = DrawSearch();
    *requests[i].mutable_search() = search;
    *requests[i + 1].mutable_search() = AsColumns(search);
  }
  std::vector<v1::SearchStreamResponse> responses;
  ASSERT_TRUE(client_.SearchStream(requests, responses).ok());
  ASSERT_EQ(responses.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); i += 2) {
    EXPECT_EQ(
        CompareLayouts(OfAnyCall(responses[i + 1].search()), OfAnyCall(responses[i].search())), "");
  }
}

TEST_F(ColumnsTest, MayChangeFromPageToPage) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_options()->set_paged(true);
  request.mutable_options()->set_page_token(Search(request).next_page_token());
  const v1::SearchResponse second = Search(AsColumns(request));
  EXPECT_EQ(second.columns().first_ranks(), std::string("\x0b\0\0\0", 4));
  EXPECT_EQ(CompareLayouts(OfAnyCall(second), OfAnyCall(Search(request))), "");
}

TEST_F(ColumnsTest, AreRefusedWhenTheAnswerWouldBeTooLarge) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_options()->set_k(1'000);
  request = AsColumns(request);
  const std::uint64_t bytes = Search(request).ByteSizeLong();
  request.mutable_options()->set_reply_bytes_max(static_cast<std::uint32_t>(bytes - 300));
  v1::SearchResponse response;
  const Outcome outcome = client_.Search(request, response);
  EXPECT_EQ(outcome.reason, "REPLY_TOO_LARGE");
  EXPECT_THAT(outcome.message, StartsWith("the answer needs "));
}

TEST(BoundColumnsTest, HaveTextIdsAndNoRowThatTheCallerCannotSee) {
  const AccessServer server({AccessServer::Entry(
      "bound", "read", R"("required_filter": "year >= 1990", "users": "all")")});
  const Client client = server.NewClient("bound");
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_options()->set_k(200);
  v1::SearchResponse hits;
  ASSERT_TRUE(client.Search(request, hits).ok());
  v1::SearchResponse columns;
  request.mutable_options()->set_with_rows(true);
  ASSERT_TRUE(client.Search(AsColumns(request), columns).ok());
  EXPECT_TRUE(columns.columns().ids().has_texts());
  EXPECT_TRUE(columns.columns().rows().empty());
  columns.clear_notes();  // of with_rows
  EXPECT_EQ(CompareLayouts(OfAnyCall(columns), OfAnyCall(hits)), "");
}

TEST_F(ColumnsTest, OfAnUnknownLayoutAreRefused) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_options()->set_layout(static_cast<v1::Layout>(7));
  v1::SearchResponse response;
  const Outcome outcome = client_.Search(request, response);
  EXPECT_EQ(outcome.field, "options.layout");
  EXPECT_EQ(outcome.message, "options.layout: 7 is unknown; set LAYOUT_HITS or LAYOUT_COLUMNS");
}

}  // namespace
}  // namespace simile::integration

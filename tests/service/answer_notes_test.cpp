#include "service/replies/answer_notes.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/message_text.h"
#include "data/payload/payload_table.h"
#include "service/search_pipeline_fixture.h"

namespace simile::service {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

using AnswerNotesTest = SearchPipelineFixture;

TEST_F(AnswerNotesTest, AreLeftOutOfAReplyThatWouldBeTooLarge) {
  v1::SearchRequest request = Query("7");
  request.mutable_options()->set_k(15);
  request.mutable_options()->add_exclude_ids("zz");
  request.add_queries()->set_id("8");
  request.mutable_queries(1)->set_k(50);
  const auto notes_of = [](const v1::SearchResponse& response) {
    std::vector<std::string> notes(response.notes().begin(), response.notes().end());
    for (const auto& result : response.results()) {
      notes.insert(notes.end(), result.notes().begin(), result.notes().end());
    }
    return notes;
  };
  FakeCall whole_call(clock_);
  HandleSearch(pipeline_, whole_call, request);
  ASSERT_TRUE(whole_call.AwaitEnd().ok());
  const v1::SearchResponse& whole = whole_call.response();
  ASSERT_EQ(notes_of(whole).size(), 2U);
  v1::SearchResponse noted = whole;
  noted.mutable_results(1)->clear_notes();
  noted.clear_notes();
  v1::SearchResponse bare = noted;
  noted.add_notes("2 notes are left out: the reply may not be larger");
  ASSERT_LT(bare.ByteSizeLong(), noted.ByteSizeLong());
  for (std::size_t max = bare.ByteSizeLong(); max <= whole.ByteSizeLong(); ++max) {
    request.mutable_options()->set_reply_bytes_max(static_cast<std::uint32_t>(max));
    FakeCall call(clock_);
    HandleSearch(pipeline_, call, request);
    ASSERT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
    const v1::SearchResponse& expected =
        max < noted.ByteSizeLong() ? bare : (max < whole.ByteSizeLong() ? noted : whole);
    EXPECT_EQ(call.response().SerializeAsString(), expected.SerializeAsString()) << max;
  }
  request.mutable_options()->set_reply_bytes_max(
      static_cast<std::uint32_t>(bare.ByteSizeLong() - 1));
  FakeCall call(clock_);
  HandleSearch(pipeline_, call, request);
  EXPECT_THAT(std::string(call.AwaitEnd().message()),
              StartsWith(fmt::format("the answer needs {} bytes and may have {}; lower k, ",
                                     base::Grouped(whole.ByteSizeLong()),
                                     base::Grouped(bare.ByteSizeLong() - 1))));
}

// Twenty plays: of the years 0 to 19, of two kinds each but for the last one, which has none.
class ShortAnswersTest : public SearchPipelineFixture {
 protected:
  ShortAnswersTest() {
    constexpr std::size_t kRows = 20;
    auto dataset = engine::RandomDataset(kRows, kDim, 97);
    data::PayloadTableBuilder payload(kRows, limits_);
    for (std::size_t row = 0; row < kRows; ++row) {
      PayloadObject object{{"year", PayloadValue{static_cast<std::int64_t>(row)}}};
      if (row + 1 < kRows) {
        PayloadList kinds{{std::string(row < 10 ? "old" : "new")}, {std::string("play")}};
        object.emplace_back("kinds", PayloadValue{std::move(kinds)});
      }
      EXPECT_TRUE(payload.Add(object).ok());
    }
    dataset->payload = std::move(payload).Build();
    EXPECT_TRUE(store_.BeginCreate("plays").ok());
    store_.Publish("plays", engine::MakeSnapshot(std::move(dataset)));
  }

  // A search for plays like play 7.
  static v1::SearchRequest Like7(std::uint32_t k) {
    v1::SearchRequest request;
    request.set_collection("plays");
    request.add_queries()->set_id("7");
    request.mutable_options()->set_k(k);
    return request;
  }

  std::vector<std::string> SearchForNotes(const v1::SearchRequest& request) {
    FakeCall call(clock_);
    HandleSearch(pipeline_, call, request);
    EXPECT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
    if (call.response().results_size() == 0) return {};
    const auto& notes = call.response().results(0).notes();
    return {notes.begin(), notes.end()};
  }
};

TEST_F(ShortAnswersTest, NameWhatTookTheRows) {
  struct Case {
    std::string filter;
    std::vector<std::string> exclude_ids;
    float threshold;  // -1 for none
    std::uint32_t offset;
    std::string note;
  };
  const std::vector<Case> cases = {
      {"", {}, -1, 0, "19 hits, not 20: no other row can be returned: 1 row is excluded"},
      {"year >= 0", {}, -1, 0, "19 hits, not 20: no other row can be returned: 1 row is excluded"},
      {"", {"3", "4"}, -1, 0, "17 hits, not 20: no other row can be returned: 3 rows are excluded"},
      {"year < 5", {}, -1, 0, "5 hits, not 20: no other row passes the filter"},
      {"year < 5",
       {"3", "4", "19"},
       -1,
       0,
       "3 hits, not 20: no other row passes the filter, 2 excluded rows aside"},
      {"year = 7", {}, -1, 0, "0 hits, not 20: no row passes the filter, 1 excluded row aside"},
      {"year = 70", {"3"}, -1, 0, "0 hits, not 20: no row passes the filter"},
      {"year < 5", {}, -0.9999F, 0, "5 hits, not 20: no other row passes the filter"},
      {"year < 5",
       {},
       0.9999F,
       0,
       "0 hits, not 20: no row passes the filter and scores 0.9999 or more"},
      {"year >= 0",
       {},
       0.9999F,
       0,
       "0 hits, not 20: no row scores 0.9999 or more, 1 excluded row "
       "aside"},
      {"year < 5",
       {"3"},
       3,
       0,
       "0 hits, not 20: no row scores 3 or more; such scores are at most "
       "1"},
      {"", {}, -1, 19, "0 hits, not 20: offset 19 skips every row that can be returned"},
      {"year < 5", {}, -1, 5, "0 hits, not 20: offset 5 skips every row that passes the filter"},
      {"year = 7", {}, -1, 5, "0 hits, not 20: no row passes the filter, 1 excluded row aside"},
  };
  for (const Case& each : cases) {
    v1::SearchRequest request = Like7(20);
    v1::Query& query = *request.mutable_queries(0);
    query.set_filter(each.filter);
    query.set_offset(each.offset);
    query.mutable_exclude_ids()->Assign(each.exclude_ids.begin(), each.exclude_ids.end());
    if (each.threshold != -1) query.set_score_threshold(each.threshold);
    EXPECT_THAT(SearchForNotes(request), ElementsAre(each.note)) << request.ShortDebugString();
  }
  EXPECT_THAT(SearchForNotes(Like7(19)), ElementsAre());
}

TEST_F(ShortAnswersTest, CountTheSharedExclusionsThatPassTheFilter) {
  v1::SearchRequest request = Like7(20);
  for (const char* const id : {"3", "4", "7", "19"}) request.mutable_options()->add_exclude_ids(id);
  request.mutable_options()->set_filter("year < 5");
  EXPECT_THAT(SearchForNotes(request),
              ElementsAre("3 hits, not 20: no other row passes the filter, 2 "
                          "excluded rows aside"));
  request.mutable_options()->set_required_filter("year < 10");
  EXPECT_THAT(SearchForNotes(request),
              ElementsAre("3 hits, not 20: no other row passes the filter, 2 "
                          "excluded rows aside"));
  request.mutable_options()->set_filter("year < 10");
  EXPECT_THAT(SearchForNotes(request),
              ElementsAre("7 hits, not 20: no other row can be returned: 3 rows are excluded"));
}

TEST_F(ShortAnswersTest, SayOfGroupsWhatNoOtherOneHas) {
  v1::SearchRequest request = Like7(5);
  v1::Query& query = *request.mutable_queries(0);
  query.mutable_group_by()->set_field("kinds");
  const auto note = [&] { return SearchForNotes(request).back(); };
  EXPECT_EQ(note(),
            "3 groups, not 5: no other group has a row that can be returned, 1 excluded row aside");
  query.set_filter("year >= 0");
  EXPECT_EQ(note(),
            "3 groups, not 5: no other group has a row that can be returned, 1 excluded row aside");
  query.set_filter("year < 5");
  EXPECT_EQ(note(), "2 groups, not 5: no other group has a row that passes the filter");
  query.set_filter("year = 7 OR year >= 10");
  EXPECT_EQ(note(),
            "2 groups, not 5: no other group has a row that passes the filter, 1 excluded "
            "row aside");
  query.clear_filter();
  for (int id = 0; id < 10; ++id) query.add_exclude_ids(std::to_string(id));
  EXPECT_EQ(note(),
            "2 groups, not 5: no other group has a row that can be returned, 10 "
            "excluded rows aside");
  query.set_offset(2);
  EXPECT_EQ(note(),
            "0 groups, not 5: offset 2 skips every group with a row that can be returned, "
            "10 excluded rows aside");
  query.clear_exclude_ids();
  query.set_offset(3);
  const std::string skipped =
      "0 groups, not 5: offset 3 skips every group with a row that can be returned, 1 excluded row "
      "aside";
  EXPECT_EQ(note(), skipped);
  request.mutable_options()->set_required_filter("year >= 0");
  EXPECT_EQ(note(), skipped) << "the same for a caller who does not see all rows";
}

TEST_F(ShortAnswersTest, SayOfPagesThatGroupsFollow) {
  Limits limits;
  limits.k_max = 2;
  const SearchPipeline pipeline({clock_, snapshots_, executor_, metrics_, limits, workers_});
  v1::SearchRequest request = Like7(2);
  request.mutable_options()->set_paged(true);
  v1::GroupBy& group_by = *request.mutable_queries(0)->mutable_group_by();
  group_by.set_field("kinds");
  const auto note = [&] {
    FakeCall call(clock_);
    HandleSearch(pipeline, call, request);
    EXPECT_TRUE(call.AwaitEnd().ok()) << call.AwaitEnd();
    EXPECT_EQ(call.response().next_page_token(), "");
    const auto& notes = call.response().results(0).notes();
    return notes.empty() ? std::string() : *notes.rbegin();
  };
  const std::string end =
      "the pages end at group 2, since groups times group_size are at most 2 (limits.k_max), and ";
  const std::string remedy = ": lower group_size, or narrow the filter";
  EXPECT_EQ(note(), end + "more groups may follow" + remedy);
  request.mutable_options()->set_required_filter("year >= 0");
  EXPECT_EQ(note(), end + "more groups may follow" + remedy)
      << "the same for a caller of some rows";
  request.mutable_options()->clear_required_filter();
  request.mutable_options()->set_k(1);
  request.add_queries()->set_id("7");
  request.mutable_queries(1)->set_k(2);
  EXPECT_EQ(note(),
            "the pages end at group 1, since the pages of queries[1] end, and more groups may "
            "follow: ask for this query in a call of its own");
}

}  // namespace
}  // namespace simile::service

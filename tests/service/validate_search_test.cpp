#include "service/requests/validate_search.h"

#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <google/protobuf/arena.h>
#include <gtest/gtest.h>

#include "service/refusal.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

v1::SearchRequest Search(const std::string& rest) {
  return Parse<v1::SearchRequest>("collection: 'films' " + rest);
}

v1::RecommendRequest Recommend(const std::string& rest) {
  return Parse<v1::RecommendRequest>("collection: 'films' " + rest);
}

class SearchRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(SearchRefusalTest, SaysWhatWhereAndWhatWouldBeRight) {
  const auto valid = ValidateSearch(Parse<v1::SearchRequest>(GetParam().request), Limits{});
  ExpectRefused(valid.status(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, SearchRefusalTest,
    testing::Values(
        Refusal{
            "NoCollection", "queries { id: 'a' }",
            "collection: empty; name a collection (CollectionService.ListCollections shows them)"},
        Refusal{"CollectionOfOtherLetters", "collection: 'a/b' queries { id: 'a' }",
                "collection: \"a/b\" is not a name; a name has letters, digits, '-', '_' and '.', "
                "and does not start with '.'"},
        Refusal{"NoQueries", kFilms, "queries: 0 given; a call takes 1 to 1,024"},
        Refusal{"NoTarget", kQuery + "queries { k: 3 }",
                "queries[1]: no target; set vector, packed_vector, id, item, user_id, "
                "examples or blend"},
        Refusal{"KZero", kQuery + "queries { id: 'a' k: 0 }",
                "queries[1].k: 0; ask for 1 to 10,000"},
        Refusal{"KTooLarge", kQuery + "queries { id: 'a' k: 10001 }",
                "queries[1].k: 10,001; ask for 1 to 10,000"},
        Refusal{"OptionsKZero", kQuery + "options { k: 0 }", "options.k: 0; ask for 1 to 10,000"},
        Refusal{"OffsetTooFar", kFilms + "queries { id: 'a' k: 10 offset: 9991 }",
                "queries[0].offset: 9,991; offset + k may be at most 10,000, and k is 10"},
        Refusal{"OffsetOfOptionsTooFar", kQuery + "options { offset: 4294967295 }",
                "queries[0].offset: 4,294,967,295; offset + k may be at most 10,000, and k is 10"},
        Refusal{"ThresholdNaN", kFilms + "queries { id: 'a' score_threshold: nan }",
                "queries[0].score_threshold: NaN; give a finite number, or leave it out for no "
                "threshold"},
        Refusal{"ThresholdInfinite", kQuery + "options { score_threshold: -inf }",
                "options.score_threshold: infinite; give a finite number, or leave it out for no "
                "threshold"},
        Refusal{"EmptyId", kQuery + "queries { id: '' }",
                "queries[1].id: empty; an id has 1 to 512 bytes"},
        Refusal{"LongId", kFilms + "queries { id: '" + std::string(513, 'x') + "' }",
                "queries[0].id: 513 bytes; an id has at most 512"},
        Refusal{"EmptyUserId", kQuery + "queries { user_id: '' }",
                "queries[1].user_id: empty; an id has 1 to 512 bytes"},
        Refusal{"EmptyVector", kFilms + "queries { vector { } }",
                "queries[0].vector: empty; send a number for each dimension"},
        Refusal{"PackedWithoutFormat", kFilms + "queries { packed_vector { data: 'abcd' } }",
                "queries[0].packed_vector.format: not set; set FORMAT_F32_LE or FORMAT_F16_LE"},
        Refusal{"PackedWithoutData", kFilms + "queries { packed_vector { format: FORMAT_F16_LE } }",
                "queries[0].packed_vector.data: empty; send 2 bytes for each dimension"},
        Refusal{"PackedCutOff",
                kQuery + "queries { packed_vector { format: FORMAT_F32_LE data: 'abcdef' } }",
                "queries[1].packed_vector.data: 6 bytes; FORMAT_F32_LE takes 4 for each "
                "dimension, so a multiple of 4"},
        Refusal{"EmptyExcludedId", kFilms + "queries { id: 'a' exclude_ids: ['b', ''] }",
                "queries[0].exclude_ids[1]: empty; an id has 1 to 512 bytes"},
        Refusal{"LongExcludedId",
                kQuery + "options { exclude_ids: '" + std::string(600, 'x') + "' }",
                "options.exclude_ids[0]: 600 bytes; an id has at most 512"},
        Refusal{"SeenByAnItem", kQuery + "queries { id: 'a' exclude_seen: true }",
                "queries[1].exclude_seen: only queries by user_id or blend have seen anything"},
        Refusal{"FieldsAndNone",
                kQuery + "options { payload { fields: 'title' selection: SELECTION_NONE } }",
                "options.payload.fields: 1 field named together with SELECTION_NONE; leave one of "
                "them out"},
        Refusal{"FieldsAndAll",
                kQuery + "options { payload { fields: ['a', 'b'] selection: SELECTION_ALL } }",
                "options.payload.fields: 2 fields named together with SELECTION_ALL; leave one of "
                "them out"},
        Refusal{"UnknownSelection", kQuery + "options { payload { selection: 9 } }",
                "options.payload.selection: 9 is unknown; set SELECTION_ALL or SELECTION_NONE, or "
                "name fields instead"},
        Refusal{"UnknownReceiptDetail", kQuery + "options { receipt_detail: 9 }",
                "options.receipt_detail: 9 is unknown; set RECEIPT_DETAIL_FULL, "
                "RECEIPT_DETAIL_BRIEF or RECEIPT_DETAIL_TIMED"},
        Refusal{"UnknownPriority", kQuery + "options { priority: 9 }",
                "options.priority: 9 is unknown; set PRIORITY_ONLINE or PRIORITY_BULK"},
        Refusal{"LongRequiredFilter",
                kQuery + "options { required_filter: '" + std::string(8'193, 'a') + "' }",
                "options.required_filter: 8,193 bytes; a filter may have 8,192; allow_ids takes "
                "long lists of ids"},
        Refusal{"ReplyZero", kQuery + "options { reply_bytes_max: 0 }",
                "options.reply_bytes_max: 0; give 1 to 67,108,864"},
        Refusal{"ReplyTooLarge", kQuery + "options { reply_bytes_max: 67108865 }",
                "options.reply_bytes_max: 67,108,865; give 1 to 67,108,864"}),
    Name);

class RecommendRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RecommendRefusalTest, SaysWhatWhereAndWhatWouldBeRight) {
  const auto valid = ValidateRecommend(Parse<v1::RecommendRequest>(GetParam().request), Limits{});
  ExpectRefused(valid.status(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, RecommendRefusalTest,
    testing::Values(
        Refusal{
            "NoCollection", "user_ids: 'u'",
            "collection: empty; name a collection (CollectionService.ListCollections shows them)"},
        Refusal{"NoUsers", kFilms, "user_ids: 0 given; a call takes 1 to 1,024"},
        Refusal{"EmptyUser", kFilms + "user_ids: ['u', '']",
                "user_ids[1]: empty; an id has 1 to 512 bytes"},
        Refusal{"KZero", kFilms + "user_ids: 'u' options { k: 0 }",
                "options.k: 0; ask for 1 to 10,000"},
        Refusal{"OffsetTooFar", kFilms + "user_ids: 'u' options { offset: 10000 }",
                "options.offset: 10,000; offset + k may be at most 10,000, and k is 10"},
        Refusal{"FieldsAndNone",
                kFilms + "user_ids: 'u' options { payload { fields: 'title' selection: "
                         "SELECTION_NONE } }",
                "options.payload.fields: 1 field named together with SELECTION_NONE; leave one of "
                "them out"}),
    Name);

TEST(ValidateSearchTest, RefusesOneQueryTooMany) {
  v1::SearchRequest request = Search("");
  for (int index = 0; index < 1'025; ++index) request.add_queries()->set_id("a");
  ExpectRefused(ValidateSearch(request, Limits{}).status(),
                "queries: 1,025 given; a call takes 1 to 1,024");
  request.mutable_queries()->RemoveLast();
  EXPECT_TRUE(ValidateSearch(request, Limits{}).ok());
}

TEST(ValidateSearchTest, RefusesAnUnknownFormat) {
  v1::SearchRequest request = Search("queries { packed_vector { data: 'abcd' } }");
  // A newer client may send it: proto3 keeps unknown enum numbers.
  request.mutable_queries(0)->mutable_packed_vector()->set_format(
      static_cast<v1::PackedVector::Format>(7));
  ExpectRefused(
      ValidateSearch(request, Limits{}).status(),
      "queries[0].packed_vector.format: 7 is unknown; set FORMAT_F32_LE or FORMAT_F16_LE");
}

TEST(ValidateSearchTest, RefusesVectorsOfTooManyDimensions) {
  v1::SearchRequest request = Search("queries { vector { } }");
  auto& values = *request.mutable_queries(0)->mutable_vector()->mutable_values();
  values.Resize(4'096, 1.0F);
  EXPECT_TRUE(ValidateSearch(request, Limits{}).ok());
  values.Add(1.0F);
  ExpectRefused(ValidateSearch(request, Limits{}).status(),
                "queries[0].vector: 4,097 dimensions; a vector has at most 4,096");
  v1::PackedVector& packed = *request.mutable_queries(0)->mutable_packed_vector();
  packed.set_format(v1::PackedVector::FORMAT_F16_LE);
  packed.set_data(std::string(std::size_t{2} * 4'097, '\0'));
  ExpectRefused(ValidateSearch(request, Limits{}).status(),
                "queries[0].packed_vector.data: 4,097 dimensions; a vector has at most 4,096");
}

TEST(ValidateSearchTest, RefusesTooManyExcludedIds) {
  const std::string id = "x";
  v1::SearchRequest request = Search("queries { id: 'a' }");
  for (int index = 0; index < 10'001; ++index) request.mutable_options()->add_exclude_ids(id);
  ExpectRefused(
      ValidateSearch(request, Limits{}).status(),
      "options.exclude_ids: 10,001 ids given; at most 10,000 in the options' list, and in the list "
      "of each query");
}

TEST(ValidateSearchTest, RefusesExclusionsThatMultiplyBeyondTheirBound) {
  const std::string id = "x";
  v1::SearchRequest request = Search("");
  for (int index = 0; index < 1'024; ++index) request.add_queries()->set_id("a");
  for (int index = 0; index < 256; ++index) request.mutable_options()->add_exclude_ids(id);
  EXPECT_TRUE(ValidateSearch(request, Limits{}).ok());
  request.mutable_queries(5)->add_exclude_ids(id);
  ExpectRefused(ValidateSearch(request, Limits{}).status(),
                "queries: 262,145 exclusions, the ids of the options counted once for each of "
                "1,024 queries; a call may have 262,144: send fewer queries a call or exclude "
                "fewer ids");
}

TEST(ValidateSearchTest, RefusesAFilterThatIsTooLong) {
  const std::string filter = "filter: '" + std::string(8'193, 'a') + "'";
  const std::string bytes =
      "filter: 8,193 bytes; a filter may have 8,192; allow_ids takes long lists of ids";
  ExpectRefused(ValidateSearch(Search("queries { id: 'a' " + filter + " }"), Limits{}).status(),
                "queries[0]." + bytes);
  ExpectRefused(
      ValidateSearch(Search("queries { id: 'a' } options { " + filter + " }"), Limits{}).status(),
      "options." + bytes);
  ExpectRefused(
      ValidateRecommend(Recommend("user_ids: 'a' options { " + filter + " }"), Limits{}).status(),
      "options." + bytes);
}

TEST(ValidateSearchTest, RefusesOneFilterTooMany) {
  v1::SearchRequest request = Search("");
  for (int i = 0; i < 257; ++i) {
    v1::Query& query = *request.add_queries();
    query.set_id("a");
    query.set_filter("year = " + std::to_string(i));
  }
  ExpectRefused(ValidateSearch(request, Limits{}).status(),
                "queries[256].filter: one too many; a call may have 256 different filters");
  request.mutable_queries(256)->set_filter("year = 255");
  EXPECT_TRUE(ValidateSearch(request, Limits{}).ok());
}

// In a partial call, the bounds on queries and exclusions also count refused queries.
TEST(ValidateSearchTest, CountsRefusedQueriesInFewLimits) {
  Limits limits;
  limits.queries_per_call_max = 2;
  limits.exclusions_per_call_max = 2;
  limits.filters_per_call_max = 1;
  limits.vectors_per_call_max = 2;
  limits.group_rows_per_call_max = 10;
  limits.diversity_pairs_per_call_max = 1'000;
  const std::string good = "queries { id: 'a' filter: 'x=1' } ";
  const std::string partial = " options { partial: true }";
  const auto validate = [&](const std::string& text) {
    return ValidateSearch(Search(good + text + partial), limits).status();
  };
  const std::string examples =
      "examples { strategy: STRATEGY_BEST_SCORE positive { id: 'a' } "
      "positive { id: 'b' } positive { id: 'c' } }";
  for (const std::string& fields : {std::string("id: 'a' filter: 'x=2'"), examples,
                                    std::string("id: 'a' group_by { field: 'f' group_size: 2 }"),
                                    std::string("id: 'a' diversity {} k: 20")}) {
    EXPECT_FALSE(validate("queries { " + fields + " }").ok()) << fields;
    EXPECT_TRUE(validate("queries { " + fields + " score_threshold: nan }").ok()) << fields;
  }
  EXPECT_FALSE(validate("queries { k: 0 } queries { k: 0 }").ok());
  EXPECT_TRUE(validate("queries { k: 0 exclude_ids: ['a', 'b'] }").ok());
  EXPECT_FALSE(validate("queries { k: 0 exclude_ids: ['a', 'b', 'c'] }").ok());
}

TEST(ValidateSearchTest, TakesTheConfiguredBounds) {
  Limits limits;
  limits.filter_bytes_max = 4;
  limits.reply_bytes_default = 10;
  limits.reply_bytes_max = 20;
  EXPECT_EQ(ValidateSearch(Search("queries { id: 'a' filter: 'x=1' }"), limits)
                .value()
                .answer.reply_bytes_max,
            10U);
  ExpectRefused(
      ValidateSearch(Search("queries { id: 'a' filter: 'x=100' }"), limits).status(),
      "queries[0].filter: 5 bytes; a filter may have 4; allow_ids takes long lists of ids");
  ExpectRefused(
      ValidateSearch(Search("queries { id: 'a' } options { reply_bytes_max: 21 }"), limits)
          .status(),
      "options.reply_bytes_max: 21; give 1 to 20");
}

TEST(ValidateSearchTest, ReadsWhichVectorsAreAsStored) {
  const auto valid = ValidateSearch(
      Search("queries { vector { values: 1 as_stored: true } } "
             "queries { packed_vector { format: FORMAT_F32_LE data: 'abcd' as_stored: true } } "
             "queries { packed_vector { format: FORMAT_F32_LE data: 'abcd' } }"),
      Limits{});
  ASSERT_TRUE(valid.ok()) << valid.status();
  const auto vector = [&](std::size_t query) {
    return std::get<engine::ByVector>(valid->queries[query].target);
  };
  EXPECT_TRUE(vector(0).as_stored);
  EXPECT_EQ(vector(0).field, "vector");
  EXPECT_TRUE(vector(1).as_stored);
  EXPECT_EQ(vector(1).field, "packed_vector");
  EXPECT_FALSE(vector(2).as_stored);
}

TEST(ValidateSearchTest, PrefersAQuerysFilterToTheOptions) {
  const v1::SearchRequest request = Search(
      "queries { id: 'a' } queries { id: 'a' filter: 'b = 1' } queries { id: 'a' filter: '' } "
      "options { filter: 'a = 1' }");
  const auto valid = ValidateSearch(request, Limits{});
  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->queries[0].filter, "a = 1");
  EXPECT_EQ(valid->queries[0].filter.data(), request.options().filter().data()) << "no copy";
  EXPECT_EQ(valid->queries[1].filter, "b = 1");
  EXPECT_EQ(valid->queries[2].filter, "");
  EXPECT_TRUE(valid->queries[0].filter_is_default);
  EXPECT_FALSE(valid->queries[1].filter_is_default);
}

TEST(ValidateSearchTest, TakesUnsetFieldsFromTheOptions) {
  const v1::SearchRequest request = Search(
      "queries { id: 'a' }"
      "queries { user_id: 'u' k: 7 offset: 2 score_threshold: 0.5 exclude_ids: 'c' }"
      "queries { user_id: 'u' exclude_seen: false }"
      "options { k: 3 offset: 1 score_threshold: 0.25 exclude_ids: 'b' exclude_seen: true "
      "          with_vectors: true with_rows: true payload { fields: ['year', 'title'] } "
      "          required_filter: 'a = 1' expected_snapshot_id: 'f00d' reply_bytes_max: 99 "
      "          receipt_detail: RECEIPT_DETAIL_BRIEF priority: PRIORITY_BULK }");
  const auto valid = ValidateSearch(request, Limits{});
  ASSERT_TRUE(valid.ok()) << valid.status();
  ASSERT_EQ(valid->queries.size(), 3U);
  const engine::QueryRequest& plain = valid->queries[0];
  EXPECT_EQ(std::get<engine::ByItem>(plain.target).id, "a");
  EXPECT_EQ(plain.k, 3U);
  EXPECT_EQ(plain.offset, 1U);
  EXPECT_EQ(plain.score_threshold, 0.25F);
  EXPECT_EQ(valid->exclude_ids, std::vector<std::string_view>{"b"}) << "of every query";
  EXPECT_TRUE(plain.exclude_ids.empty());
  const engine::QueryRequest& own = valid->queries[1];
  EXPECT_TRUE(std::get<engine::ByUser>(own.target).exclude_seen);
  EXPECT_EQ(own.k, 7U);
  EXPECT_EQ(own.offset, 2U);
  EXPECT_EQ(own.score_threshold, 0.5F);
  EXPECT_EQ(own.exclude_ids, std::vector<std::string>{"c"});
  EXPECT_FALSE(std::get<engine::ByUser>(valid->queries[2].target).exclude_seen);
  EXPECT_EQ(valid->answer.payload, &request.options().payload());
  EXPECT_TRUE(valid->answer.with_vectors);
  EXPECT_TRUE(valid->answer.with_rows);
  EXPECT_EQ(valid->answer.required_filter, "a = 1");
  EXPECT_EQ(valid->answer.expected_snapshot_id, "f00d");
  EXPECT_EQ(valid->answer.reply_bytes_max, 99U);
  EXPECT_EQ(valid->receipt, ReceiptDetail::kBrief);
  EXPECT_EQ(valid->priority, engine::Priority::kBulk);
}

TEST(ValidateSearchTest, TakesATimedReceipt) {
  const auto valid = ValidateSearch(
      Search("queries { id: 'a' } options { receipt_detail: RECEIPT_DETAIL_TIMED }"), Limits{});
  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->receipt, ReceiptDetail::kTimed);
}

TEST(ValidateSearchTest, CountsTheTextsOfARequestOnAnArena) {
  google::protobuf::Arena arena;
  auto& request = *google::protobuf::Arena::CreateMessage<v1::SearchRequest>(&arena);
  request = Search("queries { id: 'a' }");
  const std::uint64_t small = ValidateSearch(request, Limits{})->request_bytes;
  for (int id = 0; id < 100; ++id)
    request.mutable_options()->add_exclude_ids(std::string(500, 'i'));
  EXPECT_GE(ValidateSearch(request, Limits{})->request_bytes, small + 50'000);
}

TEST(ValidateSearchTest, HasDefaultsForUnsetFields) {
  const v1::SearchRequest request = Search("queries { vector { values: [1, -2] } }");
  const auto valid = ValidateSearch(request, Limits{});
  ASSERT_TRUE(valid.ok()) << valid.status();
  const engine::QueryRequest& query = valid->queries[0];
  std::vector<float> values(std::get<engine::ByVector>(query.target).values.size());
  std::get<engine::ByVector>(query.target).values.CopyTo(values.data());
  EXPECT_EQ(values, (std::vector<float>{1, -2}));
  EXPECT_EQ(query.k, 10U);
  EXPECT_EQ(query.offset, 0U);
  EXPECT_EQ(query.score_threshold, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(valid->answer.reply_bytes_max, 4U << 20);
  EXPECT_FALSE(valid->answer.with_vectors);
  EXPECT_FALSE(valid->answer.with_rows);
  EXPECT_TRUE(valid->answer.required_filter.empty());
  EXPECT_TRUE(valid->answer.expected_snapshot_id.empty());
  EXPECT_EQ(valid->receipt, ReceiptDetail::kFull);
  EXPECT_EQ(valid->priority, engine::Priority::kOnline);
  EXPECT_FALSE(std::get<engine::ByVector>(query.target).as_stored);
}

TEST(ValidateRecommendTest, MakesOneQueryForEachUser) {
  const v1::RecommendRequest request =
      Recommend("user_ids: ['u', 'v'] options { k: 5 exclude_seen: true exclude_ids: 'b' }");
  const auto valid = ValidateRecommend(request, Limits{});
  ASSERT_TRUE(valid.ok()) << valid.status();
  ASSERT_EQ(valid->queries.size(), 2U);
  EXPECT_EQ(std::get<engine::ByUser>(valid->queries[1].target).id, "v");
  EXPECT_TRUE(std::get<engine::ByUser>(valid->queries[1].target).exclude_seen);
  EXPECT_EQ(valid->queries[1].k, 5U);
  EXPECT_EQ(valid->exclude_ids, std::vector<std::string_view>{"b"}) << "of every query";
}

}  // namespace
}  // namespace simile::service

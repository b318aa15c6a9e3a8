#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "service/refusal.h"
#include "service/requests/validate_query.h"
#include "service/requests/validate_search.h"
#include "simile/v1/search.pb.h"
#include "simile/v1/types.pb.h"

// Validation of examples, blends, diversity, groups, cold starts and pages.

namespace simile::service {
namespace {

absl::StatusOr<ValidSearch> Validate(const std::string& rest) {
  return ValidateSearch(Parse<v1::SearchRequest>(kFilms + rest), Limits{});
}

class RefinementRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefinementRefusalTest, SaysWhatWhereAndWhatWouldBeRight) {
  const auto valid = ValidateSearch(Parse<v1::SearchRequest>(GetParam().request), Limits{});
  ExpectRefused(valid.status(), GetParam().message, GetParam().reason);
}

std::string Examples(const std::string& rest) {
  return kFilms + "queries { examples { " + rest + " } }";
}
std::string Blend(const std::string& rest) { return kFilms + "queries { blend { " + rest + " } }"; }

INSTANTIATE_TEST_SUITE_P(
    All, RefinementRefusalTest,
    testing::Values(
        Refusal{"NoExamples", Examples("strategy: STRATEGY_BEST_SCORE"),
                "queries[0].examples: none; give positive examples, negative ones, or both"},
        Refusal{"NoStrategy", Examples("positive { id: 'a' }"),
                "queries[0].examples.strategy: not set; set STRATEGY_AVERAGE_VECTOR, "
                "STRATEGY_BEST_SCORE "
                "or STRATEGY_SUM_SCORES"},
        Refusal{"UnknownStrategy", Examples("positive { id: 'a' } strategy: 9"),
                "queries[0].examples.strategy: 9 is unknown; set STRATEGY_AVERAGE_VECTOR, "
                "STRATEGY_BEST_SCORE or STRATEGY_SUM_SCORES"},
        Refusal{"AverageOfNegatives",
                Examples("negative { id: 'a' } strategy: STRATEGY_AVERAGE_VECTOR"),
                "queries[0].examples: the strategy average_vector needs a positive example; add "
                "one, or take best_score or sum_scores"},
        Refusal{
            "ExampleWithoutTarget",
            Examples("positive { weight: 2 } strategy: STRATEGY_SUM_SCORES"),
            "queries[0].examples.positive[0]: no target; set vector, packed_vector, id or item"},
        Refusal{"ExampleWithEmptyId", Examples("negative { id: '' } strategy: STRATEGY_SUM_SCORES"),
                "queries[0].examples.negative[0].id: empty; an id has 1 to 512 bytes"},
        Refusal{"NegativeWeight",
                Examples("positive { id: 'a' weight: -1 } strategy: STRATEGY_BEST_SCORE"),
                "queries[0].examples.positive[0].weight: -1; give a number above 0, up to "
                "1,000,000; what the rows should be unlike belongs to the negative examples"},
        Refusal{"WeightNaN",
                Examples("positive { id: 'a' weight: nan } strategy: STRATEGY_BEST_SCORE"),
                "queries[0].examples.positive[0].weight: nan; give a number above 0, up to "
                "1,000,000"},
        Refusal{"SeenByExamples",
                kFilms +
                    "queries { examples { positive { id: 'a' } strategy: STRATEGY_BEST_SCORE } "
                    "exclude_seen: true }",
                "queries[0].exclude_seen: only queries by user_id or blend have seen anything"},
        Refusal{"BlendWithoutTarget", Blend("user_id: 'u'"),
                "queries[0].blend: no target; set vector, packed_vector, id or item"},
        Refusal{"BlendWithoutUser", Blend("id: 'a'"),
                "queries[0].blend.user_id: empty; an id has 1 to 512 bytes"},
        Refusal{"BlendWeight", Blend("id: 'a' user_id: 'u' user_weight: 1.5"),
                "queries[0].blend.user_weight: 1.5; give 0 (the target alone) to 1 (the user "
                "alone)"},
        Refusal{"Lambda", kQuery + "options { diversity { lambda: -0.5 } }",
                "options.diversity.lambda: -0.5; give 0 (difference alone) to 1 (score alone)"},
        Refusal{"Candidates", kFilms + "queries { id: 'a' diversity { candidates: 1001 } }",
                "queries[0].diversity.candidates: 1,001; give 1 to 1,000"},
        Refusal{"FewCandidates",
                kFilms + "queries { id: 'a' k: 30 offset: 5 diversity { candidates: 20 } }",
                "queries[0].diversity.candidates: 20; 35 rows are wanted, offset included: raise "
                "it (up to 1,000), or lower k"},
        Refusal{"GroupWithoutField", kQuery + "options { group_by { group_size: 2 } }",
                "options.group_by.field: empty; name a field of keywords or integers"},
        Refusal{"LongGroupField",
                kQuery + "options { group_by { field: '" + std::string(513, 'x') + "' } }",
                "options.group_by.field: 513 bytes; a field's name has at most 512"},
        Refusal{"LongColdStartField",
                kQuery + "options { cold_start { order: ORDER_NEWEST field: '" +
                    std::string(513, 'x') + "' } }",
                "options.cold_start.field: 513 bytes; a field's name has at most 512"},
        Refusal{"GroupSizeZero", kQuery + "options { group_by { field: 'genres' group_size: 0 } }",
                "options.group_by.group_size: 0; ask for 1 to 10,000"},
        Refusal{"GroupsTooLarge",
                kFilms + "queries { id: 'a' k: 500 group_by { field: 'genres' group_size: 21 } }",
                "queries[0].group_by: 500 groups of 21 rows are more than 10,000; ask for fewer or "
                "smaller ones"},
        Refusal{"GroupsAndDiversity",
                kQuery + "options { diversity { } group_by { field: 'genres' } }",
                "options: diversity and group_by are both set; set only one of them"},
        Refusal{"ColdStartWithoutOrder", kQuery + "options { cold_start { field: 'year' } }",
                "options.cold_start.order: not set; set ORDER_NEWEST or ORDER_MOST_POPULAR"},
        Refusal{"UnknownColdStart", kQuery + "options { cold_start { order: 7 } }",
                "options.cold_start.order: 7 is unknown; set ORDER_NEWEST or ORDER_MOST_POPULAR"},
        Refusal{"PageToken", kQuery + "options { page_token: 'next' }",
                "options.page_token: not a page token; send an answer's next_page_token unchanged, "
                "or leave it out for the first page",
                base::ErrorReason::kInvalidPageToken}),
    Name);

TEST(ValidateRefinementTest, CountsEveryExampleAsAVector) {
  v1::SearchRequest request = Parse<v1::SearchRequest>(kFilms);
  for (int query = 0; query < 17; ++query) {
    v1::Examples& examples = *request.add_queries()->mutable_examples();
    examples.set_strategy(v1::Examples::STRATEGY_SUM_SCORES);
    for (int i = 0; i < 64; ++i) examples.add_positive()->set_id("a");
  }
  ExpectRefused(ValidateSearch(request, Limits{}).status(),
                "queries: 1,088 vectors, each example counted; a call may have 1,024");
  request.mutable_queries()->RemoveLast();
  EXPECT_TRUE(ValidateSearch(request, Limits{}).ok());
  request.mutable_queries(0)->mutable_examples()->add_negative()->set_id("b");
  ExpectRefused(ValidateSearch(request, Limits{}).status(),
                "queries[0].examples: 65 examples; at most 64");
}

TEST(ValidateRefinementTest, BoundsTheRowsOfAllGroups) {
  v1::SearchRequest request = Parse<v1::SearchRequest>(
      kFilms + "options { k: 100 group_by { field: 'genres' group_size: 100 } }");
  for (int query = 0; query < 21; ++query) request.add_queries()->set_id("a");
  ExpectRefused(
      ValidateSearch(request, Limits{}).status(),
      "queries: 210,000 rows of groups, groups times rows of each; a call may have 200,000: send "
      "fewer queries, or ask for fewer or smaller groups");
  request.mutable_queries()->RemoveLast();
  EXPECT_TRUE(ValidateSearch(request, Limits{}).ok());
}

TEST(ValidateRefinementTest, BoundsThePairsThatDiversityCompares) {
  v1::SearchRequest request =
      Parse<v1::SearchRequest>(kFilms + "options { k: 100 diversity { candidates: 1000 } }");
  for (int query = 0; query < 21; ++query) request.add_queries()->set_id("a");
  ExpectRefused(
      ValidateSearch(request, Limits{}).status(),
      "queries: 2,100,000 pairs of rows to compare for diversity; a call may have 2,000,000: send "
      "fewer queries, or ask for fewer candidates or a smaller k");
  request.mutable_queries()->RemoveLast();
  EXPECT_TRUE(ValidateSearch(request, Limits{}).ok());
}

TEST(ValidateRefinementTest, AQuerysOwnRefinementReplacesTheOptions) {
  const auto request = Parse<v1::SearchRequest>(
      kFilms +
      "queries { id: 'a' } queries { id: 'b' group_by { field: 'genres' } } "
      "options { diversity { lambda: 0.25 } }");
  const auto valid = ValidateSearch(request, Limits{});
  ASSERT_TRUE(valid.ok()) << valid.status();
  ASSERT_TRUE(valid->queries[0].diversity.has_value());
  EXPECT_EQ(valid->queries[0].diversity->lambda, 0.25F);
  EXPECT_EQ(valid->queries[0].diversity->candidates, 100U);
  EXPECT_FALSE(valid->queries[1].diversity.has_value());
  EXPECT_EQ(valid->queries[1].group_by->field, "genres");
  EXPECT_EQ(valid->queries[1].group_by->group_size, 1U);
}

TEST(ValidateRefinementTest, DiversityChoosesFromTenTimesKByDefault) {
  const auto candidates = [](const std::string& k) {
    const auto valid = Validate("queries { id: 'a' k: " + k + " diversity { } }");
    EXPECT_TRUE(valid.ok()) << valid.status();
    return valid->queries[0].diversity->candidates;
  };
  EXPECT_EQ(candidates("1"), 100U);
  EXPECT_EQ(candidates("50"), 500U);
  EXPECT_EQ(candidates("900"), 1'000U);
}

TEST(ValidateRefinementTest, ReadsExamplesAndBlends) {
  const auto valid = Validate(
      "queries { examples { positive { id: 'a' weight: 2 } positive { vector { values: [1, 2] } } "
      "negative { id: 'b' } strategy: STRATEGY_SUM_SCORES } } "
      "queries { blend { id: 'a' user_id: 'u' user_weight: 0.75 } exclude_seen: true }");
  ASSERT_TRUE(valid.ok()) << valid.status();
  const auto& examples = std::get<engine::ByExamples>(valid->queries[0].target);
  EXPECT_EQ(examples.strategy, engine::Strategy::kSumScores);
  ASSERT_EQ(examples.positive.size(), 2U);
  EXPECT_EQ(std::get<engine::ByItem>(examples.positive[0].target).id, "a");
  EXPECT_EQ(examples.positive[0].weight, 2);
  EXPECT_EQ(std::get<engine::ByVector>(examples.positive[1].target).values.size(), 2U);
  EXPECT_EQ(examples.positive[1].weight, 1);
  EXPECT_EQ(examples.negative.size(), 1U);
  const auto& blend = std::get<engine::ByBlend>(valid->queries[1].target);
  EXPECT_EQ(blend.user.id, "u");
  EXPECT_TRUE(blend.user.exclude_seen);
  EXPECT_EQ(blend.user_weight, 0.75F);
}

const std::string kSnapshotId = "0123456789abcdef0123456789abcdef";

class PagesTest : public testing::Test {
 protected:
  // Validates the request with the token of a page that has `page` pages before it.
  static absl::StatusOr<ValidSearch> Page(v1::SearchRequest request, std::uint64_t page) {
    request.mutable_options()->set_paged(true);
    const auto first = ValidateSearch(request, Limits{});
    EXPECT_TRUE(first.ok()) << first.status();
    request.mutable_options()->set_page_token(WritePageToken(
        {.snapshot_id = kSnapshotId, .page = page, .request_hash = first->paging.request_hash}));
    return ValidateSearch(request, Limits{});
  }
};

TEST_F(PagesTest, EveryQueryAdvancesByItsOwnK) {
  const auto third = Page(
      Parse<v1::SearchRequest>(kFilms + "queries { id: 'a' k: 7 } queries { id: 'b' offset: 5 }"),
      2);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->queries[0].offset, 14U);
  EXPECT_EQ(third->queries[1].offset, 25U);
  EXPECT_TRUE(third->paging.wanted);
  EXPECT_EQ(third->paging.token->page, 2U);
}

TEST_F(PagesTest, ATokenContinuesItsOwnRequestOnly) {
  v1::SearchRequest request = Parse<v1::SearchRequest>(kQuery);
  const auto first =
      ValidateSearch(Parse<v1::SearchRequest>(kQuery + "options { paged: true }"), Limits{});
  request.mutable_options()->set_page_token(WritePageToken(
      {.snapshot_id = kSnapshotId, .page = 1, .request_hash = first->paging.request_hash}));
  EXPECT_TRUE(ValidateSearch(request, Limits{}).ok()) << "a token implies paged";
  request.mutable_options()->set_filter("year > 1990");
  ExpectRefused(
      ValidateSearch(request, Limits{}).status(),
      "options.page_token: it belongs to another request; repeat the request that returned "
      "it, with this token added",
      base::ErrorReason::kInvalidPageToken);
}

TEST_F(PagesTest, RefusesPagesOutOfReach) {
  const v1::SearchRequest request = Parse<v1::SearchRequest>(kQuery);
  EXPECT_TRUE(Page(request, 999).ok());
  EXPECT_EQ(Page(request, 1'000).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Page(request, 0xffff'ffff'ffff'ffffU).status().code(),
            absl::StatusCode::kInvalidArgument);
}

v1::PackedVector Packed(v1::PackedVector::Format format, const std::string& data) {
  v1::PackedVector packed;
  packed.set_format(format);
  packed.set_data(data);
  return packed;
}

std::vector<float> CopyNumbers(const engine::VectorBytes& numbers) {
  std::vector<float> values(numbers.size());
  numbers.CopyTo(values.data());
  return values;
}

TEST(ValidateVectorBytesTest, ReadsLittleEndianFloats) {
  // 1.0 and -2.5
  const v1::PackedVector packed =
      Packed(v1::PackedVector::FORMAT_F32_LE, std::string("\0\0\x80\x3F\0\0\x20\xC0", 8));
  const auto numbers = ValidateVectorBytes({"v"}, packed, packed.data(), 4'096);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(CopyNumbers(*numbers), (std::vector<float>{1.0F, -2.5F}));
}

TEST(ValidateVectorBytesTest, ReadsLittleEndianFp16) {
  // 1.0, -2.5 and the least subnormal
  const v1::PackedVector packed =
      Packed(v1::PackedVector::FORMAT_F16_LE, std::string("\x00\x3C\x00\xC1\x01\x00", 6));
  const auto numbers = ValidateVectorBytes({"v"}, packed, packed.data(), 4'096);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(CopyNumbers(*numbers), (std::vector<float>{1.0F, -2.5F, 0x1p-24F}));
}

}  // namespace
}  // namespace simile::service

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "base/unasked_work.h"
#include "data/payload/payload_table.h"
#include "engine/query/resolve.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

// How much a call may ask for, where it is resolved, and what it need not do again.
class ResolveWorkTest : public testing::Test {
 protected:
  static constexpr std::size_t kRows = 5'000;  // each look is counted: more than 4,096

  ResolveWorkTest() {
    auto dataset = engine::RandomDataset(kRows, 2, 5);
    data::PayloadTableBuilder payload(kRows, Limits{});
    for (std::size_t row = 0; row < kRows; ++row) {
      EXPECT_TRUE(payload.Add({{"year", {std::int64_t{1995}}}}).ok());
    }
    dataset->payload = std::move(payload).Build();
    snapshot_ = engine::MakeSnapshot(std::move(dataset));
  }

  absl::Status Resolve(const std::vector<std::string>& filters, base::LongWork work,
                       const RequiredFilters& required = {}) {
    std::vector<QueryRequest> requests(filters.size());
    for (std::size_t i = 0; i < filters.size(); ++i) {
      requests[i].target = ByItem{"7"};
      requests[i].filter = filters[i];
    }
    CallOptions options;
    options.required_filters = required;
    CallReport report{std::vector<QueryReport>(requests.size()), {}};
    absl::Status status = ResolveQueries(snapshot_, requests, options, work, task_, report);
    too_long_ = work.is_too_long();
    return status;
  }

  engine::Snapshot snapshot_;
  engine::SearchTask task_;
  bool too_long_ = false;
};

TEST_F(ResolveWorkTest, CountsTheLooksOfAllFiltersOfACall) {
  // 100 times at every row.
  const auto heavy = [](int first) {
    std::string filter = fmt::format("year IN [{}", first);
    for (int i = 0; i < 100; ++i) filter += ", 1995";
    return filter + "]";
  };
  EXPECT_TRUE(Resolve({heavy(1), heavy(2)}, tests::UnaskedWork()).ok());
  EXPECT_TRUE(Resolve({heavy(1), heavy(1), heavy(2), heavy(3)}, tests::UnaskedWork()).ok())
      << "the first two are cached";
  const absl::Status refused =
      Resolve({heavy(4), heavy(4), heavy(5), heavy(6)}, tests::UnaskedWork());
  EXPECT_EQ(base::ReasonOf(refused), base::ErrorReason::kInvalidFilter);
  EXPECT_EQ(base::FieldOf(refused), "queries");
  EXPECT_THAT(std::string(refused.message()),
              testing::StartsWith("the filters of this call look about "));
}

// So that a device recognises those that it was given before.
TEST_F(ResolveWorkTest, GivesEachCallTheMasksOfTheCallBefore) {
  auto searchable = std::make_shared<RowMask>(kRows);
  searchable->Allow(0);
  searchable->Invert();
  snapshot_.searchable = std::move(searchable);
  const auto masks_of = [&](std::string_view of_request) {
    EXPECT_TRUE(Resolve({"", "id != \"5\"", "id != \"6\""}, tests::UnaskedWork(),
                        {.of_request = of_request, .of_caller = "id != \"2\""})
                    .ok());
    std::vector<std::shared_ptr<const RowMask>> masks;
    for (const engine::ResolvedQuery& query : task_.queries) masks.push_back(query.mask);
    return masks;
  };
  const auto all_but = [](const std::vector<Row>& left_out) {
    RowMask rows(kRows);
    for (const Row row : left_out) rows.Allow(row);
    rows.Invert();
    return testing::Pointee(rows);
  };
  const auto first = masks_of("id != \"1\"");
  EXPECT_THAT(first, testing::ElementsAre(all_but({0, 1, 2}), all_but({0, 1, 2, 5}),
                                          all_but({0, 1, 2, 6})));
  EXPECT_THAT(
      masks_of("id != \"3\""),
      testing::ElementsAre(all_but({0, 2, 3}), all_but({0, 2, 3, 5}), all_but({0, 2, 3, 6})));
  EXPECT_EQ(masks_of("id != \"1\""), first);
}

TEST_F(ResolveWorkTest, EvaluatesNoFilterWhereThatMustBeBrief) {
  EXPECT_FALSE(Resolve({"year > 1990"}, base::LongWork::Brief()).ok());
  EXPECT_TRUE(too_long_);
  ASSERT_TRUE(Resolve({"year > 1990"}, tests::UnaskedWork()).ok());
  EXPECT_TRUE(Resolve({"year > 1990"}, base::LongWork::Brief()).ok()) << "it is cached";
  EXPECT_FALSE(too_long_);
}

// Its rows would be copied and sorted.
TEST_F(ResolveWorkTest, LeavesAUserWhoHasSeenMuchToAnotherThread) {
  constexpr Row kSeen = 20'000;
  auto dataset = engine::RandomDataset(kSeen, 2, 5);
  std::vector<std::pair<Row, Row>> seen;
  for (Row row = 0; row < kSeen; ++row) seen.emplace_back(0, row);
  dataset->profiles.ids = engine::MakeIds({"ann"});
  dataset->profiles.vectors = engine::RandomMatrix(1, 2, 6);
  dataset->profiles.seen = data::SeenSets::FromPairs(1, std::move(seen));
  snapshot_ = engine::MakeSnapshot(std::move(dataset));
  std::vector<QueryRequest> requests(1);
  requests[0].target = ByUser{"ann", true};
  base::LongWork brief = base::LongWork::Brief();
  CallReport report{std::vector<QueryReport>(1), {}};
  EXPECT_FALSE(ResolveQueries(snapshot_, requests, {}, brief, task_, report).ok());
  EXPECT_TRUE(brief.is_too_long());
  EXPECT_TRUE(task_.queries.empty()) << "nothing was copied";
  base::LongWork work = tests::UnaskedWork();
  EXPECT_TRUE(ResolveQueries(snapshot_, requests, {}, work, task_, report).ok());
  EXPECT_EQ(task_.queries[0].excluded_rows.size(), kSeen);
}

TEST_F(ResolveWorkTest, EndsWhenTheCallIsOver) {
  const std::vector<std::string> many(10'000);
  base::LongWork work([] { return absl::CancelledError("gone"); });
  EXPECT_EQ(Resolve(many, std::move(work)).code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace simile::engine

#include "engine/search/group_hits.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/payload/payload_table.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

constexpr Row kRows = 200'000;

// Rows of which each two that follow each other are a group: 0 and 1, 2 and 3.
//   value  makes the value that a pair shares, of its number
SnapshotPtr PairsOfRows(PayloadValue (*value)(Row)) {
  auto dataset = RandomDataset(kRows, 1, 1);
  data::PayloadTableBuilder payload(kRows, Limits{});
  for (Row row = 0; row < kRows; ++row) {
    EXPECT_TRUE(payload.Add({{"pair", value(row / 2)}}).ok());
  }
  dataset->payload = std::move(payload).Build();
  return std::make_shared<const Snapshot>(MakeSnapshot(std::move(dataset)));
}

// Calls Work until it asks for something else. Returns that, and how many pieces it took.
std::pair<GroupHits::Next, int> WorkOn(GroupHits& groups, const std::vector<Hit>& hits) {
  for (int pieces = 1;; ++pieces) {
    const GroupHits::Next next = groups.Work(hits);
    if (next != GroupHits::Next::kWork) return {next, pieces};
  }
}

void CheckPairs(const SnapshotPtr& snapshot) {
  auto field = snapshot->filters->FindGroups("pair", snapshot->filters->payload());
  ASSERT_TRUE(field.ok()) << field.status();
  ResolvedQuery query;
  query.k = 100;
  query.score_threshold = -std::numeric_limits<float>::infinity();
  query.grouping = {*std::move(field), 2};
  GroupHits groups(query, *snapshot);
  // The first group has all rows of the first ranking but one.
  std::vector<Hit> hits(groups.rows_wanted(), Hit{0, 1});
  hits.back() = {5, 0.5F};
  const auto [ranking, ranking_pieces] = WorkOn(groups, hits);
  EXPECT_EQ(ranking, GroupHits::Next::kRanking);
  EXPECT_GT(ranking_pieces, 2);
  ASSERT_NE(groups.mask(), nullptr);
  EXPECT_EQ(groups.mask()->AllowedCount(), kRows - 4);
  for (const Row row : {0U, 1U, 4U, 5U}) EXPECT_FALSE(groups.mask()->Allows(row)) << row;

  // No other row passes; of the second group one row is missing.
  EXPECT_EQ(WorkOn(groups, {}).first, GroupHits::Next::kRows);
  EXPECT_EQ(groups.mask()->AllowedCount(), 2U);
  groups.Offer({0.25F, 4});
  groups.Offer({0.5F, 5});
  EXPECT_EQ(WorkOn(groups, {}).first, GroupHits::Next::kDone);
  const std::vector<HitGroup> answer = groups.TakeGroups();
  ASSERT_EQ(answer.size(), 2U);
  EXPECT_EQ(answer[0].keyword, "0");
  EXPECT_EQ(answer[1].keyword, "2");
  EXPECT_EQ(answer[1].hits, (std::vector<Hit>{{5, 0.5F}, {4, 0.25F}}));
}

TEST(GroupHitsTest, MasksManyGroupsInPieces) {
  CheckPairs(PairsOfRows([](Row pair) { return PayloadValue{std::to_string(pair)}; }));
}

TEST(GroupHitsTest, MasksManyGroupsOfIntegersInPieces) {
  CheckPairs(PairsOfRows([](Row pair) { return PayloadValue{std::int64_t{pair}}; }));
}

}  // namespace
}  // namespace simile::engine

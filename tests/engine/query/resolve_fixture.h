#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/payload/payload_table.h"
#include "engine/fake_clock.h"
#include "engine/query/resolve.h"
#include "engine/sample_data.h"
#include "engine/search/call_context.h"

namespace simile::engine {

// Four films of three dimensions; two users, of whom the first has seen two films.
class ResolveTest : public testing::Test {
 protected:
  explicit ResolveTest(Metric metric = Metric::kCosine) {
    auto dataset = std::make_shared<data::Dataset>();
    dataset->metric = metric;
    dataset->vectors = engine::MakeMatrix({{1, 0, 0}, {0, 1, 0}, {0.6F, 0.8F, 0}, {0, 0.6F, 0.8F}});
    dataset->ids = engine::MakeIds({"toy-story-1995", "heat-1995", "alien-1979", "stalker-1979"});
    dataset->profiles.ids = engine::MakeIds({"user_00042", "user_00007"});
    dataset->profiles.vectors = engine::MakeMatrix({{0, 0.8F, 0.6F}, {0, 0, 1}});
    dataset->profiles.seen = data::SeenSets::FromPairs(2, {{0, 3}, {0, 1}});
    dataset->payload = Years();
    task_.deadline = Clock::TimePoint::max();
    dataset_ = dataset;
    snapshot_ = engine::MakeSnapshot(dataset);
  }

  static data::PayloadTable Years() {
    data::PayloadTableBuilder builder(4, Limits{});
    for (const std::int64_t year : {1995, 1995, 1979, 1979})
      EXPECT_TRUE(builder.Add({{"year", {year}}}).ok());
    return std::move(builder).Build();
  }

  absl::Status Resolve(const std::vector<QueryRequest>& requests) {
    const engine::CallContext context(task_, clock_);
    base::LongWork work([&context] { return context.Check("the filters were evaluated"); });
    report_ = {};
    report_.queries.resize(requests.size());
    return ResolveQueries(snapshot_, requests, options_, work, task_, report_);
  }
  std::vector<float> Vector(std::size_t query) const {
    const std::span<const float> row = task_.vectors.view()[query];
    return {row.begin(), row.end()};
  }

  std::shared_ptr<data::Dataset> dataset_;
  engine::Snapshot snapshot_;
  engine::FakeClock clock_;
  CallOptions options_;
  engine::SearchTask task_;
  CallReport report_;  // of the last call
};

inline void ExpectError(const absl::Status& status, base::ErrorReason reason,
                        std::string_view field, const std::string& message) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(base::InfoOf(base::ReasonOf(status)).name, base::InfoOf(reason).name);
  EXPECT_EQ(base::FieldOf(status), field);
  EXPECT_EQ(std::string(status.message()), message);
}

inline QueryRequest Of(decltype(QueryRequest::target) target) {
  QueryRequest request;
  request.target = std::move(target);
  return request;
}

inline ByExamples MakeExamples(Strategy strategy, const std::vector<std::string>& positive,
                               const std::vector<std::string>& negative) {
  ByExamples examples;
  examples.strategy = strategy;
  for (const std::string& id : positive) examples.positive.push_back({ByItem{id}});
  for (const std::string& id : negative) examples.negative.push_back({ByItem{id}});
  return examples;
}

inline QueryRequest WithColdStart(const std::string& user, ColdStart cold_start) {
  QueryRequest request = Of(ByUser{user});
  request.k = 3;
  request.cold_start = std::move(cold_start);
  return request;
}

// The rows that the query is answered with.
inline std::vector<Row> FirstRows(const engine::ResolvedQuery& query) {
  engine::OrderedRows rows(*query.order, query.k, query.mask.get(), query.excluded());
  while (!rows.done()) rows.ReadPiece();
  return {rows.rows().begin(), rows.rows().end()};
}

}  // namespace simile::engine

// Compares whole queries with brute force: random collections, random requests, several in one
// batch. A failure prints the seed of its case; SIMILE_QUERY_SEED=<seed> runs that case alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>
#include <string>

#include "backend/cpu/scan_backend.h"
#include "backend/small_blocks.h"
#include "base/unasked_work.h"
#include "engine/query/explanation.h"
#include "engine/query/query_case.h"
#include "engine/query/query_oracle.h"

namespace simile::engine {
namespace {

using tests::SeededRandom;

constexpr std::uint64_t kFirstSeed = 5'000'000;

std::unique_ptr<Backend> PlainScan() {
  return backend::cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), 2);
}
std::unique_ptr<Backend> Certified() {
  return backend::cpu::MakeInt8Backend(tests::SmallBlocks(2));
}

struct Subject {
  const char* name;
  std::unique_ptr<Backend> (*make)();
};
void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

class RandomQueriesTest : public ::testing::TestWithParam<Subject> {
 protected:
  // Calls run(random) for `cases` seeds, or for the one seed that the environment names.
  template <class Run>
  void Repeat(std::size_t cases, Run run) {
    std::uint64_t first = kFirstSeed;
    if (const char* const only = std::getenv("SIMILE_QUERY_SEED")) {
      first = std::strtoull(only, nullptr, 10);
      cases = 1;
      all_ran_ = false;
    }
    for (std::uint64_t seed = first; seed < first + cases && !HasFailure(); ++seed) {
      SCOPED_TRACE("SIMILE_QUERY_SEED=" + std::to_string(seed));
      SeededRandom random(seed);
      run(random);
    }
  }

  // Runs all requests in one batch of one or two tasks and compares every result with brute force.
  void ExpectBruteForce(const std::shared_ptr<const data::Dataset>& dataset,
                        const std::vector<QueryRequest>& requests, bool two_tasks) {
    const engine::SnapshotPtr snapshot = SnapshotOn(*backend_, dataset);
    std::vector<std::unique_ptr<engine::SearchTask>> tasks;
    const std::size_t half = two_tasks ? requests.size() / 2 : 0;
    if (half > 0) tasks.push_back(MakeTask(snapshot, {requests.begin(), Middle(requests, half)}));
    tasks.push_back(MakeTask(snapshot, {Middle(requests, half), requests.end()}));
    const std::vector<std::vector<engine::QueryResult>> results = RunBatch(tasks);
    std::size_t request = 0;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      std::size_t vector = 0;
      ASSERT_EQ(results[i].size(), tasks[i]->queries.size());
      for (std::size_t q = 0; q < tasks[i]->queries.size(); ++q, ++request) {
        const std::uint32_t count = tasks[i]->queries[q].vector_count;
        const ExpectedAnswer expected = BruteForce(
            *dataset, requests[request], tasks[i]->vectors.view().Slice(vector, count),
            [&](Row row) { return FilterPasses(requests[request].filter, *dataset, row); });
        vector += count;
        rounds_ += results[i][q].execution.cost.rounds;
        ExpectSame(results[i][q], expected, request);
      }
    }
  }

  // Explains some rows of each kind of request, and compares their places and reasons with brute
  // force.
  void ExpectExplained(const std::shared_ptr<const data::Dataset>& dataset,
                       const QueryRequest& request, SeededRandom& random) {
    const engine::SnapshotPtr snapshot = SnapshotOn(*backend_, dataset);
    std::vector<std::unique_ptr<engine::SearchTask>> tasks;
    tasks.push_back(MakeTask(snapshot, {request}));
    engine::ResolvedQuery& query = tasks.front()->queries.front();
    std::vector<std::string> ids;
    for (std::size_t i = random.Between(1, 12); i > 0; --i) {
      ids.push_back(std::to_string(random.Below(dataset->ids.size())));
    }
    const std::vector<std::string_view> views(ids.begin(), ids.end());
    base::LongWork work = tests::UnaskedWork();
    auto items = CheckItems(*snapshot, request, {}, views, work);
    ASSERT_TRUE(items.ok()) << items.status();
    query.explained = ComparableRows(*items);
    const AnswerCriteria criteria(query, request);
    const data::Matrix& vectors = tasks.front()->vectors;
    const auto passes = [&](Row row) { return FilterPasses(request.filter, *dataset, row); };
    const ExpectedAnswer answer = BruteForce(*dataset, request, vectors.view(), passes);
    const engine::QueryResult result = RunBatch(tasks).front().front();
    ASSERT_EQ(result.places.rows.size(), query.explained.size());
    for (CheckedItem& item : *items) {
      ASSERT_TRUE(item.row);
      const auto place = std::ranges::find(result.places.rows, *item.row, &engine::RowPlace::row);
      if (place == result.places.rows.end()) {
        EXPECT_TRUE(std::ranges::binary_search(dataset->skipped_rows, *item.row));
        EXPECT_EQ(item.reasons.front(), Reason::kNotSearchable);
        ++explained_[static_cast<std::size_t>(Reason::kNotSearchable)];
        continue;
      }
      AddPlaceReasons(*place, criteria, item.reasons);
      ExpectPlace(*place, criteria,
                  BruteForcePlace(*dataset, request, vectors.view(), passes, *item.row));
      EXPECT_EQ(item.reasons.empty(), Returns(answer, request.offset, *item.row)) << item.id;
      EXPECT_NE(ExplanationText(*snapshot, item, &*place, criteria, result.places.score_needed),
                "");
      ++explained_[item.reasons.empty() ? 0 : static_cast<std::size_t>(item.reasons.front())];
    }
  }
  // How many items had this reason first; 0: were returned.
  std::size_t explained(std::size_t reason) const { return explained_[reason]; }

  // Searches after the first, of all cases.
  std::uint64_t rounds() const { return rounds_; }
  // Whether all cases have run: only then do the tests check counts over all of them.
  bool all_ran() const { return all_ran_; }

 private:
  static std::vector<QueryRequest>::const_iterator Middle(const std::vector<QueryRequest>& requests,
                                                          std::size_t half) {
    return requests.begin() + static_cast<std::ptrdiff_t>(half);
  }

  static void ExpectSame(const engine::QueryResult& actual, const ExpectedAnswer& expected,
                         std::size_t request) {
    ASSERT_EQ(actual.hits.size(), expected.hits.size()) << "request " << request;
    for (std::size_t i = 0; i < expected.hits.size(); ++i) {
      ASSERT_EQ(actual.hits.span()[i], expected.hits[i]) << "request " << request << ", hit " << i;
    }
    ASSERT_EQ(actual.groups.size(), expected.groups.size()) << "request " << request;
    for (std::size_t i = 0; i < expected.groups.size(); ++i) {
      ASSERT_EQ(actual.groups[i].keyword, expected.groups[i].keyword)
          << "request " << request << ", group " << i;
      ASSERT_EQ(actual.groups[i].hits, expected.groups[i].hits)
          << "request " << request << ", group " << i;
    }
  }

  static bool Returns(const ExpectedAnswer& answer, std::size_t offset, Row row) {
    const auto has = [row](const std::vector<Hit>& hits) {
      return std::ranges::find(hits, row, &Hit::row) != hits.end();
    };
    for (std::size_t i = offset; i < answer.hits.size(); ++i) {
      if (answer.hits[i].row == row) return true;
    }
    for (std::size_t i = offset; i < answer.groups.size(); ++i) {
      if (has(answer.groups[i].hits)) return true;
    }
    return false;
  }

  static void ExpectPlace(const engine::RowPlace& place, const AnswerCriteria& criteria,
                          const ExpectedPlace& expected) {
    EXPECT_EQ(place.score, expected.score) << place.row;
    EXPECT_EQ(place.rows_before + 1, expected.rank) << place.row;
    ASSERT_EQ(place.groups.size(), expected.groups.size()) << place.row;
    for (std::size_t i = 0; i < place.groups.size(); ++i) {
      EXPECT_EQ(criteria.grouping->field.Text(place.groups[i].number), expected.groups[i].keyword);
      EXPECT_EQ(place.groups[i].groups_before + 1, expected.groups[i].group_rank) << place.row;
      EXPECT_EQ(place.groups[i].rows_before + 1, expected.groups[i].rank_in_group) << place.row;
    }
    const bool chosen = place.diversity && place.diversity->chosen;
    EXPECT_EQ(chosen, expected.step.has_value()) << place.row;
    if (chosen) {
      EXPECT_EQ(place.diversity->step, *expected.step) << place.row;
      EXPECT_EQ(place.diversity->marginal_relevance, place.diversity->chosen_marginal_relevance);
    } else if (place.diversity) {
      EXPECT_LE(place.diversity->marginal_relevance, place.diversity->chosen_marginal_relevance)
          << place.row;
    }
  }

  const std::unique_ptr<Backend> backend_ = GetParam().make();
  std::array<std::size_t, 15> explained_{};
  std::uint64_t rounds_ = 0;
  bool all_ran_ = true;
};

TEST_P(RandomQueriesTest, BestScoreIsBruteForces) {
  Repeat(1'000, [this](SeededRandom& random) {
    const auto dataset = RandomCollection(random);
    ExpectBruteForce(dataset, {DrawRequest(Kind::kBestScore, *dataset, random)}, false);
  });
  // Some cases are proven in the first round, others need more.
  if (!all_ran()) return;
  EXPECT_GT(rounds(), 50U);
  EXPECT_LT(rounds(), 900U);
}

TEST_P(RandomQueriesTest, SumScoresIsBruteForces) {
  Repeat(1'000, [this](SeededRandom& random) {
    const auto dataset = RandomCollection(random);
    ExpectBruteForce(dataset, {DrawRequest(Kind::kSumScores, *dataset, random)}, false);
  });
  if (!all_ran()) return;
  EXPECT_GT(rounds(), 10U);
  EXPECT_LT(rounds(), 300U);
}

TEST_P(RandomQueriesTest, BlendsAndAveragesAreBruteForces) {
  Repeat(1'000, [this](SeededRandom& random) {
    const auto dataset = RandomCollection(random);
    ExpectBruteForce(dataset,
                     {DrawRequest(Kind::kBlend, *dataset, random),
                      DrawRequest(Kind::kAverage, *dataset, random)},
                     false);
  });
  EXPECT_EQ(rounds(), 0U);
}

TEST_P(RandomQueriesTest, GroupsAreBruteForces) {
  Repeat(1'000, [this](SeededRandom& random) {
    const auto dataset = RandomCollection(random);
    const Kind kinds[] = {Kind::kVector, Kind::kItem, Kind::kUser, Kind::kBestScore};
    QueryRequest request = DrawRequest(kinds[random.Below(std::size(kinds))], *dataset, random);
    request.k = static_cast<std::uint32_t>(random.Between(1, 30));
    const char* const fields[] = {"tags", "series", "year", "codes"};
    request.group_by = {fields[random.Below(std::size(fields))],
                        static_cast<std::uint32_t>(random.Between(1, 4))};
    ExpectBruteForce(dataset, {request}, false);
  });
  if (!all_ran()) return;
  EXPECT_GT(rounds(), 50U) << "groups that are missing from the first ranking";
}

TEST_P(RandomQueriesTest, DiverseAnswersAreBruteForces) {
  Repeat(300, [this](SeededRandom& random) {
    const auto dataset = RandomCollection(random);
    const Kind kinds[] = {Kind::kVector, Kind::kUser, Kind::kSumScores};
    QueryRequest request = DrawRequest(kinds[random.Below(std::size(kinds))], *dataset, random);
    request.k = static_cast<std::uint32_t>(random.Between(1, 20));
    const std::size_t wanted = request.k + request.offset;
    request.diversity = {static_cast<float>(random.Below(11)) / 10.0F,
                         static_cast<std::uint32_t>(random.Between(wanted, wanted + 60))};
    ExpectBruteForce(dataset, {request}, false);
  });
}

TEST_P(RandomQueriesTest, MixedBatchesAreBruteForces) {
  Repeat(200, [this](SeededRandom& random) {
    const auto dataset = RandomCollection(random);
    std::vector<QueryRequest> requests;
    for (std::size_t i = random.Between(2, 9); i > 0; --i) {
      const auto kind = static_cast<Kind>(random.Below(7));
      QueryRequest request = DrawRequest(kind, *dataset, random);
      if (random.OneIn(4)) request.group_by = {"tags", 2};
      if (!request.group_by && request.k <= 20 && random.OneIn(3)) {
        request.diversity = {0.5F, request.k + request.offset + 10};
      }
      requests.push_back(std::move(request));
    }
    ExpectBruteForce(dataset, requests, random.OneIn(2));
  });
}

TEST_P(RandomQueriesTest, ExplanationsAreBruteForces) {
  Repeat(1'000, [this](SeededRandom& random) {
    const auto dataset = RandomCollection(random);
    QueryRequest request = DrawRequest(static_cast<Kind>(random.Below(7)), *dataset, random);
    if (random.OneIn(3)) {
      const char* const fields[] = {"tags", "series", "year", "codes"};
      request.k = std::min<std::uint32_t>(request.k, 30);
      request.group_by = {fields[random.Below(std::size(fields))],
                          static_cast<std::uint32_t>(random.Between(1, 4))};
    } else if (request.k <= 20 && random.OneIn(2)) {
      request.diversity = {static_cast<float>(random.Below(11)) / 10.0F,
                           request.k + request.offset + 20};
    }
    ExpectExplained(dataset, request, random);
  });
  if (!all_ran()) return;
  for (const Reason reason :
       {Reason::kNotSearchable, Reason::kFilter, Reason::kExcluded, Reason::kSeen, Reason::kInQuery,
        Reason::kThreshold, Reason::kRank, Reason::kOffset, Reason::kDiversity, Reason::kNoGroup,
        Reason::kGroupRank, Reason::kRankInGroup}) {
    EXPECT_GT(explained(static_cast<std::size_t>(reason)), 2U) << static_cast<int>(reason);
  }
  EXPECT_GT(explained(0), 200U);
}

INSTANTIATE_TEST_SUITE_P(Backends, RandomQueriesTest,
                         ::testing::Values(Subject{"plain_scan", PlainScan},
                                           Subject{"certified", Certified}),
                         [](const auto& subject) { return std::string(subject.param.name); });

}  // namespace
}  // namespace simile::engine

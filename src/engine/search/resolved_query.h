#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/search/execution.h"
#include "engine/search/row_order.h"
#include "filter/group_field.h"
#include "simile/hits.h"
#include "simile/row_mask.h"

namespace simile::engine {

// How a row's similarities to a query's vectors become its score.
enum class Scoring : std::uint8_t {
  kSimilarity,  // the similarity to its one vector
  kBestScore,   // certificate::BestScore
  kSumScores,   // certificate::SumScores
};

// Answers with rows that are like the query and unlike each other, by maximal marginal relevance
// (Carbonell and Goldstein, The Use of MMR, 1998): of the best `candidates` rows by score it
// chooses the best, then repeatedly the one with the greatest
//
//   lambda * score - (1 - lambda) * its greatest similarity to a row already chosen
//
// in double; ties go to the better score. Hits keep their scores and are in the order of the
// choice.
struct Diversity {
  float lambda = 0.5F;  // 0..1; 1 ranks by score alone
  std::uint32_t candidates = 100;
};

// Answers with the best k groups of rows that share a value of the field. A row belongs to the
// group of each of its values; a row without a value belongs to no group. A group ranks by its best
// row.
struct Grouping {
  filter::GroupField field;
  std::uint32_t group_size = 1;  // best rows of each group
};

// One query in the executor. Owns its mask and lists until it is answered.
struct ResolvedQuery {
  std::uint32_t k = 10;       // rows, or groups of rows
  float score_threshold = 0;  // -inf for none
  // Rows never returned, ascending and distinct. Queries of one call share a list
  // (shared_excluded_rows); a query that excludes further rows has its own complete list.
  std::vector<Row> excluded_rows;
  std::shared_ptr<const std::vector<Row>> shared_excluded_rows;
  // The rows that the query may return; null for all. Without any filter this is
  // Snapshot::searchable itself.
  std::shared_ptr<const RowMask> mask;
  // The rows that exist for the call: they pass its required filter; null for all. `mask` is a
  // subset.
  std::shared_ptr<const RowMask> existing;

  // The number of the query's vectors in the task's matrix, which has the vectors of all queries in
  // order.
  std::uint32_t vector_count = 1;
  Scoring scoring = Scoring::kSimilarity;
  std::vector<float> weights;        // [vector_count], positive; empty for kSimilarity
  std::uint32_t positive_count = 0;  // positive examples, first among the vectors
  // Ranks rows without vectors (a cold start). Scores are then 0; the threshold does not apply.
  std::optional<RowOrder> order;

  std::optional<Diversity> diversity;  // one of these at most
  std::optional<Grouping> grouping;

  // Rows to explain (RowPlaces), ascending and distinct; also rows that the query may not return.
  std::vector<Row> explained;

  std::span<const Row> excluded() const {
    return shared_excluded_rows != nullptr ? *shared_excluded_rows : excluded_rows;
  }

  // Whether a single search answers it.
  bool IsPlain() const {
    return scoring == Scoring::kSimilarity && !order && !diversity && !grouping &&
           explained.empty();
  }
};

// Rows that share a keyword.
struct HitGroup {
  std::string keyword;
  std::vector<Hit> hits;  // best first

  friend bool operator==(const HitGroup&, const HitGroup&) = default;
};

// The step of Diversity that chose a row. For a candidate that was not chosen, the last step.
struct DiversityStep {
  bool chosen = false;
  std::uint32_t step = 1;
  double marginal_relevance = 0;         // the value that Diversity maximizes, of the row
  double chosen_marginal_relevance = 0;  // the same value of the row that this step chose
  std::optional<Row> nearest;            // the most similar row chosen before; none in step 1
  float similarity = 0;                  // to the nearest
};

// The rank of a row among all rows that the query may return. For a row that the query may not
// return: the rank that it would have.
struct RowPlace {
  struct GroupPlace {
    std::uint32_t number = 0;         // in the field
    std::uint64_t groups_before = 0;  // groups that rank before this group
    std::uint64_t rows_before = 0;    // rows of the group that rank before the row
  };

  Row row = 0;
  float score = 0;  // canonical; 0 for a cold start
  std::uint64_t rows_before = 0;
  std::vector<GroupPlace> groups;
  std::optional<DiversityStep> diversity;  // of a candidate
};

struct RowPlaces {
  std::vector<RowPlace> rows;  // [explained]
  // The score of the last row that the answer reaches: the k-th row; with diversity the last
  // candidate; with groups the best row of the k-th group. Nothing when there are fewer.
  std::optional<float> score_needed;
};

// The hits of one query. The queries that a pass answered for a call share one block of hits, so
// that a call of many queries needs few allocations.
class QueryHits {
 public:
  QueryHits() = default;
  // Throws std::bad_alloc.
  explicit QueryHits(std::vector<Hit> hits)
      : QueryHits(std::make_shared<const std::vector<Hit>>(std::move(hits))) {}
  //   block  the hits of several queries
  //   first  in the block
  QueryHits(std::shared_ptr<const Hit[]> block, std::size_t first, std::size_t count)
      : hits_(block, block.get() + first), count_(count) {}

  // Valid while this object or a copy lives.
  std::span<const Hit> span() const { return {hits_.get(), count_}; }
  std::size_t size() const { return count_; }

 private:
  explicit QueryHits(const std::shared_ptr<const std::vector<Hit>>& hits)
      : hits_(hits, hits->data()), count_(hits->size()) {}

  std::shared_ptr<const Hit> hits_;
  std::size_t count_ = 0;
};

// The answer to one query, and how it was computed.
struct QueryResult {
  QueryHits hits;                // in the order of the answer; empty for groups
  std::vector<HitGroup> groups;  // ordered by their best rows
  // For a query with an order and without groups: the number of hits that the order lists. The
  // other hits have no value and come last, by row.
  std::size_t listed_count = 0;
  RowPlaces places;  // of the explained rows
  Execution execution;
};

}  // namespace simile::engine

#include "bench/oracle.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include <fmt/format.h>

#include "certificate/canonical_score.h"

namespace simile::bench {

std::vector<std::vector<Hit>> OracleAnswers(const MatrixView& rows, const MatrixView& queries,
                                            std::size_t k, backend::cpu::ThreadPool& pool) {
  std::vector<std::vector<Hit>> answers(queries.row_count());
  std::atomic<std::size_t> next_query{0};
  auto job = [&](unsigned) {
    for (std::size_t query; (query = next_query.fetch_add(1)) < queries.row_count();) {
      std::vector<Hit> hits(rows.row_count());
      for (std::size_t row = 0; row < rows.row_count(); ++row) {
        hits[row] = {static_cast<Row>(row),
                     certificate::CanonicalScoreReference(rows[row], queries[query])};
      }
      const std::size_t count = std::min(k, hits.size());
      std::ranges::partial_sort(hits, hits.begin() + static_cast<std::ptrdiff_t>(count),
                                std::greater<>(), ToRankKey);
      hits.resize(count);
      answers[query] = std::move(hits);
    }
  };
  pool.Run(job);
  return answers;
}

absl::Status CheckAnswers(const SearchResult& result,
                          const std::vector<std::vector<Hit>>& expected) {
  for (std::size_t query = 0; query < result.batch(); ++query) {
    const std::span<const Hit> hits = result.Hits(query);
    if (hits.size() != expected[query].size()) {
      return absl::InternalError(fmt::format("query {}: {} hits instead of {}", query, hits.size(),
                                             expected[query].size()));
    }
    for (std::size_t rank = 0; rank < hits.size(); ++rank) {
      const Hit& wanted = expected[query][rank];
      if (hits[rank] == wanted) continue;
      return absl::InternalError(
          fmt::format("query {}, rank {}: row {} with {} instead of {} with {}", query, rank,
                      hits[rank].row, hits[rank].score, wanted.row, wanted.score));
    }
  }
  return absl::OkStatus();
}

}  // namespace simile::bench

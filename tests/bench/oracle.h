#pragma once

#include <cstddef>
#include <vector>

#include <absl/status/status.h>

#include "backend/cpu/thread_pool.h"
#include "simile/hits.h"
#include "simile/matrix_view.h"

namespace simile::bench {

// The best k rows for every query by the definition of the canonical score, one operation at a
// time. A bench compares its answers with these before it prints.
std::vector<std::vector<Hit>> OracleAnswers(const MatrixView& rows, const MatrixView& queries,
                                            std::size_t k, backend::cpu::ThreadPool& pool);

// Errors: kInternal with the first query, rank, row and score that differ.
absl::Status CheckAnswers(const SearchResult& result,
                          const std::vector<std::vector<Hit>>& expected);

}  // namespace simile::bench

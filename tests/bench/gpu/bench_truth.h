#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/hits.h"
#include "simile/matrix_view.h"

namespace simile::bench::gpu {

// The answers of the plain scan on the CPU. Every answer of the card is compared with them before
// its time is reported. The best k of a query begin with its best k' < k, so one search with the
// largest k is enough.
class BenchTruth {
 public:
  //   verify  the number of queries, from the first
  // Errors: those of the scan.
  static absl::StatusOr<BenchTruth> Scan(MatrixView rows, MatrixView queries, std::size_t verify,
                                         std::uint32_t k_max, unsigned threads);

  // Queries whose answers are known.
  std::size_t query_count() const { return hits_.batch(); }

  // Compares rows and score bits for the queries whose answers are known. Returns how many were.
  //   first  the query of the result's first answer
  // Errors: kInternal, with the first difference.
  absl::StatusOr<std::size_t> Check(const SearchResult& result, std::size_t first,
                                    std::uint32_t k) const;

  // The same for answers of the queries from the first on; an empty one is not proven, and skipped.
  absl::StatusOr<std::size_t> CheckProven(std::span<const std::vector<Hit>> answers,
                                          std::uint32_t k) const;

  // The rows of the best k_max of each query: [query_count, k_max].
  std::vector<std::int64_t> Rows() const;

 private:
  absl::Status CheckOne(std::span<const Hit> actual, std::size_t query, std::uint32_t k) const;

  SearchResult hits_;
};

}  // namespace simile::bench::gpu

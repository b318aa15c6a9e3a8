#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/matrix.h"
#include "simile/hits.h"

namespace simile::bench::gpu {

// What the plain scan on the CPU answers: what every answer of the card is held against before a
// time is shown for it. The best k of a query begin with its best k' < k, so one search with the
// greatest k serves all.
class BenchTruth {
 public:
  //   verify  of so many queries, the first ones
  // Errors: of the scan.
  static absl::StatusOr<BenchTruth> Scan(const data::Matrix& rows, const data::Matrix& queries,
                                         std::size_t verify, std::uint32_t k_max, unsigned threads);

  // Queries whose answers are known.
  std::size_t query_count() const { return hits_.batch(); }

  // Compares rows and the bits of scores of the queries that are known. Returns how many were.
  //   first  the query that result's first answer is to
  // Errors: kInternal, the first difference.
  absl::StatusOr<std::size_t> Check(const SearchResult& result, std::size_t first,
                                    std::uint32_t k) const;

  // The rows of the best k_max of each query, to an int64 .npy file [query_count, k_max].
  absl::Status WriteRows(const std::string& path) const;

 private:
  SearchResult hits_;
};

}  // namespace simile::bench::gpu

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "data/matrix.h"
#include "simile/backend.h"
#include "simile/hits.h"

namespace simile::doctor {

// Vectors with random directions and unit length; the same seed gives the same vectors.
absl::StatusOr<data::Matrix> RandomVectors(std::size_t row_count, std::size_t dim,
                                           std::uint64_t seed);

// A small collection with queries, the same on every machine, for comparing backends.
struct CheckSample {
  std::shared_ptr<const data::Matrix> rows;  // [5000, 384], unit length
  data::Matrix queries;                      // [1000, 384], unit length
};
absl::StatusOr<CheckSample> MakeCheckSample();

// Makes the sample's rows resident in a backend. Errors: Backend::MakeResident's.
absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeSegment(Backend& backend,
                                                                const CheckSample& sample);

// Finds the best 10 rows for the sample's first query_count queries. Errors:
// SegmentIndex::Search's.
absl::StatusOr<SearchResult> AnswerQueries(const SegmentIndex& segment, const CheckSample& sample,
                                           std::size_t query_count);

// Says where two answers to the same queries differ in rows or in the bits of scores; empty if they
// do not.
std::string FindDifference(const SearchResult& answer, const SearchResult& reference);

// Measures for a quarter of a second how many queries per second a segment answers in batches of
// 1,000. Errors: SegmentIndex::Search's.
absl::StatusOr<double> MeasureRate(const SegmentIndex& segment, const CheckSample& sample);

}  // namespace simile::doctor

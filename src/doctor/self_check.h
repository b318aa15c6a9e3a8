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

// Vectors of random directions and unit length, the same for the same seed.
absl::StatusOr<data::Matrix> RandomVectors(std::size_t row_count, std::size_t dim,
                                           std::uint64_t seed);

// A small collection with queries, the same on every machine: what backends are compared by.
struct CheckSample {
  std::shared_ptr<const data::Matrix> rows;  // [5000, 384], unit length
  data::Matrix queries;                      // [1000, 384], unit length
};
absl::StatusOr<CheckSample> MakeCheckSample();

// The sample's rows as a segment of a backend. Errors: those of Backend::MakeResident.
absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeSegment(Backend& backend,
                                                                const CheckSample& sample);

// The best 10 rows for the sample's first queries. Errors: those of SegmentIndex::Search.
absl::StatusOr<SearchResult> AnswerQueries(const SegmentIndex& segment, const CheckSample& sample,
                                           std::size_t query_count);

// Where two answers to the same queries differ, in rows or in bits of scores; empty for nowhere.
std::string FindDifference(const SearchResult& answer, const SearchResult& reference);

// How many of the sample's queries a second a segment answers in batches of 1,000, measured for a
// quarter of a second. Errors: those of SegmentIndex::Search.
absl::StatusOr<double> MeasureRate(const SegmentIndex& segment, const CheckSample& sample);

}  // namespace simile::doctor

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>
#include <gtest/gtest.h>

#include "simile/v1/types.pb.h"

namespace simile::integration {

// An answer from examples/films/expected.json, for one item or user: rows and float64 scores.
struct ExpectedAnswer {
  std::string id;
  std::string filter;                                  // of recommendations, in the filter language
  std::uint64_t rows_passing = 0;                      // the filter
  std::vector<std::pair<std::uint64_t, double>> hits;  // best first
};

std::vector<ExpectedAnswer> ExpectedSimilar();
// Without the items that the user liked, and unfiltered, though filter and rows_passing are set.
std::vector<ExpectedAnswer> ExpectedRecommendations();
// With each user's filter.
std::vector<ExpectedAnswer> ExpectedFilteredRecommendations(bool exclude_seen);

// Whether the hits equal the expected hits: scores within 2e-6 at each rank, and the same rows.
// Rows whose scores are within 2e-6 of each other may swap ranks.
testing::AssertionResult SameAnswer(const google::protobuf::RepeatedPtrField<v1::Hit>& hits,
                                    const ExpectedAnswer& expected);

}  // namespace simile::integration

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>
#include <gtest/gtest.h>

#include "simile/v1/types.pb.h"

namespace simile::integration {

// The answer examples/films/expected.json has for one item or user: rows and float64 scores.
struct ExpectedAnswer {
  std::string id;
  std::string filter;                                  // of recommendations, in Simile's words
  std::uint64_t rows_passing = 0;                      // that filter
  std::vector<std::pair<std::uint64_t, double>> hits;  // best first
};

std::vector<ExpectedAnswer> ExpectedSimilar();
// Without what the user has liked; without a filter, though filter and rows_passing are there.
std::vector<ExpectedAnswer> ExpectedRecommendations();
// Under each user's filter.
std::vector<ExpectedAnswer> ExpectedFilteredRecommendations(bool exclude_seen);

// Whether hits are those expected: scores within 2e-6 place by place, and the same rows, where rows
// whose scores lie within 2e-6 of each other may have changed places.
testing::AssertionResult SameAnswer(const google::protobuf::RepeatedPtrField<v1::Hit>& hits,
                                    const ExpectedAnswer& expected);

}  // namespace simile::integration

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
  std::vector<std::pair<std::uint64_t, double>> hits;  // best first
};

std::vector<ExpectedAnswer> ExpectedSimilar();
// Without what the user has liked.
std::vector<ExpectedAnswer> ExpectedRecommendations();

// Whether hits are those expected: scores within 2e-6 place by place, and the same rows, where rows
// whose scores lie within 2e-6 of each other may have changed places.
testing::AssertionResult SameAnswer(const google::protobuf::RepeatedPtrField<v1::Hit>& hits,
                                    const ExpectedAnswer& expected);

}  // namespace simile::integration

#pragma once

#include <cstddef>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/rotation.h"

namespace simile::tests {

enum class Allocations {
  kAll,
  kSome,  // of thousands: the first ones, and of the others those that this run covers (rotation.h)
};

// Calls attempt(number, failed) with 1, 2, ... until it says that no allocation has failed.
template <class Attempt>
void ForEachAllocation(Allocations which, const Attempt& attempt) {
  constexpr std::size_t kFirst = 200;
  const auto rotation = conformance::Rotation::FromEnvironment();
  bool failed = true;
  for (std::size_t number = 1; failed && !testing::Test::HasFailure(); ++number) {
    if (which == Allocations::kSome && number > kFirst && !rotation.Covers(number)) continue;
    SCOPED_TRACE(fmt::format("allocation {}", number));
    attempt(number, failed);
  }
}

}  // namespace simile::tests

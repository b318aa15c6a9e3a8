#pragma once

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace simile::base {

// How long a test waits for an event that comes within a second on a calm machine. The limit is a
// hundred times longer, so that only a fault reaches it.
inline constexpr std::chrono::minutes kAwaitMax{2};

// Looks again and again until `holds` returns true; fails after kAwaitMax.
template <class Condition>
testing::AssertionResult AwaitTrue(const Condition& holds) {
  const auto end = std::chrono::steady_clock::now() + kAwaitMax;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) {
      return testing::AssertionFailure() << "not within " << kAwaitMax.count() << " minutes";
    }
    std::this_thread::yield();
  }
  return testing::AssertionSuccess();
}

}  // namespace simile::base

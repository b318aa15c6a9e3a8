#pragma once

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace simile::base {

// How long a test waits for what must come to pass within a second on a calm machine: a hundred
// times as long, so that only a fault ends the wait.
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

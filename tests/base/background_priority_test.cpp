#include "base/background_priority.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <thread>

namespace simile::base {
namespace {

int Niceness() { return getpriority(PRIO_PROCESS, 0); }

TEST(BackgroundPriorityTest, IsThatOfTheCallingThreadAndOfThoseItStarts) {
  const int before = Niceness();
  int own = before;
  int inherited = before;
  std::thread([&] {
    UseBackgroundPriority();
    own = Niceness();
    std::thread([&] { inherited = Niceness(); }).join();
  }).join();
  EXPECT_EQ(own, 10);
  EXPECT_EQ(inherited, own);
  EXPECT_EQ(Niceness(), before) << "of this thread";
}

}  // namespace
}  // namespace simile::base

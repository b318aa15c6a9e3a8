#include "app/background_work.h"

#include <chrono>

#include <gtest/gtest.h>

namespace simile::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1U << 20;

// A process that is looked at once a second.
class IdleMemoryTest : public testing::Test {
 protected:
  // Lets `count` seconds pass. Returns after how many seconds memory is to be given back; 0 for
  // never.
  int SecondsUntilDue(int count, milliseconds cpu_each_second, std::uint64_t resident_bytes) {
    for (int second = 1; second <= count; ++second) {
      reading_.taken_at += seconds(1);
      reading_.cpu_time += cpu_each_second;
      reading_.resident_bytes = resident_bytes;
      if (memory_.IsDue(reading_)) return second;
    }
    return 0;
  }

  IdleMemory memory_;
  IdleMemory::Reading reading_;
};

TEST_F(IdleMemoryTest, IsDueWhenTheProcessIsIdleAfterAPeak) {
  EXPECT_EQ(SecondsUntilDue(10, milliseconds(0), 40 * kMiB), 0);
  EXPECT_EQ(SecondsUntilDue(20, milliseconds(900), 4'000 * kMiB), 0);
  EXPECT_EQ(SecondsUntilDue(20, milliseconds(1), 4'000 * kMiB), 5);
}

TEST_F(IdleMemoryTest, IsNotDueAgainForWhatIsInUse) {
  EXPECT_EQ(SecondsUntilDue(10, milliseconds(0), 40 * kMiB), 0);
  EXPECT_EQ(SecondsUntilDue(10, milliseconds(900), 4'000 * kMiB), 0);
  EXPECT_EQ(SecondsUntilDue(20, milliseconds(1), 4'000 * kMiB), 5);
  memory_.Returned(3'000 * kMiB);
  EXPECT_EQ(SecondsUntilDue(60, milliseconds(1), 3'010 * kMiB), 0);
  EXPECT_EQ(SecondsUntilDue(60, milliseconds(1), 3'016 * kMiB), 1);
}

TEST_F(IdleMemoryTest, FollowsMemoryThatWentBackByItself) {
  EXPECT_EQ(SecondsUntilDue(10, milliseconds(0), 4'000 * kMiB), 0);
  EXPECT_EQ(SecondsUntilDue(10, milliseconds(0), 100 * kMiB), 0);
  EXPECT_EQ(SecondsUntilDue(10, milliseconds(0), 130 * kMiB), 1);
}

TEST_F(IdleMemoryTest, IsNotDueWhileCallsAreAnswered) {
  EXPECT_EQ(SecondsUntilDue(10, milliseconds(0), 40 * kMiB), 0);
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(SecondsUntilDue(1, milliseconds(60), 4'000 * kMiB), 0);
    EXPECT_EQ(SecondsUntilDue(4, milliseconds(1), 4'000 * kMiB), 0);
  }
}

}  // namespace
}  // namespace simile::app

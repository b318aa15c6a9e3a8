#include "service/resolve_workers.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <string>

#include <gtest/gtest.h>

#include "engine/fake_clock.h"

namespace simile::service {
namespace {

constexpr std::chrono::milliseconds kLongerThanATurn{5};

class ResolveWorkersTest : public testing::Test {
 protected:
  engine::FakeClock clock_;
};

TEST_F(ResolveWorkersTest, RunsAllThatWasPostedBeforeTheEnd) {
  std::atomic<int> runs = 0;
  {
    ResolveWorkers workers({.running_max = 2, .begun_max = 3, .waiting_max = 1'000}, clock_);
    for (int i = 0; i < 1'000; ++i) {
      ASSERT_TRUE(workers.Post([this, &runs] {
        ++runs;
        clock_.Advance(kLongerThanATurn);
        ResolveWorkers::LetOthersRun();
      }));
    }
  }
  EXPECT_EQ(runs, 1'000);
}

TEST_F(ResolveWorkersTest, TakesNoMoreThanMayWait) {
  std::latch began(1);
  std::latch go_on(1);
  int runs = 0;
  {
    ResolveWorkers workers({.waiting_max = 2}, clock_);
    ASSERT_TRUE(workers.Post([&] {
      began.count_down();
      go_on.wait();
    }));
    began.wait();
    EXPECT_TRUE(workers.Post([&runs] { ++runs; }));
    EXPECT_TRUE(workers.Post([&runs] { ++runs; }));
    EXPECT_FALSE(workers.Post([&runs] { ++runs; }));
    go_on.count_down();
  }
  EXPECT_EQ(runs, 2);
}

TEST_F(ResolveWorkersTest, RunsWhileAnotherPartTakesLong) {
  std::latch short_one_ran(1);
  ResolveWorkers workers({.running_max = 2, .begun_max = 2}, clock_);
  ASSERT_TRUE(workers.Post([&] { short_one_ran.wait(); }));
  ASSERT_TRUE(workers.Post([&] { short_one_ran.count_down(); }));
  short_one_ran.wait();
}

// One runs at a time, so what they share needs no lock.
TEST_F(ResolveWorkersTest, RunsShortWorkBetweenTheTurnsOfLongWork) {
  std::latch began(1);
  std::latch posted(1);
  bool short_one_ran = false;
  ResolveWorkers workers({.running_max = 1, .begun_max = 2}, clock_);
  ASSERT_TRUE(workers.Post([&] {
    began.count_down();
    posted.wait();
    ResolveWorkers::LetOthersRun();
    EXPECT_FALSE(short_one_ran) << "the turn has just begun";
    clock_.Advance(kLongerThanATurn);
    ResolveWorkers::LetOthersRun();
    EXPECT_TRUE(short_one_ran);
  }));
  began.wait();
  ASSERT_TRUE(workers.Post([&] { short_one_ran = true; }));
  posted.count_down();
}

TEST_F(ResolveWorkersTest, GivesLongWorkTurnsOneAfterTheOther) {
  std::string turns;
  {
    std::latch posted(1);
    ResolveWorkers workers({.running_max = 1, .begun_max = 3}, clock_);
    for (const char name : {'a', 'b', 'c'}) {
      ASSERT_TRUE(workers.Post([&, name] {
        posted.wait();
        for (int turn = 0; turn < 3; ++turn) {
          turns += name;
          clock_.Advance(kLongerThanATurn);
          ResolveWorkers::LetOthersRun();
        }
      }));
    }
    posted.count_down();
  }
  EXPECT_EQ(turns, "abcabcabc");
}

TEST_F(ResolveWorkersTest, BeginsNoMoreThanItHasThreadsFor) {
  std::string turns;
  {
    std::latch posted(1);
    ResolveWorkers workers({.running_max = 1, .begun_max = 2}, clock_);
    for (const char name : {'a', 'b', 'c'}) {
      ASSERT_TRUE(workers.Post([&, name] {
        posted.wait();
        for (int turn = 0; turn < 2; ++turn) {
          turns += name;
          clock_.Advance(kLongerThanATurn);
          ResolveWorkers::LetOthersRun();
        }
      }));
    }
    posted.count_down();
  }
  EXPECT_EQ(turns, "ababcc");
}

TEST_F(ResolveWorkersTest, KeepsWorkWaitingThatFindsNoSpace) {
  std::latch small_one_ran(1);
  std::atomic<bool> first_ended = false;
  ResolveWorkers workers({.running_max = 2, .begun_max = 3, .begun_bytes_max = 100}, clock_);
  ASSERT_TRUE(workers.Post(
      [&] {
        small_one_ran.wait();
        first_ended = true;
      },
      80));
  ASSERT_TRUE(workers.Post([&] { EXPECT_TRUE(first_ended); }, 80));
  ASSERT_TRUE(workers.Post([&] { small_one_ran.count_down(); }, 20));
  small_one_ran.wait();
}

TEST_F(ResolveWorkersTest, TakesLargerWorkThanThereIsSpaceForWhenAlone) {
  std::latch ran(1);
  ResolveWorkers workers({.begun_bytes_max = 100}, clock_);
  ASSERT_TRUE(workers.Post([&] { ran.count_down(); }, 1'000));
  ran.wait();
}

TEST_F(ResolveWorkersTest, DoesNothingOnOtherThreads) { ResolveWorkers::LetOthersRun(); }

}  // namespace
}  // namespace simile::service

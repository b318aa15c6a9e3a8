#include "service/calls/resolve_workers.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
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
    ResolveWorkers workers({.running_max = 2, .begun_max = 5, .waiting_max = 2'000}, clock_);
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
    ResolveWorkers workers({.waiting_max = 4}, clock_);
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

// One piece of work runs at a time, so shared variables need no lock.
TEST_F(ResolveWorkersTest, RunsShortWorkBetweenTheTurnsOfLongWork) {
  std::latch began(1);
  std::latch posted(1);
  bool short_one_ran = false;
  ResolveWorkers workers({.running_max = 1, .begun_max = 4}, clock_);
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
    ResolveWorkers workers({.running_max = 1, .begun_max = 6}, clock_);
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

TEST_F(ResolveWorkersTest, BeginsNoMoreOfACallerThanItsShare) {
  std::string turns;
  {
    std::latch posted(1);
    ResolveWorkers workers({.running_max = 1, .begun_max = 4}, clock_);
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

TEST_F(ResolveWorkersTest, BeginsWorkOfAnotherCallerWhileOneHasItsShare) {
  std::latch posted(1);
  bool other_ran = false;
  ResolveWorkers workers({.running_max = 1, .begun_max = 6}, clock_);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(workers.Post(
        [&] {
          posted.wait();
          while (!other_ran) {
            clock_.Advance(kLongerThanATurn);
            ResolveWorkers::LetOthersRun();
          }
        },
        {.caller = 1}));
  }
  ASSERT_TRUE(workers.Post([&] { other_ran = true; }, {.caller = 2}));
  posted.count_down();
}

// A worker that waits until it is released, so that all other work waits.
class HeldWorkersTest : public ResolveWorkersTest {
 protected:
  static ResolveWorkers::Options Options() {
    return {.running_max = 1, .begun_max = 6, .waiting_max = 6, .waiting_bytes_max = 100};
  }
  void SetUp() override {
    std::latch began(1);
    ASSERT_TRUE(workers_.Post([&] {
      began.count_down();
      let_go_.wait();
    }));
    began.wait();
  }
  void TearDown() override { let_go_.count_down(); }

  std::latch let_go_{1};
  ResolveWorkers workers_{Options(), clock_};
};

TEST_F(HeldWorkersTest, KeepsPlacesForOtherCallers) {
  const auto nothing = [] {};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(workers_.Post(nothing, {.caller = 1}));
  EXPECT_FALSE(workers_.Post(nothing, {.caller = 1}));
  EXPECT_TRUE(workers_.Post(nothing, {.caller = 2}));
}

TEST_F(HeldWorkersTest, BoundsTheBytesOfWhatWaits) {
  const auto nothing = [] {};
  EXPECT_TRUE(workers_.Post(nothing, {.caller = 1, .waiting_bytes = 40}));
  EXPECT_FALSE(workers_.Post(nothing, {.caller = 1, .waiting_bytes = 40}));
  EXPECT_TRUE(workers_.Post(nothing, {.caller = 1}));
  EXPECT_TRUE(workers_.Post(nothing, {.caller = 2, .waiting_bytes = 30}));
  EXPECT_EQ(workers_.counts().waiting, 3U);
  EXPECT_EQ(workers_.counts().waiting_bytes, 70U);
}

// The begun work takes 80 bytes of 200.
class SpaceTest : public ResolveWorkersTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(workers_.Post(
        [this] {
          began_.count_down();
          let_go_.wait();
          ended_ = true;
        },
        {.caller = 1, .bytes = 80}));
    began_.wait();
  }

  std::latch began_{1};
  std::latch let_go_{1};
  std::atomic<bool> ended_ = false;
  ResolveWorkers workers_{{.running_max = 2, .begun_max = 8, .begun_bytes_max = 200}, clock_};
};

TEST_F(SpaceTest, KeepsWorkWaitingThatFindsNone) {
  std::latch small_one_ran(1);
  ASSERT_TRUE(workers_.Post([&] { EXPECT_TRUE(ended_); }, {.caller = 1, .bytes = 80}));
  ASSERT_TRUE(workers_.Post([&] { small_one_ran.count_down(); }, {.caller = 1}));
  small_one_ran.wait();
  let_go_.count_down();
}

TEST_F(SpaceTest, DoesNotLetSmallerWorkPassWorkThatWaitsForIt) {
  std::atomic<bool> large_one_ran = false;
  std::latch small_one_ran(1);
  ASSERT_TRUE(workers_.Post(
      [&] {
        EXPECT_TRUE(ended_);
        large_one_ran = true;
      },
      {.caller = 2, .bytes = 150}));
  ASSERT_TRUE(workers_.Post(
      [&] {
        EXPECT_TRUE(large_one_ran);
        small_one_ran.count_down();
      },
      {.caller = 3, .bytes = 60}));
  let_go_.count_down();
  small_one_ran.wait();
}

TEST_F(SpaceTest, LetsOthersPassACallerThatHasItsShare) {
  std::latch other_ran(1);
  ASSERT_TRUE(workers_.Post([&] { EXPECT_TRUE(ended_); }, {.caller = 1, .bytes = 80}));
  ASSERT_TRUE(workers_.Post([&] { other_ran.count_down(); }, {.caller = 2, .bytes = 80}));
  other_ran.wait();
  let_go_.count_down();
}

TEST_F(ResolveWorkersTest, TakesBackSpaceThatWorkDoesNotNeed) {
  std::latch other_ran(1);
  ResolveWorkers workers({.running_max = 2, .begun_max = 2, .begun_bytes_max = 100}, clock_);
  ASSERT_TRUE(workers.Post(
      [&] {
        ResolveWorkers::NeedsOnly(10);
        other_ran.wait();
      },
      {.bytes = 100}));
  ASSERT_TRUE(workers.Post([&] { other_ran.count_down(); }, {.bytes = 20}));
  other_ran.wait();
}

// With the lock held, it would wait forever for the same lock.
TEST_F(ResolveWorkersTest, FreesWhatWorkKeptWithoutHoldingUpOthers) {
  std::latch ran(1);
  ResolveWorkers workers({}, clock_);
  const auto post = [&](int* kept) {
    delete kept;
    EXPECT_TRUE(workers.Post([&] { ran.count_down(); }));
  };
  ASSERT_TRUE(workers.Post([kept = std::shared_ptr<int>(new int(1), post)] {}));
  ran.wait();
}

TEST_F(ResolveWorkersTest, TakesLargerWorkThanThereIsSpaceForWhenAlone) {
  std::latch ran(1);
  ResolveWorkers workers({.begun_bytes_max = 100}, clock_);
  ASSERT_TRUE(workers.Post([&] { ran.count_down(); }, {.bytes = 1'000}));
  ran.wait();
}

TEST_F(ResolveWorkersTest, DoesNothingOnOtherThreads) { ResolveWorkers::LetOthersRun(); }

}  // namespace
}  // namespace simile::service

#include "simulation/simulator.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulation/ignored_leaks.h"
#include "simulation/primitives.h"

namespace simile::simulation {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSeeds = 500;

// What went wrong in the first schedule in which something did; "" when nothing did in any.
std::string FirstFailure(const std::function<void(Simulator&)>& body) {
  const IgnoredLeaks ignored;
  Simulator simulator;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::string failure = simulator.Run(seed, [&] { body(simulator); });
    if (!failure.empty()) return failure;
  }
  return {};
}

// Two threads that each add 1 to a number.
//   locked  whether reading and writing are one step
int AddTwice(Simulator& simulator, bool locked) {
  Mutex mutex;
  int sum = 0;
  const auto add = [&] {
    std::unique_lock lock(mutex, std::defer_lock);
    if (locked) lock.lock();
    const int before = sum;
    simulator.Point("adds", "one");
    sum = before + 1;
  };
  Thread first(add), second(add);
  first.join();
  second.join();
  return sum;
}

TEST(SimulatorTest, FindsALostUpdateAndNoneUnderALock) {
  const auto check = [](bool locked) {
    return FirstFailure([=](Simulator& simulator) {
      if (AddTwice(simulator, locked) != 2) simulator.Fail("an update is lost");
    });
  };
  EXPECT_EQ(check(false), "an update is lost");
  EXPECT_EQ(check(true), "");
}

TEST(SimulatorTest, FindsTheDeadlockOfTwoLocks) {
  const std::string failure = FirstFailure([](Simulator& simulator) {
    Mutex left("left"), right("right");
    Thread other([&] {
      simulator.NameThread("other");
      const std::scoped_lock lock(right);
      const std::lock_guard second(left);
    });
    {
      const std::lock_guard lock(left);
      const std::lock_guard second(right);
    }
    other.join();
  });
  EXPECT_THAT(failure, HasSubstr("deadlock"));
  EXPECT_THAT(failure, HasSubstr("main locks right"));
  EXPECT_THAT(failure, HasSubstr("other locks left"));
}

// A flag that another thread waits for.
//   checks  whether the waiting thread looks at it under the lock
void AwaitFlag(bool checks) {
  Mutex mutex;
  ConditionVariable wake;
  bool set = false;
  Thread waiting([&] {
    std::unique_lock lock(mutex);
    if (checks) {
      wake.wait(lock, [&] { return set; });
    } else {
      wake.wait(lock);
    }
  });
  {
    const std::lock_guard lock(mutex);
    set = true;
  }
  wake.notify_one();
  waiting.join();
}

TEST(SimulatorTest, FindsALostWakeUp) {
  EXPECT_THAT(FirstFailure([](Simulator&) { AwaitFlag(false); }), HasSubstr("deadlock"));
  EXPECT_EQ(FirstFailure([](Simulator&) { AwaitFlag(true); }), "");
}

TEST(SimulatorTest, WakesWithoutAReasonInSomeSchedules) {
  const std::string failure = FirstFailure([](Simulator& simulator) {
    Mutex mutex;
    ConditionVariable wake;
    Thread waiting([&] {
      std::unique_lock lock(mutex);
      wake.wait_for(lock, std::chrono::hours(1));
      if (simulator.now() < Clock::TimePoint(std::chrono::hours(2))) simulator.Fail("woken");
    });
    for (int i = 0; i < 100; ++i) simulator.Point("works", "");
    waiting.join();
  });
  EXPECT_EQ(failure, "woken");
}

TEST(SimulatorTest, LetsTimePassWhenNothingElseCan) {
  const std::string failure = FirstFailure([](Simulator& simulator) {
    simulator.ForbidTimeSlips();
    const Clock::TimePoint began = simulator.now();
    Thread longer([&] { simulator.Sleep(std::chrono::seconds(2)); });
    simulator.Sleep(std::chrono::seconds(1));
    if (simulator.now() - began != std::chrono::seconds(1)) simulator.Fail("too long");
    longer.join();
    if (simulator.now() - began != std::chrono::seconds(2)) simulator.Fail("too short");
  });
  EXPECT_EQ(failure, "");
}

TEST(SimulatorTest, CallsBackOnceWhereverTheStopFalls) {
  const std::string failure = FirstFailure([](Simulator& simulator) {
    StopSource source;
    int calls = 0;
    Thread stopping([&] { source.request_stop(); });
    {
      const StopCallback callback(source.get_token(), std::function<void()>([&] { ++calls; }));
      simulator.Point("works", "");
    }
    const int calls_then = calls;  // its end waits for a call that runs
    stopping.join();
    if (calls != calls_then || calls > 1) simulator.Fail("called too late or twice");
  });
  EXPECT_EQ(failure, "");
}

TEST(SimulatorTest, RepeatsAScheduleAndVariesWithTheSeed) {
  Simulator simulator;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto run = [&] {
      EXPECT_EQ(simulator.Run(seed, [&] { AddTwice(simulator, true); }), "");
      return std::pair(simulator.trace_hash(), simulator.Trace(1'000));
    };
    const auto first = run();
    EXPECT_EQ(run(), first) << "seed " << seed;
    hashes.insert(first.first);
  }
  EXPECT_GT(hashes.size(), 10U);
}

TEST(SimulatorTest, KeepsThrownExceptionsOfEachThreadApart) {
  const std::string failure = FirstFailure([](Simulator& simulator) {
    const auto work = [&](int number) {
      try {
        throw number;
      } catch (int) {
        simulator.Point("catches", "");
        try {
          throw;
        } catch (int caught) {
          if (caught != number) simulator.Fail("another thread's exception");
        }
      }
    };
    Thread first([&] { work(1); }), second([&] { work(2); });
    first.join();
    second.join();
  });
  EXPECT_EQ(failure, "");
}

TEST(SimulatorTest, RunsAgainAfterAFailure) {
  Simulator simulator;
  const IgnoredLeaks ignored;
  EXPECT_EQ(simulator.Run(1, [&] { simulator.Fail("wrong"); }), "wrong");
  EXPECT_EQ(simulator.Run(2, [&] { AddTwice(simulator, true); }), "");
}

}  // namespace
}  // namespace simile::simulation

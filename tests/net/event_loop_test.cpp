#include "net/event_loop.h"

#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/fake_clock.h"

namespace simile::net {
namespace {

using namespace std::chrono_literals;

// Runs a step on the loop each time it is posted.
class Step final : public EventLoop::Task {
 public:
  explicit Step(std::function<void()> step) : step_(std::move(step)) {}
  void Run() override { step_(); }

 private:
  const std::function<void()> step_;
};

class FiredTimer final : public EventLoop::Timer {
 public:
  explicit FiredTimer(std::function<void(FiredTimer&)> react = {}) : react_(std::move(react)) {}
  void OnTime() override {
    ++fired;
    if (react_) react_(*this);
  }
  int fired = 0;

 private:
  const std::function<void(FiredTimer&)> react_;
};

// A loop whose time the test sets.
class EventLoopTest : public testing::Test {
 protected:
  ~EventLoopTest() override { loop_.Stop(); }

  // Runs the step on the loop, and returns after a whole turn.
  void Run(const std::function<void()>& step) {
    std::mutex mutex;
    std::condition_variable changed;
    bool ran = false;
    Step last([&] {
      const std::lock_guard lock(mutex);
      ran = true;
      changed.notify_all();
    });
    Step first([&] {
      step();
      loop_.Soon(last);
    });
    loop_.Post(first);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ran; });
  }
  void Advance(Clock::Duration duration) {
    clock_.Advance(duration);
    Run([] {});  // the turn that began before the time was set
    Run([] {});
  }

  engine::FakeClock clock_;
  EventLoop loop_{"test-loop", {}, clock_};
};

TEST_F(EventLoopTest, RunsPostedTasksInTheirOrderAndOnce) {
  std::vector<int> order;
  Step first([&] { order.push_back(1); });
  Step second([&] { order.push_back(2); });
  loop_.Post(first);
  loop_.Post(second);
  loop_.Post(first);
  loop_.Start();
  Run([] {});
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_FALSE(OnLoopThread());
  Run([] { EXPECT_TRUE(OnLoopThread()); });
}

TEST_F(EventLoopTest, LosesNoTaskThatThreadsPost) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 20'000;
  loop_.Start();
  std::atomic<int> wanted = 0;
  int seen = 0;
  Step take([&] { seen += wanted.exchange(0); });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int post = 0; post < kPosts; ++post) {
        ++wanted;
        loop_.Post(take);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Run([] {});
  EXPECT_EQ(seen, kThreads * kPosts);
}

TEST_F(EventLoopTest, RunsASoonTaskOnceATurnAndInTheNextOneWhenItAsksAgain) {
  loop_.Start();
  int runs = 0;
  std::unique_ptr<Step> task;
  task = std::make_unique<Step>([&] {
    if (++runs < 3) loop_.Soon(*task);
  });
  Run([&] {
    loop_.Soon(*task);
    loop_.Soon(*task);
  });
  for (int turn = 0; turn < 5; ++turn) Run([] {});  // each is a turn at least
  EXPECT_EQ(runs, 3);
}

TEST_F(EventLoopTest, ReportsASocketThatBecomesReadable) {
  struct Reader final : EventLoop::Watcher {
    void OnEvents(std::uint32_t events) override { all |= events; }
    std::uint32_t all = 0;
  } reader;
  const base::FileDescriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  loop_.Start();
  Run([&] { EXPECT_TRUE(loop_.Watch(event.get(), reader)); });
  Run([] {});
  Run([&] { EXPECT_EQ(reader.all & EPOLLIN, 0U); });
  eventfd_write(event.get(), 1);
  Run([] {});
  Run([&] { EXPECT_NE(reader.all & EPOLLIN, 0U); });
}

TEST_F(EventLoopTest, FiresATimerAtItsTimeAndNotBefore) {
  loop_.Start();
  FiredTimer timer;
  Run([&] { loop_.Arm(timer, clock_.Now() + 100ms); });
  Advance(99ms);
  EXPECT_EQ(timer.fired, 0);
  Advance(1ms + EventLoop::kTimerStep);
  EXPECT_EQ(timer.fired, 1);
  Advance(10s);
  EXPECT_EQ(timer.fired, 1);
}

TEST_F(EventLoopTest, FiresTimersBeyondItsWheel) {
  loop_.Start();
  FiredTimer timer;
  Run([&] { loop_.Arm(timer, clock_.Now() + 1h); });
  Advance(30min);
  Advance(29min);
  EXPECT_EQ(timer.fired, 0);
  Advance(1min + EventLoop::kTimerStep);
  EXPECT_EQ(timer.fired, 1);
}

TEST_F(EventLoopTest, LetsATimerDisarmAnotherOfItsTimeAndArmItself) {
  loop_.Start();
  FiredTimer other;
  int arms = 0;
  FiredTimer timer([&](FiredTimer& self) {
    other.Disarm();
    if (++arms < 3) loop_.Arm(self, loop_.now() + 10ms);
  });
  Run([&] {
    loop_.Arm(other, clock_.Now() + 50ms);
    loop_.Arm(timer, clock_.Now() + 50ms);  // fires first
  });
  for (int i = 0; i < 10; ++i) Advance(20ms);
  EXPECT_EQ(timer.fired, 3);
  EXPECT_EQ(other.fired, 0);
}

TEST_F(EventLoopTest, FiresEveryTimerOnceWhateverTheTimes) {
  constexpr int kTimers = 500;
  std::mt19937 random(7);
  loop_.Start();
  std::vector<std::unique_ptr<FiredTimer>> timers;
  std::vector<Clock::TimePoint> due;
  int too_early = 0;
  Run([&] {
    for (int i = 0; i < kTimers; ++i) {
      const Clock::TimePoint time = clock_.Now() + std::chrono::microseconds(random() % 20'000'000);
      timers.push_back(std::make_unique<FiredTimer>(
          [&, time](FiredTimer&) { too_early += loop_.now() < time ? 1 : 0; }));
      due.push_back(time);
      loop_.Arm(*timers.back(), time);
    }
  });
  for (int i = 0; i < 300; ++i) {
    Advance(std::chrono::microseconds(random() % 150'000));
    for (int t = 0; t < kTimers; ++t) {
      const int fired = timers[static_cast<std::size_t>(t)]->fired;
      ASSERT_LE(fired, 1);
      if (due[static_cast<std::size_t>(t)] + 2 * EventLoop::kTimerStep < clock_.Now()) {
        ASSERT_EQ(fired, 1) << t;
      }
    }
  }
  EXPECT_EQ(too_early, 0);
  Run([&] { timers.clear(); });
}

}  // namespace
}  // namespace simile::net

#include "net/io_thread.h"

#include <chrono>

#include <gtest/gtest.h>

#include "net/running_io_thread.h"

namespace simile::net {
namespace {

using namespace std::chrono_literals;

// A call whose reply nobody takes.
class UntakenCall final : public OpenCall {
 public:
  explicit UntakenCall(Clock::TimePoint deadline) { SetTakeDeadline(deadline); }
  void Cut() override { ++cuts; }

  int cuts = 0;  // read on the thread, or when it has looked
};

TEST(IoThreadTest, CutsACallAtItsTime) {
  RunningIoThread io;
  io.Start();
  UntakenCall call(io.clock().Now() + 1'500ms);
  io.Run([&] { io.thread().Add(call); });
  io.Advance(1s);
  EXPECT_EQ(call.cuts, 0);
  io.Advance(499ms);
  EXPECT_EQ(call.cuts, 0);
  io.Advance(1ms);
  EXPECT_EQ(call.cuts, 1);
  io.Advance(10s);
  EXPECT_EQ(call.cuts, 1);
  io.Run([&] { io.thread().Remove(call); });
}

// Finds no memory the first times.
class ScarceWork final : public PostponedWork {
 public:
  ScarceWork(IoThread& thread, int failures) : thread_(thread), failures_(failures) {}
  void Retry() override {
    ++tries;
    if (failures_-- > 0) thread_.Postpone(*this);
  }

  int tries = 0;

 private:
  IoThread& thread_;
  int failures_;
};

TEST(IoThreadTest, RetriesWhatFoundNoMemoryUntilItDoes) {
  RunningIoThread io;
  ScarceWork work(io.thread(), 2);
  io.thread().Postpone(work);
  io.thread().Postpone(work);  // once
  io.Start();
  io.Run([] {});
  EXPECT_EQ(work.tries, 1);
  io.Advance(1s);
  EXPECT_EQ(work.tries, 2);
  io.Advance(1s);
  EXPECT_EQ(work.tries, 3);
  io.Advance(10s);
  EXPECT_EQ(work.tries, 3);
}

TEST(IoThreadTest, DropsWhatWasPostponedWhenTheServerStops) {
  RunningIoThread io;
  ScarceWork work(io.thread(), 1);
  io.thread().Postpone(work);
  io.Start();
  io.Run([] {});
  EXPECT_EQ(work.tries, 1);  // and is postponed again
  io.StopCalls();
  io.Advance(1s);
  EXPECT_EQ(work.tries, 1);
}

}  // namespace
}  // namespace simile::net

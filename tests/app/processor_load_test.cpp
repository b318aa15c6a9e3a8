#include "app/tuning/processor_load.h"

#include <ctime>

#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::app {
namespace {

TEST(ProcessorLoadTest, IsTheShareOfOtherPrograms) {
  const ScratchFolder scratch;
  // Ticks: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
  scratch.Write("stat", "cpu  1000 0 0 1000 0 0 0 0 0 0\ncpu0 1 2 3\n");
  ProcessorLoad load(scratch.path() / "stat");
  // A thousand hours more, half of them busy: what this process took of them is next to nothing.
  scratch.Write("stat",
                "cpu  100001000 40000000 30000000 150001000 30000000 5000000 2500000 "
                "2500000 9 9\n");
  EXPECT_NEAR(load.OthersSinceLastCall(), 0.5, 0.001);
  scratch.Write("stat",
                "cpu  100001000 40000000 30000000 550001000 30000000 5000000 2500000 "
                "2500000 9 9\n");
  EXPECT_NEAR(load.OthersSinceLastCall(), 0, 0.001);
}

TEST(ProcessorLoadTest, IsNothingWhereTheSystemDoesNotSay) {
  const ScratchFolder scratch;
  EXPECT_EQ(ProcessorLoad(scratch.path() / "stat").OthersSinceLastCall(), 0);
  scratch.Write("stat", "intr 1 2 3\n");
  EXPECT_EQ(ProcessorLoad(scratch.path() / "stat").OthersSinceLastCall(), 0);
  // Nothing passed.
  scratch.Write("stat", "cpu  1000 0 0 1000 0 0 0 0 0 0\n");
  EXPECT_EQ(ProcessorLoad(scratch.path() / "stat").OthersSinceLastCall(), 0);
}

TEST(ProcessorLoadTest, LeavesOutWhatThisProcessTook) {
  const ScratchFolder scratch;
  scratch.Write("stat", "cpu  0 0 0 0 0 0 0 0 0 0\n");
  ProcessorLoad load(scratch.path() / "stat");
  const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 10;
  while (std::clock() < until) {
  }
  // A tenth of a second busy, a tenth idle.
  scratch.Write("stat", "cpu  10 0 0 10 0 0 0 0 0 0\n");
  EXPECT_NEAR(load.OthersSinceLastCall(), 0, 0.05);
}

}  // namespace
}  // namespace simile::app

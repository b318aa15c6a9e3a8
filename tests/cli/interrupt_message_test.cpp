#include "cli/interrupt_message.h"

#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "cli/errors.h"

namespace simile::cli {
namespace {

// Each runs in a process of its own: the signal ends it.
class InterruptMessageTest : public testing::Test {
 protected:
  InterruptMessageTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

[[noreturn]] void InterruptThisProcess() {
  kill(getpid(), SIGINT);
  while (true) pause();
}

TEST_F(InterruptMessageTest, PrintsItsMessageAndEndsTheProgram) {
  EXPECT_EXIT(
      {
        InterruptMessage interrupt;
        interrupt.Set("the change goes on");
        InterruptThisProcess();
      },
      testing::ExitedWithCode(kInterrupted), "^the change goes on\n$");
}

TEST_F(InterruptMessageTest, PrintsNothingBeforeItHasAMessage) {
  EXPECT_EXIT(
      {
        const InterruptMessage interrupt;
        InterruptThisProcess();
      },
      testing::ExitedWithCode(kInterrupted), "^$");
}

TEST_F(InterruptMessageTest, LeavesTheSignalAsItWasAfterwards) {
  EXPECT_EXIT(
      {
        { const InterruptMessage interrupt; }
        InterruptThisProcess();
      },
      testing::KilledBySignal(SIGINT), "^$");
}

TEST_F(InterruptMessageTest, LeavesAnIgnoredSignalIgnored) {
  EXPECT_EXIT(
      {
        std::signal(SIGINT, SIG_IGN);
        InterruptMessage interrupt;
        interrupt.Set("the change goes on");
        kill(getpid(), SIGINT);
        _exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace simile::cli

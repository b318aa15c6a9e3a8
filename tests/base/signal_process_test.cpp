#include "base/signal_process.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::base {
namespace {

TEST(SignalProcessTest, RefusesTheNumbersOfGroups) {
  // Signal 0 harms nobody should a group take it.
  for (const pid_t group : {0, -1, -getpgrp()}) {
    const testing::AssertionResult sent = SignalProcess(group, 0);
    EXPECT_FALSE(sent) << group;
    EXPECT_THAT(sent.message(), testing::HasSubstr("no process was started")) << group;
  }
}

TEST(SignalProcessTest, SaysWhetherTheProcessExists) {
  EXPECT_TRUE(SignalProcess(getpid(), 0));
  EXPECT_FALSE(SignalProcess(1 << 30, 0));  // above the largest number that Linux gives
}

}  // namespace
}  // namespace simile::base

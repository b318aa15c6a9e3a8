#include "net/call_gate.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace simile::net {
namespace {

TEST(CallGateTest, AdmitsNoCallAfterClose) {
  CallGate gate;
  EXPECT_TRUE(gate.Enter());
  gate.Close();
  EXPECT_FALSE(gate.Enter());
  EXPECT_EQ(gate.inside(), 1U);
}

TEST(CallGateTest, StopsWaitingAfterTheTimeout) {
  CallGate gate;
  ASSERT_TRUE(gate.Enter());
  gate.Close();
  EXPECT_FALSE(gate.AwaitEmpty(std::chrono::milliseconds(1)));
  gate.Leave();
  EXPECT_TRUE(gate.AwaitEmpty(std::chrono::milliseconds(0)));
}

TEST(CallGateTest, WaitsForCallsOnOtherThreads) {
  CallGate gate;
  ASSERT_TRUE(gate.Enter());
  gate.Close();
  std::thread call([&] { gate.Leave(); });
  EXPECT_TRUE(gate.AwaitEmpty(std::chrono::hours(1)));
  call.join();
}

}  // namespace
}  // namespace simile::net

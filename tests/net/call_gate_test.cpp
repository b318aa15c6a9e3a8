#include "net/call_gate.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
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

TEST(CallGateTest, TellsCallsThatStayWhenItCloses) {
  CallGate gate;
  int told = 0;
  const auto first = gate.EnterUntilClosed([&] { told += 1; });
  const auto second = gate.EnterUntilClosed([&] { told += 10; });
  ASSERT_TRUE(first.has_value() && second.has_value());
  gate.Leave(*first);
  EXPECT_EQ(gate.inside(), 1U);
  gate.Close();
  EXPECT_EQ(told, 10);
  gate.Close();
  EXPECT_EQ(told, 10);
  EXPECT_EQ(gate.inside(), 1U);
  gate.Leave(*second);
  EXPECT_TRUE(gate.AwaitEmpty(std::chrono::milliseconds(0)));
  EXPECT_FALSE(gate.EnterUntilClosed([&] { told += 100; }).has_value());
  EXPECT_EQ(gate.inside(), 0U);
  EXPECT_EQ(told, 10);
}

TEST(CallGateTest, LetsACallLeaveWhenItIsTold) {
  CallGate gate;
  std::optional<std::uint64_t> ticket;
  ticket = gate.EnterUntilClosed([&] { gate.Leave(*ticket); });
  gate.Close();
  EXPECT_TRUE(gate.AwaitEmpty(std::chrono::milliseconds(0)));
}

// Calls that leave while the gate closes are told at most once, and never after the gate closed.
TEST(CallGateTest, TellsEachCallAtMostOnceWhileCallsLeave) {
  constexpr int kRounds = 200;
  constexpr std::size_t kCalls = 4;
  for (int round = 0; round < kRounds; ++round) {
    CallGate gate;
    std::array<std::atomic<int>, kCalls> told{};
    std::array<std::uint64_t, kCalls> tickets{};
    for (std::size_t call = 0; call < kCalls; ++call) {
      tickets[call] = gate.EnterUntilClosed([&told, call] { ++told[call]; }).value();
    }
    std::thread leaving([&] {
      for (const std::uint64_t ticket : tickets) gate.Leave(ticket);
    });
    gate.Close();
    EXPECT_TRUE(gate.AwaitEmpty(std::chrono::hours(1)));
    leaving.join();
    for (const std::atomic<int>& count : told) EXPECT_LE(count, 1);
  }
}

}  // namespace
}  // namespace simile::net

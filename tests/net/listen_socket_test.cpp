#include "net/listen_socket.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/loopback.h"

namespace simile::net {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ListenTest, ReportsTheFreePortItChose) {
  const auto socket = Listen("127.0.0.1", 0);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_NE(socket->port, 0);
  EXPECT_EQ(socket->address, "127.0.0.1:" + std::to_string(socket->port));
  EXPECT_TRUE(ConnectTo(socket->port).valid());
}

TEST(ListenTest, ListensOnNames) {
  const auto socket = Listen("localhost", 0);
  ASSERT_TRUE(socket.ok()) << socket.status();
}

TEST(ListenTest, WritesIpv6AddressesInBrackets) {
  const auto socket = Listen("::1", 0);
  if (!socket.ok()) GTEST_SKIP() << "this machine has no IPv6: " << socket.status();
  EXPECT_EQ(socket->address, "[::1]:" + std::to_string(socket->port));
}

// Also on a machine without IPv6, where it is 0.0.0.0.
TEST(ListenTest, TakesIpv4OnTheAddressOfEveryFamily) {
  const auto socket = Listen("::", 0);
  ASSERT_TRUE(socket.ok()) << socket.status();
  const std::string port = std::to_string(socket->port);
  EXPECT_THAT(socket->address, AnyOf("[::]:" + port, "0.0.0.0:" + port));
  EXPECT_FALSE(socket->is_loopback);
  EXPECT_TRUE(ConnectTo(socket->port).valid());
}

TEST(ListenTest, KnowsWhetherOtherMachinesReachIt) {
  for (const char* const host : {"127.0.0.1", "127.8.9.10", "localhost"}) {
    const auto socket = Listen(host, 0);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_TRUE(socket->is_loopback) << host;
  }
  const auto socket = Listen("0.0.0.0", 0);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_FALSE(socket->is_loopback);
}

TEST(ListenTest, SaysThatThePortIsTaken) {
  const auto first = Listen("127.0.0.1", 0);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Listen("127.0.0.1", first->port);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(second.status().message()),
            "cannot listen on " + first->address +
                ": Address already in use; choose another with --port (0 takes any free one)");
}

TEST(ListenTest, NamesTheFlagsOfItsCaller) {
  const ListenFlags flags = {" for metrics", "--metrics-listen", "--metrics-port"};
  const auto first = Listen("127.0.0.1", 0, flags);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(std::string(Listen("127.0.0.1", first->port, flags).status().message()),
            "cannot listen for metrics on " + first->address +
                ": Address already in use; choose another with --metrics-port (0 takes any free "
                "one)");
  EXPECT_THAT(std::string(Listen("not an address", 0, flags).status().message()),
              HasSubstr("; --metrics-listen takes an address of this machine"));
}

TEST(ListenTest, SaysThatTheAddressIsNotThisMachines) {
  // 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
  const auto socket = Listen("192.0.2.1", 0);
  ASSERT_FALSE(socket.ok());
  EXPECT_THAT(std::string(socket.status().message()),
              HasSubstr("--listen names an address of this machine"));
}

TEST(ListenTest, SaysThatTheHostCannotBeFound) {
  const auto socket = Listen("not an address", 0);
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(socket.status().message()),
              StartsWith("cannot listen on \"not an address\": "));
}

}  // namespace
}  // namespace simile::net

#include "net/connection_table.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "engine/fake_clock.h"

namespace simile::net {
namespace {

sockaddr_storage V4(const char* text) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  inet_pton(AF_INET, text, &address.sin_addr);
  return storage;
}

sockaddr_storage V6(const char* text) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in6&>(storage);
  address.sin6_family = AF_INET6;
  inet_pton(AF_INET6, text, &address.sin6_addr);
  return storage;
}

base::FileDescriptor Socket() {
  return base::FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

const PeerKey kAda = PeerKey::Of(V4("10.0.0.1"), 64);
const PeerKey kBen = PeerKey::Of(V4("10.0.0.2"), 64);

class ConnectionTableTest : public testing::Test {
 protected:
  engine::FakeClock clock_;
};

TEST(PeerKeyTest, IsTheAddressOrTheNetwork) {
  EXPECT_NE(kAda, kBen);
  EXPECT_EQ(PeerKey::Of(V6("::ffff:10.0.0.1"), 64), kAda);
  EXPECT_EQ(PeerKey::Of(V6("2001:db8:1:2::1"), 64), PeerKey::Of(V6("2001:db8:1:2:ffff::9"), 64));
  EXPECT_NE(PeerKey::Of(V6("2001:db8:1:2::1"), 64), PeerKey::Of(V6("2001:db8:1:3::1"), 64));
  EXPECT_NE(PeerKey::Of(V6("a00:1::"), 64), kAda);  // the same leading bytes, another family
}

TEST(PeerKeyTest, IsAsWideAsItIsAskedFor) {
  const auto same = [](const char* one, const char* other, unsigned bits) {
    return PeerKey::Of(V6(one), bits) == PeerKey::Of(V6(other), bits);
  };
  EXPECT_TRUE(same("2001:db8:1:2f::1", "2001:db8:1:20::1", 60));
  EXPECT_FALSE(same("2001:db8:1:2f::1", "2001:db8:1:1f::1", 60));
  EXPECT_TRUE(same("2001:db8:1:2f::1", "2001:db8:1:ffff::1", 48));
  EXPECT_FALSE(same("2001:db8:1:2f::1", "2001:db8:1:2f::2", 128));
  EXPECT_TRUE(same("2001:db8:1:2f::1", "2001:db8:1:2f::1", 128));
  EXPECT_EQ(PeerKey::Of(V6("::ffff:10.0.0.1"), 32), PeerKey::Of(V4("10.0.0.1"), 128));
}

TEST_F(ConnectionTableTest, RefusesConnectionsBeyondTheTotal) {
  ConnectionTable table(2, 10, clock_);
  const base::FileDescriptor first = Socket();
  const base::FileDescriptor second = Socket();
  const base::FileDescriptor third = Socket();
  EXPECT_EQ(table.Admit(first.get(), kAda), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(second.get(), kBen), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(third.get(), kBen), Admission::kFull);
  EXPECT_EQ(table.CountOpen(), 2U);
}

TEST_F(ConnectionTableTest, RefusesConnectionsBeyondThePeersLimit) {
  ConnectionTable table(10, 1, clock_);
  const base::FileDescriptor first = Socket();
  const base::FileDescriptor second = Socket();
  EXPECT_EQ(table.Admit(first.get(), kAda), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(second.get(), kAda), Admission::kPeerFull);
  EXPECT_EQ(table.Admit(second.get(), kBen), Admission::kAdmitted);
}

TEST_F(ConnectionTableTest, ForgetsAClosedConnection) {
  ConnectionTable table(1, 1, clock_);
  base::FileDescriptor first = Socket();
  ASSERT_EQ(table.Admit(first.get(), kAda), Admission::kAdmitted);
  first.Close();
  EXPECT_EQ(table.CountOpen(), 0U);
  const base::FileDescriptor second = Socket();
  EXPECT_EQ(table.Admit(second.get(), kBen), Admission::kAdmitted);
}

TEST_F(ConnectionTableTest, ForgetsAConnectionWhoseDescriptorIsReused) {
  ConnectionTable table(2, 2, clock_);
  base::FileDescriptor first = Socket();
  const int number = first.get();
  ASSERT_EQ(table.Admit(number, kAda), Admission::kAdmitted);
  first.Close();
  // The kernel reuses the lowest free number: first for another socket, then for a file.
  base::FileDescriptor other = Socket();
  ASSERT_EQ(other.get(), number);
  EXPECT_EQ(table.CountOpen(), 0U);
  ASSERT_EQ(table.Admit(number, kBen), Admission::kAdmitted);
  other.Close();
  const base::FileDescriptor file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(file.get(), number);
  EXPECT_EQ(table.CountOpen(), 0U);
}

TEST_F(ConnectionTableTest, CountsAReusedDescriptorForItsNewPeer) {
  ConnectionTable table(10, 1, clock_);
  base::FileDescriptor first = Socket();
  const int number = first.get();
  ASSERT_EQ(table.Admit(number, kAda), Admission::kAdmitted);
  first.Close();
  const base::FileDescriptor second = Socket();
  ASSERT_EQ(second.get(), number);
  ASSERT_EQ(table.Admit(number, kBen), Admission::kAdmitted);
  const base::FileDescriptor third = Socket();
  EXPECT_EQ(table.Admit(third.get(), kAda), Admission::kAdmitted);
  const base::FileDescriptor fourth = Socket();
  EXPECT_EQ(table.Admit(fourth.get(), kBen), Admission::kPeerFull);
}

// Both ends of a connection.
struct Connection {
  base::FileDescriptor server;
  base::FileDescriptor client;
};

Connection Connect() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

// Opens so many connections of one peer, which must all be admitted.
void Admit(std::size_t count, ConnectionTable& table, std::vector<Connection>& connections) {
  for (std::size_t i = 0; i < count; ++i) {
    connections.push_back(Connect());
    ASSERT_EQ(table.Admit(connections.back().server.get(), kAda), Admission::kAdmitted);
  }
}

TEST_F(ConnectionTableTest, LearnsAtOnceOfAConnectionThatItsPeerCloses) {
  constexpr std::size_t kConnections = 100;
  ConnectionTable table(1'000, kConnections, clock_);
  std::vector<Connection> connections;
  Admit(kConnections, table, connections);
  const Connection late = Connect();
  EXPECT_EQ(table.Admit(late.server.get(), kAda), Admission::kPeerFull);  // has looked at all
  Connection& gone = connections.back();
  gone.client.Close();
  pollfd closes{table.peer_closes_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&closes, 1, 0), 1);
  table.LearnOfClosedPeers();
  gone.server.Close();
  EXPECT_EQ(table.Admit(late.server.get(), kAda), Admission::kAdmitted);
}

TEST_F(ConnectionTableTest, KeepsAConnectionWhoseSocketIsOpenThoughItsPeerIsGone) {
  ConnectionTable table(1, 1, clock_);
  Connection first = Connect();
  ASSERT_EQ(table.Admit(first.server.get(), kAda), Admission::kAdmitted);
  first.client.Close();
  const Connection second = Connect();
  EXPECT_EQ(table.Admit(second.server.get(), kAda), Admission::kFull);
  first.server.Close();
  EXPECT_EQ(table.Admit(second.server.get(), kAda), Admission::kAdmitted);
}

TEST_F(ConnectionTableTest, FindsAConnectionThatTheServerClosedAfterASecondAtTheLatest) {
  constexpr std::size_t kConnections = 100;
  ConnectionTable table(kConnections, kConnections, clock_);
  std::vector<Connection> connections;
  Admit(kConnections, table, connections);
  EXPECT_EQ(table.CountOpen(), kConnections);
  for (Connection& connection : connections) connection.server.Close();
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(table.CountOpen(), 0U);
}

TEST_F(ConnectionTableTest, LooksAtAFewDescriptorsAnAttemptHoweverManyAreOpen) {
  constexpr std::size_t kConnections = 200;
  constexpr std::size_t kAttempts = 10'000;
  ConnectionTable table(1'000, kConnections, clock_);
  std::vector<Connection> connections;
  Admit(kConnections, table, connections);
  const Connection late = Connect();
  for (std::size_t i = 0; i < kAttempts; ++i) {
    ASSERT_EQ(table.Admit(late.server.get(), kAda), Admission::kPeerFull);
  }
  EXPECT_LE(table.looks(), kConnections + 5 * kAttempts);
}

}  // namespace
}  // namespace simile::net

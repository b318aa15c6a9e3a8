#include "net/connection_table.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_descriptor.h"

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

const PeerKey kAda = PeerKey::Of(V4("10.0.0.1"));
const PeerKey kBen = PeerKey::Of(V4("10.0.0.2"));

TEST(PeerKeyTest, IsTheAddressOrTheNetwork) {
  EXPECT_NE(kAda, kBen);
  EXPECT_EQ(PeerKey::Of(V6("::ffff:10.0.0.1")), kAda);
  EXPECT_EQ(PeerKey::Of(V6("2001:db8:1:2::1")), PeerKey::Of(V6("2001:db8:1:2:ffff::9")));
  EXPECT_NE(PeerKey::Of(V6("2001:db8:1:2::1")), PeerKey::Of(V6("2001:db8:1:3::1")));
  EXPECT_NE(PeerKey::Of(V6("a00:1::")), kAda);  // the same leading bytes, another family
}

TEST(ConnectionTableTest, RefusesConnectionsBeyondTheTotal) {
  ConnectionTable table(2, 10);
  const base::FileDescriptor first = Socket();
  const base::FileDescriptor second = Socket();
  const base::FileDescriptor third = Socket();
  EXPECT_EQ(table.Admit(first.get(), kAda), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(second.get(), kBen), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(third.get(), kBen), Admission::kFull);
  EXPECT_EQ(table.CountOpen(), 2U);
}

TEST(ConnectionTableTest, RefusesConnectionsBeyondThePeersLimit) {
  ConnectionTable table(10, 1);
  const base::FileDescriptor first = Socket();
  const base::FileDescriptor second = Socket();
  EXPECT_EQ(table.Admit(first.get(), kAda), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(second.get(), kAda), Admission::kPeerFull);
  EXPECT_EQ(table.Admit(second.get(), kBen), Admission::kAdmitted);
}

TEST(ConnectionTableTest, ForgetsAClosedConnection) {
  ConnectionTable table(1, 1);
  base::FileDescriptor first = Socket();
  ASSERT_EQ(table.Admit(first.get(), kAda), Admission::kAdmitted);
  first.Close();
  EXPECT_EQ(table.CountOpen(), 0U);
  const base::FileDescriptor second = Socket();
  EXPECT_EQ(table.Admit(second.get(), kBen), Admission::kAdmitted);
}

TEST(ConnectionTableTest, ForgetsAConnectionWhoseDescriptorIsReused) {
  ConnectionTable table(2, 2);
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

TEST(ConnectionTableTest, CountsAReusedDescriptorForItsNewPeer) {
  ConnectionTable table(10, 1);
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

}  // namespace
}  // namespace simile::net

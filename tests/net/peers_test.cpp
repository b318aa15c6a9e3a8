#include "net/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <utility>

#include <gtest/gtest.h>

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

const PeerKey kAda = PeerKey::Of(V4("10.0.0.1"), 64);
const PeerKey kBen = PeerKey::Of(V4("10.0.0.2"), 64);

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

using Place = ConnectionTable::Place;

TEST(ConnectionTableTest, RefusesConnectionsBeyondTheTotal) {
  ConnectionTable table({.connections_max = 2, .per_peer_max = 10});
  Place places[3];
  EXPECT_EQ(table.Admit(kAda, places[0]), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(kBen, places[1]), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(kBen, places[2]), Admission::kFull);
  EXPECT_EQ(table.CountOpen(), 2U);
}

TEST(ConnectionTableTest, RefusesConnectionsBeyondThePeersLimit) {
  ConnectionTable table({.connections_max = 10, .per_peer_max = 1});
  Place places[3];
  EXPECT_EQ(table.Admit(kAda, places[0]), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(kAda, places[1]), Admission::kPeerFull);
  EXPECT_EQ(table.Admit(kBen, places[1]), Admission::kAdmitted);
}

TEST(ConnectionTableTest, RefusesConnectionsWhileTooManyHaveNotSpoken) {
  ConnectionTable table({.connections_max = 10, .per_peer_max = 10, .half_open_max = 1});
  Place first;
  Place second;
  EXPECT_EQ(table.Admit(kAda, first), Admission::kAdmitted);
  EXPECT_EQ(table.Admit(kBen, second), Admission::kHalfOpenFull);
  first.Open();
  first.Open();  // counts once
  EXPECT_EQ(table.Admit(kBen, second), Admission::kAdmitted);
  second = {};
  first = {};
  EXPECT_EQ(table.CountOpen(), 0U);
}

TEST(ConnectionTableTest, ForgetsAConnectionWithItsPlace) {
  ConnectionTable table({.connections_max = 1, .per_peer_max = 1});
  Place place;
  ASSERT_EQ(table.Admit(kAda, place), Admission::kAdmitted);
  Place moved = std::move(place);
  EXPECT_EQ(table.CountOpen(), 1U);
  moved = {};
  EXPECT_EQ(table.CountOpen(), 0U);
  EXPECT_EQ(table.Admit(kBen, place), Admission::kAdmitted);
}

}  // namespace
}  // namespace simile::net

#include "service/caller_key.h"

#include <arpa/inet.h>

#include <gtest/gtest.h>

namespace simile::service {
namespace {

net::PeerKey V4(const char* text, in_port_t port) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return net::PeerKey::Of(storage, 64);
}

TEST(CallerKeyTest, IsOfTheAddressWithoutThePort) {
  EXPECT_EQ(CallerKeyOf(V4("10.0.0.7", 51'234)), CallerKeyOf(V4("10.0.0.7", 51'235)));
  EXPECT_NE(CallerKeyOf(V4("10.0.0.7", 51'234)), CallerKeyOf(V4("10.0.0.8", 51'234)));
}

TEST(CallerKeyTest, IsOfTheNameOfAPrincipal) {
  EXPECT_EQ(CallerKeyOfName("ranker"), CallerKeyOfName("ranker"));
  EXPECT_NE(CallerKeyOfName("ranker"), CallerKeyOfName("admin"));
}

}  // namespace
}  // namespace simile::service

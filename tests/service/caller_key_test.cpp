#include "service/caller_key.h"

#include <gtest/gtest.h>

namespace simile::service {
namespace {

TEST(CallerKeyTest, IsOfTheAddressWithoutThePort) {
  EXPECT_EQ(CallerKeyOf("ipv4:10.0.0.7:51234", 64), CallerKeyOf("ipv4:10.0.0.7:51235", 64));
  EXPECT_NE(CallerKeyOf("ipv4:10.0.0.7:51234", 64), CallerKeyOf("ipv4:10.0.0.8:51234", 64));
  EXPECT_EQ(CallerKeyOf("unix:/run/a:1", 64), CallerKeyOf("unix:/run/a:2", 64));
  EXPECT_NE(CallerKeyOf("unix:/run/a:1", 64), CallerKeyOf("unix:/run/b:1", 64));
  EXPECT_EQ(CallerKeyOf("ipv6:", 64), CallerKeyOf("ipv6:", 64));
}

TEST(CallerKeyTest, IsOfTheNetworkOfAnIpv6Address) {
  const CallerKey one = CallerKeyOf("ipv6:%5B2001:db8:1:2::7%5D:80", 64);
  EXPECT_EQ(CallerKeyOf("ipv6:%5B2001:db8:1:2:ffff::9%5D:81", 64), one);
  EXPECT_EQ(CallerKeyOf("ipv6:[2001:db8:1:2::8]:80", 64), one);
  EXPECT_EQ(CallerKeyOf("ipv6:%5B2001:db8:1:2::8%25eth0%5D:80", 64), one);
  EXPECT_NE(CallerKeyOf("ipv6:%5B2001:db8:1:3::7%5D:80", 64), one);
}

TEST(CallerKeyTest, IsTheSameForAnIpv4AddressMappedIntoIpv6) {
  EXPECT_EQ(CallerKeyOf("ipv6:%5B::ffff:10.0.0.7%5D:80", 64),
            CallerKeyOf("ipv4:10.0.0.7:51234", 64));
  EXPECT_NE(CallerKeyOf("ipv6:%5B::ffff:10.0.0.8%5D:80", 64),
            CallerKeyOf("ipv4:10.0.0.7:51234", 64));
}

}  // namespace
}  // namespace simile::service

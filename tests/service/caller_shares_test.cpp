#include "service/caller_shares.h"

#include <gtest/gtest.h>

namespace simile::service {
namespace {

TEST(CallerSharesTest, KnowsACallerByItsAddressWithoutThePort) {
  EXPECT_EQ(CallerKeyOf("ipv4:10.0.0.7:51234"), CallerKeyOf("ipv4:10.0.0.7:51235"));
  EXPECT_NE(CallerKeyOf("ipv4:10.0.0.7:51234"), CallerKeyOf("ipv4:10.0.0.8:51234"));
  EXPECT_NE(CallerKeyOf("ipv6:%5B::1%5D:80"), CallerKeyOf("ipv6:%5B::2%5D:80"));
}

TEST(CallerSharesTest, GivesCallersThatWantAllEqualSharesAndKeepsOneFree) {
  for (CallerKey callers = 1; callers <= 3; ++callers) {
    CallerShares fresh(120);
    bool any_fits = true;
    while (any_fits) {
      any_fits = false;
      for (CallerKey caller = 0; caller < callers; ++caller) {
        any_fits = fresh.Hold(caller, 1) || any_fits;
      }
    }
    EXPECT_EQ(fresh.held(), 120 * callers / (callers + 1)) << callers << " callers";
    EXPECT_TRUE(fresh.Fits(callers, 10)) << "one that comes later";
  }
}

TEST(CallerSharesTest, AlwaysAdmitsWhatTakesNothing) {
  CallerShares shares(10);
  EXPECT_TRUE(shares.Hold(1, 100));
  EXPECT_TRUE(shares.Fits(1, 0));
  EXPECT_FALSE(shares.Fits(2, 1));
  shares.GiveBack(1, 100);
  EXPECT_TRUE(shares.Fits(2, 1));
}

}  // namespace
}  // namespace simile::service

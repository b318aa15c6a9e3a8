#include "service/calls/caller_shares.h"

#include <arpa/inet.h>

#include <gtest/gtest.h>

namespace simile::service {
namespace {

TEST(CallerSharesTest, GivesCallersThatWantAllEqualSharesAndKeepsOneFree) {
  for (CallerKey callers = 1; callers <= 3; ++callers) {
    CallerShares fresh = CallerShares::OfBytes(120);
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
  CallerShares shares = CallerShares::OfBytes(10);
  EXPECT_TRUE(shares.Hold(1, 100));
  EXPECT_TRUE(shares.Fits(1, 0));
  EXPECT_FALSE(shares.Fits(2, 1));
  shares.GiveBack(1, 100);
  EXPECT_TRUE(shares.Fits(2, 1));
}

// If each caller took half of the free places, none would be left for the eleventh.
TEST(CallerSharesTest, KeepsAPlaceForEveryCaller) {
  CallerShares places = CallerShares::OfPlaces(1'024);
  int held_by_first = 0;
  while (places.Hold(0, 1)) ++held_by_first;
  EXPECT_EQ(held_by_first, 512);
  for (int caller = 1; caller < static_cast<int>(kCallerKeys); ++caller) {
    ASSERT_TRUE(places.Hold(static_cast<CallerKey>(caller), 1)) << caller;
    while (places.Hold(static_cast<CallerKey>(caller), 1)) {
    }
  }
  EXPECT_LE(places.held(), 1'024U);
}

TEST(CallerSharesTest, KeepsAQuarterOfFewPlacesForCallersThatHoldNone) {
  CallerShares places = CallerShares::OfPlaces(34);
  CallerKey callers = 0;
  for (; places.Hold(callers, 1); ++callers) {
    while (places.Hold(callers, 1)) {
    }
  }
  EXPECT_EQ(places.held(), 34U);
  EXPECT_EQ(callers, 11);
  places.GiveBack(0, 1);
  EXPECT_FALSE(places.Fits(0, 1));
  EXPECT_TRUE(places.Fits(callers, 1));
}

TEST(CallerSharesTest, SaysWhatIsTakenByWhom) {
  CallerShares shares = CallerShares::OfBytes(4'000);
  shares.Add(1, 1'500);
  shares.Add(2, 500);
  EXPECT_EQ(shares.Shortage(1, 700),
            "2,000 of 4,000 bytes are taken, 1,500 of them by this caller; one caller gets at most "
            "half: 700 more do not fit");
}

// A caller may be refused although more places are free than it holds: some free places are kept.
TEST(CallerSharesTest, SaysThatPlacesAreKept) {
  CallerShares places = CallerShares::OfPlaces(1'024);
  places.Add(1, 1);
  places.Add(2, 799);
  EXPECT_FALSE(places.Fits(1, 1));
  EXPECT_EQ(
      places.Shortage(1, 1),
      "800 of 1,024 places are taken, 1 of them by this caller; one caller gets at most half, "
      "and some are kept for callers that hold none");
}

net::PeerKey V4(const char* text, in_port_t port) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return net::PeerKey::Of(storage, 64);
}

TEST(CallerKeyTest, IsOfTheAddressWithoutThePort) {
  EXPECT_EQ(HashPeer(V4("10.0.0.7", 51'234)), HashPeer(V4("10.0.0.7", 51'235)));
  EXPECT_NE(HashPeer(V4("10.0.0.7", 51'234)), HashPeer(V4("10.0.0.8", 51'234)));
}

TEST(CallerKeyTest, IsOfTheNameOfAPrincipal) {
  EXPECT_EQ(HashPrincipalName("ranker"), HashPrincipalName("ranker"));
  EXPECT_NE(HashPrincipalName("ranker"), HashPrincipalName("admin"));
}

}  // namespace
}  // namespace simile::service

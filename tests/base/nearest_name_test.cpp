#include "base/nearest_name.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace simile::base {
namespace {

std::size_t Distance(const std::string& left, const std::string& right, std::size_t most = 100) {
  return NameDistance().Between(left, right, most);
}

TEST(NameDistanceTest, CountsEditsAndSwaps) {
  EXPECT_EQ(Distance("", ""), 0U);
  EXPECT_EQ(Distance("", "abc"), 3U);
  EXPECT_EQ(Distance("genre", "genres"), 1U);
  EXPECT_EQ(Distance("metirc", "metric"), 1U);
  EXPECT_EQ(Distance("kitten", "sitting"), 3U);
  EXPECT_EQ(Distance("Title", "tITLE"), 0U);
  EXPECT_EQ(Distance("ca", "abc"), 3U);  // optimal string alignment, not Damerau-Levenshtein's 2
}

TEST(NameDistanceTest, StopsAboveTheBound) {
  EXPECT_EQ(Distance("kitten", "sitting", 2), 3U);
  EXPECT_EQ(Distance("kitten", "sitting", 3), 3U);
  EXPECT_EQ(Distance("a", "b", 0), 1U);
  EXPECT_EQ(Distance("a", "a", 0), 0U);
  EXPECT_EQ(Distance("abcdefgh", "a", 3), 4U);
}

// The whole table, without the band.
std::size_t PlainDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1,
                              table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

TEST(NameDistanceTest, AgreesWithTheWholeTableOnRandomNames) {
  constexpr unsigned kSeed = 20;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937 random(kSeed);
  NameDistance distances;
  for (int round = 0; round < 20'000; ++round) {
    std::string names[2];
    for (std::string& name : names) {
      for (std::size_t left = random() % 9; left > 0; --left) {
        name += static_cast<char>('a' + random() % 3);
      }
    }
    const std::size_t most = random() % 6;
    ASSERT_EQ(distances.Between(names[0], names[1], most),
              std::min(PlainDistance(names[0], names[1]), most + 1))
        << names[0] << " " << names[1] << " " << most;
  }
}

TEST(NearestNameTest, OffersANumberWithOtherLeadingZerosFirst) {
  const std::vector<std::string> known = {"67", "6770", "000677", "678", "00", "x677"};
  EXPECT_EQ(NearestName("677", known), "000677");
  EXPECT_EQ(NearestName("0000677", known), "000677");
  EXPECT_EQ(NearestName("0678", known), "678");
  EXPECT_EQ(NearestName("0", known), "00");
  EXPECT_EQ(NearestName("x6777", known), "x677");
  NearestSearch search("677");
  for (const std::string& name : known) search.ConsiderContinuation(name);
  EXPECT_EQ(search.found(), "000677");
}

TEST(NearestNameTest, FindsTheNearestWithinAThird) {
  const std::vector<std::string> known = {"cast", "genres", "media_id", "title", "year"};
  EXPECT_EQ(NearestName("genre", known), "genres");
  EXPECT_EQ(NearestName("Year", known), "year");
  EXPECT_EQ(NearestName("meda_id", known), "media_id");
  EXPECT_EQ(NearestName("colour", known), "");
  EXPECT_EQ(NearestName("", known), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

TEST(NearestNameTest, PrefersTheFirstOnATie) {
  const std::vector<std::string> known = {"aaab", "aaac"};
  EXPECT_EQ(NearestName("aaad", known), "aaab");
}

TEST(NearestNameTest, OffersTheShortestContinuationWhenNoNameIsNear) {
  const std::vector<std::string> known = {"toy-story-2-1999", "toy-story-1995", "toy-story-1996"};
  EXPECT_EQ(NearestName("toy-story", known), "toy-story-1995");
  EXPECT_EQ(NearestName("Toy", known), "toy-story-1995");
  EXPECT_EQ(NearestName("story", known), "");
}

TEST(NearestNameTest, PrefersANearNameToAContinuation) {
  const std::vector<std::string> known = {"heat-wave", "hear"};
  EXPECT_EQ(NearestName("heat", known), "hear");
}

TEST(NearestNameTest, CountsCharactersBeforeItOffersAContinuation) {
  const std::vector<std::string> known = {"toy-story-1995", "\u00e9t\u00e9-indien",
                                          "\u4e03\u4eba\u306e\u4f8d-1954"};
  EXPECT_EQ(NearestName("to", known), "");
  EXPECT_EQ(NearestName("\u00e9t", known), "");
  EXPECT_EQ(NearestName("\u00e9t\u00e9", known), "\u00e9t\u00e9-indien");
  EXPECT_EQ(NearestName("\u4e03\u4eba", known), "");
  EXPECT_EQ(NearestName("\u4e03\u4eba\u306e", known), "\u4e03\u4eba\u306e\u4f8d-1954");
}

TEST(DidYouMeanTest, QuotesTheNameOrIsEmpty) {
  EXPECT_EQ(DidYouMean("toy-story-1995"), " Did you mean \"toy-story-1995\"?");
  EXPECT_EQ(DidYouMean("a\nb"), " Did you mean \"a\\u000ab\"?");
  EXPECT_EQ(DidYouMean(""), "");
}

TEST(NearestSearchTest, FindsOnlyContinuationsOnRequest) {
  NearestSearch search("toy-story");
  search.ConsiderContinuation("toy-stroy");
  EXPECT_EQ(search.found(), "");
  search.ConsiderContinuation("toy-story-1995");
  EXPECT_EQ(search.found(), "toy-story-1995");
}

TEST(NearestSearchTest, LooksAtNoLongTextAndNotBeyondItsWork) {
  NearestSearch search("toy-story");
  LongWork work = LongWork::Within(1'000'000);
  EXPECT_TRUE(search.ConsiderText("toy-story" + std::string(200, 'x'), work).ok());
  EXPECT_EQ(search.found(), "");
  EXPECT_TRUE(search.ConsiderText("toy-stroy", work).ok());
  EXPECT_EQ(search.found(), "toy-stroy");
  LongWork none = LongWork::Within(0);
  EXPECT_FALSE(search.ConsiderText("toy-story", none).ok());
  EXPECT_EQ(search.found(), "toy-stroy") << "the text was not looked at";
  NearestSearch of_long(std::string(200, 'x'));
  EXPECT_TRUE(of_long.ConsiderText(std::string(200, 'x'), work).ok());
  EXPECT_EQ(of_long.found(), "");
}

}  // namespace
}  // namespace simile::base

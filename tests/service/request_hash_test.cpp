#include "service/request_hash.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "service/refusal.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

std::uint64_t HashOfSearch(const std::string& text) {
  return HashRequest(Parse<v1::SearchRequest>(text));
}

TEST(HashRequestTest, IsTheSameForEveryPageOfARequest) {
  const std::string rest = "k: 3 exclude_ids: ['b', 'c'] diversity { lambda: 0.5 } ";
  const std::uint64_t first = HashOfSearch(kQuery + "options { paged: true " + rest + "}");
  EXPECT_EQ(HashOfSearch(kQuery + "options { page_token: 'next' " + rest + "}"), first);
  EXPECT_EQ(HashOfSearch(kQuery + "options { paged: true page_token: 'other' " + rest + "}"),
            first);
}

TEST(HashRequestTest, DiffersWithEveryOtherField) {
  const std::string options = "options { paged: true ";
  std::set<std::uint64_t> hashes;
  for (const std::string& text :
       {kQuery + options + "}", "collection: 'other' queries { id: 'a' }" + options + "}",
        kQuery + "queries { id: 'a' } " + options + "}",
        kFilms + "queries { user_id: 'a' } " + options + "}",
        kFilms + "queries { id: 'a' k: 7 } " + options + "}",
        kFilms + "queries { vector { values: [1, 2] } } " + options + "}",
        kFilms + "queries { vector { values: [2, 1] } } " + options + "}",
        kQuery + options + "k: 7 }", kQuery + options + "offset: 7 }",
        kQuery + options + "exclude_ids: ['a', 'bc'] }",
        kQuery + options + "exclude_ids: ['ab', 'c'] }", kQuery + options + "filter: 'x = 1' }",
        kQuery + options + "cold_start { order: NEWEST } }"}) {
    EXPECT_TRUE(hashes.insert(HashOfSearch(text)).second) << text;
  }
}

TEST(HashRequestTest, HashesRecommendRequests) {
  const auto hash = [](const std::string& rest) {
    return HashRequest(Parse<v1::RecommendRequest>(kFilms + rest));
  };
  const std::uint64_t first = hash("user_ids: ['u', 'v'] options { paged: true k: 3 }");
  EXPECT_EQ(hash("user_ids: ['u', 'v'] options { page_token: 'next' k: 3 }"), first);
  EXPECT_NE(hash("user_ids: ['v', 'u'] options { page_token: 'next' k: 3 }"), first);
}

}  // namespace
}  // namespace simile::service

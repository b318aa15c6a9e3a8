#include "service/access/access_policy.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace {

std::size_t compared_hashes = 0;
bool compared_wholly = true;

}  // namespace

// Replaces OpenSSL's function: counts its calls, and also reads all bytes.
extern "C" int CRYPTO_memcmp(const void* left, const void* right, std::size_t size) {
  ++compared_hashes;
  compared_wholly = compared_wholly && size == simile::service::TokenHash().size();
  int difference = 0;
  for (std::size_t i = 0; i < size; ++i) {
    difference |=
        static_cast<const unsigned char*>(left)[i] ^ static_cast<const unsigned char*>(right)[i];
  }
  return difference;
}

namespace simile::service {
namespace {

AccessPolicy MakePolicy(const std::vector<std::string>& tokens) {
  std::vector<Principal> principals;
  for (const std::string& token : tokens) {
    Principal principal;
    principal.name = "of " + token;
    principal.token_hashes = {HashToken(token)};
    principals.push_back(std::move(principal));
  }
  return AccessPolicy(std::move(principals));
}

TEST(AccessPolicyTest, FindsWhoseATokenIs) {
  const AccessPolicy policy = MakePolicy({"first", "second", "third"});
  EXPECT_EQ(policy.FindToken(HashToken("first"))->name, "of first");
  EXPECT_EQ(policy.FindToken(HashToken("third"))->name, "of third");
  EXPECT_EQ(policy.FindToken(HashToken("fourth")), nullptr);
  EXPECT_EQ(policy.FindToken(HashToken("")), nullptr);
}

// A look-up makes the same comparisons of whole hashes for the first, the last, a near and a far
// token. So its time says neither which principals exist nor how near a guess is.
TEST(AccessPolicyTest, ComparesEveryHashWhateverTheToken) {
  const AccessPolicy policy = MakePolicy({"first-token", "second-token", "third-token"});
  const std::string known = "first-token";
  std::vector<std::string> guesses = {known, "third-token", "x", std::string(4'096, 'x')};
  for (std::size_t size = 0; size < known.size(); ++size) {
    guesses.push_back(known.substr(0, size) + "?");
  }
  for (const std::string& guess : guesses) {
    compared_hashes = 0;
    static_cast<void>(policy.FindToken(HashToken(guess)));
    EXPECT_EQ(compared_hashes, 3U) << guess;
  }
  EXPECT_TRUE(compared_wholly);
}

// A guess with the same beginning as a token has no more of its hash than any other guess.
TEST(AccessPolicyTest, HashesSayNothingOfACommonBeginning) {
  const std::string known = "simile_0123456789abcdefghijklmnopqrstuvwxyz";
  const TokenHash hash = HashToken(known);
  std::size_t equal_bytes = 0;
  for (std::size_t size = 0; size < known.size(); ++size) {
    const TokenHash guess = HashToken(known.substr(0, size) + "?");
    equal_bytes += guess.front() == hash.front() ? 1 : 0;
  }
  EXPECT_LE(equal_bytes, 3U);  // of 43; one in 256 by chance, and the hashes are always the same
}

TEST(AccessPolicyTest, FindsWhoHasANameOfACertificate) {
  Principal loader;
  loader.name = "loader";
  loader.certificate_names = {"spiffe://example.org/loader", "loader.example.org"};
  std::vector<Principal> principals = {loader};
  const AccessPolicy policy(std::move(principals));
  const std::string known[] = {"other", "loader.example.org"};
  const std::string unknown[] = {"loader", "spiffe://example.org/loader/2"};
  ASSERT_NE(policy.FindCertificate(known), nullptr);
  EXPECT_EQ(policy.FindCertificate(known)->name, "loader");
  EXPECT_EQ(policy.FindCertificate(unknown), nullptr);
  EXPECT_TRUE(policy.uses_certificates());
  EXPECT_FALSE(policy.uses_tokens());
}

}  // namespace
}  // namespace simile::service

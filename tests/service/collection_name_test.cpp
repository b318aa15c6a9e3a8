#include "service/collection_name.h"

#include <string>

#include <gtest/gtest.h>

namespace simile::service {
namespace {

std::string Error(const std::string& name) {
  return std::string(CheckCollectionName({"name"}, name, Limits{}).message());
}

TEST(CollectionNameTest, AllowsLettersDigitsAndThreeSigns) {
  EXPECT_EQ(Error("films"), "");
  EXPECT_EQ(Error("Films_2.v1-b"), "");
  EXPECT_EQ(Error("-"), "");
  EXPECT_EQ(Error(std::string(128, 'x')), "");
}

TEST(CollectionNameTest, RefusesOtherNames) {
  const std::string rule =
      "; a name has letters, digits, '-', '_' and '.', and does not start with '.'";
  EXPECT_EQ(Error("two words"), "name: \"two words\" is not a name" + rule);
  EXPECT_EQ(Error(".hidden"), "name: \".hidden\" is not a name" + rule);
  EXPECT_EQ(Error("a/../b"), "name: \"a/../b\" is not a name" + rule);
  EXPECT_EQ(Error("caf\xC3\xA9"), "name: \"caf\xC3\xA9\" is not a name" + rule);
  EXPECT_EQ(Error("liveness"),
            "name: \"liveness\" is the name of a health check; choose another one");
  EXPECT_EQ(Error(std::string(129, 'x')), "name: 129 bytes; a name has at most 128");
}

}  // namespace
}  // namespace simile::service

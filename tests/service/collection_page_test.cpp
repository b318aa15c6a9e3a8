#include "service/collection_page.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error_detail.h"

namespace simile::service {
namespace {

TEST(CollectionPageTest, ReadsTheTokensItWrites) {
  for (const std::string name : {"films", "a", "x.y-z_0"}) {
    EXPECT_EQ(ReadCollectionPageToken(WriteCollectionPageToken(name)).value(), name);
  }
  EXPECT_EQ(ReadCollectionPageToken("").value(), "") << "the first page";
}

TEST(CollectionPageTest, RefusesAnyOtherText) {
  const std::string token = WriteCollectionPageToken("films");
  for (const std::string& text : {std::string("films"), token.substr(1), token + "A", token + "=",
                                  std::string("MQ"), std::string("!"), std::string("ZmlsbXM")}) {
    const absl::Status refused = ReadCollectionPageToken(text).status();
    EXPECT_EQ(base::ReasonOf(refused), base::ErrorReason::kInvalidPageToken) << text;
    EXPECT_EQ(base::FieldOf(refused), "page_token");
  }
}

}  // namespace
}  // namespace simile::service

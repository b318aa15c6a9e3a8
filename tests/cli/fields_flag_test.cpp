#include "cli/fields_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::cli {
namespace {

v1::PayloadSelector Selected(const std::vector<std::string>& fields,
                             const v1::Collection& collection) {
  v1::PayloadSelector selector;
  SelectFields(fields, collection, selector);
  return selector;
}

TEST(FieldsFlagTest, AsksForTheNamedFieldsAndElseForAll) {
  const v1::PayloadSelector some = Selected({"year", "title"}, {});
  EXPECT_THAT(some.fields(), testing::ElementsAre("year", "title"));
  EXPECT_EQ(some.selection(), v1::PayloadSelector::SELECTION_UNSPECIFIED);
  const v1::PayloadSelector all = Selected({}, {});
  EXPECT_TRUE(all.fields().empty());
  EXPECT_EQ(all.selection(), v1::PayloadSelector::SELECTION_UNSPECIFIED);
}

TEST(FieldsFlagTest, AsksForNoFieldCalledIdWhereThePayloadHasNone) {
  v1::Collection collection;
  EXPECT_THAT(Selected({"id", "year"}, collection).fields(), testing::ElementsAre("year"));
  const v1::PayloadSelector alone = Selected({"id"}, collection);
  EXPECT_TRUE(alone.fields().empty());
  EXPECT_EQ(alone.selection(), v1::PayloadSelector::SELECTION_NONE);
  collection.add_fields()->set_name("id");
  EXPECT_THAT(Selected({"id"}, collection).fields(), testing::ElementsAre("id"));
}

}  // namespace
}  // namespace simile::cli

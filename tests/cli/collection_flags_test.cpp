#include "cli/collection_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/errors.h"

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

const std::string kServed = "3f9a12c4d5e6f708192a3b4c5d6e7f80";
const std::string kFormer = "7d02e1aa5b6c7d8e9fa0b1c2d3e4f506";
const std::string kOther = "00000000000000000000000000000001";

v1::Collection ServedFilms() {
  v1::Collection films;
  films.set_name("films");
  films.set_snapshot_id(kServed);
  films.set_rollback_snapshot_id(kFormer);
  return films;
}

TEST(SnapshotFlagTest, ExpectsNothingWithoutTheFlag) {
  EXPECT_EQ(ExpectedSnapshotId(std::nullopt, ServedFilms()).value(), "");
}

TEST(SnapshotFlagTest, SendsAWholeIdAsItIs) {
  EXPECT_EQ(ExpectedSnapshotId(kServed, ServedFilms()).value(), kServed);
  EXPECT_EQ(ExpectedSnapshotId(kOther, ServedFilms()).value(), kOther);
}

TEST(SnapshotFlagTest, CompletesTheDigitsThatAnswersPrint) {
  EXPECT_EQ(ExpectedSnapshotId("3f9a12c4", ServedFilms()).value(), kServed);
  EXPECT_EQ(ExpectedSnapshotId("7d02e1aa5b", ServedFilms()).value(), kFormer);
}

TEST(SnapshotFlagTest, RefusesDigitsOfOtherContentAndTooFewOfThem) {
  const absl::Status other = ExpectedSnapshotId("00000000", ServedFilms()).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(other.message(), "films serves snapshot 3f9a12c4, not 00000000");
  EXPECT_EQ(ParseDetails(other).reason, "SNAPSHOT_MISMATCH");
  EXPECT_EQ(
      ExpectedSnapshotId("3f9a", ServedFilms()).status(),
      absl::InvalidArgumentError("--expect-snapshot 3f9a: give the id's first 8 digits or all 32"));
}

}  // namespace
}  // namespace simile::cli

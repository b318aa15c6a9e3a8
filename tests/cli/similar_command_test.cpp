#include "cli/similar_command.h"

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

// A look-up's answer with these counts; its matches' ids are whole-0, whole-1, ..., part-0, ...
v1::LookupResponse Found(unsigned whole_count, unsigned part_count) {
  v1::LookupResponse found;
  found.set_whole_match_count(whole_count);
  found.set_match_count(whole_count + part_count);
  for (unsigned i = 0; i < whole_count; ++i) {
    v1::LookupMatch& match = *found.add_matches();
    match.set_quality(v1::LookupMatch::QUALITY_WHOLE);
    match.mutable_item()->set_id("whole-" + std::to_string(i));
  }
  for (unsigned i = 0; i < part_count; ++i) {
    v1::LookupMatch& match = *found.add_matches();
    match.set_quality(v1::LookupMatch::QUALITY_PART);
    match.mutable_item()->set_id("part-" + std::to_string(i));
  }
  return found;
}

std::string ChosenId(const v1::LookupResponse& found) {
  const TitleChoice choice = ChooseByTitle(found);
  const auto* item = std::get_if<TitleFound>(&choice);
  return item == nullptr ? "" : item->item.id();
}

TEST(TitleChoiceTest, FindsTheOnlyWholeMatchAmongMany) {
  EXPECT_EQ(ChosenId(Found(1, 3)), "whole-0");
}

TEST(TitleChoiceTest, FindsTheOnlyPartWhenNothingMatchesWhole) {
  EXPECT_EQ(ChosenId(Found(0, 1)), "part-0");
}

TEST(TitleChoiceTest, IsAmbiguousWhenSeveralMatchWhole) {
  EXPECT_TRUE(std::holds_alternative<TitleAmbiguous>(ChooseByTitle(Found(2, 0))));
  EXPECT_TRUE(std::holds_alternative<TitleAmbiguous>(ChooseByTitle(Found(3, 13))));
}

TEST(TitleChoiceTest, IsAmbiguousWhenSeveralPartsAndNoWholeMatch) {
  EXPECT_TRUE(std::holds_alternative<TitleAmbiguous>(ChooseByTitle(Found(0, 2))));
}

TEST(TitleChoiceTest, IsUnknownWhenNothingMatches) {
  EXPECT_TRUE(std::holds_alternative<TitleUnknown>(ChooseByTitle(Found(0, 0))));
}

}  // namespace
}  // namespace simile::cli

#include "cli/wire_names.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

// Every value of the enum but the unspecified one has a name of its own.
template <class Enum>
void ExpectNames(const google::protobuf::EnumDescriptor& values, const char* (*name)(Enum)) {
  std::set<std::string> names;
  for (int i = 1; i < values.value_count(); ++i) {
    names.insert(name(static_cast<Enum>(values.value(i)->number())));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(values.value_count()) - 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(WireNamesTest, HasANameForEveryValueOfTheContract) {
  ExpectNames(*v1::BackendKind_descriptor(), BackendName);
  ExpectNames(*v1::FieldType_descriptor(), FieldTypeName);
  ExpectNames(*v1::Collection::State_descriptor(), StateName);
  ExpectNames(*v1::Collection::Metric_descriptor(), MetricName);
  ExpectNames(*v1::ChangeProgress::Stage_descriptor(), StageName);
  ExpectNames(*v1::ScoreKind_descriptor(), ScoreKindName);
  ExpectNames(*v1::ColdStart::Order_descriptor(), ColdStartOrderName);
  ExpectNames(*v1::LookupMatch::Quality_descriptor(), QualityName);
  ExpectNames(*v1::CollectionFile::Role_descriptor(), FileRoleName);
}

// The wire's name for a value without its enum: "best_score".
std::string WireWords(const google::protobuf::EnumValueDescriptor& value) {
  std::string name = value.name().substr(value.name().find('_') + 1);
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return name;
}

// Every value of the enum but the unspecified one is found by its words, however they are joined.
template <class Find>
void ExpectFound(const google::protobuf::EnumDescriptor& values, const Find& find) {
  for (int i = 1; i < values.value_count(); ++i) {
    std::string words = WireWords(*values.value(i));
    EXPECT_EQ(find(words), values.value(i)->number()) << words;
    std::ranges::replace(words, '_', '-');
    EXPECT_EQ(find(words), values.value(i)->number()) << words;
  }
  EXPECT_EQ(find("bestscore"), std::nullopt);
  EXPECT_EQ(find(""), std::nullopt);
}

TEST(WireNamesTest, FindsAValueByItsWordsHoweverTheyAreJoined) {
  ExpectFound(*v1::Examples::Strategy_descriptor(), StrategyNamed);
  ExpectFound(*v1::ColdStart::Order_descriptor(), ColdStartOrderNamed);
}

TEST(WireNamesTest, CallsAValueOfANewerServerUnknown) {
  EXPECT_STREQ(BackendName(static_cast<v1::BackendKind>(99)), "unknown");
  EXPECT_STREQ(FieldTypeName(v1::FIELD_TYPE_UNSPECIFIED), "unknown");
}

TEST(WireNamesTest, ShortensTheIdOfASnapshot) {
  EXPECT_EQ(SnapshotText(1'234, "3f9a12c4d5e6f708192a3b4c5d6e7f80"), "1,234 (3f9a12c4)");
  EXPECT_EQ(SnapshotText(1, ""), "1");
  EXPECT_EQ(SnapshotText(0, ""), "");
}

}  // namespace
}  // namespace simile::cli

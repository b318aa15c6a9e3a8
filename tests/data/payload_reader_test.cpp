#include "data/payload/payload_reader.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

absl::StatusOr<PayloadFile> ReadPayloadLines(const std::string& lines, const PayloadRules& rules) {
  MemorySource source("metadata.jsonl", lines);
  BufferedReader in(source);
  return ReadPayload(in, rules, Limits{});
}

PayloadRules WithTypes(std::vector<NamedFieldType> types) {
  PayloadRules rules;
  rules.fields.declared = std::move(types);
  return rules;
}

constexpr const char* kMixed =
    "{\"year\": 1995, \"tags\": null, \"length\": 1}\n"
    "{\"year\": 1996, \"length\": 1.5}\n"
    "{\"year\": \"n/a\"}\n"
    "{\"year\": \"soon\", \"length\": 2}\n"
    "{\"year\": true}\n";

TEST(ReadPayloadTest, NotesAFieldOfSeveralTypesWithARowOfEach) {
  const auto file = ReadPayloadLines(kMixed, {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->notes,
              ElementsAre("metadata.jsonl: \"year\" is of several types: true in row 4, 1995 in "
                          "row 0, \"n/a\" in row 2; filters can only ask whether a row has it"));
}

TEST(ReadPayloadTest, DoesNotNoteAFieldWhoseTypeIsGiven) {
  const auto file = ReadPayloadLines(kMixed, WithTypes({{"year", FieldType::kOther}}));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->notes, IsEmpty());
}

TEST(ReadPayloadTest, NotesTheFirstFewOfManyFields) {
  std::string first = "{\"id\": 1";
  std::string second = "{\"id\": 2";
  for (char letter = 'a'; letter <= 's'; ++letter) {
    first.append(", \"").append(1, letter).append("\": 1");
    second.append(", \"").append(1, letter).append("\": \"1\"");
  }
  const auto file = ReadPayloadLines(first.append("}\n").append(second).append("}\n"), {});
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->notes.size(), 17U);
  EXPECT_EQ(file->notes.back(), "metadata.jsonl: 3 notes more about its fields");
}

TEST(ReadPayloadTest, RefusesADeclaredTypeThatMostValuesDoNotFit) {
  const std::string lines =
      "{\"note\": \"a|b\", \"at\": \"2024-05-31\"}\n{\"note\": null, \"at\": \"soon\"}\n";
  EXPECT_EQ(ReadPayloadLines(lines, WithTypes({{"note", FieldType::kInteger}})).status().message(),
            "metadata.jsonl: \"note\" does not fit collection.json, which says \"field_types\": "
            "{\"note\": \"integer\"}: 1 of its 1 values is something else: \"a|b\" in row 0; "
            "\"keyword\" fits");
  EXPECT_EQ(
      ReadPayloadLines("{\"tags\": [\"a\", 2]}\n", WithTypes({{"tags", FieldType::kKeywords}}))
          .status()
          .message(),
      "metadata.jsonl: \"tags\" does not fit collection.json, which says \"field_types\": "
      "{\"tags\": \"list of keywords\"}: 1 of its 1 values is something else: a list with a "
      "string and an integer in row 0");
  EXPECT_TRUE(ReadPayloadLines(
                  lines, WithTypes({{"note", FieldType::kKeywords}, {"at", FieldType::kKeyword}}))
                  .ok());
}

TEST(ReadPayloadTest, NotesTheFewValuesThatDoNotFitADeclaredType) {
  const auto file = ReadPayloadLines("{\"at\": \"2024-05-31\"}\n{\"at\": \"soon\"}\n",
                                     WithTypes({{"at", FieldType::kTime}}));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->notes, ElementsAre("metadata.jsonl: \"at\" is of type time; 1 of its 2 values "
                                       "does not fit and passes no filter: \"soon\" in row 1"));
}

TEST(ReadPayloadTest, FindsIdsInsideObjects) {
  PayloadRules rules;
  rules.id_field = "meta.id";
  const auto file = ReadPayloadLines(
      "{\"meta\": {\"id\": \"a\"}}\n{\"meta.id\": \"b\", \"meta\": {\"id\": \"c\"}}\n", rules);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->ids.Id(0), "a");
  EXPECT_EQ(file->ids.Id(1), "b");
  EXPECT_EQ(
      ReadPayloadLines("{\"meta\": {\"id\": \"a\"}}\n{\"meta\": 7}\n", rules).status().message(),
      "metadata.jsonl: line 2: has no \"meta.id\"; collection.json says that every line's id is "
      "there");
}

TEST(ReadPayloadTest, ChecksTheSameWithoutKeepingRows) {
  PayloadRules rules;
  rules.keep = Keep::kNothing;
  const auto kept = ReadPayloadLines(kMixed, {});
  const auto checked = ReadPayloadLines(kMixed, rules);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->table.row_count(), 0U);
  EXPECT_EQ(checked->ids.size(), 5U);
  EXPECT_EQ(checked->notes, kept->notes);
  ASSERT_EQ(checked->table.fields().size(), kept->table.fields().size());
  for (std::size_t i = 0; i < kept->table.fields().size(); ++i) {
    EXPECT_EQ(checked->table.fields()[i].name, kept->table.fields()[i].name);
    EXPECT_EQ(checked->table.fields()[i].type, kept->table.fields()[i].type);
    EXPECT_EQ(checked->table.fields()[i].values.count(), kept->table.fields()[i].values.count());
  }
}

TEST(ReadPayloadTest, CountsNoBlankLineAtTheEnd) {
  PayloadRules rules;
  rules.expected = ExpectedRows{.count = 2, .said_by = "content_vectors.npy"};
  EXPECT_TRUE(ReadPayloadLines("\xEF\xBB\xBF{\"id\": 1}\r\n{\"id\": 2}\r\n\r\n \n", rules).ok());
  EXPECT_EQ(ReadPayloadLines("{\"id\": 1}\n\n", rules).status().message(),
            "metadata.jsonl: 1 line, but content_vectors.npy has 2 rows; one object a row is "
            "needed");
}

}  // namespace
}  // namespace simile::data

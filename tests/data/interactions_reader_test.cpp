#include "data/load/interactions_reader.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/formats/byte_source.h"
#include "data/sample_ids.h"

namespace simile::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;

absl::StatusOr<Interactions> Read(std::string_view text, const std::string& id_field) {
  MemorySource source("interactions.jsonl", text);
  BufferedReader in(source);
  return ReadInteractions(in, MakeIndex({"u1", "u2"}), MakeIndex({"a", "b", "7"}), id_field,
                          Keep::kRows, Limits{});
}

TEST(ReadInteractionsTest, GathersSeenItemsByUser) {
  const absl::StatusOr<Interactions> read = Read(
      "{\"user_id\":\"u2\",\"media_id\":\"b\"}\n{\"user_id\":\"u2\",\"item_id\":7}\n"
      "{\"user_id\":\"u2\",\"id\":\"a\"}\n{\"user_id\":\"u2\",\"media_id\":\"b\"}\n",
      "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->seen.Of(0), IsEmpty());
  EXPECT_THAT(read->seen.Of(1), ElementsAre(0, 1, 2));
  EXPECT_THAT(read->notes, IsEmpty());
}

TEST(ReadInteractionsTest, PrefersTheCollectionsIdField) {
  const absl::StatusOr<Interactions> read =
      Read("{\"user_id\":\"u1\",\"media_id\":\"a\",\"key\":\"b\"}\n", "key");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->seen.Of(0), ElementsAre(1));
}

TEST(ReadInteractionsTest, CountsLinesWithUnknownNames) {
  const absl::StatusOr<Interactions> read = Read(
      "{\"user_id\":\"u1\",\"media_id\":\"a\"}\n{\"user_id\":\"u9\",\"media_id\":\"a\"}\n"
      "{\"user_id\":\"u1\",\"media_id\":\"z\"}\n{\"user_id\":\"u1\",\"media_id\":\"y\"}\n",
      "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->seen.Of(0), ElementsAre(0));
  EXPECT_THAT(
      read->notes,
      ElementsAre("interactions.jsonl: 1 of 4 lines names a user without a vector and counts "
                  "for popularity and for exclude_seen (first: line 2, \"u9\")",
                  "interactions.jsonl: 2 of 4 lines name unknown items and are left out "
                  "(first: line 3, \"z\")"));
  EXPECT_FALSE(read->all_unknown);
  EXPECT_TRUE(Read("{\"user_id\":\"u9\",\"media_id\":\"a\"}\n", "")->all_unknown);
  EXPECT_FALSE(Read("", "")->all_unknown);
}

// A visitor counts once for an item, a line of nobody each time.
TEST(ReadInteractionsTest, CountsVisitorsAndKeepsWhatTheyHaveSeen) {
  const absl::StatusOr<Interactions> read = Read(
      "{\"user_id\":\"u1\",\"media_id\":\"a\"}\n{\"user_id\":\"guest\",\"media_id\":\"a\"}\n"
      "{\"user_id\":\"guest\",\"media_id\":\"a\"}\n{\"user_id\":null,\"media_id\":\"b\"}\n"
      "{\"media_id\":\"b\"}\n{\"user_id\":\"\",\"media_id\":\"b\"}\n"
      "{\"user_id\":\"guest\",\"media_id\":\"b\"}\n",
      "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->seen.Of(0), ElementsAre(0));
  EXPECT_THAT(read->seen.Of(1), IsEmpty());
  ASSERT_EQ(read->visitor_ids.size(), 1U);
  EXPECT_EQ(read->visitor_ids.Find("guest"), 0U);
  EXPECT_THAT(read->visitor_seen.Of(0), ElementsAre(0, 1));
  EXPECT_THAT(read->most_seen, ElementsAre(1, 0));
  EXPECT_THAT(read->notes,
              ElementsAre("interactions.jsonl: 3 of 7 lines name users without a vector and count "
                          "for popularity and for exclude_seen (first: line 2, \"guest\")",
                          "interactions.jsonl: 3 of 7 lines name no user and count for popularity "
                          "alone (first: line 4)"));
}

TEST(ReadInteractionsTest, SaysWhatTheLinesHaveWhereNoneHasAUser) {
  const std::string lines =
      "{\"user\":\"u1\",\"id\":\"a\",\"ts\":1}\n{\"user\":\"u2\",\"id\":\"b\"}\n";
  const std::string note =
      "interactions.jsonl: 2 of 2 lines name no user and count for popularity alone (first: line "
      "1); no line has \"user_id\"; line 1 has \"user\", \"id\", \"ts\"";
  EXPECT_THAT(Read(lines, "")->notes, ElementsAre(note));
  EXPECT_THAT(Read(lines + "{\"user_id\":null,\"id\":\"a\"}\n", "")->notes,
              ElementsAre("interactions.jsonl: 3 of 3 lines name no user and count for popularity "
                          "alone (first: line 1)"));
  MemorySource source("interactions.jsonl", lines);
  BufferedReader in(source);
  EXPECT_THAT(
      ReadInteractions(in, IdIndex(), MakeIndex({"a", "b"}), "", Keep::kRows, Limits{})->notes,
      ElementsAre(note));
  EXPECT_THAT(Read("{\"id\":\"a\",\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,"
                   "\"8\":1}\n",
                   "")
                  ->notes,
              ElementsAre(EndsWith("\"6\", \"7\", ...")));
}

TEST(ReadInteractionsTest, KeepsWhatVisitorsHaveSeenWithoutUsers) {
  MemorySource source("interactions.jsonl",
                      "{\"user_id\":\"x\",\"id\":\"0\"}\n\n{\"user_id\":\"y\",\"id\":1.0}\n"
                      "{\"user_id\":\"z\",\"id\":1}\n{\"user_id\":\"z\",\"id\":7}\n");
  BufferedReader in(source);
  const auto read =
      ReadInteractions(in, IdIndex(), IdIndex::OfRowNumbers(3), "", Keep::kRows, Limits{});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->most_seen, ElementsAre(1, 0));
  ASSERT_EQ(read->visitor_ids.size(), 3U);
  EXPECT_THAT(read->visitor_seen.Of(*read->visitor_ids.Find("z")), ElementsAre(1));
  EXPECT_FALSE(read->all_unknown);
  EXPECT_THAT(
      read->notes,
      ElementsAre("interactions.jsonl: counts for popularity and for exclude_seen, since the "
                  "collection has no vectors of users (user_ids.json)",
                  "interactions.jsonl: 1 of 4 lines names an unknown item and is left out "
                  "(first: line 5, \"7\")",
                  "interactions.jsonl: 1 blank line is skipped, the first is line 2"));
}

TEST(ReadInteractionsTest, DoesNotJudgeWhatItDoesNotUse) {
  const absl::StatusOr<Interactions> read = Read(
      "{\"user_id\":\"u1\",\"media_id\":\"a\",\"weight\":\"3\",\"time\":[1]}\n"
      "{\"user_id\":\"u1\",\"media_id\":\"b\",\"weight\":null,\"time\":\"2024-05-01 "
      "12:00:00+00:00\"}\n",
      "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->seen.Of(0), ElementsAre(0, 1));
}

}  // namespace
}  // namespace simile::data

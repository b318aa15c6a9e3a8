#include "data/interactions_reader.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/byte_source.h"
#include "data/sample_ids.h"

namespace simile::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

absl::StatusOr<Interactions> Read(std::string_view text, const std::string& id_field) {
  MemorySource source("interactions.jsonl", text);
  BufferedReader in(source);
  return ReadInteractions(in, IndexOf({"u1", "u2"}), IndexOf({"a", "b", "7"}), id_field,
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
  EXPECT_THAT(read->notes,
              ElementsAre("interactions.jsonl: 1 of 4 lines names unknown users and is left out "
                          "(first: line 2, \"u9\")",
                          "interactions.jsonl: 2 of 4 lines name unknown items and are left out "
                          "(first: line 3, \"z\")"));
  EXPECT_FALSE(read->all_unknown);
  EXPECT_TRUE(Read("{\"user_id\":\"u9\",\"media_id\":\"a\"}\n", "")->all_unknown);
  EXPECT_FALSE(Read("", "")->all_unknown);
}

}  // namespace
}  // namespace simile::data

#include "cli/bench/mix_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::cli::bench {
namespace {

CallSpec Defaults() {
  CallSpec spec;
  spec.kind = FindCallKind("vector");
  spec.k = 7;
  spec.payload = MakePayloadSelector({"none"});
  return spec;
}

TEST(MixFileTest, ReadsEveryKind) {
  for (const CallKind& kind : CallKinds()) {
    const auto specs =
        ParseMix("{\"calls\": [{\"kind\": \"" + std::string(kind.name) + "\"}]}", Defaults(), "m");
    ASSERT_TRUE(specs.ok()) << specs.status();
    EXPECT_EQ((*specs)[0].kind, &kind);
    EXPECT_EQ((*specs)[0].k, 7U);
  }
}

TEST(MixFileTest, ReadsEveryKey) {
  const auto specs = ParseMix(R"({"calls": [
    {"kind": "vector", "weight": 2.5, "batch": 10, "k": 3, "payload": ["title", "year"],
     "filter": ["year > 1990", "year < 1950"]},
    {"kind": "examples", "positive": 2, "negative": 4, "strategy": "best_score", "payload": "all"},
    {"kind": "blend", "user_weight": 0.25, "exclude_seen": true, "filter": "year > 1"},
    {"kind": "groups", "field": "genres", "group_size": 2},
    {"kind": "diversity", "lambda": 0.7, "candidates": 50, "bulk": true},
    {"kind": "user", "cold_start": "most_popular"}]})",
                              Defaults(), "m");
  ASSERT_TRUE(specs.ok()) << specs.status();
  ASSERT_EQ(specs->size(), 6U);
  EXPECT_EQ((*specs)[5].cold_start, "most_popular");
  const CallSpec& vector = (*specs)[0];
  EXPECT_EQ(vector.weight, 2.5);
  EXPECT_EQ(vector.batch, 10U);
  EXPECT_EQ(vector.k, 3U);
  EXPECT_THAT(vector.payload->fields(), testing::ElementsAre("title", "year"));
  EXPECT_THAT(vector.filters, testing::ElementsAre("year > 1990", "year < 1950"));
  EXPECT_EQ((*specs)[1].positive, 2U);
  EXPECT_EQ((*specs)[1].negative, 4U);
  EXPECT_EQ((*specs)[1].strategy, "best_score");
  EXPECT_EQ((*specs)[1].payload->selection(), v1::PayloadSelector::SELECTION_ALL);
  EXPECT_EQ((*specs)[2].user_weight, 0.25);
  EXPECT_TRUE((*specs)[2].exclude_seen);
  EXPECT_THAT((*specs)[2].filters, testing::ElementsAre("year > 1"));
  EXPECT_EQ((*specs)[3].field, "genres");
  EXPECT_EQ((*specs)[3].group_size, 2U);
  EXPECT_EQ((*specs)[4].lambda, 0.7);
  EXPECT_EQ((*specs)[4].candidates, 50U);
  EXPECT_TRUE((*specs)[4].bulk);
  EXPECT_FALSE((*specs)[3].bulk);
}

TEST(MixFileTest, SaysWhereAndWhatWouldBeRight) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "m: not JSON: "},
      {"[]", "m: a mix is an object with a list of calls"},
      {R"({"calls": []})", "m: a mix is an object with a list of calls"},
      {R"({"calls": [{"kind": "vector"}], "call": 1})", "m: has no \"call\"; its only key is"},
      {R"({"calls": [3]})", "m: calls[0]: 3 is not an object"},
      {R"({"calls": [{}]})", "m: calls[0]: has no \"kind\"; give one of vector, id, "},
      {R"({"calls": [{"kind": "vektor"}]})",
       "calls[0].kind: there is no kind \"vektor\". Did you mean \"vector\"?"},
      {R"({"calls": [{"kind": "id"}, {"kind": "id", "wieght": 1}]})",
       "m: calls[1]: a call of kind \"id\" has no \"wieght\". Did you mean \"weight\"?"},
      {R"({"calls": [{"kind": "id", "lambda": 1}]})", "a call of kind \"id\" has no \"lambda\""},
      {R"({"calls": [{"kind": "id", "weight": 0}]})", "calls[0].weight: 0 is not a number above 0"},
      {R"({"calls": [{"kind": "id", "batch": 0}]})",
       "calls[0].batch: 0 is not a whole number from 1 to 1,024"},
      {R"({"calls": [{"kind": "id", "batch": 1.5}]})", "calls[0].batch: 1.5 is not a whole number"},
      {R"({"calls": [{"kind": "id", "k": 10001}]})",
       "calls[0].k: 10001 is not a whole number from 1 to 10,000"},
      {R"({"calls": [{"kind": "id", "payload": [1]}]})",
       "calls[0].payload: [1] is neither a text nor a list of texts"},
      {R"({"calls": [{"kind": "id", "filter": []}]})", "calls[0].filter: [] is neither"},
      {R"({"calls": [{"kind": "user", "exclude_seen": 1}]})",
       "calls[0].exclude_seen: 1 is neither true nor false"},
      {R"({"calls": [{"kind": "examples", "strategy": "mean"}]})",
       "calls[0].strategy: \"mean\" is no strategy; give average_vector"},
      {R"({"calls": [{"kind": "examples", "positive": 0, "negative": 2}]})",
       "calls[0].positive: average_vector needs at least one"},
      {R"({"calls": [{"kind": "examples", "positive": 40, "negative": 40}]})",
       "positive and negative together are 1 to 64"},
      {R"({"calls": [{"kind": "blend", "user_weight": 1.5}]})",
       "calls[0].user_weight: 1.5 is not a number from 0 to 1"},
      {R"({"calls": [{"kind": "user", "cold_start": "oldest"}]})",
       "calls[0].cold_start: \"oldest\" is no order; give newest or most_popular"},
  };
  for (const auto& [text, message] : cases) {
    const auto specs = ParseMix(text, Defaults(), "m");
    ASSERT_EQ(specs.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(specs.status().message()), testing::HasSubstr(message));
  }
}

TEST(MixFileTest, ReadsAFile) {
  const ScratchFolder folder;
  folder.Write("mix.json", R"({"calls": [{"kind": "id"}]})");
  EXPECT_TRUE(ReadMixFile((folder.path() / "mix.json").string(), Defaults()).ok());
  EXPECT_EQ(ReadMixFile((folder.path() / "none.json").string(), Defaults()).status().code(),
            absl::StatusCode::kNotFound);
  folder.Write("large.json", std::string((1U << 20) + 1, ' '));
  EXPECT_THAT(
      std::string(
          ReadMixFile((folder.path() / "large.json").string(), Defaults()).status().message()),
      testing::HasSubstr("over 1 MiB"));
}

}  // namespace
}  // namespace simile::cli::bench

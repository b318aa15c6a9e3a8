#include "wire_contract/lint.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/protobuf/descriptor.pb.h"
#include "wire_contract/contract.h"
#include "wire_contract/descriptor_walk.h"
#include "wire_contract/name_case.h"
#include "wire_contract/planted_change.h"

namespace simile::wire_contract {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::MethodOptions;
using ::testing::Pair;
using ::testing::TestWithParam;

// A contract in which no rule finds anything.
ProtoSources CleanContract() {
  return {{"music/v1/types.proto", R"(
             syntax = "proto3";
             package music.v1;
             message Song {
               enum KeyMode {
                 KEY_MODE_UNSPECIFIED = 0;
                 KEY_MODE_MAJOR = 1;
               }
               string title = 1;
               KeyMode key_mode = 2;
             }
           )"},
          {"music/v1/player.proto", R"(
             syntax = "proto3";
             package music.v1;
             import "music/v1/types.proto";
             service PlayerService {
               rpc Play(PlayRequest) returns (PlayResponse) {
                 option idempotency_level = NO_SIDE_EFFECTS;
               }
             }
             message PlayRequest {
               oneof target {
                 string id = 1;
                 string title = 2;
               }
             }
             message PlayResponse {
               map<string, Song> songs = 1;
             }
           )"}};
}

std::string OtherFile(const std::string& package, const std::string& rest) {
  return "syntax = \"proto3\"; package " + package + "; " + rest;
}

const std::vector<PlantedChange>& Plants() {
  static const std::vector<PlantedChange> plants = {
      {"no package", {{"loose.proto", "", "syntax = \"proto3\";"}}, {"PACKAGE_DEFINED"}},
      {"file of another folder",
       {{"tunes/player.proto", "", OtherFile("tunes.v1", "message Tune {}")}},
       {"PACKAGE_DIRECTORY_MATCH"}},
      {"package in two folders",
       {{"tunes/player.proto", "", OtherFile("music.v1", "message Tune {}")}},
       {"PACKAGE_DIRECTORY_MATCH", "PACKAGE_SAME_DIRECTORY"}},
      {"folder with two packages",
       {{"music/v1/tune.proto", "", OtherFile("tunes.v1", "message Tune {}")}},
       {"PACKAGE_DIRECTORY_MATCH", "DIRECTORY_SAME_PACKAGE"}},
      {"package with an upper-case letter",
       {{"Tunes/v1/tune.proto", "", OtherFile("Tunes.v1", "message Tune {}")}},
       {"PACKAGE_LOWER_SNAKE_CASE"}},
      {"package without a version",
       {{"tunes/tune.proto", "", OtherFile("tunes", "message Tune {}")}},
       {"PACKAGE_VERSION_SUFFIX"}},
      {"C# namespace of one file",
       {{kTypes, "message Song", "option csharp_namespace = \"A\"; message Song"}},
       {"PACKAGE_SAME_CSHARP_NAMESPACE"}},
      {"Go package of one file",
       {{kTypes, "message Song", "option go_package = \"a/b\"; message Song"}},
       {"PACKAGE_SAME_GO_PACKAGE"}},
      {"several Java files of one file",
       {{kTypes, "message Song", "option java_multiple_files = true; message Song"}},
       {"PACKAGE_SAME_JAVA_MULTIPLE_FILES"}},
      {"Java package of one file",
       {{kTypes, "message Song", "option java_package = \"a.b\"; message Song"}},
       {"PACKAGE_SAME_JAVA_PACKAGE"}},
      {"PHP namespace of one file",
       {{kTypes, "message Song", "option php_namespace = \"A\"; message Song"}},
       {"PACKAGE_SAME_PHP_NAMESPACE"}},
      {"Ruby package of one file",
       {{kTypes, "message Song", "option ruby_package = \"A\"; message Song"}},
       {"PACKAGE_SAME_RUBY_PACKAGE"}},
      {"Swift prefix of one file",
       {{kTypes, "message Song", "option swift_prefix = \"A\"; message Song"}},
       {"PACKAGE_SAME_SWIFT_PREFIX"}},
      {"file with an upper-case letter",
       {{"music/v1/oldTunes.proto", "", OtherFile("music.v1", "message Tune {}")}},
       {"FILE_LOWER_SNAKE_CASE"}},
      {"no syntax",
       {{kTypes, "syntax = \"proto3\";", ""},
        {kTypes, "string title", "optional string title"},
        {kTypes, "KeyMode key_mode", "optional KeyMode key_mode"}},
       {"SYNTAX_SPECIFIED"}},
      {"public import", {{kPlayer, "import ", "import public "}}, {"IMPORT_NO_PUBLIC"}},
      {"weak import", {{kPlayer, "import ", "import weak "}}, {"IMPORT_NO_WEAK"}},
      {"unused import", {{kPlayer, "map<string, Song>", "map<string, string>"}}, {"IMPORT_USED"}},
      {"message in lower case",
       {{kTypes, "message Song {", "message tune {} message Song {"}},
       {"MESSAGE_PASCAL_CASE"}},
      {"nested message with an underscore",
       {{kTypes, "string title", "message Song_Part {} string title"}},
       {"MESSAGE_PASCAL_CASE"}},
      {"field in camelCase",
       {{kTypes, "KeyMode key_mode", "KeyMode keyMode"}},
       {"FIELD_LOWER_SNAKE_CASE"}},
      {"required field",
       {{"music/v1/tune.proto", "",
         "syntax = \"proto2\"; package music.v1; message Tune { required string title = 1; }"}},
       {"SYNTAX_SPECIFIED", "FIELD_NOT_REQUIRED"}},
      {"oneof in PascalCase",
       {{kPlayer, "oneof target", "oneof Target"}},
       {"ONEOF_LOWER_SNAKE_CASE"}},
      {"enum with an underscore",
       {{kTypes, "enum KeyMode", "enum Key_Mode"},
        {kTypes, "KeyMode key_mode", "Key_Mode key_mode"}},
       {"ENUM_PASCAL_CASE"}},
      {"two names of a number",
       {{kTypes, "KEY_MODE_MAJOR = 1;",
         "KEY_MODE_MAJOR = 1; KEY_MODE_DUR = 1; option allow_alias = true;"}},
       {"ENUM_NO_ALLOW_ALIAS"}},
      {"enum that begins with 1",
       {{"music/v1/tune.proto", "",
         "syntax = \"proto2\"; package music.v1; enum Tune { TUNE_SLOW = 1; }"}},
       {"SYNTAX_SPECIFIED", "ENUM_FIRST_VALUE_ZERO"}},
      {"0 with a meaning",
       {{kTypes, "KEY_MODE_UNSPECIFIED", "KEY_MODE_MINOR"}},
       {"ENUM_ZERO_VALUE_SUFFIX"}},
      {"value with the prefix of the message",
       {{kTypes, "KEY_MODE_MAJOR", "SONG_MAJOR"}},
       {"ENUM_VALUE_PREFIX"}},
      {"value in mixed case",
       {{kTypes, "KEY_MODE_MAJOR", "KEY_MODE_Major"}},
       {"ENUM_VALUE_UPPER_SNAKE_CASE"}},
      {"service with an underscore",
       {{kPlayer, "service PlayerService", "service Player_Service"}},
       {"SERVICE_PASCAL_CASE"}},
      {"service without its suffix",
       {{kPlayer, "service PlayerService", "service Player"}},
       {"SERVICE_SUFFIX"}},
      {"method in lower case",
       {{kPlayer, "rpc Play(PlayRequest) returns (PlayResponse)",
         "rpc play(playRequest) returns (playResponse)"},
        {kPlayer, "message PlayRequest", "message playRequest"},
        {kPlayer, "message PlayResponse", "message playResponse"}},
       {"RPC_PASCAL_CASE", "MESSAGE_PASCAL_CASE"}},
      {"request of two methods",
       {{kPlayer, "rpc Play(",
         "rpc PlayerServicePlay(PlayRequest) returns (PlayerServicePlayResponse) {"
         " option idempotency_level = NO_SIDE_EFFECTS; } rpc Play("},
        {kPlayer, "message PlayRequest",
         "message PlayerServicePlayResponse {} message PlayRequest"}},
       {"RPC_REQUEST_RESPONSE_UNIQUE", "RPC_REQUEST_STANDARD_NAME"}},
      {"request with a name of its own",
       {{kPlayer, "(PlayRequest)", "(PlayQuery)"},
        {kPlayer, "message PlayRequest", "message PlayQuery"}},
       {"RPC_REQUEST_STANDARD_NAME"}},
      {"response with a name of its own",
       {{kPlayer, "(PlayResponse)", "(Songs)"}, {kPlayer, "message PlayResponse", "message Songs"}},
       {"RPC_RESPONSE_STANDARD_NAME"}},
      {"read that does not say so",
       {{kPlayer, "option idempotency_level = NO_SIDE_EFFECTS;", ""}},
       {"RPC_READS_HAVE_NO_SIDE_EFFECTS"}},
      {"change that says that it reads",
       {{kPlayer, "rpc Play(PlayRequest) returns (PlayResponse)",
         "rpc LoadCollection(LoadCollectionRequest) returns (LoadCollectionResponse)"},
        {kPlayer, "message PlayRequest", "message LoadCollectionRequest"},
        {kPlayer, "message PlayResponse", "message LoadCollectionResponse"}},
       {"RPC_READS_HAVE_NO_SIDE_EFFECTS"}},
      {"message called Value",
       {{kTypes, "message Song {", "message Value {} message Song {"}},
       {"PACKAGE_NAME_HAS_NOUN"}},
      {"enum called Backend",
       {{kTypes, "message Song {", "enum Backend { BACKEND_UNSPECIFIED = 0; } message Song {"}},
       {"PACKAGE_NAME_HAS_NOUN"}},
      {"request that says name",
       {{kPlayer, "string id = 1", "string name = 1"}},
       {"REQUEST_SAYS_COLLECTION"}},
      {"field with the name of Java's accessor",
       {{kTypes, "string title = 1;", "string title = 1; uint64 title_bytes = 3;"}},
       {"FIELD_NAMES_FIT_JAVA"}},
  };
  return plants;
}

TEST(LintTest, FindsNothingInTheWireContract) {
  const std::vector<const FileDescriptor*> files = CurrentFiles();
  ASSERT_GE(files.size(), 5U);
  ASSERT_EQ(std::ranges::count(files, nullptr), 0)
      << "a file of proto/simile/v1 is not compiled in";
  EXPECT_EQ(Lint(files), Findings{});
}

// Clients and proxies repeat a call by what it says of itself.
TEST(LintTest, SaysOfEveryMethodWhetherItMayBeRepeated) {
  std::map<std::string, std::string> levels;
  ForEachMethod(CurrentFiles(), [&](const MethodDescriptor& method) {
    levels[method.name()] =
        MethodOptions::IdempotencyLevel_Name(method.options().idempotency_level());
  });
  EXPECT_THAT(
      levels,
      testing::UnorderedElementsAre(
          Pair("Search", "NO_SIDE_EFFECTS"), Pair("Recommend", "NO_SIDE_EFFECTS"),
          Pair("SearchStream", "NO_SIDE_EFFECTS"), Pair("Explain", "NO_SIDE_EFFECTS"),
          Pair("Export", "NO_SIDE_EFFECTS"), Pair("Fetch", "NO_SIDE_EFFECTS"),
          Pair("Lookup", "NO_SIDE_EFFECTS"), Pair("ListCollections", "NO_SIDE_EFFECTS"),
          Pair("GetCollection", "NO_SIDE_EFFECTS"), Pair("DescribeFields", "NO_SIDE_EFFECTS"),
          Pair("GetServerInfo", "NO_SIDE_EFFECTS"), Pair("GetStats", "NO_SIDE_EFFECTS"),
          Pair("Diagnose", "NO_SIDE_EFFECTS"), Pair("LoadCollection", "IDEMPOTENT"),
          Pair("ReloadCollection", "IDEMPOTENT"), Pair("RollbackCollection", "IDEMPOTENT"),
          Pair("UnloadCollection", "IDEMPOTENCY_UNKNOWN")));
}

TEST(LintTest, FindsNothingInACleanContract) {
  const Contract contract = Compile(CleanContract());
  ASSERT_EQ(contract.problem, "");
  ASSERT_EQ(contract.files.size(), 2U);
  EXPECT_EQ(Lint(contract.files), Findings{});
}

class PlantedLintTest : public TestWithParam<PlantedChange> {};

TEST_P(PlantedLintTest, IsFoundByItsRulesAlone) {
  const Contract contract = Compile(Edited(CleanContract(), GetParam().edits));
  ASSERT_EQ(contract.problem, "");
  const Findings findings = Lint(contract.files);
  EXPECT_EQ(RulesOf(findings), GetParam().rules) << testing::PrintToString(findings);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedLintTest, testing::ValuesIn(Plants()));

TEST(LintTest, HasAPlantForEveryRule) {
  std::set<std::string> planted;
  for (const PlantedChange& plant : Plants())
    planted.insert(plant.rules.begin(), plant.rules.end());
  for (const LintRule& rule : LintRules()) {
    EXPECT_TRUE(planted.contains(std::string(rule.name))) << rule.name;
  }
  EXPECT_EQ(planted.size(), LintRules().size());
}

TEST(NameCaseTest, TellsCasesApart) {
  EXPECT_TRUE(IsPascalCase("SearchV1"));
  EXPECT_FALSE(IsPascalCase("searchV1") || IsPascalCase("Search_V1") || IsPascalCase(""));
  EXPECT_TRUE(IsLowerSnakeCase("f32_rows"));
  EXPECT_FALSE(IsLowerSnakeCase("a__b") || IsLowerSnakeCase("a_") || IsLowerSnakeCase("_a") ||
               IsLowerSnakeCase("1a") || IsLowerSnakeCase("aB") || IsLowerSnakeCase(""));
  EXPECT_TRUE(IsUpperSnakeCase("FORMAT_F32_LE"));
  EXPECT_FALSE(IsUpperSnakeCase("FORMAT_f32") || IsUpperSnakeCase("FORMAT-F32"));
}

TEST(NameCaseTest, SplitsPascalCaseIntoWords) {
  EXPECT_EQ(UpperSnakeCaseOf("Stage"), "STAGE");
  EXPECT_EQ(UpperSnakeCaseOf("AnswerOrder"), "ANSWER_ORDER");
  EXPECT_EQ(UpperSnakeCaseOf("RPCState"), "RPC_STATE");
  EXPECT_EQ(UpperSnakeCaseOf("F32Format"), "F32_FORMAT");
}

}  // namespace
}  // namespace simile::wire_contract

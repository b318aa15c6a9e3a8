#include "wire_contract/compatibility.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "wire_contract/contract.h"
#include "wire_contract/planted_change.h"

namespace simile::wire_contract {
namespace {

using ::testing::TestWithParam;

ProtoSources ReleasedContract() {
  return {{"music/v1/types.proto", R"(
             syntax = "proto3";
             package music.v1;
             option csharp_namespace = "Music.V1";
             option go_package = "music/v1";
             option java_multiple_files = true;
             option java_package = "music.v1";
             option php_namespace = "Music";
             option ruby_package = "Music";
             option swift_prefix = "MU";
             message Song {
               enum KeyMode {
                 KEY_MODE_UNSPECIFIED = 0;
                 KEY_MODE_MAJOR = 1;
                 reserved 7;
                 reserved "KEY_MODE_GREEK";
               }
               message Part {
                 string text = 1;
               }
               string title = 1;
               KeyMode key_mode = 2;
               optional uint32 year = 3;
               map<string, string> notes = 4;
               repeated Part parts = 5;
               reserved 10 to 12;
               reserved "old_title";
             }
             message Album {
               repeated string songs = 1;
             }
             enum Order {
               ORDER_UNSPECIFIED = 0;
               ORDER_NEWEST = 1;
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
               rpc Follow(stream FollowRequest) returns (stream FollowResponse);
             }
             service RadioService {}
             message PlayRequest {
               oneof target {
                 string id = 1;
                 string title = 2;
               }
               Order order = 3;
             }
             message PlayResponse {
               Song song = 1;
             }
             message FollowRequest {}
             message FollowResponse {}
           )"},
          {"music/v1/empty.proto", R"(
             syntax = "proto3";
             package music.v1;
           )"}};
}

const char* const kEmpty = "music/v1/empty.proto";

const std::vector<PlantedChange>& Breaks() {
  static const std::vector<PlantedChange> breaks = {
      {"package renamed",
       {{kEmpty, "package music.v1", "package music.v2"}},
       {"FILE_SAME_PACKAGE"}},
      {"syntax changed", {{kEmpty, "proto3", "proto2"}}, {"FILE_SAME_SYNTAX"}},
      {"C# namespace renamed",
       {{kTypes, "\"Music.V1\"", "\"Music\""}},
       {"FILE_SAME_CSHARP_NAMESPACE"}},
      {"Go package renamed", {{kTypes, "\"music/v1\"", "\"music\""}}, {"FILE_SAME_GO_PACKAGE"}},
      {"one Java file again",
       {{kTypes, "option java_multiple_files = true;", ""}},
       {"FILE_SAME_JAVA_MULTIPLE_FILES"}},
      {"Java package renamed", {{kTypes, "\"music.v1\"", "\"music\""}}, {"FILE_SAME_JAVA_PACKAGE"}},
      {"PHP namespace removed",
       {{kTypes, "option php_namespace = \"Music\";", ""}},
       {"FILE_SAME_PHP_NAMESPACE"}},
      {"Ruby package removed",
       {{kTypes, "option ruby_package = \"Music\";", ""}},
       {"FILE_SAME_RUBY_PACKAGE"}},
      {"Swift prefix changed", {{kTypes, "\"MU\"", "\"M\""}}, {"FILE_SAME_SWIFT_PREFIX"}},
      {"service removed", {{kPlayer, "service RadioService {}", ""}}, {"SERVICE_NO_DELETE"}},
      {"service renamed",
       {{kPlayer, "service RadioService", "service StationService"}},
       {"SERVICE_NO_DELETE"}},
      {"method renamed", {{kPlayer, "rpc Follow(", "rpc Watch("}}, {"RPC_NO_DELETE"}},
      {"method removed",
       {{kPlayer, "rpc Follow(stream FollowRequest) returns (stream FollowResponse);", ""}},
       {"RPC_NO_DELETE"}},
      {"request of another type",
       {{kPlayer, "(PlayRequest)", "(FollowRequest)"}},
       {"RPC_SAME_REQUEST_TYPE"}},
      {"response of another type",
       {{kPlayer, "(PlayResponse)", "(FollowResponse)"}},
       {"RPC_SAME_RESPONSE_TYPE"}},
      {"requests no longer a stream",
       {{kPlayer, "stream FollowRequest", "FollowRequest"}},
       {"RPC_SAME_CLIENT_STREAMING"}},
      {"response a stream",
       {{kPlayer, "returns (PlayResponse)", "returns (stream PlayResponse)"}},
       {"RPC_SAME_SERVER_STREAMING"}},
      {"read no longer safe to repeat",
       {{kPlayer, "option idempotency_level = NO_SIDE_EFFECTS;", ""}},
       {"RPC_SAME_IDEMPOTENCY_LEVEL"}},
      {"message removed",
       {{kTypes, "message Album {\n               repeated string songs = 1;\n             }", ""}},
       {"MESSAGE_NO_DELETE"}},
      {"message moved to another file",
       {{kPlayer, "message FollowResponse {}", ""},
        {kPlayer, "import ", "import \"music/v1/empty.proto\"; import "},
        {kEmpty, "package music.v1;", "package music.v1; message FollowResponse {}"}},
       {"MESSAGE_NO_DELETE"}},
      {"nested message renamed",
       {{kTypes, "message Part", "message Verse"}, {kTypes, "repeated Part", "repeated Verse"}},
       {"MESSAGE_NO_DELETE", "FIELD_SAME_TYPE"}},
      {"oneof renamed",
       {{kPlayer, "oneof target", "oneof item"}},
       {"ONEOF_NO_DELETE", "FIELD_SAME_ONEOF"}},
      {"reserved number freed",
       {{kTypes, "reserved 10 to 12", "reserved 10 to 11"}},
       {"RESERVED_MESSAGE_NO_DELETE"}},
      {"reserved name used again",
       {{kTypes, "reserved \"old_title\"", "string old_title = 6"}},
       {"RESERVED_MESSAGE_NO_DELETE"}},
      {"field removed", {{kTypes, "optional uint32 year = 3;", ""}}, {"FIELD_NO_DELETE"}},
      {"field removed and reserved",
       {{kTypes, "optional uint32 year = 3;", "reserved 3; reserved \"year\";"}},
       {"FIELD_NO_DELETE"}},
      {"field renumbered", {{kTypes, "title = 1", "title = 6"}}, {"FIELD_NO_DELETE"}},
      {"fields exchanged",
       {{kTypes, "title = 1", "text_x = 1"},
        {kTypes, "text = 1", "title = 1"},
        {kTypes, "text_x = 1", "text = 1"}},
       {"FIELD_SAME_NAME", "FIELD_SAME_JSON_NAME"}},
      {"field renamed, with its name in JSON kept",
       {{kTypes, "title = 1", "name = 1 [json_name = \"title\"]"}},
       {"FIELD_SAME_NAME"}},
      {"name in JSON changed",
       {{kTypes, "title = 1", "title = 1 [json_name = \"name\"]"}},
       {"FIELD_SAME_JSON_NAME"}},
      {"number widened", {{kTypes, "optional uint32", "optional uint64"}}, {"FIELD_SAME_TYPE"}},
      {"text became bytes", {{kTypes, "string title", "bytes title"}}, {"FIELD_SAME_TYPE"}},
      {"another enum",
       {{kTypes, "KeyMode key_mode = 2", "Order key_mode = 2"}},
       {"FIELD_SAME_TYPE"}},
      {"enum became a number",
       {{kTypes, "KeyMode key_mode = 2", "int32 key_mode = 2"}},
       {"FIELD_SAME_TYPE"}},
      {"other values of a map",
       {{kTypes, "map<string, string>", "map<string, int32>"}},
       {"FIELD_SAME_TYPE"}},
      {"map became a list",
       {{kTypes, "map<string, string> notes", "repeated NotesEntry notes"},
        {kTypes, "message Part",
         "message NotesEntry { string key = 1; string value = 2; } message Part"}},
       {"FIELD_SAME_TYPE", "FIELD_SAME_CARDINALITY"}},
      {"presence lost",
       {{kTypes, "optional uint32 year", "uint32 year"}},
       {"FIELD_SAME_CARDINALITY"}},
      {"presence gained",
       {{kTypes, "string title", "optional string title"}},
       {"FIELD_SAME_CARDINALITY"}},
      {"list became a field", {{kTypes, "repeated Part", "Part"}}, {"FIELD_SAME_CARDINALITY"}},
      {"field left its oneof",
       {{kPlayer, "string title = 2;", ""},
        {kPlayer, "Order order = 3;", "Order order = 3; optional string title = 2;"}},
       {"FIELD_SAME_ONEOF"}},
      {"field joined a oneof",
       {{kPlayer, "Order order = 3;", ""},
        {kPlayer, "string id = 1;", "string id = 1; Order order = 3;"}},
       {"FIELD_SAME_ONEOF", "FIELD_SAME_CARDINALITY"}},
      {"enum removed",
       {{kTypes,
         "enum Order {\n               ORDER_UNSPECIFIED = 0;\n               ORDER_NEWEST = 1;\n  "
         "           }",
         ""},
        {kPlayer, "Order order = 3", "Song.KeyMode order = 3"}},
       {"ENUM_NO_DELETE", "FIELD_SAME_TYPE"}},
      {"value removed", {{kTypes, "KEY_MODE_MAJOR = 1;", ""}}, {"ENUM_VALUE_NO_DELETE"}},
      {"value removed and reserved",
       {{kTypes, "KEY_MODE_MAJOR = 1;", "reserved 1; reserved \"KEY_MODE_MAJOR\";"}},
       {"ENUM_VALUE_NO_DELETE"}},
      {"value renumbered",
       {{kTypes, "KEY_MODE_MAJOR = 1", "KEY_MODE_MAJOR = 2"}},
       {"ENUM_VALUE_NO_DELETE"}},
      {"value renamed", {{kTypes, "ORDER_NEWEST", "ORDER_LATEST"}}, {"ENUM_VALUE_SAME_NAME"}},
      {"another default value",
       {{kTypes, "ORDER_UNSPECIFIED = 0", "ORDER_OLDEST = 0"}},
       {"ENUM_VALUE_SAME_NAME"}},
      {"reserved value freed", {{kTypes, "reserved 7;", ""}}, {"RESERVED_ENUM_NO_DELETE"}},
      {"reserved value used again",
       {{kTypes, "reserved \"KEY_MODE_GREEK\"", "KEY_MODE_GREEK = 2"}},
       {"RESERVED_ENUM_NO_DELETE"}},
  };
  return breaks;
}

const std::vector<PlantedChange>& Additions() {
  static const std::vector<PlantedChange> additions = {
      {"nothing", {}, {}},
      {"a file",
       {{"music/v1/radio.proto", "", "syntax = \"proto3\"; package music.v1; message Station {}"}},
       {}},
      {"an option of a file that had none",
       {{kPlayer, "service PlayerService",
         "option go_package = \"music/v1\"; service PlayerService"}},
       {}},
      {"a service and its messages",
       {{kPlayer, "message FollowRequest {}",
         "service TuneService { rpc Tune(TuneRequest) returns (TuneResponse); }"
         " message TuneRequest {} message TuneResponse {} message FollowRequest {}"}},
       {}},
      {"a method",
       {{kPlayer, "service RadioService {}",
         "service RadioService { rpc Stop(StopRequest) returns (StopResponse); }"
         " message StopRequest {} message StopResponse {}"}},
       {}},
      {"fields",
       {{kTypes, "string title = 1",
         "string title = 1; string composer = 6; optional int32 bpm = 7"}},
       {}},
      {"a field of a oneof", {{kPlayer, "string id = 1", "string id = 1; uint64 row = 4"}}, {}},
      {"a oneof",
       {{kPlayer, "Order order = 3",
         "Order order = 3; oneof part { string verse = 4; string bar = 5; }"}},
       {}},
      {"a nested message and enum",
       {{kTypes, "message Part",
         "message Bar {} enum Tempo { TEMPO_UNSPECIFIED = 0; } message Part"}},
       {}},
      {"a value", {{kTypes, "ORDER_NEWEST = 1", "ORDER_NEWEST = 1; ORDER_OLDEST = 2"}}, {}},
      {"reserved numbers and names",
       {{kTypes, "reserved 10 to 12", "reserved 10 to 20; reserved \"older_title\""}},
       {}},
      {"another order of the fields",
       {{kTypes, "string title = 1;", ""},
        {kTypes, "KeyMode key_mode = 2", "KeyMode key_mode = 2; string title = 1"}},
       {}},
      {"`optional` before a message, which has presence anyway",
       {{kPlayer, "Song song", "optional Song song"}},
       {}},
      {"a deprecated field", {{kTypes, "title = 1", "title = 1 [deprecated = true]"}}, {}},
  };
  return additions;
}

class CompatibilityTest : public TestWithParam<PlantedChange> {
 protected:
  void SetUp() override {
    ASSERT_EQ(released_.problem, "");
    ASSERT_EQ(current_.problem, "");
  }
  Findings Found() const { return BreakingChanges(released_.files, current_.files); }

 private:
  const Contract released_ = Compile(ReleasedContract());
  const Contract current_ = Compile(Edited(ReleasedContract(), GetParam().edits));
};

using BreakTest = CompatibilityTest;

TEST_P(BreakTest, IsFoundByItsRulesAlone) {
  const Findings findings = Found();
  EXPECT_EQ(RulesOf(findings), GetParam().rules) << testing::PrintToString(findings);
}
INSTANTIATE_TEST_SUITE_P(All, BreakTest, testing::ValuesIn(Breaks()));

using AdditionTest = CompatibilityTest;

TEST_P(AdditionTest, IsCompatible) { EXPECT_EQ(Found(), Findings{}); }
INSTANTIATE_TEST_SUITE_P(All, AdditionTest, testing::ValuesIn(Additions()));

TEST(BreakingChangesTest, FindsAFileThatIsGone) {
  const Contract released = Compile(ReleasedContract());
  ProtoSources rest = ReleasedContract();
  rest.erase(kEmpty);
  const Contract current = Compile(rest);
  ASSERT_EQ(current.problem, "");
  EXPECT_EQ(BreakingChanges(released.files, current.files),
            (Findings{{"FILE_NO_DELETE", kEmpty, "is gone"}}));
}

TEST(BreakingChangesTest, HasAPlantForEveryRule) {
  std::set<std::string> planted = {"FILE_NO_DELETE"};  // by the test above
  for (const PlantedChange& plant : Breaks())
    planted.insert(plant.rules.begin(), plant.rules.end());
  EXPECT_EQ(planted, std::set<std::string>(BreakingRules().begin(), BreakingRules().end()));
}

}  // namespace
}  // namespace simile::wire_contract

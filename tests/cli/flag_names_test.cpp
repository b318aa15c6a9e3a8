#include "cli/flag_names.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {
namespace {

// A request that commands send, and the fields of it that none of them sets from a flag.
struct SentRequest {
  const google::protobuf::Descriptor* type;
  std::vector<std::string> commands;
  std::set<std::string> not_from_flags;
};

std::vector<SentRequest> SentRequests() {
  const std::set<std::string> of_options = {"options.layout", "options.payload.selection",
                                            "options.reply_bytes_max", "options.with_vectors"};
  std::set<std::string> of_search = of_options;
  of_search.insert(
      {"queries[].packed_vector", "queries[].user_id", "queries[].vector.as_stored",
       "queries[].vector.values", "queries[].blend.packed_vector", "queries[].blend.vector",
       "queries[].examples.positive[].packed_vector",
       "queries[].examples.positive[].vector.as_stored",
       "queries[].examples.positive[].vector.values", "queries[].examples.positive[].weight",
       "queries[].examples.negative[].packed_vector", "queries[].examples.negative[].vector",
       "queries[].examples.negative[].weight"});
  return {
      {v1::SearchRequest::descriptor(), {"search", "similar", "recommend"}, of_search},
      {v1::RecommendRequest::descriptor(), {"recommend"}, of_options},
      {v1::FetchRequest::descriptor(),
       {"fetch", "similar"},
       {"payload.selection", "reply_bytes_max"}},
      {v1::LookupRequest::descriptor(),
       {"lookup", "similar"},
       {"payload.selection", "reply_bytes_max", "with_vectors"}},
      {v1::DescribeFieldsRequest::descriptor(), {"fields"}, {}},
      {v1::GetCollectionRequest::descriptor(), {"list"}, {}},
      {v1::LoadCollectionRequest::descriptor(), {"load"}, {}},
      {v1::ReloadCollectionRequest::descriptor(), {"reload"}, {}},
      {v1::RollbackCollectionRequest::descriptor(), {"rollback"}, {}},
      {v1::UnloadCollectionRequest::descriptor(), {"unload"}, {}},
  };
}

// Adds the paths of all fields below a message, but for those that no flag sets, and for the
// options, which are no field by themselves.
void AddPaths(const google::protobuf::Descriptor& type, const std::string& parent,
              const std::set<std::string>& not_from_flags, std::vector<std::string>& paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    std::string path = parent + field.name();
    if (not_from_flags.contains(path)) continue;
    if (path != "options") paths.push_back(path);
    if (field.is_repeated()) paths.push_back(path += "[]");
    if (field.message_type() != nullptr) {
      AddPaths(*field.message_type(), path + ".", not_from_flags, paths);
    }
  }
}

std::vector<std::string> ListPaths(const SentRequest& request) {
  std::vector<std::string> paths;
  AddPaths(*request.type, "", request.not_from_flags, paths);
  return paths;
}

class FlagNamesTest : public testing::Test {
 protected:
  FlagNamesTest() : line_("", "") {
    for (const auto add :
         {AddSearchCommand, AddSimilarCommand, AddRecommendCommand, AddExplainCommand,
          AddLookupCommand, AddFetchCommand, AddFieldsCommand, AddListCommand, AddLoadCommand,
          AddReloadCommand, AddRollbackCommand, AddUnloadCommand}) {
      add(line_);
    }
  }

  // Whether a command has each flag of "--like and --unlike".
  static bool Has(const CommandSpec& command, std::string flags) {
    const std::size_t both = flags.find(" and ");
    if (both == std::string::npos) return FindArgument(command, flags) != nullptr;
    return Has(command, flags.substr(0, both)) && Has(command, flags.substr(both + 5));
  }

  CommandLine line_;
};

TEST_F(FlagNamesTest, EveryFieldThatACommandSetsHasAFlagName) {
  for (const SentRequest& request : SentRequests()) {
    for (const std::string& path : ListPaths(request)) {
      const bool named = std::ranges::any_of(request.commands, [&](const std::string& command) {
        return !FlagOf(command, path).empty();
      });
      EXPECT_TRUE(named) << request.type->name() << "." << path;
    }
  }
}

TEST_F(FlagNamesTest, EveryRowNamesAFlagThatItsCommandHas) {
  for (const FlagName& row : FlagNames()) {
    const bool exists = std::ranges::any_of(line_.program().commands, [&](const auto& command) {
      const bool meant = row.command.empty() || row.command == command.name;
      return meant && Has(command, std::string(row.flag));
    });
    EXPECT_TRUE(exists) << row.command << " " << row.flag;
  }
}

TEST_F(FlagNamesTest, EveryRowIsAFieldOfARequest) {
  std::set<std::string> paths;
  for (const SentRequest& request : SentRequests()) {
    for (const std::string& path : ListPaths(request)) paths.insert(path);
  }
  for (const FlagName& row : FlagNames()) {
    const std::string field(row.field);
    EXPECT_TRUE(paths.contains(field) || paths.contains("options." + field) ||
                paths.contains("queries[]." + field))
        << field;
  }
}

// An error as a server sends it.
absl::Status ServersError(const std::string& field, const std::string& message,
                          const std::string& reason = "INVALID_FIELD") {
  google::rpc::Status rpc_status;
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  rpc_status.add_details()->PackFrom(info);
  google::rpc::BadRequest bad_request;
  bad_request.add_field_violations()->set_field(field);
  rpc_status.add_details()->PackFrom(bad_request);
  return WithDetails(absl::InvalidArgumentError(message), rpc_status.SerializeAsString());
}

std::string Told(const std::string& command, const std::string& field, const std::string& message) {
  return std::string(InFlags(ServersError(field, message), command).message());
}

TEST(InFlagsTest, PutsARefusedNumberAfterItsFlag) {
  EXPECT_EQ(Told("similar", "options.k", "options.k: 0; ask for 1 to 10,000"),
            "-k 0: ask for 1 to 10,000");
  EXPECT_EQ(Told("similar", "queries[0].k", "queries[0].k: 20,000; ask for 1 to 10,000"),
            "-k 20,000: ask for 1 to 10,000");
  EXPECT_EQ(Told("recommend", "options.diversity.lambda",
                 "options.diversity.lambda: -0.5; give 0 (difference alone) to 1 (score alone)"),
            "--diversity -0.5: give 0 (difference alone) to 1 (score alone)");
  EXPECT_EQ(Told("search", "options.score_threshold",
                 "options.score_threshold: NaN; give a finite number, or leave it out"),
            "--score-threshold NaN: give a finite number, or leave it out");
  EXPECT_EQ(Told("fetch", "ids", "ids: 1,001 given; a call takes 1 to 1,000"),
            "--id: 1,001 given; a call takes 1 to 1,000");
}

TEST(InFlagsTest, SaysWhichOfSeveralValuesIsWrong) {
  EXPECT_EQ(Told("similar", "queries[3].id", "queries[3].id: empty; an id has 1 to 512 bytes"),
            "4th --id: empty; an id has 1 to 512 bytes");
  EXPECT_EQ(Told("fetch", "ids[0]", "ids[0]: no item \"x\" in films"),
            "--id: no item \"x\" in films");
  EXPECT_EQ(Told("recommend", "user_ids[21]", "user_ids[21]: no user \"x\" in films"),
            "22nd --user: no user \"x\" in films");
  EXPECT_EQ(Told("recommend", "user_ids[10]", "user_ids[10]: empty"), "11th --user: empty");
  EXPECT_EQ(Told("search", "queries[2].vector", "queries[2]: vector holds NaN at column 3"),
            "--vector, row 2: vector holds NaN at column 3");
  EXPECT_EQ(Told("search", "queries[2].examples.positive[0].vector",
                 "queries[2]: examples.positive[0]: vector holds NaN at column 3"),
            "--vector, row 2: vector holds NaN at column 3");
  EXPECT_EQ(Told("similar", "queries[0].examples.positive[1].id",
                 "examples.positive[1]: no item \"x\" in films"),
            "--like: no item \"x\" in films");
  EXPECT_EQ(Told("similar", "queries[0].examples.negative[1].id",
                 "examples.negative[1]: no item \"x\" in films"),
            "2nd --unlike: no item \"x\" in films");
  EXPECT_EQ(Told("recommend", "queries[1].blend.id", "queries[1]: blend: no item \"x\" in films"),
            "--like: no item \"x\" in films");
}

TEST(InFlagsTest, KeepsTheColumnOfAFilter) {
  EXPECT_EQ(Told("similar", "options.filter", "filter, column 1: films has no field \"genre\"."),
            "--filter, column 1: films has no field \"genre\".");
  EXPECT_EQ(Told("similar", "queries[2].filter", "queries[2]: filter, column 1: no field"),
            "--filter, column 1: no field");
  EXPECT_EQ(Told("fetch", "required_filter", "required_filter, column 5: no field"),
            "--required-filter, column 5: no field");
}

TEST(InFlagsTest, NamesTheFlagOfTheCommand) {
  EXPECT_EQ(Told("lookup", "text", "text: 0 bytes; give 1 to 512"), "TEXT: 0 bytes; give 1 to 512");
  EXPECT_EQ(Told("similar", "text", "text: 0 bytes; give 1 to 512"),
            "--title: 0 bytes; give 1 to 512");
  EXPECT_EQ(Told("load", "folder", "folder: \"x\" is absolute"), "FOLDER: \"x\" is absolute");
  EXPECT_EQ(Told("reload", "folder", "folder: \"x\" is absolute"), "--folder: \"x\" is absolute");
}

TEST(InFlagsTest, ChangesNoMessageThatBeginsWithNoFieldOfAFlag) {
  EXPECT_EQ(Told("recommend", "user_ids[0]", "no user \"user_ids\" in films"),
            "no user \"user_ids\" in films");
  EXPECT_EQ(Told("list", "page_size", "page_size: 5; give less"), "page_size: 5; give less");
  EXPECT_EQ(Told("", "limit", "limit: 0"), "limit: 0");
  EXPECT_EQ(Told("similar", "options.k", "k, v: 0"), "-k, v: 0") << "a part of the field";
  EXPECT_EQ(Told("similar", "options.filter", "options"), "options");
  EXPECT_EQ(Told("similar", "options.filter", ""), "");
  EXPECT_EQ(InFlags(absl::UnavailableError("k: no"), "similar"), absl::UnavailableError("k: no"));
}

TEST(InFlagsTest, KeepsTheDetails) {
  const absl::Status told =
      InFlags(ServersError("options.k", "options.k: 0; ask for 1 to 10,000"), "similar");
  EXPECT_EQ(told.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseDetails(told).field, "options.k");
  EXPECT_EQ(ParseDetails(told).reason, "INVALID_FIELD");
}

TEST(InFlagsTest, SaysWhichFlagsMakeAnAnswerSmaller) {
  const auto told = [](const char* command) {
    return std::string(
        InFlags(ServersError("",
                             "the answer needs 9,000 bytes and may have 8,000; lower "
                             "k, or raise options.reply_bytes_max",
                             "REPLY_TOO_LARGE"),
                command)
            .message());
  };
  EXPECT_EQ(told("similar"),
            "the answer needs 9,000 bytes and may have 8,000; ask for fewer hits with -k, or for "
            "fewer payload fields with --fields");
  EXPECT_EQ(told("fields"), "the answer needs 9,000 bytes and may have 8,000; lower --values");
  EXPECT_THAT(told("verify"), testing::EndsWith("or raise options.reply_bytes_max"));
}

}  // namespace
}  // namespace simile::cli

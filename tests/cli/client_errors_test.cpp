// What the client commands say when a server refuses their flags, or when there is no server: as a
// shell shows it, against a real server of the films.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/live_server.h"
#include "cli/program_run.h"
#include "integration/server_process.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ClientErrorsTest : public testing::Test {
 protected:
  ProgramRun Run(const std::vector<std::string>& arguments, const std::string& input = "") {
    return server_.Run(arguments, input);
  }

 private:
  LiveServer server_;
};

// A line that the server refuses, and what is told instead of the field.
struct RefusedLine {
  std::vector<std::string> arguments;
  std::string field;
  std::string error;
  std::string input = "";
};

std::string Repeated(const std::string& text, int count) {
  std::string repeated;
  for (int i = 0; i < count; ++i) repeated += text;
  return repeated;
}

// Every mistake in a flag's value that only the server finds.
std::vector<RefusedLine> RefusedLines() {
  const std::string fields = "Fields: cast, genres, media_id, title, year.";
  const std::string long_id(513, 'x');
  const std::vector<std::string> heat = {"similar", "--id", "heat-1995"};
  const std::vector<std::string> user = {"recommend", "--user", "user_00042"};
  const auto with = [](std::vector<std::string> line, const std::vector<std::string>& flags) {
    line.insert(line.end(), flags.begin(), flags.end());
    return line;
  };
  return {
      {with(heat, {"-k", "0"}), "options.k", "-k 0: ask for 1 to 10,000"},
      {with(heat, {"-k", "20000"}), "options.k", "-k 20,000: ask for 1 to 10,000"},
      {with(user, {"-k", "10001"}), "options.k", "-k 10,001: ask for 1 to 10,000"},
      {with(heat, {"--offset", "9991"}), "queries[0].offset",
       "--offset 9,991: offset + k may be at most 10,000, and k is 10"},
      {with(user, {"--offset", "9991"}), "options.offset",
       "--offset 9,991: offset + k may be at most 10,000, and k is 10"},
      {with(heat, {"--score-threshold", "nan"}), "options.score_threshold",
       "--score-threshold NaN: give a finite number, or leave it out for no threshold"},
      {with(heat, {"--exclude", "a," + long_id}), "options.exclude_ids[1]",
       "2nd --exclude: 513 bytes; an id has at most 512"},
      {with(heat, {"--filter", "year >"}), "options.filter",
       "--filter, column 7: expected a value after >, found the end"},
      {with(heat, {"--filter", "genre:Drama"}), "options.filter",
       "--filter, column 1: films has no field \"genre\". Did you mean \"genres\"? " + fields},
      {{"similar", "--id", "heat-1995,alien-1979", "--filter", "genre:Drama"},
       "options.filter",
       "--filter, column 1: films has no field \"genre\". Did you mean \"genres\"? " + fields},
      {with(heat, {"--filter", "title:" + std::string(8'200, 'x')}), "options.filter",
       "--filter: 8,206 bytes; a filter may have 8,192; allow_ids takes long lists of ids"},
      {{"similar", "--like", "heat-1995", "--required-filter", "genre = Drama"},
       "options.required_filter",
       "--required-filter, column 1: films has no field \"genre\". Did you mean \"genres\"? " +
           fields},
      {{"fetch", "--id", "heat-1995", "--required-filter", "genre = Drama"},
       "required_filter",
       "--required-filter, column 1: films has no field \"genre\". Did you mean \"genres\"? " +
           fields},
      {with(heat, {"--group-by", "genre"}), "options.group_by.field",
       "--group-by: films has no field \"genre\". Did you mean \"genres\"? " + fields},
      {with(heat, {"--group-by", "genres", "--group-size", "10001"}), "options.group_by.group_size",
       "--group-size 10,001: ask for 1 to 10,000"},
      {with(heat, {"--group-by", "genres", "--group-size", "10000"}), "queries[0].group_by",
       "--group-by: 10 groups of 10,000 rows are more than 10,000; ask for fewer or smaller ones"},
      {with(heat, {"--diversity", "2"}), "options.diversity.lambda",
       "--diversity 2: give 0 (difference alone) to 1 (score alone)"},
      {with(heat, {"--diversity", "0.5", "--candidates", "1001"}), "options.diversity.candidates",
       "--candidates 1,001: give 1 to 1,000"},
      {with(heat, {"--diversity", "0.5", "--candidates", "5"}), "queries[0].diversity.candidates",
       "--candidates 5: 10 rows are wanted, offset included: raise it (up to 1,000), or lower k"},
      {with(heat, {"--page-token", "x"}), "options.page_token",
       "--page-token: not a page token; give the token that --paged printed, unchanged, or leave "
       "it out for the first page"},
      {with(heat, {"--fields", "yaer"}), "options.payload.fields[0]",
       "--fields: films has no field \"yaer\". Did you mean \"year\"? " + fields},
      {{"lookup", "heat", "--fields", "title,yaer"},
       "payload.fields[1]",
       "--fields: films has no field \"yaer\". Did you mean \"year\"? " + fields},
      {{"fetch", "--id", "heat-1995,nope"},
       "ids[1]",
       "2nd --id: no item \"nope\" in films. `simile lookup TEXT` finds an item by its title."},
      {{"fetch", "--id", "toy-story"},
       "ids[0]",
       "no item \"toy-story\" in films. Did you mean \"toy-story-1995\"?"},
      {{"fetch", "--id", long_id}, "ids[0]", "--id: 513 bytes; an id has at most 512"},
      {{"similar", "--id", "nope"},
       "ids[0]",
       "no item \"nope\" in films. --title TEXT finds an item by its title."},
      {{"similar", "--like", "nope"},
       "queries[0].examples.positive[0].id",
       "--like: no item \"nope\" in films"},
      {{"similar", "--like", "heat-1995", "--unlike", "alien-1979,nope"},
       "queries[0].examples.negative[1].id",
       "2nd --unlike: no item \"nope\" in films"},
      {{"similar", "--unlike", "heat-1995", "--strategy", "average-vector"},
       "queries[0].examples",
       "--like and --unlike: the strategy average_vector needs a positive example; add one, or "
       "take best_score or sum_scores"},
      {{"similar", "--title", std::string(513, 'x')}, "text", "--title: 513 bytes; give 1 to 512"},
      {{"lookup", std::string(513, 'x')}, "text", "TEXT: 513 bytes; give 1 to 512"},
      {{"lookup", "heat", "--limit", "1001"}, "limit", "--limit 1,001: ask for 1 to 1,000"},
      {{"lookup", "heat", "--field", "genres"},
       "field",
       "--field: films cannot be searched by \"genres\". Fields that can: title."},
      {{"recommend", "--user", "user_00042,nobody"},
       "user_ids[1]",
       "2nd --user: no user \"nobody\" in films. --cold-start newest, or most-popular, answers "
       "users without a profile."},
      {{"recommend", "--user", long_id}, "user_ids[0]", "--user: 513 bytes; an id has at most 512"},
      {{"recommend", "--user", "nobody", "--cold-start", "newest", "--cold-start-field", "title"},
       "options.cold_start.field",
       "--cold-start-field: title is of type keyword, which has no order; fields with an order: "
       "year"},
      {with(user, {"--like", "nope"}), "queries[0].blend.id", "--like: no item \"nope\" in films"},
      {with(user, {"--like", "heat-1995", "--user-weight", "2"}), "queries[0].blend.user_weight",
       "--user-weight 2: give 0 (the target alone) to 1 (the user alone)"},
      {{"recommend", "--user", "nobody", "--like", "heat-1995"},
       "queries[0].blend.user_id",
       "--user: no user \"nobody\" in films"},
      {{"fields", "--values", "1001"}, "values_max", "--values 1,001: give 0 to 1,000"},
      {{"list", "--collection", ".films"},
       "collection",
       "--collection: \".films\" is not a name; a name has letters, digits, '-', '_' and '.', and "
       "does not start with '.'"},
      {{"load", "my films", "films"},
       "collection",
       "COLLECTION: \"my films\" is not a name; a name has letters, digits, '-', '_' and '.', and "
       "does not start with '.'"},
      {{"load", "x", "/etc"},
       "folder",
       "FOLDER: \"/etc\" is absolute; name a folder inside the server's data root, relative to it"},
      {{"reload", "films", "--folder", "../x"},
       "folder",
       "--folder: \"../x\" contains `..`; name a folder inside the server's data root, relative to "
       "it"},
      {{"similar", "--id", "heat-1995", "--expect-snapshot", std::string(32, '0')},
       "expected_snapshot_id",
       "--expect-snapshot: films has content \"34ef3345c14fec64ac49cc02ee71a974\", not "
       "\"00000000000000000000000000000000\""},
  };
}

TEST_F(ClientErrorsTest, NameTheFlagAndInJsonTheFieldToo) {
  for (const RefusedLine& line : RefusedLines()) {
    std::vector<std::string> arguments = line.arguments;
    arguments.emplace_back("--json");
    const ProgramRun run = Run(arguments, line.input);
    EXPECT_EQ(run.errors, "error: " + line.error + "\n");
    EXPECT_EQ(std::ranges::count(run.printed, '\n'), 1) << line.error;
    const json error = json::parse(run.printed, nullptr, false)["error"];
    EXPECT_EQ(run.exit_code, error["code"] == "INVALID_ARGUMENT" ? 64 : 1) << line.error;
    EXPECT_EQ(error["message"], line.error);
    EXPECT_EQ(error["field"], line.field) << line.error;
  }
}

TEST_F(ClientErrorsTest, AValueThatNoServerTakesIsWrongUsage) {
  struct Line {
    std::vector<std::string> arguments;
    std::string error;
  };
  const auto heat = [](const char* flag, const char* value) {
    return std::vector<std::string>{"similar", "--id", "heat-1995", flag, value};
  };
  for (const Line& line : std::vector<Line>{
           {heat("-k", "-3"), "-k: \"-3\" is not a whole number, 0 or more"},
           {heat("--offset", "-1"), "--offset: \"-1\" is not a whole number, 0 or more"},
           {heat("--group-size", "0"), "--group-size: 0 is too small; give 1 or more"},
           {heat("--candidates", "0"), "--candidates: 0 is too small; give 1 or more"},
           {{"lookup", "heat", "--limit", "0"}, "--limit: 0 is too small; give 1 or more"},
           {{"lookup", ""}, "TEXT: the value is empty"},
           {{"similar", "--title", ""}, "--title: the value is empty"},
           {{"similar", "--id", ""}, "--id: the value is empty"},
           {{"similar", "--required-filter", ""}, "--required-filter: the value is empty"},
           {{"similar", "--filter="}, "--filter: the value is empty"},
           {{"similar", "--page-token", ""}, "--page-token: the value is empty"},
           {{"similar", "--group-by", ""}, "--group-by: the value is empty"},
           {{"similar", "--expect-snapshot", ""}, "--expect-snapshot: the value is empty"},
           {{"similar", "--collection", ""}, "--collection: the name is empty"},
           {{"fetch", "--required-filter", ""}, "--required-filter: the value is empty"}}) {
    const ProgramRun run = Run(line.arguments);
    EXPECT_EQ(run.exit_code, 64) << line.error;
    EXPECT_THAT(run.errors, StartsWith("error: " + line.error + "\n"));
  }
}

TEST_F(ClientErrorsTest, NameTheRowOfAVectorThatIsAllZeros) {
  const std::string zeros = Repeated("0,", 382);
  const ProgramRun run =
      Run({"search", "--vector", "-"}, "[[1," + zeros + "0],[0," + zeros + "0]]");
  EXPECT_EQ(run.exit_code, 64);
  EXPECT_EQ(run.errors,
            "error: standard input: row 1 is all zeros; a vector needs a direction to "
            "be compared\n");
}

TEST_F(ClientErrorsTest, AdviseOnAnAnswerThatIsTooLarge) {
  std::string ids = "heat-1995";
  for (int i = 1; i < 200; ++i) ids += ",heat-1995";
  const ProgramRun run = Run({"similar", "--id", ids, "-k", "5000"});
  EXPECT_EQ(run.exit_code, 64);
  EXPECT_THAT(run.errors, StartsWith("error: the answer needs "));
  EXPECT_THAT(run.errors,
              testing::EndsWith("bytes and may have 67,108,864; ask for fewer hits with "
                                "-k, or for fewer payload fields with --fields\n"));
}

TEST_F(ClientErrorsTest, AnUnknownUserHearsOfColdStartsOnlyWithoutOne) {
  EXPECT_EQ(
      Run({"recommend", "--user", "user_42"}).errors,
      "error: no user \"user_42\" in films. Did you mean \"user_00042\"? --cold-start newest, "
      "or most-popular, answers users without a profile.\n");
  EXPECT_EQ(Run({"recommend", "--user", "user_42", "--cold-start", "newest"}).exit_code, 0);
}

TEST_F(ClientErrorsTest, AnUnknownCollectionHearsWhatIsServed) {
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"list", "songs"},
           {"fields", "songs"},
           {"health", "--collection", "songs"},
           {"similar", "--id", "heat-1995", "--collection", "songs"}}) {
    const ProgramRun run = Run(line);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.errors, StartsWith("error: no collection \"songs\""));
    EXPECT_THAT(run.errors, HasSubstr("films")) << line[0];
  }
}

TEST_F(ClientErrorsTest, EveryCommandPrintsOneLineOfJson) {
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"list", "songs"},
                                             {"fields", "songs"},
                                             {"health", "--collection", "songs"},
                                             {"similar", "--title", "batman"},
                                             {"similar"},
                                             {"similar", "--id", "a", "--group-size", "2"},
                                             {"search", "--vector", "missing.npy"},
                                             {"recommend", "--user", "a", "--cold-start", "latest"},
                                             {"lookup", "heat", "--limit", "x"},
                                             {"fetch", "--id", "nope"},
                                             {"load", "x", "missing"},
                                             {"reload", "songs"},
                                             {"rollback", "films"},
                                             {"unload", "songs"},
                                             {"inspect", "missing.npy"},
                                             {"verify", "--folder", "missing"},
                                             {"bench", "--collection", "songs"},
                                             {"config", "--config", "missing.json"},
                                             {"info", "--timeout", "-1"},
                                             {"list", "--server", "http://127.0.0.1"}}) {
    std::vector<std::string> arguments = line;
    arguments.emplace_back("--json");
    const ProgramRun run = Run(arguments);
    EXPECT_NE(run.exit_code, 0) << line[0];
    EXPECT_EQ(std::ranges::count(run.printed, '\n'), 1) << line[0] << ": " << run.printed;
    const json error = json::parse(run.printed, nullptr, false)["error"];
    EXPECT_TRUE(error.is_object()) << line[0] << ": " << run.printed;
    for (const char* key : {"code", "reason", "field", "retry_after_ms", "message"}) {
      EXPECT_TRUE(error.contains(key)) << line[0] << ": " << key;
    }
  }
}

TEST_F(ClientErrorsTest, ATimeoutIsMoreThanNothing) {
  EXPECT_EQ(Run({"list", "--timeout", "-1"}).errors,
            "error: --timeout -1: give more than 0 seconds, or inf to wait without a limit\n");
  for (const char* refused : {"-1", "0", "-0.0", "nan", "-inf"}) {
    EXPECT_EQ(Run({"list", "--timeout", refused}).exit_code, 64) << refused;
  }
  for (const char* taken : {"20", "1e9", "inf"}) {
    EXPECT_EQ(Run({"list", "--timeout", taken}).exit_code, 0) << taken;
  }
}

TEST(ServerFlagTest, SaysHowAnAddressIsWritten) {
  const ProgramRun flag = RunProgram({"list", "--server", "http://127.0.0.1:50051"});
  EXPECT_EQ(flag.exit_code, 64);
  EXPECT_EQ(flag.errors,
            "error: --server \"http://127.0.0.1:50051\": give HOST:PORT, without \"http://\"\n");
  EXPECT_EQ(RunProgram({"health", "--server", "127.0.0.1:99999"}).errors,
            "error: --server \"127.0.0.1:99999\": \"99999\" is no port; give 1 to 65535\n");
  const ProgramRun variable = RunProgram({"list"}, "", {"SIMILE_SERVER=grpc://search:50051"});
  EXPECT_EQ(variable.exit_code, 64);
  EXPECT_EQ(variable.errors,
            "error: SIMILE_SERVER=\"grpc://search:50051\": give HOST:PORT, without \"grpc://\"\n");
  EXPECT_EQ(RunProgram({"list", "--server", "localhost:"}).errors,
            "error: --server \"localhost:\": the port is missing; give HOST:PORT, such as "
            "127.0.0.1:50051\n");
  const ProgramRun both =
      RunProgram({"list", "--server", "127.0.0.1:1"}, "", {"SIMILE_SERVER=grpc://search:50051"});
  EXPECT_THAT(both.errors, StartsWith("error: cannot reach a server at 127.0.0.1:1 ("));
}

TEST(ServerFlagTest, ThePortOfTheMetricsIsToldFromOneOfCalls) {
  integration::ServerProcess server({"--collection", "films=" SIMILE_SOURCE_DIR "/examples/films",
                                     "--port", "0", "--metrics-port", "0"});
  ASSERT_NE(server.AwaitListening(), "") << server.output();
  const std::string label = "metrics on ";
  ASSERT_TRUE(server.AwaitOutput(label));
  const std::size_t begin = server.output().find(label) + label.size();
  const std::string metrics =
      server.output().substr(begin, server.output().find_first_of(" \n", begin) - begin);
  const ProgramRun run = RunProgram({"list", "--server", metrics});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.errors,
            "error: something other than a gRPC server listens at " + metrics +
                "; the metrics have a port of their own: give the address that `simile serve` "
                "prints after \"listening on\"\n");
}

}  // namespace
}  // namespace simile::cli

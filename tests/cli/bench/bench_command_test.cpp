// `simile bench` as a shell runs it, against a real server of the films and against one that
// answers wrongly.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/bench/altering_server.h"
#include "cli/live_server.h"
#include "cli/program_run.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::cli::bench {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kFilms = SIMILE_SOURCE_DIR "/examples/films";

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class BenchCommandTest : public testing::Test {
 protected:
  ProgramRun Bench(const std::string& server, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    return RunProgram(arguments, "", {"SIMILE_SERVER=" + server});
  }
  // Short runs; what they measure does not matter.
  json BenchJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--json", "--duration", "300ms", "--warm-up", "100ms", "--connections", "2"});
    const ProgramRun run = Bench(server_.address(), arguments);
    EXPECT_EQ(run.exit_code, 0) << run.errors << run.printed;
    return json::parse(run.printed, nullptr, false);
  }
  static void ExpectAnswers(const json& run) {
    EXPECT_GT(run["queries_per_s"].get<double>(), 0);
    EXPECT_GT(run["latency"]["count"].get<int>(), 0);
    EXPECT_GE(run["latency"]["p99_us"].get<double>(), run["latency"]["p50_us"].get<double>());
    EXPECT_EQ(run["errors"], json::object()) << run["errors"];
    EXPECT_GT(run["receipts"]["read"].get<int>(), 0);
    EXPECT_GT(run["server_cpu_us_per_call"].get<double>(), 0);
    EXPECT_GT(run["client_cpu_us_per_call"].get<double>(), 0);
  }

  const LiveServer server_;
};

TEST_F(BenchCommandTest, RunsAClosedLoopOfUnaryCalls) {
  const json report = BenchJson({"--in-flight", "1,8", "--verify", "0.2"});
  EXPECT_EQ(report["rows"], 5'000);
  ASSERT_EQ(report["runs"].size(), 2U);
  for (const json& run : report["runs"]) {
    ExpectAnswers(run);
    EXPECT_EQ(run["loop"], "closed");
    EXPECT_GT(run["verify"]["compared"].get<int>(), 0);
    EXPECT_EQ(run["verify"]["wrong"], 0) << run["verify"];
    EXPECT_EQ(run["verify"]["unchecked"], json::object());
  }
}

// More rows than one answer holds, so that items are fetched by their row numbers.
TEST_F(BenchCommandTest, AsksForNoRowThatIsSkipped) {
  constexpr int kRowCount = 12'000;
  const ScratchFolder scratch;
  std::vector<float> vectors;
  for (int row = 0; row < kRowCount; ++row) {
    const bool zeros = row % 3 == 0;
    vectors.push_back(zeros ? 0.0F : 1.0F);
    vectors.push_back(zeros ? 0.0F : static_cast<float>(row));
  }
  scratch.Write("rows/vectors.npy", NpyFile(vectors, 2));
  scratch.Write("rows/collection.json", R"({"on_zero_row": "skip"})");
  scratch.Write("mix.json", R"({"calls": [{"kind": "id"}, {"kind": "vector"}]})");
  const LiveServer server((scratch.path() / "rows").string());
  const ProgramRun run =
      Bench(server.address(), {"--mix", (scratch.path() / "mix.json").string(), "--verify", "1",
                               "--json", "--duration", "300ms", "--warm-up", "100ms"});
  ASSERT_EQ(run.exit_code, 0) << run.errors << run.printed;
  const json measured = json::parse(run.printed)["runs"][0];
  EXPECT_EQ(measured["errors"], json::object());
  EXPECT_GT(measured["verify"]["compared"].get<int>(), 0);
  EXPECT_EQ(measured["verify"]["wrong"], 0) << measured["verify"];
}

TEST_F(BenchCommandTest, RefusesQueryVectorsOfZeros) {
  const ScratchFolder scratch;
  std::vector<float> vectors(3 * 384);
  vectors[0] = 1;
  scratch.Write("queries.npy", NpyFile(vectors, 384));
  const ProgramRun run =
      Bench(server_.address(), {"--vectors", (scratch.path() / "queries.npy").string()});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.errors,
              HasSubstr("holds a vector of zeros, which has no direction to search films in"));
}

TEST_F(BenchCommandTest, RunsAnOpenLoop) {
  const json run = BenchJson({"--rate", "200", "--verify", "0.5"})["runs"][0];
  ExpectAnswers(run);
  EXPECT_EQ(run["loop"], "open");
  EXPECT_EQ(run["verify"]["wrong"], 0);
}

TEST_F(BenchCommandTest, RunsOverStreams) {
  for (const std::vector<std::string>& load :
       {std::vector<std::string>{"--in-flight", "150"}, {"--rate", "200"}}) {
    std::vector<std::string> arguments = load;
    arguments.insert(arguments.end(), {"--stream", "--verify", "0.2", "--batch", "3"});
    const json run = BenchJson(arguments)["runs"][0];
    ExpectAnswers(run);
    EXPECT_EQ(run["transport"], "stream");
    EXPECT_EQ(run["verify"]["wrong"], 0) << run["verify"];
    EXPECT_GT(run["verify"]["compared"].get<int>(), 0);
  }
}

TEST_F(BenchCommandTest, RunsAMixOfAllKinds) {
  const ScratchFolder folder;
  folder.Write("mix.json", R"({"calls": [
    {"kind": "vector", "weight": 5}, {"kind": "id", "k": 3, "payload": "all"}, {"kind": "user"},
    {"kind": "recommend", "batch": 4, "exclude_seen": true}, {"kind": "filter"},
    {"kind": "examples", "positive": 2, "negative": 1, "strategy": "sum_scores"},
    {"kind": "blend"}, {"kind": "groups"}, {"kind": "diversity", "lambda": 0.3},
    {"kind": "recommend"}]})");
  for (const char* transport : {"", "--stream"}) {
    std::vector<std::string> arguments = {"--mix",       (folder.path() / "mix.json").string(),
                                          "--folder",    kFilms,
                                          "--verify",    "0.3",
                                          "--in-flight", "32"};
    if (*transport != '\0') arguments.emplace_back(transport);
    const json run = BenchJson(arguments)["runs"][0];
    ExpectAnswers(run);
    ASSERT_EQ(run["kinds"].size(), 10U);
    for (const auto& [kind, latency] : run["kinds"].items()) {
      EXPECT_GT(latency["count"].get<int>(), 0) << kind;
    }
    EXPECT_TRUE(run["kinds"].contains("recommend 2"));
    EXPECT_EQ(run["verify"]["wrong"], 0) << run["verify"];
    EXPECT_TRUE(run["verify"]["unchecked"].contains("filters"));
  }
}

TEST_F(BenchCommandTest, WritesAPlotAndItsFigures) {
  const ScratchFolder folder;
  const ProgramRun run =
      Bench(server_.address(), {"--in-flight", "1,4", "--duration", "200ms", "--warm-up", "0s",
                                "--plot", (folder.path() / "load.svg").string(), "--out",
                                (folder.path() / "load.json").string()});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, testing::ContainsRegex("in flight +queries/s"));
  EXPECT_THAT(ReadText(folder.path() / "load.svg"), HasSubstr("Latency against load: films"));
  EXPECT_EQ(json::parse(ReadText(folder.path() / "load.json"))["runs"].size(), 2U);
}

// Requests that collect samples ask for rows; the load does not.
bool IsOfLoad(const v1::SearchRequest& request) { return !request.options().with_rows(); }

TEST_F(BenchCommandTest, VerifyFindsWrongAnswers) {
  const std::pair<AlteringServer::Alter, const char*> cases[] = {
      {[](const v1::SearchRequest& request, v1::SearchResponse& response) {
         if (!IsOfLoad(request)) return;
         response.mutable_results(0)->mutable_hits()->DeleteSubrange(2, 1);
         for (int i = 0; i < response.results(0).hits_size(); ++i) {
           response.mutable_results(0)->mutable_hits(i)->set_rank(static_cast<std::uint32_t>(i) +
                                                                  1);
         }
       },
       "9 hits, where k is 10"},
      {[](const v1::SearchRequest& request, v1::SearchResponse& response) {
         if (IsOfLoad(request)) {
           auto& hit = *response.mutable_results(0)->mutable_hits(9);
           hit.set_score(hit.score() - 1e-5F);
         }
       },
       "rank 10, "},
      {[](const v1::SearchRequest& request, v1::SearchResponse& response) {
         if (IsOfLoad(request))
           response.mutable_results(0)->mutable_hits(9)->set_id("toy-story-1995");
       },
       "its score is "},
  };
  for (const auto& [alter, finding] : cases) {
    const AlteringServer wrong(server_.address(), alter);
    for (const char* transport : {"", "--stream"}) {
      std::vector<std::string> arguments = {"--in-flight", "2",  "--duration", "200ms",
                                            "--warm-up",   "0s", "--verify",   "1"};
      if (*transport != '\0') arguments.emplace_back(transport);
      const ProgramRun run = Bench(wrong.address(), arguments);
      EXPECT_EQ(run.exit_code, 1);
      EXPECT_THAT(run.printed, HasSubstr("WRONG  vector: queries[0]: "));
      EXPECT_THAT(run.printed, HasSubstr(finding));
      EXPECT_THAT(run.errors, HasSubstr(" wrong"));
    }
  }
  const AlteringServer right(server_.address(),
                             [](const v1::SearchRequest&, v1::SearchResponse&) {});
  EXPECT_EQ(Bench(right.address(),
                  {"--in-flight", "2", "--duration", "200ms", "--warm-up", "0s", "--verify", "1"})
                .exit_code,
            0);
}

// What double precision does not check, another server's answers do.
TEST_F(BenchCommandTest, ComparesEveryKindWithAnotherServer) {
  const ScratchFolder folder;
  folder.Write("mix.json",
               R"({"calls": [{"kind": "recommend", "exclude_seen": true},
                             {"kind": "filter", "filter": "year >= 1990"},
                             {"kind": "groups", "field": "genres"}, {"kind": "diversity"},
                             {"kind": "examples", "negative": 1, "strategy": "best_score"}]})");
  const std::vector<std::string> arguments = {
      "--mix",          (folder.path() / "mix.json").string(),
      "--folder",       kFilms,
      "--in-flight",    "4",
      "--duration",     "500ms",
      "--warm-up",      "0s",
      "--verify",       "1",
      "--requests",     "5",
      "--json",         "--cpu-server",
      server_.address()};
  const ProgramRun right = Bench(server_.address(), arguments);
  ASSERT_EQ(right.exit_code, 0) << right.errors;
  const json verify = json::parse(right.printed)["runs"][0]["verify"];
  EXPECT_EQ(verify["kinds"].size(), 5U);
  for (const auto& [name, kind] : verify["kinds"].items()) {
    EXPECT_GT(kind["compared"].get<int>(), 0) << name;
    EXPECT_EQ(kind["wrong"], 0) << name;
  }
  EXPECT_TRUE(verify["unchecked"].empty());
  EXPECT_EQ(verify["against"], "the answers of " + server_.address());
}

TEST_F(BenchCommandTest, FindsAnswersThatDifferFromAnotherServers) {
  const AlteringServer altering(server_.address(),
                                [](const v1::SearchRequest& request, v1::SearchResponse& response) {
                                  if (!IsOfLoad(request)) return;
                                  v1::Hit& hit = *response.mutable_results(0)->mutable_hits(9);
                                  hit.set_score(std::nextafter(hit.score(), 2.0F));  // one bit
                                });
  for (const char* transport : {"", "--stream"}) {
    std::vector<std::string> arguments = {
        "--in-flight", "2",        "--duration", "200ms",        "--warm-up",
        "0s",          "--verify", "1",          "--cpu-server", server_.address()};
    if (*transport != '\0') arguments.emplace_back(transport);
    const ProgramRun run = Bench(altering.address(), arguments);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.printed, HasSubstr("compared with the answers of " + server_.address()));
    EXPECT_THAT(run.printed, HasSubstr("WRONG  vector: query 0: rank 10 is "));
  }
}

// Calls that were never sent have latencies, but are no answers.
TEST_F(BenchCommandTest, FailsWhenNoCallIsAnswered) {
  std::promise<void> bench_ended;
  const AlteringServer slow(server_.address(),
                            [until = bench_ended.get_future().share()](
                                const v1::SearchRequest& request, v1::SearchResponse&) {
                              if (IsOfLoad(request)) until.wait();
                            });
  const ProgramRun run = Bench(slow.address(), {"--rate", "200", "--in-flight", "2", "--duration",
                                                "300ms", "--warm-up", "0s", "--timeout", "1.5"});
  bench_ended.set_value();
  EXPECT_EQ(run.exit_code, 1) << run.printed;
  EXPECT_THAT(run.printed, HasSubstr("never sent"));
  EXPECT_THAT(run.errors, HasSubstr("no call succeeded"));
}

TEST_F(BenchCommandTest, WritesTheA100Report) {
  const ProgramRun run = Bench(
      server_.address(), {"--report", "a100", "--folder", kFilms, "--hourly-price", "1.5",
                          "--cpu-server", server_.address(), "--cpu-hourly-price", "1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json report = json::parse(run.printed);
  EXPECT_EQ(report["test_1_similarity"]["results"].size(), 10U);
  EXPECT_GT(report["test_1_similarity"]["gpu_time_ms"].get<double>(), 0);
  EXPECT_EQ(report["test_1_similarity"]["franchises"].size(), 10U);
  EXPECT_EQ(report["test_2_personalization"]["user_results"].size(), 100U);
  EXPECT_EQ(report["test_3_batch"].size(), 3U);
  EXPECT_GT(report["test_4_filtering"]["filters"].size(), 10U);
  EXPECT_GT(report["test_5_memory"]["allocated_gb"].get<double>(), 0);
  for (const auto& [name, value] : report["test_5_memory"].items()) {
    if (name != "source") {
      EXPECT_GT(value.get<double>(), 0) << name;
    }
  }
  EXPECT_GT(report["cpu"]["answers_compared"].get<int>(), 10'000);
  EXPECT_EQ(report["cpu"]["answers_different"], 0);
  EXPECT_EQ(report["cpu"]["kinds"].size(), 6U);
  EXPECT_GT(report["cost"]["month"]["batch_100"]["cpu"]["price"].get<double>(), 0);
  EXPECT_GT(report["cost"]["per_million_queries"]["batch_100"].get<double>(), 0);
  for (const json& target : report["targets"]) {
    EXPECT_NE(target["outcome"], "not applicable") << target;
    if (target["target"] == "filter match") {
      EXPECT_EQ(target["outcome"], "pass") << target;
    }
  }
}

TEST_F(BenchCommandTest, ComparesTwoServersOfTheSameContent) {
  const LiveServer other;
  const ProgramRun run = Bench(server_.address(), {"--compare", other.address(), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json comparison = json::parse(run.printed);
  EXPECT_EQ(comparison["rows"], 5'000);
  ASSERT_EQ(comparison["batches"].size(), 5U);
  std::uint64_t answers = 0;
  for (const json& batch : comparison["batches"]) {
    EXPECT_GT(batch["times_faster"].get<double>(), 0) << batch;
    EXPECT_GT(batch["measured"]["call_time_ms"].get<double>(), 0) << batch;
    EXPECT_GT(batch["other"]["compute_time_ms"].get<double>(), 0) << batch;
    answers += batch["queries"].get<std::uint64_t>() * batch["calls"].get<std::uint64_t>();
  }
  EXPECT_GT(comparison["answers_compared"].get<std::uint64_t>(), answers);
}

TEST_F(BenchCommandTest, ComparesNoTimesOfOtherAnswersOrOtherContent) {
  const AlteringServer wrong(server_.address(),
                             [](const v1::SearchRequest& request, v1::SearchResponse& response) {
                               if (!IsOfLoad(request)) return;
                               auto& hit = *response.mutable_results(0)->mutable_hits(9);
                               hit.set_score(std::nextafter(hit.score(), 0.0F));
                             });
  const ProgramRun run = Bench(server_.address(), {"--compare", wrong.address()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, HasSubstr("the answers differ, so no times are printed: query 0, rank "));
  const ScratchFolder folder;
  std::filesystem::copy(kFilms, folder.path() / "films");
  std::filesystem::remove(folder.path() / "films" / "interactions.jsonl");
  const LiveServer other((folder.path() / "films").string());
  EXPECT_THAT(Bench(server_.address(), {"--compare", other.address()}).errors,
              HasSubstr("the servers do not serve the same content: "));
}

TEST_F(BenchCommandTest, ComparesWithTheCpuOnlyWhereAGpuAnswers) {
  const ProgramRun run = Bench(server_.address(), {"--compare", "cpu", "--folder", kFilms});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, HasSubstr("films is not answered by a GPU (the configuration asks for "
                                    "the CPU), so there is nothing to compare with the CPU"));
  const ProgramRun nowhere = Bench(server_.address(), {"--compare", "cpu", "--folder", "/nowhere"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.errors, HasSubstr("/nowhere"));
}

TEST_F(BenchCommandTest, SaysWhatIsMissing) {
  const ScratchFolder folder;
  folder.Write("mix.json", R"({"calls": [{"kind": "user"}]})");
  const ProgramRun users =
      Bench(server_.address(), {"--mix", (folder.path() / "mix.json").string()});
  EXPECT_EQ(users.exit_code, 64);
  EXPECT_THAT(users.errors, HasSubstr("need user ids, which a server does not list"));
  const ProgramRun none = Bench("127.0.0.1:1", {});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.errors, HasSubstr("error: "));
  const ProgramRun wrong = Bench(server_.address(), {"--plot", "x.svg"});
  EXPECT_THAT(wrong.errors, HasSubstr("--plot: needs several loads"));
}

// The machine's only card is the server's, also where the CPU answers.
TEST_F(BenchCommandTest, ReadsTheCardOfTheMachine) {
  const ScratchFolder machine;
  std::filesystem::create_symlink(SIMILE_FAKES_DIR "/libfake_nvml.so",
                                  machine.path() / "libnvidia-ml.so.1");
  std::ofstream(machine.path() / "card")
      << "name=NVIDIA T4\nprocesses=\nutilization=37\nmemory_used=500\nmemory_total=1000\n";
  const auto card_of = [&](const std::string& server) -> json {
    const ProgramRun run =
        RunProgram({"bench", "--json", "--duration", "300ms", "--warm-up", "0s"}, "",
                   {"SIMILE_SERVER=" + server, "LD_LIBRARY_PATH=" + machine.path().string(),
                    "FAKE_NVML_FILE=" + (machine.path() / "card").string()});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return json::parse(run.printed, nullptr, false)["runs"][0]["card"];
  };
  EXPECT_EQ(card_of(server_.address()), nullptr) << "its CPU answered: the card works for others";
  const AlteringServer gpu(server_.address(),
                           [](const v1::SearchRequest&, v1::SearchResponse& response) {
                             response.mutable_receipt()->set_backend(v1::BACKEND_KIND_GPU);
                           });
  const json card = card_of(gpu.address());
  EXPECT_EQ(card["name"], "NVIDIA T4");
  EXPECT_EQ(card["utilization_ratio_mean"], 0.37);
  EXPECT_EQ(card["memory_used_bytes_max"], 500);
  EXPECT_GE(card["readings"], 1);
}

}  // namespace
}  // namespace simile::cli::bench

// What filters, exclusions and several vectors cost, in this process and without a network: every
// case and its rival, alternating round by round. Where the two must agree, their answers are
// compared before a ratio is printed.
//
//   query_bench --collection examples/films
//   query_bench --rows 1000000 --json out.json
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backend/cpu/calibration.h"
#include "backend/cpu/int8_backend.h"
#include "base/unasked_work.h"
#include "bench/query_data.h"
#include "bench/timing.h"
#include "engine/query/resolve.h"
#include "engine/run_tasks.h"

namespace simile::bench {
namespace {

using engine::QueryRequest;
using engine::Strategy;

struct Options {
  std::string collection;
  std::size_t row_count = 0;
  std::size_t dim = 384;
  unsigned threads = 0;
  std::size_t rounds = 11;
  std::string only;
  std::string json_path;
};

// Runs calls one after the other, as the dispatch thread does.
class CallRunner {
 public:
  explicit CallRunner(engine::SnapshotPtr snapshot) : snapshot_(std::move(snapshot)) {}

  const engine::Snapshot& snapshot() const { return *snapshot_; }

  // Runs the requests in calls of `at_once` each. Returns the seconds from requests to hits.
  double Seconds(const std::vector<QueryRequest>& requests, std::size_t at_once) {
    answers_.clear();
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t first = 0; first < requests.size(); first += at_once) {
      const std::size_t count = std::min(at_once, requests.size() - first);
      Run(std::span(requests).subspan(first, count));
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  // The hits of every request of the last Seconds.
  const std::vector<std::vector<Hit>>& answers() const { return answers_; }
  std::uint64_t rounds_taken() const { return rounds_taken_; }

 private:
  void Run(std::span<const QueryRequest> requests) {
    std::vector<std::unique_ptr<engine::SearchTask>> tasks;
    tasks.push_back(std::make_unique<engine::SearchTask>());
    tasks[0]->snapshot = snapshot_;
    tasks[0]->deadline = Clock::TimePoint::max();
    base::LongWork work = tests::UnaskedWork();
    engine::CallReport report{std::vector<engine::QueryReport>(requests.size()), {}};
    const absl::Status status =
        engine::ResolveQueries(*snapshot_, requests, {}, work, *tasks[0], report);
    if (!status.ok()) throw std::runtime_error(status.ToString());
    auto found = std::move(engine::RunTasks(tasks, clock_).front());
    if (!found.ok()) throw std::runtime_error(found.status().ToString());
    for (const engine::QueryResult& result : *found) {
      rounds_taken_ += result.execution.cost.rounds;
      const std::span<const Hit> hits = result.hits.span();
      answers_.emplace_back(hits.begin(), hits.end());
    }
  }

  const engine::SnapshotPtr snapshot_;
  const RealClock clock_;
  std::vector<std::vector<Hit>> answers_;
  std::uint64_t rounds_taken_ = 0;
};

// A case and the rival that it is compared with.
struct Comparison {
  std::string name;
  std::vector<QueryRequest> requests;
  std::size_t at_once = 0;
  std::string rival_name;
  std::vector<QueryRequest> rival_requests;
  std::size_t rival_at_once = 0;
  bool same_answers = false;  // both must give the same hits
};

// The comparisons borrow the filters.
std::vector<Comparison> Comparisons(const engine::Snapshot& snapshot,
                                    const std::vector<std::string>& filters) {
  constexpr std::size_t kUsers = 500;
  constexpr std::size_t kUsersAtOnce = 100;
  constexpr std::size_t kExampleQueries = 32;
  std::vector<Comparison> all;
  const auto mixed = MixedRequests(snapshot, filters);
  all.push_back({fmt::format("{} filters, k, exclusions in one call", mixed.size()), mixed,
                 mixed.size(), fmt::format("{} calls of one each", mixed.size()), mixed, 1, true});
  const auto users = UserRequests(snapshot, kUsers);
  auto filtered = users;
  for (QueryRequest& request : filtered) {
    std::get<engine::ByUser>(request.target).exclude_seen = true;
    request.filter = "year >= 1950";
  }
  all.push_back({fmt::format("{} users, seen rows excluded, filtered, 100 at once", users.size()),
                 filtered, kUsersAtOnce, "the same without", users, kUsersAtOnce, false});
  const auto plain = ExampleRequests(snapshot, std::nullopt, kExampleQueries);
  const std::pair<Strategy, const char*> strategies[] = {
      {Strategy::kAverageVector, "average_vector"},
      {Strategy::kBestScore, "best_score"},
      {Strategy::kSumScores, "sum_scores"}};
  for (const auto& [strategy, name] : strategies) {
    all.push_back({fmt::format("32 x {} of 8 examples", name),
                   ExampleRequests(snapshot, strategy, kExampleQueries), kExampleQueries,
                   "32 plain queries", plain, kExampleQueries, false});
  }
  return all;
}

struct Measured {
  double seconds = 0;
  double rival_seconds = 0;
  std::uint64_t rounds_taken = 0;

  double speedup() const { return rival_seconds / seconds; }
};

Measured Measure(CallRunner& runner, const Comparison& comparison, std::size_t rounds) {
  std::vector<double> own;
  std::vector<double> rival;
  const std::uint64_t rounds_taken_before = runner.rounds_taken();
  // The first round fills caches and is not counted.
  for (std::size_t round = 0; round <= rounds; ++round) {
    const double seconds = runner.Seconds(comparison.requests, comparison.at_once);
    const auto answers = runner.answers();
    const double rival_seconds =
        runner.Seconds(comparison.rival_requests, comparison.rival_at_once);
    if (comparison.same_answers && answers != runner.answers())
      throw std::runtime_error(comparison.name + ": the answers differ");
    if (round == 0) continue;
    own.push_back(seconds);
    rival.push_back(rival_seconds);
  }
  const std::uint64_t rounds_taken = runner.rounds_taken() - rounds_taken_before;
  return {Median(own), Median(rival), rounds_taken / (rounds + 1)};
}

// Prints and returns what each filter costs a call that is the first to send it: reading it and
// finding its rows, with nothing cached.
nlohmann::ordered_json MeasureFirstCalls(const engine::Snapshot& snapshot, std::size_t rounds) {
  const std::vector<std::string> texts = ConditionFilters(snapshot);
  std::vector<std::vector<double>> seconds(texts.size());
  std::vector<std::size_t> passing(texts.size());
  base::LongWork work = tests::UnaskedWork();
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto filters = filter::Filters::Create(*snapshot.dataset, snapshot.collection);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      const auto prepared = filters->Prepare(texts[i], filters->payload(), work);
      if (!prepared.ok()) throw std::runtime_error(prepared.status().ToString());
      const auto rows = filters->Rows(*prepared, work);
      if (!rows.ok()) throw std::runtime_error(rows.status().ToString());
      seconds[i].push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      passing[i] = (*rows)->AllowedCount();
    }
  }
  fmt::print("\n{:<53} {:>10} {:>12}\n", "filter, not cached", "ms", "rows that pass");
  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const double ms = Median(seconds[i]) * 1e3;
    fmt::print("{:<53} {:>10.3f} {:>12}\n", texts[i], ms, passing[i]);
    measured.push_back({{"filter", texts[i]}, {"ms", ms}, {"rows_passing", passing[i]}});
  }
  return measured;
}

int Run(const Options& options) {
  const unsigned threads =
      options.threads != 0 ? options.threads : std::thread::hardware_concurrency();
  backend::cpu::Int8Options tuned = backend::cpu::OptionsFor("");
  tuned.threads = threads;
  tuned.foreground_bytes_max = std::numeric_limits<std::size_t>::max();
  tuned.tuning = MakeTuning(backend::cpu::Calibrate(tuned));
  const auto backend = backend::cpu::MakeInt8Backend(tuned);
  backend::cpu::ThreadPool pool(threads);
  auto snapshot = options.row_count > 0
                      ? DrawCollection(options.row_count, options.dim, *backend, pool)
                      : LoadCollection(options.collection, *backend);
  if (!snapshot.ok()) {
    fmt::print(stderr, "error: {}\n", snapshot.status().ToString());
    return 1;
  }
  CallRunner runner(*std::move(snapshot));
  fmt::print("{} rows x {}, {}, {}\n\n", runner.snapshot().row_count(), runner.snapshot().dim(),
             backend->info().engine, backend->info().device);
  fmt::print("{:<53} {:>10}  {:<24} {:>10} {:>8} {:>8}\n", "case", "ms", "against", "ms", "speed",
             "rounds");
  constexpr std::size_t kMixed = 64;
  const std::vector<std::string> filters = MixedFilters(runner.snapshot(), kMixed);
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const Comparison& comparison : Comparisons(runner.snapshot(), filters)) {
    if (comparison.name.find(options.only) == std::string::npos) continue;
    const Measured measured = Measure(runner, comparison, options.rounds);
    fmt::print("{:<53} {:>10.3f}  {:<24} {:>10.3f} {:>7.2f}x {:>8}\n", comparison.name,
               measured.seconds * 1e3, comparison.rival_name, measured.rival_seconds * 1e3,
               measured.speedup(), measured.rounds_taken);
    cases.push_back({{"case", comparison.name},
                     {"ms", measured.seconds * 1e3},
                     {"against", comparison.rival_name},
                     {"against_ms", measured.rival_seconds * 1e3},
                     {"speed", measured.speedup()},
                     {"rounds", measured.rounds_taken}});
  }
  const nlohmann::ordered_json first_calls = MeasureFirstCalls(runner.snapshot(), options.rounds);
  if (options.json_path.empty()) return 0;
  std::ofstream(options.json_path)
      << nlohmann::ordered_json{{"rows", runner.snapshot().row_count()},
                                {"dim", runner.snapshot().dim()},
                                {"engine", backend->info().engine},
                                {"device", backend->info().device},
                                {"cases", cases},
                                {"filters_not_cached", first_calls}}
             .dump(2)
      << '\n';
  return 0;
}

}  // namespace
}  // namespace simile::bench

int main(int argument_count, char** arguments) {
  simile::bench::Options options;
  CLI::App app("What filters, exclusions and several vectors cost, against plain queries");
  auto* const folder = app.add_option("--collection", options.collection,
                                      "Folder of a collection with genres, year and users");
  app.add_option("--rows", options.row_count, "Draw a collection of so many rows instead")
      ->excludes(folder);
  app.add_option("--dim", options.dim, "Dimensions of drawn rows")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads (default: all processors)");
  app.add_option("--rounds", options.rounds, "Rounds that are counted")->capture_default_str();
  app.add_option("--only", options.only, "Cases whose name contains this");
  app.add_option("--json", options.json_path, "Where to write the figures");
  CLI11_PARSE(app, argument_count, arguments);
  if (options.collection.empty() && options.row_count == 0) {
    fmt::print(stderr, "error: give --collection FOLDER or --rows COUNT\n");
    return 64;
  }
  try {
    return simile::bench::Run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

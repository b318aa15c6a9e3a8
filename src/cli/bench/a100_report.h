#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>
#include <nlohmann/json_fwd.hpp>

#include "cli/bench/query_samples.h"
#include "cli/connection.h"
#include "cli/terminal.h"

namespace simile::cli::bench {

// What `--report a100` measures. Times are medians over the calls of a test.
struct A100Times {
  std::uint32_t calls = 0;
  double compute_ms = 0;  // in the engine, by the server's receipts
  double call_ms = 0;     // whole calls, measured by the client
  // On the device, by its events; set only if a GPU answered every call.
  std::optional<double> gpu_ms;

  // What the guide calls gpu_time_ms: the device's time if it is known, otherwise the engine's.
  double gpu_time_ms() const { return gpu_ms.value_or(compute_ms); }
};

struct A100Hit {
  std::uint32_t rank = 0;
  std::string title;  // the id if the row has no title
  double similarity = 0;
};

// Films of one series. A film belongs to it if its title starts with one of `beginnings`. The query
// is a film whose title starts with the first of them.
struct Franchise {
  std::string_view name;
  std::vector<std::string_view> beginnings;
};
std::span<const Franchise> Franchises();
// Whether the title starts with one of the franchise's beginnings.
bool HasTitle(const Franchise& franchise, std::string_view title);

struct A100FranchiseResult {
  std::string franchise;
  std::string query;
  std::vector<A100Hit> top;  // the best 3
  bool same = false;         // whether all 3 belong to the franchise
};

struct A100Similarity {
  A100Times times;
  std::string query;
  std::vector<A100Hit> results;
  // Only franchises with 4 films or more in the collection.
  std::vector<A100FranchiseResult> franchises;
  // Means over the queries. best_similarity: of the best hit to its query. coherence: of an
  // answer's hits to each other. Unset if the metric's scores are not similarities.
  std::optional<double> best_similarity;
  std::optional<double> coherence;
};

struct A100User {
  std::string user_id;
  // The most frequent genres of the items the user has seen; empty: unknown.
  std::vector<std::string> genres;
  std::vector<A100Hit> results;
  std::uint32_t genre_matches = 0;  // results with at least one of these genres
  std::uint32_t decades = 0;        // how many different decades the results are from; 0: unknown
};

struct A100Batch {
  std::uint32_t queries = 0;
  A100Times times;
  std::uint32_t fallbacks = 0;  // calls answered by a backend other than the server's own
};

struct A100Filter {
  std::string text;
  std::optional<std::uint64_t> rows_passing;
  std::vector<A100Hit> results;
  std::uint32_t matches = 0;  // results whose payload passes the filter
};

inline constexpr double kBytesPerGb = 1e9;

// Memory of the GPU or, without a GPU, of the server's process and its machine. Unset: unknown.
struct A100Memory {
  std::string source;                       // where the figures come from, in one sentence
  std::optional<std::uint64_t> base_bytes;  // before the first call of the report
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> reserved_bytes;
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> free_bytes;
  std::optional<std::uint64_t> peak_allocated_bytes;
  std::optional<std::uint64_t> peak_reserved_bytes;
};

struct A100Measurements {
  std::string collection;
  std::uint64_t rows = 0;
  std::uint32_t dim = 0;
  std::string backend;  // "cpu: int8-amx"
  std::string device;
  bool on_gpu = false;
  A100Similarity similarity;
  A100Times user_times;
  std::vector<A100User> users;  // empty: the users are not known
  std::vector<A100Batch> batches;
  A100Times filter_times;
  std::vector<A100Filter> filters;  // empty: no field to filter by
  A100Memory memory;
  // A hash of each answer, in the order of the calls. Equal ids and scores have equal hashes.
  std::vector<std::uint64_t> answers;

  // The same calls to a CPU server with the same content; null: no CPU server was asked.
  std::shared_ptr<const A100Measurements> cpu;
  // Prices per hour of the server's machine and of the CPU server's machine.
  std::optional<double> hourly_price;
  std::optional<double> cpu_hourly_price;
};

// Makes the calls of the five tests, one after another over one connection: items by id, users,
// batches of 10, 100 and 1,000 vectors, filters; then reads the memory.
//   server_processes  as RunPlan::server_processes
//   calls_max         the most calls of each test; lowers the cost where a call takes seconds
// Errors: the server's.
absl::StatusOr<A100Measurements> MeasureA100(const Connection& connection,
                                             const v1::Collection& collection,
                                             const QuerySamples& samples,
                                             const std::vector<pid_t>& server_processes,
                                             std::uint32_t calls_max);

enum class TargetOutcome : std::uint8_t { kPass, kFail, kNotApplicable };

// One of the guide's targets and what was measured.
struct A100Target {
  std::string name;
  std::string wanted;
  std::string measured;  // for kNotApplicable: the reason
  TargetOutcome outcome = TargetOutcome::kNotApplicable;
};
std::vector<A100Target> CheckTargets(const A100Measurements& measured);

// Times of one kind of call, here and on the CPU server.
struct A100Kind {
  std::string name;  // "single", "user", "filter", "batch_100"
  std::uint32_t queries = 1;
  A100Times times;
  std::optional<A100Times> cpu;
};
// The kinds of call that were measured.
std::vector<A100Kind> ListMeasuredKinds(const A100Measurements& measured);

// Queries per second of calls that are made one after another.
double QueriesPerSecond(std::uint32_t queries, const A100Times& times);
// How many answers differ from the CPU server's answers. REQUIRES: measured.cpu.
std::uint64_t DifferentAnswers(const A100Measurements& measured);

// The guide's month has 30 days, so a month costs 720 hourly prices.
inline constexpr double kHoursOfMonth = 720;
inline constexpr double kSecondsOfMonth = kHoursOfMonth * 3'600;
// The guide asks for the cost of 100 million queries a month.
inline constexpr std::uint64_t kQueriesOfMonth = 100'000'000;

// A machine that is rented by the hour and answers at a measured rate.
struct RentedMachine {
  double hourly_price = 0;
  double queries_per_s = 0;  // above 0
};

// The price of a million queries at the machine's full rate.
double CostPerMillion(const RentedMachine& machine);

// The machines to rent for a number of queries per month. A month's queries arrive evenly.
struct MonthRent {
  std::uint64_t machines = 0;
  double price = 0;
  double busy = 0;  // share of the machines' time spent on queries
};
MonthRent RentFor(const RentedMachine& machine, std::uint64_t queries_of_month);

// The fewest queries per month from which machines with a card always cost no more than machines
// without a card. 0: at any number. Nothing: a query on a full machine costs at least as much with
// a card, so no such number exists.
std::optional<std::uint64_t> CardPaysFrom(const RentedMachine& cpu, const RentedMachine& card);

// The machines whose rents are compared. Unset where a price or a rate is not known.
struct ComparedMachines {
  std::optional<RentedMachine> cpu;
  std::optional<RentedMachine> card;
};

// The machines to compare for each measured kind of call, by its name.
std::vector<std::pair<std::string, ComparedMachines>> FindComparedMachines(
    const A100Measurements& measured);

// The report for programs: the guide's five keys, then targets, CPU times, costs and the server.
// docs/bench.md describes it.
nlohmann::ordered_json A100Json(const A100Measurements& measured);
// The report for people: the targets, the times beside the CPU server's times, and the cost.
std::string A100Text(const A100Measurements& measured, const Terminal& terminal);

}  // namespace simile::cli::bench

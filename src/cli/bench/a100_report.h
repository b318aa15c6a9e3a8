#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"

namespace simile::cli::bench {

// What `--report a100` measures. Times are medians over the calls of a test: `compute` as the
// server's receipts say it, `call` as the client sees it.
struct A100Times {
  std::uint32_t calls = 0;
  double compute_ms = 0;
  double call_ms = 0;
};

struct A100Hit {
  std::uint32_t rank = 0;
  std::string title;  // the id of a row without one
  double similarity = 0;
};

// Films that belong together, recognised by how their titles begin. The query is a film whose title
// begins with the first.
struct Franchise {
  std::string_view name;
  std::vector<std::string_view> beginnings;
};
std::span<const Franchise> Franchises();
// Whether a title is one of the franchise's.
bool IsOf(const Franchise& franchise, std::string_view title);

struct A100FranchiseResult {
  std::string franchise;
  std::string query;
  std::vector<A100Hit> top;  // 3
  bool same = false;         // all of them of the franchise
};

struct A100Similarity {
  A100Times times;
  std::string query;
  std::vector<A100Hit> results;
  std::vector<A100FranchiseResult> franchises;  // of those with 4 films or more
};

struct A100User {
  std::string user_id;
  std::vector<std::string> genres;  // the most frequent of what the user has seen; empty: unknown
  std::vector<A100Hit> results;
  std::uint32_t genre_matches = 0;  // results that have one of them
};

struct A100Batch {
  std::uint32_t queries = 0;
  A100Times times;
};

struct A100Filter {
  std::string text;
  std::optional<std::uint64_t> rows_passing;
  std::vector<A100Hit> results;
  std::uint32_t matches = 0;  // results whose payload passes
};

// Of the GPU, else of the server's process and its machine. Unset: unknown.
struct A100Memory {
  std::string source;  // what the figures are, in a sentence
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
  A100Similarity similarity;
  A100Times user_times;
  std::vector<A100User> users;  // empty: the users are not known
  std::vector<A100Batch> batches;
  A100Times filter_times;
  std::vector<A100Filter> filters;  // empty: no field to filter by
  A100Memory memory;
  std::optional<double> hourly_price;
};

enum class TargetOutcome : std::uint8_t { kPass, kFail, kNotApplicable };

// One of the guide's targets and what was measured.
struct A100Target {
  std::string name;
  std::string wanted;
  std::string measured;  // of kNotApplicable: why
  TargetOutcome outcome = TargetOutcome::kNotApplicable;
};
std::vector<A100Target> TargetsOf(const A100Measurements& measured);

// Queries a second of calls that follow one another.
double ThroughputOf(const A100Batch& batch);
// The price of a million queries at this rate. REQUIRES: queries_per_s > 0.
double CostPerMillion(double hourly_price, double queries_per_s);

// The report for programs: the guide's five keys, then targets, cost and what they are of.
// docs/bench.md describes it.
nlohmann::ordered_json A100Json(const A100Measurements& measured);
// For people: the targets, the batches and the cost.
std::string A100Text(const A100Measurements& measured, const Terminal& terminal);

}  // namespace simile::cli::bench

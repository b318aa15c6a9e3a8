#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/bench/answer_check.h"
#include "cli/bench/comparison_run.h"
#include "cli/bench/load_run.h"
#include "cli/terminal.h"

namespace simile::cli::bench {

// docs/bench.md describes it.
nlohmann::ordered_json ComparisonJson(const Comparison& comparison);
// The comparison for people: one line per call size.
std::string ComparisonText(const Comparison& comparison, const Terminal& terminal);

// One run and what the report adds to it.
struct ReportedRun {
  RunResult result;
  std::vector<std::string> kind_names;  // by index in the tally
  // Closed loop: also report the latencies of a caller who calls at this interval.
  std::optional<Nanoseconds> expected_interval;
  std::optional<CheckSummary> checks;  // with --verify
};

// What all runs of one command share.
struct BenchSetup {
  std::string address;
  std::string collection;
  std::uint64_t rows = 0;
  std::uint32_t dim = 0;
  std::string snapshot_id;
};

// 0.84 ms, 12.3 ms, 1.20 s.
std::string LatencyText(Nanoseconds latency);

// One run for people: rates, latencies by kind, CPU time per call, errors, checks.
std::string RunText(const ReportedRun& run, const Terminal& terminal);
// Several runs for people, one line each.
std::string SweepText(const std::vector<ReportedRun>& runs, const Terminal& terminal);

// All runs for programs, with histograms. docs/bench.md describes the format.
nlohmann::ordered_json RunsJson(const BenchSetup& setup, const std::vector<ReportedRun>& runs);

// The line that is redrawn during a run, without '\n'.
std::string LiveText(const LiveState& state);

}  // namespace simile::cli::bench

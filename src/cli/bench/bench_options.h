#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/bench/call_kinds.h"
#include "cli/bench/load_run.h"
#include "cli/client_flags.h"
#include "cli/command_line.h"

namespace simile::cli::bench {

// The value of --compare that starts a server of --folder on the CPU.
inline constexpr std::string_view kCompareCpu = "cpu";

// The flags of `simile bench`, before their values are checked.
struct BenchFlags {
  ClientFlags client;
  std::optional<std::string> collection;
  std::vector<std::string> in_flight;
  std::vector<std::string> rate;
  std::optional<std::uint32_t> connections;
  std::optional<std::uint32_t> threads;
  bool stream = false;
  std::optional<std::string> duration;
  std::optional<std::string> warm_up;
  std::optional<std::uint32_t> batch;
  std::optional<std::uint32_t> k;
  std::vector<std::string> payload;
  std::optional<std::string> filter;
  bool bulk = false;
  std::optional<std::string> mix;
  std::optional<std::string> vectors;
  std::optional<std::string> users;
  std::optional<std::string> folder;
  std::optional<std::string> config;
  std::optional<std::uint32_t> requests;
  std::optional<std::uint32_t> seed;
  std::optional<std::string> expected_interval;
  std::optional<double> verify_share;
  std::optional<std::string> plot;
  std::optional<std::string> out;
  std::optional<std::uint32_t> server_pid;
  std::optional<std::string> report;
  std::optional<double> hourly_price;
  std::optional<std::string> compare;
  std::optional<std::string> cpu_server;
  std::optional<double> cpu_hourly_price;
};
void AddBenchFlags(Command& command, BenchFlags& flags);

// The checked flags, as plans and specs.
struct BenchOptions {
  // One plan per run. Either every plan has a rate or none has. The command fills in address and
  // server processes, and the number of connections if no flag gives it.
  std::vector<RunPlan> plans;
  std::vector<CallSpec> specs;
  std::optional<Nanoseconds> expected_interval;
};
// Errors: kInvalidArgument naming the flag and what would be right; ReadMixFile's errors.
absl::StatusOr<BenchOptions> MakeBenchOptions(const BenchFlags& flags);

// How many connections to open for this many calls in flight: 4, or more so that none carries over
// 64 calls. Never more than calls, nor than a server accepts from one peer.
std::uint32_t DefaultConnections(std::uint32_t in_flight);

}  // namespace simile::cli::bench

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <absl/status/statusor.h>

#include "cli/bench/card_watch.h"
#include "cli/bench/load_pace.h"
#include "cli/bench/load_tally.h"
#include "cli/bench/request_pool.h"
#include "cli/client_security.h"

namespace simile::cli::bench {

enum class Transport : std::uint8_t { kUnary, kStream };

// One run of load against one server.
struct RunPlan {
  std::string address;
  ClientSecurity security;
  Load load;
  Transport transport = Transport::kUnary;
  std::uint32_t connections = 1;
  std::uint32_t threads = 1;  // at most `connections`: each has its own
  std::chrono::milliseconds warm_up{1'000};
  std::chrono::milliseconds duration{10'000};
  std::chrono::milliseconds timeout{10'000};  // of each call
  std::uint64_t seed = 1;
  double verify_share = 0;              // of answers to keep for a comparison after the run
  std::vector<pid_t> server_processes;  // whose CPU time is read; empty: unknown
  CardWatch* card = nullptr;            // borrowed for the run; null: no card is read
};

// An answer kept for a comparison, and what it answers.
struct KeptAnswer {
  RequestPool::Choice choice;
  grpc::ByteBuffer answer;
};

// What a run shows while it goes on.
struct LiveState {
  double elapsed_s = 0;  // of the measured part; negative during the warm-up
  double duration_s = 0;
  double queries_per_s = 0;  // of the last interval
  LatencyHistogram latency;  // of the last interval
  double batch_size = 0;     // mean of the receipts read so far; 0 before the first
  std::uint64_t errors = 0;  // so far
};
using OnLive = std::function<void(const LiveState& state)>;

struct RunResult {
  RunPlan plan;
  LoadTally tally{0};
  // Open loop: calls due before the end that were never sent, because too many were under way. They
  // are in the latencies with their age at the end, less than they would have taken.
  std::uint64_t unsent = 0;
  double seconds = 0;  // measured
  double client_cpu_s = 0;
  std::optional<double> server_cpu_s;
  std::optional<CardUse> card;  // where one was to be read
  std::vector<KeptAnswer> kept;
  std::uint64_t not_kept = 0;  // chosen for comparison, but more than memory is given to
};

// Sends the load, waits for its last answers and returns what was counted. Each thread has its
// connections and completion queue to itself; with a rate a second thread beside it sleeps until a
// call is due, because a completion queue wakes only to the millisecond.
//   on_live  called on this thread, five times a second; may be null
// Errors: kUnavailable when the connections cannot be made.
absl::StatusOr<RunResult> RunLoad(const RunPlan& plan, const RequestPool& pool,
                                  const OnLive& on_live);

}  // namespace simile::cli::bench

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/bench/call_sender.h"
#include "cli/bench/card_watch.h"
#include "cli/bench/latency_histogram.h"
#include "cli/bench/load_pace.h"
#include "cli/bench/request_pool.h"
#include "cli/client_security.h"
#include "simile/v1/types.pb.h"

namespace simile::cli::bench {

// The part of a run that counts. A call belongs to it by its intended time. Times count from the
// run's start.
struct MeasuredWindow {
  Nanoseconds begin{0};  // the end of the warm-up
  Nanoseconds end{0};

  bool Has(Nanoseconds time) const { return begin <= time && time < end; }
  double Seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

// One call from its intended time to its end.
struct CallTimes {
  Nanoseconds intended{0};
  Nanoseconds sent{0};
  Nanoseconds done{0};
};

struct ErrorTally {
  std::uint64_t count = 0;
  std::string first_message;
};

// Sums over the receipts that were read; reports divide them into means.
struct ReceiptTally {
  std::uint64_t receipts = 0;
  double batch_size = 0;
  double queue_us = 0;
  double compute_us = 0;
  double total_us = 0;
  // The queries of these receipts' calls, and the engine's time for them. A call's share of a pass
  // is its share of the pass's queries.
  double queries = 0;
  double engine_us = 0;
  // How many receipts name each backend, such as "cpu: int8-amx".
  std::map<std::string, std::uint64_t> backends;

  //   queries  of the call
  void Add(const v1::Receipt& receipt, std::size_t queries);
  void Merge(const ReceiptTally& other);
  // Queries per second that the engine alone answers in passes of these sizes. Nothing if every
  // pass took less than a microsecond.
  std::optional<double> EngineQueriesPerSecond() const;
};

// What a run counts. Failed calls have their own histogram, because fast refusals must not improve
// the percentiles of answers.
struct LoadTally {
  explicit LoadTally(std::size_t kind_count) : kinds(kind_count) {}

  //   queries  of the call
  void AddAnswer(std::size_t kind, const CallTimes& times, const MeasuredWindow& window,
                 std::size_t queries, std::size_t answer_bytes);
  void AddError(const CallTimes& times, const MeasuredWindow& window, const CallError& error);
  void Merge(const LoadTally& other);

  LatencyHistogram All() const;  // the latencies of all kinds together

  std::vector<LatencyHistogram> kinds;  // from the intended time to the answer, by kind of call
  LatencyHistogram failed;
  LatencyHistogram send_delay;  // from the intended time to the sending: how late the client is
  std::map<std::string, ErrorTally> errors;  // by reason
  // Calls that ended within the window, whenever they were sent. Rates and CPU time per call use
  // these counts.
  std::uint64_t calls_in_window = 0;
  std::uint64_t queries_in_window = 0;
  std::uint64_t failed_in_window = 0;
  std::uint64_t answer_bytes_in_window = 0;
  ReceiptTally receipts;
};

enum class Transport : std::uint8_t { kUnary, kStream };

// One run of load against one server.
struct RunPlan {
  std::string address;
  ClientSecurity security;
  Load load;
  Transport transport = Transport::kUnary;
  std::uint32_t connections = 1;
  std::uint32_t threads = 1;  // at most `connections`, because each thread needs its own connection
  std::chrono::milliseconds warm_up{1'000};
  std::chrono::milliseconds duration{10'000};
  std::chrono::milliseconds timeout{10'000};  // of each call
  std::uint64_t seed = 1;
  double verify_share = 0;  // share of the answers to keep for a comparison after the run
  std::vector<pid_t> server_processes;  // processes whose CPU time is read; empty: unknown
  CardWatch* card = nullptr;            // borrowed for the run; null: no card is read
};

// An answer kept for a comparison, and the request that it answers.
struct KeptAnswer {
  RequestPool::Choice choice;
  grpc::ByteBuffer answer;
};

// What the live display of a run shows.
struct LiveState {
  double elapsed_s = 0;  // since the measured part began; negative during the warm-up
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
  // Open loop: calls that were due before the end but never sent, because too many calls were in
  // flight. The latencies count each with its age at the end, which is less than its true latency.
  std::uint64_t unsent = 0;
  double seconds = 0;  // measured
  double client_cpu_s = 0;
  std::optional<double> server_cpu_s;
  std::optional<CardUse> card;  // set if a card was to be read
  std::vector<KeptAnswer> kept;
  // Chosen for comparison but dropped, because the memory for kept answers was full.
  std::uint64_t not_kept = 0;
};

// Sends the load, waits for the last answers and returns the counts. Each client thread has its own
// connections and completion queue. With a rate, each client thread has a second thread that sleeps
// until a call is due, because a completion queue wakes only to the millisecond.
//   on_live  called on the calling thread five times a second; may be null
// Errors: kUnavailable if the connections cannot be made.
absl::StatusOr<RunResult> RunLoad(const RunPlan& plan, const RequestPool& pool,
                                  const OnLive& on_live);

}  // namespace simile::cli::bench

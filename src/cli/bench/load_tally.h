#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/call_outcome.h"
#include "cli/bench/latency_histogram.h"
#include "simile/v1/types.pb.h"

namespace simile::cli::bench {

// The part of a run that counts: calls that were to be sent in it. Times are since the run's start.
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

// Sums over the receipts that were read, of which means are made.
struct ReceiptTally {
  std::uint64_t receipts = 0;
  double batch_size = 0;
  double queue_us = 0;
  double compute_us = 0;
  double total_us = 0;
  // Of the calls with these receipts: their queries, and what these took the engine. A call's part
  // of a pass is that of its queries.
  double queries = 0;
  double engine_us = 0;
  std::map<std::string, std::uint64_t> backends;  // "cpu: int8-amx" and how many receipts say so

  //   queries  of the call
  void Add(const v1::Receipt& receipt, std::size_t queries);
  void Merge(const ReceiptTally& other);
  // What the engine alone answers in passes of these sizes; nothing when no pass took a
  // microsecond.
  std::optional<double> EngineQueriesPerSecond() const;
};

// What a run counts. Failed calls have a histogram of their own: fast refusals must not improve the
// percentiles of answers.
struct LoadTally {
  explicit LoadTally(std::size_t kind_count) : kinds(kind_count) {}

  //   queries  of the call
  void AddAnswer(std::size_t kind, const CallTimes& times, const MeasuredWindow& window,
                 std::size_t queries, std::size_t answer_bytes);
  void AddError(const CallTimes& times, const MeasuredWindow& window, const CallError& error);
  void Merge(const LoadTally& other);

  LatencyHistogram All() const;  // of all kinds

  std::vector<LatencyHistogram> kinds;  // intended time to answer, by kind of call
  LatencyHistogram failed;
  LatencyHistogram send_delay;               // intended time to sending: the client's own lateness
  std::map<std::string, ErrorTally> errors;  // by reason
  // Ended within the window, whenever they were sent: what rates and CPU per call are made of.
  std::uint64_t calls_in_window = 0;
  std::uint64_t queries_in_window = 0;
  std::uint64_t failed_in_window = 0;
  std::uint64_t answer_bytes_in_window = 0;
  ReceiptTally receipts;
};

}  // namespace simile::cli::bench

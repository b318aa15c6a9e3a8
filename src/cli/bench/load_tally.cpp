#include "cli/bench/load_tally.h"

#include <algorithm>

#include "cli/backend_text.h"

namespace simile::cli::bench {

void ReceiptTally::Add(const v1::Receipt& receipt, std::size_t of_queries) {
  const auto own = static_cast<double>(of_queries);
  ++receipts;
  queries += own;
  // A call larger than a pass had its passes almost to itself.
  engine_us += static_cast<double>(receipt.compute_us()) *
               std::min(1.0, own / std::max(1U, receipt.batch_size()));
  batch_size += receipt.batch_size();
  queue_us += static_cast<double>(receipt.queue_us());
  compute_us += static_cast<double>(receipt.compute_us());
  total_us += static_cast<double>(receipt.total_us());
  ++backends[BackendText(receipt)];
}

void ReceiptTally::Merge(const ReceiptTally& other) {
  receipts += other.receipts;
  batch_size += other.batch_size;
  queue_us += other.queue_us;
  compute_us += other.compute_us;
  total_us += other.total_us;
  queries += other.queries;
  engine_us += other.engine_us;
  for (const auto& [backend, count] : other.backends) backends[backend] += count;
}

std::optional<double> ReceiptTally::EngineQueriesPerSecond() const {
  if (engine_us == 0) return std::nullopt;
  return queries / engine_us * 1e6;
}

void LoadTally::AddAnswer(std::size_t kind, const CallTimes& times, const MeasuredWindow& window,
                          std::size_t queries, std::size_t answer_bytes) {
  if (window.Has(times.intended)) {
    kinds[kind].Record(times.done - times.intended);
    send_delay.Record(times.sent - times.intended);
  }
  if (window.Has(times.done)) {
    ++calls_in_window;
    queries_in_window += queries;
    answer_bytes_in_window += answer_bytes;
  }
}

void LoadTally::AddError(const CallTimes& times, const MeasuredWindow& window,
                         const CallError& error) {
  if (window.Has(times.done)) ++failed_in_window;
  if (!window.Has(times.intended)) return;
  failed.Record(times.done - times.intended);
  send_delay.Record(times.sent - times.intended);
  ErrorTally& tally = errors[error.reason];
  if (tally.count++ == 0) tally.first_message = error.message;
}

void LoadTally::Merge(const LoadTally& other) {
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].Merge(other.kinds[i]);
  failed.Merge(other.failed);
  send_delay.Merge(other.send_delay);
  for (const auto& [reason, tally] : other.errors) {
    ErrorTally& mine = errors[reason];
    if (mine.count == 0) mine.first_message = tally.first_message;
    mine.count += tally.count;
  }
  calls_in_window += other.calls_in_window;
  queries_in_window += other.queries_in_window;
  failed_in_window += other.failed_in_window;
  answer_bytes_in_window += other.answer_bytes_in_window;
  receipts.Merge(other.receipts);
}

LatencyHistogram LoadTally::All() const {
  LatencyHistogram all;
  for (const LatencyHistogram& kind : kinds) all.Merge(kind);
  return all;
}

}  // namespace simile::cli::bench

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/engine_options.h"
#include "bench/engine_session.h"

namespace simile::bench {

// One case, and the figures of its runs.
class CaseLog {
 public:
  CaseLog(const EngineSession& session, const Run& run)
      : run_(run), verified_(session.data().queries.row_count(), false) {}

  // Records the session's last search.
  void Add(const EngineSession& session, const Run& run, double seconds);

  const Run& run() const { return run_; }
  std::size_t rounds() const { return seconds_.size(); }
  // The engine named by the receipt: "int8-amx".
  const std::string& answered_by() const { return answered_by_; }
  std::string isa() const { return answered_by_.substr(answered_by_.rfind('-') + 1); }
  double median_s() const;
  double min_s() const;
  double queries_per_s() const { return static_cast<double>(run_.batch) / median_s(); }
  double rows_scanned_mean() const { return rows_scanned_ / static_cast<double>(queries_); }
  std::uint64_t rescans() const { return rescans_; }
  double rows_rescored_mean() const { return rows_rescored_ / static_cast<double>(queries_); }
  // Different queries whose answers were compared, all of them right.
  std::size_t verified_queries() const;

 private:
  Run run_;
  std::string answered_by_;
  std::vector<double> seconds_;
  std::size_t queries_ = 0;
  double rows_scanned_ = 0;
  double rows_rescored_ = 0;
  std::uint64_t rescans_ = 0;
  std::vector<bool> verified_;
};

// The time to read a byte a dimension once, in the same rounds.
struct ReadFigures {
  std::size_t bytes = 0;
  std::string pattern;
  double median_s = 0;
  double min_s = 0;
};

struct EngineReport {
  const EngineOptions& options;
  const EngineSession& session;
  const std::vector<CaseLog>& cases;
  std::optional<ReadFigures> read;
};

void PrintTable(const EngineReport& report);
absl::Status WriteJson(const EngineReport& report, const std::string& path);

}  // namespace simile::bench

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/bench/load_run.h"
#include "cli/bench/query_samples.h"
#include "cli/bench/request_pool.h"
#include "cli/connection.h"
#include "simile/v1/search.pb.h"

namespace simile::cli::bench {

// What a check says of one answer.
struct CheckedAnswer {
  enum class Result : std::uint8_t { kRight, kWrong, kUnchecked };
  Result result = Result::kRight;
  std::string why;  // of kWrong: what differs, where; of kUnchecked: what the check cannot tell
};

// Checks plain queries by vector, item or user with scores computed in double precision from the
// rows that are known: each known hit's score, the order, and that no known row is better than the
// last hit and missing. With all rows known that is the whole answer. Queries with filters,
// exclusions, groups, diversity, examples or blends are left unchecked, as are answers from other
// content. Borrows the samples. Thread-safe.
class VectorCheck {
 public:
  explicit VectorCheck(const QuerySamples& samples);

  // Wrong when one query's result is, else unchecked when one cannot be checked.
  CheckedAnswer Check(const v1::SearchRequest& request, const v1::SearchResponse& response) const;
  CheckedAnswer Check(const v1::RecommendRequest& request,
                      const v1::RecommendResponse& response) const;

 private:
  struct Target {
    std::vector<double> vector;
    std::string excluded_id;  // of a query by item
  };
  CheckedAnswer CheckQuery(const v1::Query& query, const v1::SearchOptions& options,
                           const v1::SearchResult& result) const;
  // The query's vector in double precision; empty when it is not known.
  std::optional<Target> FindTarget(const v1::Query& query) const;
  CheckedAnswer CheckHits(const Target& target, std::size_t k,
                          const v1::SearchResult& result) const;
  double Tolerance(const Target& target) const;

  const QuerySamples& samples_;
  std::unordered_map<std::string_view, std::size_t> rows_;   // by id
  std::unordered_map<std::string_view, std::size_t> users_;  // likewise, with known vectors
  double longest_row_ = 0;
};

// The kept answers of a run, checked.
struct CheckSummary {
  struct Kind {
    std::uint64_t compared = 0;
    std::uint64_t wrong = 0;
  };
  std::string against = "double precision";
  std::map<std::string, Kind> kinds{};  // by name
  std::uint64_t compared = 0;
  std::uint64_t wrong = 0;
  std::map<std::string, std::uint64_t> unchecked;  // by reason
  std::vector<std::string> findings;               // of the first wrong answers
};
CheckSummary CheckKept(const std::vector<KeptAnswer>& kept, const RequestPool& pool,
                       Transport transport, const VectorCheck& check);

// Compares answers of every kind with those of another server, to the bit: hits and groups, their
// order, ids, scores and payload. Asks that server once for each different request.
// Errors: those of the server.
absl::StatusOr<CheckSummary> CompareKept(const std::vector<KeptAnswer>& kept,
                                         const RequestPool& pool, Transport transport,
                                         const Connection& other);

// The first place, from 0, at which the hits differ in their id or in the bits of their score.
// Nothing when all hits are the same.
std::optional<int> FirstDifferentHit(const v1::SearchResult& here, const v1::SearchResult& there);
// `heat-1995 with 0.7`; `nothing` behind the last hit.
std::string HitText(const v1::SearchResult& result, int place);

}  // namespace simile::cli::bench

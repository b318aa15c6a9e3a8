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

// The result of checking one answer.
struct CheckedAnswer {
  enum class Result : std::uint8_t { kRight, kWrong, kUnchecked };
  Result result = Result::kRight;
  std::string why;  // kWrong: the difference and its place; kUnchecked: why it was not checked
};

// Checks plain queries by vector, item or user with scores computed in double precision from the
// sampled rows. Checks each sampled hit's score, the order of the hits, and that no better sampled
// row is missing. If every row is sampled, this checks the whole answer. Does not check queries
// with filters, exclusions, groups, diversity, examples or blends, nor answers from other content.
// Borrows the samples. Thread-safe.
class VectorCheck {
 public:
  explicit VectorCheck(const QuerySamples& samples);

  // Wrong if any query's result is wrong; otherwise unchecked if any result cannot be checked.
  CheckedAnswer Check(const v1::SearchRequest& request, const v1::SearchResponse& response) const;
  CheckedAnswer Check(const v1::RecommendRequest& request,
                      const v1::RecommendResponse& response) const;

 private:
  struct Target {
    std::vector<double> vector;
    std::string excluded_id;  // for a query by item
  };
  CheckedAnswer CheckQuery(const v1::Query& query, const v1::SearchOptions& options,
                           const v1::SearchResult& result) const;
  // The query's vector in double precision; nothing if the vector is not known.
  std::optional<Target> FindTarget(const v1::Query& query) const;
  CheckedAnswer CheckHits(const Target& target, std::size_t k,
                          const v1::SearchResult& result) const;
  double Tolerance(const Target& target) const;

  const QuerySamples& samples_;
  std::unordered_map<std::string_view, std::size_t> rows_;  // by id
  // By id, only users whose vectors are known.
  std::unordered_map<std::string_view, std::size_t> users_;
  double longest_row_ = 0;
};

// What the check of a run's kept answers found.
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
  std::vector<std::string> findings;               // descriptions of the first wrong answers
};
CheckSummary CheckKept(const std::vector<KeptAnswer>& kept, const RequestPool& pool,
                       Transport transport, const VectorCheck& check);

// Compares answers of every kind with another server's answers, bit for bit: hits and groups, their
// order, ids, scores and payload. Sends each distinct request to the other server once. Errors: the
// other server's.
absl::StatusOr<CheckSummary> CompareKept(const std::vector<KeptAnswer>& kept,
                                         const RequestPool& pool, Transport transport,
                                         const Connection& other);

// The first place, from 0, at which the hits differ in their id or in the bits of their score.
// Nothing if all hits are equal.
std::optional<int> FirstDifferentHit(const v1::SearchResult& here, const v1::SearchResult& there);
// `heat-1995 with 0.7`; `nothing` for a place after the last hit.
std::string HitText(const v1::SearchResult& result, int place);

}  // namespace simile::cli::bench

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/conformance_case.h"
#include "simile/backend.h"
#include "simile/hits.h"

namespace simile::conformance {

// What the scalar canonical oracle answers to one query of a case: every passing row's canonical
// score by its definition, sorted by RankKey, the first k.
std::vector<Hit> OracleHits(const ConformanceCase& drawn, std::size_t query);

// Checks every query of the case: the oracle's rows and score bits, and in double precision that no
// passing row was left out that beats the k-th by more than the canonical rounding of both. Fails
// the running test with the case's description and the first difference.
void ExpectOracleAnswers(const ConformanceCase& drawn, const SearchResult& result);

// Checks SegmentIndex::Score on some of the case's rows, runs of neighbours among them: the
// reference's bits. Fails the running test.
void ExpectReferenceScores(const ConformanceCase& drawn, const SegmentIndex& index);

// Counts the queries of many cases by the engine that answered them: whether a strategy or a kernel
// that a test forces really ran.
class EngineTally {
 public:
  void Count(const SearchResult& result);
  // Queries whose engine's name starts with this; "" for all that had a row to rank.
  std::uint64_t StartingWith(std::string_view prefix) const;
  std::uint64_t rescans() const { return rescans_; }
  // How often a search was paused.
  void CountPause() { ++pauses_; }
  std::uint64_t pauses() const { return pauses_; }

 private:
  std::map<std::string, std::uint64_t> queries_;
  std::uint64_t rescans_ = 0;
  std::uint64_t pauses_ = 0;
};

// Makes the case of this seed resident, searches it at once and with pauses, counts that and checks
// all of the above. `result` is the caller's, so that a test reuses one for all its cases: what a
// search leaves in it must not change the next answer. Fails the running test.
void ExpectConforms(Backend& backend, std::uint64_t seed, SearchResult& result, EngineTally& tally);

}  // namespace simile::conformance

#pragma once

#include <cstdint>
#include <vector>

#include "conformance/conformance_case.h"
#include "simile/backend.h"
#include "simile/hits.h"

namespace simile::conformance {

// What the scalar canonical oracle answers to one query of a case: every passing row's canonical
// score by its definition, sorted by RankKey, the first k.
std::vector<Hit> OracleHits(const ConformanceCase& drawn, std::size_t query);

// Checks every query of the case: the oracle's rows and score bits, and against a double-precision
// oracle that no passing row was left out that beats the k-th by more than the canonical rounding
// of both. Fails the running test with the case's description and the first difference.
void ExpectOracleAnswers(const ConformanceCase& drawn, const SearchResult& result);

// Checks SegmentIndex::Score on some of the case's rows, runs of neighbours among them: the
// reference's bits. Fails the running test.
void ExpectReferenceScores(const ConformanceCase& drawn, const SegmentIndex& index);

// Makes the case of this seed resident, asks it and checks all of the above. `result` is the
// caller's, so that whatever one answer leaves behind meets the next. Fails the running test.
void ExpectConforms(Backend& backend, std::uint64_t seed, SearchResult& result);

}  // namespace simile::conformance

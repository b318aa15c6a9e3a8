#pragma once

#include <string>

#include "cli/answer.h"
#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// The answer as one JSON object on one line, ended by '\n':
//   {"collection", "results": [{"query", "rows_passing", "cold_start", "score_kind",
//   "hits": [{"rank", "id", "score", "row", "payload"}]}], "receipt": {...}}
// rows_passing is present with a filter, cold_start ({"order", "field"}) for a user without a
// profile, row with --with-rows. notes, a list of sentences, is present in a result and beside the
// results where there are some. A query without an answer has {"query", "error"}, with the error of
// errors.h, and failed_count beside the results counts those. query is {"id"}, {"user_id",
// "seen_count"} or {"vector", "row"}. Scores are the shortest decimals that read back as the same
// float; payload fields are sorted by name.
std::string AnswerJson(const Answer& answer);

// The items that an ambiguous title may mean:
//   {"collection", "title", "match_count", "candidates": [{"id", "match", "payload"}], "error"}
// error is that of errors.h; match is "whole", "prefix" or "part".
std::string CandidatesJson(const std::string& collection, const std::string& title,
                           const v1::LookupResponse& found);

}  // namespace simile::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "cli/query_flags.h"
#include "cli/terminal.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

// The hits of one query, its heading for people and its target for programs.
struct AnsweredQuery {
  std::string heading;  // "in films, like Toy Story (1995)"
  // The query's target. The JSON holds the fields that are set.
  std::optional<std::string> id;
  std::optional<std::string> user_id;
  std::optional<std::string> vector_source;  // "query.npy", "standard input"
  std::uint64_t vector_row = 0;              // the vector's number in the source, from 0
  std::optional<std::string> items_of;       // the collection of id, like and unlike
  std::vector<std::string> like;             // ids
  std::vector<std::string> unlike;
  std::optional<std::uint32_t> seen_count;    // how many items the user has seen; set by Recommend
  std::optional<std::uint64_t> rows_passing;  // rows that pass the filter; unset without a filter
  google::protobuf::RepeatedPtrField<v1::Hit> hits;
  google::protobuf::RepeatedPtrField<v1::HitGroup> groups;  // with --group-by, instead of hits
  v1::ScoreKind score_kind = v1::SCORE_KIND_UNSPECIFIED;
  std::optional<v1::ColdStart> cold_start;  // set when the user has no profile
  std::vector<std::string> notes;  // options without effect, and results that were cut short
  absl::Status error;              // with --partial: why there is no answer
};

// Moves hits, groups and counts of a result into the query: what Search and Recommend share.
void MoveResult(v1::SearchResult& from, AnsweredQuery& query);

// What `search`, `similar` and `recommend` print.
struct Answer {
  std::string collection;
  std::string backend_reason;  // why the collection has its backend
  std::vector<AnsweredQuery> results;
  v1::Receipt receipt;
  std::string next_page_token;     // empty: this is the last page
  std::vector<std::string> notes;  // options of the call that had no effect
};

// Starts an answer with the fields that every kind of response has: receipt, page token, notes.
template <class Response>
Answer StartAnswer(const v1::Collection& collection, const Response& response) {
  Answer answer;
  answer.collection = collection.name();
  answer.backend_reason = collection.backend().reason();
  answer.receipt = response.receipt();
  answer.next_page_token = response.next_page_token();
  answer.notes = {response.notes().begin(), response.notes().end()};
  return answer;
}

// What the user may type next. If the first query has all the hits it asked for: the flag for the
// next hits. Otherwise the command that shows its best hit in full. If no row passes the filter:
// the command that lists the fields a filter can test. Empty: no suggestion.
std::string SuggestionAfter(const Answer& answer, const QueryFlags& flags);

// Prints the answer: JSON with --json, else tables. Returns kSucceeded, or kFailed when no query
// was answered.
int ShowAnswer(Answer answer, const QueryFlags& flags);

// The answer for people. For each query: a heading, then a ranked table in the columns of
// ChooseItemColumns, or the reason why there are no hits. The receipt follows in one line, and in
// full with --receipt.
std::string AnswerTable(const Answer& answer, const QueryFlags& flags, const Terminal& terminal);

// The answer as one JSON object on one line, ended by '\n':
//   {"collection", "results": [{"query", "rows_passing", "cold_start", "score_kind",
//   "hits": [{"rank", "id", "score", "row", "payload"}]}], "receipt": {...}}
// rows_passing is present with a filter, cold_start ({"order", "field"}) for a user without a
// profile, row with --with-rows. notes is a list of sentences; a result and the whole answer have
// it only if there are notes. A query without an answer has {"query", "error"}, with the error of
// errors.h. failed_count, beside the results, counts the queries without an answer. query is
// {"id"}, {"user_id", "seen_count"} or {"vector", "row"}. Scores are the shortest decimals that
// read back as the same float; payload fields are sorted by name.
std::string AnswerJson(const Answer& answer);

// The items that an ambiguous title may mean:
//   {"collection", "title", "match_count", "candidates": [{"id", "match", "payload"}], "error"}
// error is that of errors.h; match is "whole", "prefix" or "part".
std::string CandidatesJson(const std::string& collection, const std::string& title,
                           const v1::LookupResponse& found);

}  // namespace simile::cli

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
  // The target; the JSON holds those that are set.
  std::optional<std::string> id;
  std::optional<std::string> user_id;
  std::optional<std::string> vector_source;  // "query.npy", "standard input"
  std::uint64_t vector_row = 0;              // the vector's number in the source, from 0
  std::optional<std::string> items_of;       // the collection of id, like and unlike
  std::vector<std::string> like;             // ids
  std::vector<std::string> unlike;
  std::optional<std::uint32_t> seen_count;    // items the user has seen, from Recommend
  std::optional<std::uint64_t> rows_passing;  // the filter; unset without one
  google::protobuf::RepeatedPtrField<v1::Hit> hits;
  google::protobuf::RepeatedPtrField<v1::HitGroup> groups;  // with --group-by, instead of hits
  v1::ScoreKind score_kind = v1::SCORE_KIND_UNSPECIFIED;
  std::optional<v1::ColdStart> cold_start;  // set when the user has no profile
  std::vector<std::string> notes;           // what had no effect, and what was cut
  absl::Status error;                       // with --partial: why there is no answer
};

// Moves what the results of all queries have in common.
void MoveResult(v1::SearchResult& from, AnsweredQuery& query);

// What `search`, `similar` and `recommend` print.
struct Answer {
  std::string collection;
  std::string backend_reason;  // why the collection has its backend
  std::vector<AnsweredQuery> results;
  v1::Receipt receipt;
  std::string next_page_token;     // empty: no further page
  std::vector<std::string> notes;  // what of the whole call had no effect
};

// Starts an answer with what the responses of all calls have in common.
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

// What to type after this answer: the flag for more hits when the first query has as many as it
// asked for, else the command that shows its best hit in full; where no rows pass the filter, the
// command that shows what a filter can test. Empty for nothing.
std::string SuggestionAfter(const Answer& answer, const QueryFlags& flags);

// Prints the answer: JSON with --json, else tables. Returns kSucceeded, or kFailed when no query
// was answered.
int ShowAnswer(Answer answer, const QueryFlags& flags);

// The answer for people: for every query a heading and a ranked table in the columns of
// ChooseItemColumns, or why it has no hits; then the receipt in a line, and whole with --receipt.
std::string AnswerTable(const Answer& answer, const QueryFlags& flags, const Terminal& terminal);

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

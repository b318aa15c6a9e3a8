#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simile/v1/search.pb.h"

namespace simile::cli {

// The hits of one query, and how a person and a program name that query.
struct AnsweredQuery {
  std::string heading;  // "films like Toy Story (1995)"
  // Of these the ones that were asked for.
  std::optional<std::string> id;
  std::optional<std::string> user_id;
  std::optional<std::string> vector_source;  // "query.npy"; "-" for standard input
  std::uint64_t vector_row = 0;              // which vector of the source, from 0
  std::vector<std::string> like;             // items named beside it
  std::vector<std::string> unlike;
  std::optional<std::uint32_t> seen_count;    // of a user, from Recommend
  std::optional<std::uint64_t> rows_passing;  // the filter; nothing without one
  google::protobuf::RepeatedPtrField<v1::Hit> hits;
  google::protobuf::RepeatedPtrField<v1::HitGroup> groups;  // in place of hits
  std::string fallback_order;                               // of a user without a profile
};

// What the results of all calls have: moved from one of them.
template <class Result>
void TakeResult(Result& from, AnsweredQuery& query) {
  if (from.has_rows_passing()) query.rows_passing = from.rows_passing();
  query.hits.Swap(from.mutable_hits());
  query.groups.Swap(from.mutable_groups());
  query.fallback_order = from.fallback_order();
}

// What `search`, `similar` and `recommend` have to show, whichever call it came from.
struct Answer {
  std::string collection;
  std::vector<std::string> fields;  // payload fields asked for by name; empty: all
  std::vector<AnsweredQuery> results;
  v1::Receipt receipt;
  std::string next_page_token;  // empty: there is none
};

// What an answer takes from the response it came in.
//   fields  payload fields asked for by name
template <class Response>
Answer AnswerOf(const std::string& collection, const std::vector<std::string>& fields,
                const Response& response) {
  Answer answer;
  answer.collection = collection;
  answer.fields = fields;
  answer.receipt = response.receipt();
  answer.next_page_token = response.next_page_token();
  return answer;
}

}  // namespace simile::cli

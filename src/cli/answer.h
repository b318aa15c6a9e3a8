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
  // Exactly one of these says what was asked for.
  std::optional<std::string> id;
  std::optional<std::string> user_id;
  std::optional<std::string> vector_source;   // "query.npy"; "-" for standard input
  std::uint64_t vector_row = 0;               // which vector of the source, from 0
  std::optional<std::uint32_t> seen_count;    // of a user, from Recommend
  std::optional<std::uint64_t> rows_passing;  // the filter; nothing without one
  google::protobuf::RepeatedPtrField<v1::Hit> hits;
};

// Of a result of any call: how many rows pass its filter, if it has one.
template <class Result>
std::optional<std::uint64_t> RowsPassing(const Result& result) {
  return result.has_rows_passing() ? std::optional(result.rows_passing()) : std::nullopt;
}

// What `search`, `similar` and `recommend` have to show, whichever call it came from.
struct Answer {
  std::string collection;
  std::vector<std::string> fields;  // payload fields asked for by name; empty: all
  std::vector<AnsweredQuery> results;
  v1::Receipt receipt;
};

}  // namespace simile::cli

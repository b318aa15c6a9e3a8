#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "integration/client.h"

namespace simile::integration {

// Options that Search, Recommend, Fetch and Lookup share.
struct SharedOptions {
  v1::PayloadSelector payload;
  bool with_vectors = false;
  bool with_rows = false;
  std::string required_filter;
  std::string expected_snapshot_id;
  std::optional<std::uint32_t> reply_bytes_max;
};

// A row as any of the four calls returns it: a Hit or an Item.
struct SharedRow {
  std::string id;
  std::set<std::string> payload_fields;
  bool has_vector = false;
  std::optional<std::uint64_t> row;
};

struct SharedAnswer {
  Outcome outcome;
  std::vector<SharedRow> rows;
  std::string snapshot_id;
  std::size_t bytes = 0;  // of the serialized response
};

// One of the four calls, with a request of its own that several films answer.
struct SharedCall {
  const char* name;
  SharedAnswer (*make)(const Client& client, const SharedOptions& options);
  const char* field_prefix;  // of the options in a request: "options."
};
inline std::ostream& operator<<(std::ostream& out, const SharedCall& call) {
  return out << call.name;
}

std::span<const SharedCall> SharedCalls();

}  // namespace simile::integration

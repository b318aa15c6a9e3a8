#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/bench/call_kinds.h"

namespace simile::cli::bench {

// Reads a mix of calls:
//
//   {"calls": [{"kind": "vector", "weight": 80, "k": 10, "payload": ["title"]},
//              {"kind": "recommend", "weight": 15, "batch": 4, "exclude_seen": true},
//              {"kind": "filter", "weight": 5, "filter": ["year >= 1990", "genres:\"Drama\""]}]}
// Every kind takes weight (default 1), batch, k, payload ("all", "none" or a list of fields) and
// filter. A filter is a text, or a list from which each query gets one text. call_kinds.cpp lists
// the keys of single kinds.
//   defaults  of batch, k, payload and filter
//   source    the file's name in messages
// Errors: kInvalidArgument with the place, and what would be right: not JSON; an unknown key or
// kind, with the nearest one; a value of the wrong type or out of range; no calls.
absl::StatusOr<std::vector<CallSpec>> ParseMix(std::string_view text, const CallSpec& defaults,
                                               const std::string& source);

// Errors: kNotFound, kPermissionDenied; ParseMix's errors.
absl::StatusOr<std::vector<CallSpec>> ReadMixFile(const std::string& path,
                                                  const CallSpec& defaults);

// The selector for the words of --payload or of a mix file: "all", "none" or field names.
v1::PayloadSelector MakePayloadSelector(const std::vector<std::string>& words);

}  // namespace simile::cli::bench

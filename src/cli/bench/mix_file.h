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
//
// Every kind takes weight (default 1), batch, k, payload ("all", "none" or a list of fields) and
// filter (a text, or a list of which each query gets one); the rest are in call_kinds.cpp.
//   defaults  of batch, k, payload and filter
//   source    the file's name in messages
// Errors: kInvalidArgument with the place, and what would be right: not JSON; an unknown key or
// kind, with the nearest one; a value of the wrong type or out of range; no calls.
absl::StatusOr<std::vector<CallSpec>> ParseMix(std::string_view text, const CallSpec& defaults,
                                               const std::string& source);

// Errors: kNotFound, kPermissionDenied; those of ParseMix.
absl::StatusOr<std::vector<CallSpec>> ReadMixFile(const std::string& path,
                                                  const CallSpec& defaults);

// "all", "none" or field names, as --payload and a mix file give them.
v1::PayloadSelector MakePayloadSelector(const std::vector<std::string>& words);

}  // namespace simile::cli::bench

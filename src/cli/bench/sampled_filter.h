#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/payload_text.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli::bench {

// A filter made from a common value of a field, and what it means: a keyword that the field has, or
// an integer of at least so much.
struct SampledFilter {
  std::string text;
  std::string field;
  std::string keyword;  // folded; empty: `least` is meant
  std::int64_t least = 0;
};

// Filters by the field's common values: none for a type or name that has no simple ones.
std::vector<SampledFilter> SampleFilters(const v1::FieldDescription& described);

// Whether a row passes, computed from its payload alone.
bool Passes(const SampledFilter& filter, const PayloadMap& payload);

}  // namespace simile::cli::bench

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
  v1::FieldType type = v1::FIELD_TYPE_UNSPECIFIED;
  std::string keyword;     // folded; not of FIELD_TYPE_INTEGER
  std::int64_t least = 0;  // of FIELD_TYPE_INTEGER
};

// Filters by the field's common values: none for a type or name that has no simple ones.
std::vector<SampledFilter> SampleFilters(const v1::FieldDescription& described);

// The keywords of a payload's value, as it spells them: in a list of keywords a text such as
// "Action|Drama" holds several.
std::vector<std::string> KeywordsOf(v1::FieldType type, const v1::PayloadValue& value);

// Whether a row passes, computed from its payload alone.
bool Passes(const SampledFilter& filter, const PayloadMap& payload);

}  // namespace simile::cli::bench

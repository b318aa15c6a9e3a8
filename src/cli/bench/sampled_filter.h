#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/payload_text.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli::bench {

// A filter made from a common value of a field, and what it means, without the server's filter
// code: a keyword that the field has, byte for byte, or an integer of at least `least`.
struct SampledFilter {
  std::string text;
  std::string field;
  v1::FieldType type = v1::FIELD_TYPE_UNSPECIFIED;
  std::string keyword;     // not of FIELD_TYPE_INTEGER
  std::int64_t least = 0;  // of FIELD_TYPE_INTEGER
};

// Filters by the field's common values: none for a type or name that has no simple ones.
std::vector<SampledFilter> SampleFilters(const v1::FieldDescription& described);

// The keywords of a payload's value: in a field of lists those between the bars of a text such as
// "Action|Drama".
std::vector<std::string> KeywordsOf(v1::FieldType type, const v1::PayloadValue& value);

// Whether a row passes, computed from its payload alone. Whether bars separate a text in a field of
// lists is not on the wire: it passes as a whole and by its parts.
bool Passes(const SampledFilter& filter, const PayloadMap& payload);

}  // namespace simile::cli::bench

#pragma once

#include <cstdint>

namespace simile::filter {

// What a payload field's values are to a filter.
enum class FieldType : std::uint8_t {
  kKeyword,   // one text
  kKeywords,  // a list of texts, or a text like "A|B|C"
  kInteger,
  kNumber,
  kBoolean,
  kTime,   // RFC 3339 texts
  kOther,  // objects, lists of something else, values of several kinds: a filter can ask whether
           // they are there
};

// As messages and listings name it: "list of keywords".
const char* NameOf(FieldType type);

}  // namespace simile::filter

#include "filter/field_type.h"

namespace simile::filter {

const char* NameOf(FieldType type) {
  switch (type) {
    case FieldType::kKeyword:
      return "keyword";
    case FieldType::kKeywords:
      return "list of keywords";
    case FieldType::kInteger:
      return "integer";
    case FieldType::kNumber:
      return "number";
    case FieldType::kBoolean:
      return "boolean";
    case FieldType::kTime:
      return "time";
    case FieldType::kOther:
      break;
  }
  return "other";
}

}  // namespace simile::filter

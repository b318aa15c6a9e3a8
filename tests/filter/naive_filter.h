#pragma once

#include <string>

#include "data/field_type.h"
#include "filter/expression.h"
#include "simile/payload.h"

namespace simile::filter {

using data::FieldType;

// What an interpreter that looks at one row after the other needs to know of a field.
using TypeOfField = FieldType (*)(const std::string& field);

// Whether a row passes, told from docs/filters.md alone and from the row's own values: nothing here
// is shared with the evaluator but the folding of text and the reading of times.
// REQUIRES: the filter fits the fields' types.
bool NaivelyPasses(const Expression& expression, const std::string& id, const PayloadObject& row,
                   TypeOfField type_of);

}  // namespace simile::filter

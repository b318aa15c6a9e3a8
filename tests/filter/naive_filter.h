#pragma once

#include <string>

#include "data/field_type.h"
#include "filter/expression.h"
#include "simile/payload.h"

namespace simile::filter {

using data::FieldType;

// The type of a field.
using TypeOfField = FieldType (*)(const std::string& field);

// Whether a row passes by docs/filters.md, from the row's own values. Shares nothing with the
// evaluator except the folding of text and the parsing of times.
// REQUIRES: the filter fits the fields' types.
bool NaivelyPasses(const Expression& expression, const std::string& id, const PayloadObject& row,
                   TypeOfField type_of);

}  // namespace simile::filter

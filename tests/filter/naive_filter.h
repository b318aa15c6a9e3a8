#pragma once

#include <optional>
#include <string>

#include "data/payload/field_type.h"
#include "filter/expression.h"
#include "simile/payload.h"

namespace simile::filter {

using data::FieldType;

// The type of a field.
using TypeOfField = FieldType (*)(const std::string& field);

// Whether a row passes by docs/filters.md, from the row's own values; nothing where a value that
// does not fit its field's type leaves that open, which then also a NOT does not pass. Shares
// nothing with the evaluator except the folding of text and the parsing of times. Texts of the
// field `tags` are separated by bars.
// REQUIRES: the filter fits the fields' types.
std::optional<bool> NaivelyPasses(const Expression& expression, const std::string& id,
                                  const PayloadObject& row, TypeOfField type_of);

}  // namespace simile::filter

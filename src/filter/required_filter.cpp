#include "filter/required_filter.h"

#include <fmt/format.h>

#include "base/message_text.h"
#include "filter/expression.h"
#include "filter/operators.h"

namespace simile::filter {
namespace {

bool ComparesWholeValues(const Operator& comparison) {
  return comparison.keyword == KeywordTest::kNone || comparison.keyword == KeywordTest::kEqual;
}

}  // namespace

// Recurses as deep as the expression nests, which Parse bounds.
absl::Status CheckRequiredFilter(const Expression& expression) {
  for (const Expression& child : expression.children) {
    if (absl::Status status = CheckRequiredFilter(child); !status.ok()) return status;
  }
  const bool is_compare = expression.kind == Expression::Kind::kCompare;
  if (!is_compare && !expression.is_folded) return absl::OkStatus();
  Expression right = expression;
  right.is_folded = false;
  if (expression.is_folded) {
    return RefuseAt(expression.column,
                    fmt::format("{} also passes texts that differ from the value, in case or "
                                "accents, and a required filter must compare exactly; write {}",
                                ToText(expression), ToText(right)));
  }
  if (ComparesWholeValues(*expression.comparison)) return absl::OkStatus();
  right.comparison = &FindOperator("=");
  return RefuseAt(expression.column,
                  fmt::format("{} also passes texts that only contain the value, and a required "
                              "filter must compare whole values; write {}, which asks a list for "
                              "an element",
                              ToText(expression), ToText(right)));
}

absl::Status CheckStableFields(const Expression& expression, const data::PayloadTable& payload) {
  for (const Expression& child : expression.children) {
    if (absl::Status status = CheckStableFields(child, payload); !status.ok()) return status;
  }
  const auto number =
      expression.children.empty() ? payload.FieldNumber(expression.field) : std::nullopt;
  if (!number) return absl::OkStatus();  // Filters::Prepare refuses the field, or it is the id
  const data::FieldInfo& field = payload.fields()[*number];
  if (field.has_lasting_meaning) return absl::OkStatus();
  return RefuseAt(
      expression.column,
      fmt::format("{} has no declared type, and its values can be read in more than one way: add "
                  "\"field_types\": {{{}: {}}} to collection.json if that is what they are",
                  FieldText(field.name), base::Quoted(field.name),
                  base::Quoted(NameOf(field.type))));
}

}  // namespace simile::filter

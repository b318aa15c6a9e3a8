#include "filter/required_filter.h"

#include <fmt/format.h>

#include "filter/operators.h"
#include "filter/refusal.h"

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
  if (expression.kind != Expression::Kind::kCompare) return absl::OkStatus();
  if (ComparesWholeValues(*expression.comparison)) return absl::OkStatus();
  Expression right = expression;
  right.comparison = &OperatorOf("=");
  return RefuseAt(expression.column,
                  fmt::format("{} also passes texts that only contain the value, and a required "
                              "filter must compare whole values; write {}, which asks a list for "
                              "an element",
                              ToText(expression), ToText(right)));
}

}  // namespace simile::filter

#include "filter/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "data/wording.h"
#include "filter/literal_value.h"
#include "filter/refusal.h"
#include "filter/text_index.h"
#include "filter/unknown_field.h"

namespace simile::filter {
namespace {

constexpr std::string_view kIdField = "id";

// What one filter may cost: so many looks at rows for every row that there is. Filters that people
// write take a handful.
constexpr std::uint64_t kLooksPerRowMax = 64;
constexpr std::uint64_t kRowsMin = 4'096;  // that a small collection counts as

bool IsOrder(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess:
    case Comparison::kLessOrEqual:
    case Comparison::kGreater:
    case Comparison::kGreaterOrEqual:
      return true;
    case Comparison::kEqual:
    case Comparison::kNotEqual:
    case Comparison::kContains:
      return false;
  }
  return false;
}

std::string WithArticle(FieldType type) {
  return fmt::format("{} {}", type == FieldType::kInteger ? "an" : "a", NameOf(type));
}

// A number held against whole ones: the comparison and the whole number that let the same ones
// pass, or nothing when none does.
struct WholeComparison {
  Comparison comparison;
  std::int64_t value;
};
std::optional<WholeComparison> AmongWhole(Comparison comparison, double number) {
  constexpr double kEnd = 0x1p63;  // the least that is too great for an integer
  if (number >= kEnd || number < -kEnd) {
    const bool above_all = number > 0;
    const bool less = comparison == Comparison::kLess || comparison == Comparison::kLessOrEqual;
    if (!IsOrder(comparison) || less != above_all) return std::nullopt;
    return WholeComparison{Comparison::kGreaterOrEqual, std::numeric_limits<std::int64_t>::min()};
  }
  const double below = std::floor(number);
  const auto whole = static_cast<std::int64_t>(below);
  if (below == number) return WholeComparison{comparison, whole};
  switch (comparison) {
    case Comparison::kLess:
    case Comparison::kLessOrEqual:
      return WholeComparison{Comparison::kLessOrEqual, whole};
    case Comparison::kGreater:
    case Comparison::kGreaterOrEqual:
      return WholeComparison{Comparison::kGreater, whole};
    case Comparison::kEqual:
    case Comparison::kNotEqual:
    case Comparison::kContains:
      break;
  }
  return std::nullopt;
}

// Evaluates one expression. Rows of every intermediate result are all rows of the collection.
class Evaluator {
 public:
  explicit Evaluator(const FilterTarget& target) : target_(target) {}

  absl::StatusOr<RowMask> Rows(const Expression& expression) {
    switch (expression.kind) {
      case Expression::Kind::kAnd:
      case Expression::Kind::kOr:
        return Combined(expression);
      case Expression::Kind::kNot: {
        absl::StatusOr<RowMask> rows = Rows(expression.children.front());
        if (rows.ok()) rows->Invert();
        return rows;
      }
      case Expression::Kind::kHas: {
        const absl::StatusOr<const Field*> field = FieldOf(expression);
        if (!field.ok()) return field.status();
        return RowsThatHave(*field);
      }
      case Expression::Kind::kCompare:
      case Expression::Kind::kIn:
        break;
    }
    return Compared(expression);
  }

 private:
  RowMask None() const { return RowMask(target_.ids.size()); }

  absl::StatusOr<RowMask> Combined(const Expression& expression) {
    absl::StatusOr<RowMask> rows = Rows(expression.children.front());
    for (std::size_t i = 1; rows.ok() && i < expression.children.size(); ++i) {
      const absl::StatusOr<RowMask> more = Rows(expression.children[i]);
      if (!more.ok()) return more.status();
      if (expression.kind == Expression::Kind::kAnd) {
        rows->IntersectWith(*more);
      } else {
        rows->UniteWith(*more);
      }
    }
    return rows;
  }

  // The field that an expression names; null for the id.
  absl::StatusOr<const Field*> FieldOf(const Expression& expression) const {
    if (expression.field == kIdField) return nullptr;
    const Field* const field = target_.payload.Find(expression.field);
    if (field == nullptr)
      return RefuseAt(expression.column,
                      UnknownField(target_.collection, expression.field, target_.payload));
    return field;
  }

  //   field  null for the id, which every row has
  RowMask RowsThatHave(const Field* field) {
    RowMask rows = None();
    if (field == nullptr) {
      rows.Invert();
    } else {
      looks_ += field->present.AddTo(rows);
    }
    return rows;
  }

  absl::StatusOr<RowMask> Compared(const Expression& expression) {
    const absl::StatusOr<const Field*> field = FieldOf(expression);
    if (!field.ok()) return field.status();
    const bool is_in = expression.kind == Expression::Kind::kIn;
    // Those that have a value, less those that have this one.
    const bool differs = !is_in && expression.comparison == Comparison::kNotEqual;
    const Comparison comparison = is_in || differs ? Comparison::kEqual : expression.comparison;
    RowMask rows = None();
    for (const Literal& literal : expression.literals) {
      const absl::Status status = *field == nullptr
                                      ? AddIds(expression, comparison, literal, rows)
                                      : AddRows(expression, **field, comparison, literal, rows);
      if (!status.ok()) return status;
      looks_ += target_.ids.size() / 64;  // for the masks
      if (looks_ > kLooksPerRowMax * std::max<std::uint64_t>(target_.ids.size(), kRowsMin)) {
        return RefuseAt(literal.column,
                        fmt::format("up to here the conditions have looked {} times at every row, "
                                    "which is as often as a filter may; write it shorter",
                                    kLooksPerRowMax));
      }
    }
    if (differs) {
      rows.Invert();
      rows.IntersectWith(RowsThatHave(*field));
    }
    return rows;
  }

  absl::Status AddIds(const Expression& expression, Comparison comparison, const Literal& literal,
                      RowMask& rows) const {
    if (comparison != Comparison::kEqual) {
      return RefuseAt(
          expression.column,
          fmt::format("ids compare with =, != and IN; {} is not for them", SymbolOf(comparison)));
    }
    if (const std::optional<Row> row = target_.ids.Find(literal.text)) rows.Allow(*row);
    return absl::OkStatus();
  }

  absl::Status AddRows(const Expression& expression, const Field& field, Comparison comparison,
                       const Literal& literal, RowMask& rows) {
    switch (field.type) {
      case FieldType::kKeyword:
      case FieldType::kKeywords:
        return AddKeyword(expression, field, comparison, literal, rows);
      case FieldType::kInteger:
      case FieldType::kNumber:
        return AddNumber(expression, field, comparison, literal, rows);
      case FieldType::kTime:
        return AddTime(expression, field, comparison, literal, rows);
      case FieldType::kBoolean:
        return AddBoolean(expression, field, comparison, literal, rows);
      case FieldType::kOther:
        break;
    }
    return RefuseAt(expression.column,
                    fmt::format("{0} holds values that cannot be compared; has({0}) can be asked",
                                FieldText(field.name)));
  }

  absl::Status AddKeyword(const Expression& expression, const Field& field, Comparison comparison,
                          const Literal& literal, RowMask& rows) {
    if (IsOrder(comparison)) {
      return RefuseAt(
          expression.column,
          fmt::format("{} is {}, which has no order; {} is for integers, numbers and "
                      "times. Write =, !=, : or IN",
                      FieldText(field.name), WithArticle(field.type), SymbolOf(comparison)));
    }
    const auto& column = std::get<KeywordColumn>(field.column);
    if (comparison == Comparison::kContains && field.type == FieldType::kKeyword) {
      if (FoldText(literal.text).empty()) {
        return RefuseAt(literal.column,
                        fmt::format("{} is contained in everything; write has({})",
                                    data::Quoted(literal.text), FieldText(field.name)));
      }
      looks_ += column.AddRowsWithPart(literal.text, rows);
    } else {
      looks_ += column.AddRowsWith(literal.text, rows);
    }
    return absl::OkStatus();
  }

  static absl::Status RefuseContains(const Expression& expression, const Field& field) {
    return RefuseAt(expression.column,
                    fmt::format("{} is {}; : asks what a text or a list contains. Write =",
                                FieldText(field.name), WithArticle(field.type)));
  }

  absl::Status AddNumber(const Expression& expression, const Field& field, Comparison comparison,
                         const Literal& literal, RowMask& rows) {
    if (comparison == Comparison::kContains) return RefuseContains(expression, field);
    const absl::StatusOr<NumberLiteral> number = NumberIn(literal, field.name);
    if (!number.ok()) return number.status();
    if (field.type == FieldType::kNumber) {
      const double value = std::visit([](auto n) { return static_cast<double>(n); }, *number);
      looks_ += std::get<OrderedColumn<double>>(field.column).AddRows(comparison, value, rows);
      return absl::OkStatus();
    }
    const auto& column = std::get<OrderedColumn<std::int64_t>>(field.column);
    if (const auto* const whole = std::get_if<std::int64_t>(&*number)) {
      looks_ += column.AddRows(comparison, *whole, rows);
    } else if (const auto among = AmongWhole(comparison, std::get<double>(*number))) {
      looks_ += column.AddRows(among->comparison, among->value, rows);
    }
    return absl::OkStatus();
  }

  absl::Status AddTime(const Expression& expression, const Field& field, Comparison comparison,
                       const Literal& literal, RowMask& rows) {
    if (comparison == Comparison::kContains) return RefuseContains(expression, field);
    const absl::StatusOr<std::int64_t> time = TimeIn(literal, field.name);
    if (!time.ok()) return time.status();
    looks_ += std::get<OrderedColumn<std::int64_t>>(field.column).AddRows(comparison, *time, rows);
    return absl::OkStatus();
  }

  absl::Status AddBoolean(const Expression& expression, const Field& field, Comparison comparison,
                          const Literal& literal, RowMask& rows) {
    if (comparison == Comparison::kContains) return RefuseContains(expression, field);
    if (IsOrder(comparison)) {
      return RefuseAt(expression.column,
                      fmt::format("{0} is true or false; write {0} = true", FieldText(field.name)));
    }
    const absl::StatusOr<bool> wanted = BooleanIn(literal, field.name);
    if (!wanted.ok()) return wanted.status();
    RowMask found = None();
    looks_ += std::get<RowSet>(field.column).AddTo(found);
    if (!*wanted) {
      found.Invert();
      found.IntersectWith(RowsThatHave(&field));
    }
    rows.UniteWith(found);
    return absl::OkStatus();
  }

  const FilterTarget& target_;
  std::uint64_t looks_ = 0;  // at rows and keywords
};

}  // namespace

absl::StatusOr<RowMask> Evaluate(const Expression& expression, const FilterTarget& target) {
  return Evaluator(target).Rows(expression);
}

}  // namespace simile::filter

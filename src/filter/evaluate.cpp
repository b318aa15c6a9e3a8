#include "filter/evaluate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "base/message_text.h"
#include "filter/literal_value.h"
#include "filter/operators.h"
#include "filter/refusal.h"
#include "filter/text_index.h"
#include "filter/unknown_field.h"

namespace simile::filter {
namespace {

constexpr std::string_view kIdField = "id";

// Bounds the work of one filter: it may look this often at every row, and a small collection counts
// as kRowsMin rows. Typical filters look at each row fewer than ten times.
constexpr std::uint64_t kLooksPerRowMax = 64;
constexpr std::uint64_t kRowsMin = 4'096;

std::string WithArticle(FieldType type) {
  return fmt::format("{} {}", type == FieldType::kInteger ? "an" : "a", NameOf(type));
}

// A comparison of integers with `number` as one with an integer, which the same integers pass.
struct WholeComparison {
  Sides sides;
  std::int64_t value = 0;
};
WholeComparison AmongWhole(Sides sides, double number) {
  constexpr double kEnd = 0x1p63;  // the least number that is too great for an integer
  const auto all = [](bool pass) {
    return WholeComparison{{.below = pass, .equal = pass, .above = pass}};
  };
  if (number >= kEnd) return all(sides.below);
  if (number < -kEnd) return all(sides.above);
  const double floor = std::floor(number);
  const auto whole = static_cast<std::int64_t>(floor);
  if (floor == number) return {sides, whole};
  return {{.below = sides.below, .equal = sides.below, .above = sides.above}, whole};
}

// Evaluates one expression. Every intermediate mask covers all rows of the collection.
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

  // The field of an expression; null for the id.
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
    const Operator& op =
        expression.kind == Expression::Kind::kIn ? OperatorOf("=") : *expression.comparison;
    RowMask rows = None();
    for (const Literal& literal : expression.literals) {
      const absl::Status status = *field == nullptr
                                      ? AddIds(expression, op, literal, rows)
                                      : AddRows(expression, **field, op, literal, rows);
      if (!status.ok()) return status;
      looks_ += target_.ids.size() / 64;  // for the masks
      if (looks_ > kLooksPerRowMax * std::max<std::uint64_t>(target_.ids.size(), kRowsMin)) {
        return RefuseAt(literal.column,
                        fmt::format("up to here the conditions have looked {} times at every row, "
                                    "which is as often as a filter may; write it shorter",
                                    kLooksPerRowMax));
      }
    }
    if (op.negated) {
      rows.Invert();
      rows.IntersectWith(RowsThatHave(*field));
    }
    return rows;
  }

  absl::Status AddIds(const Expression& expression, const Operator& op, const Literal& literal,
                      RowMask& rows) const {
    if (!op.equality()) {
      return RefuseAt(
          expression.column,
          fmt::format("ids compare with {}; {} is not for them",
                      ListComparisons("and", std::mem_fn(&Operator::equality)), op.symbol));
    }
    if (const std::optional<Row> row = target_.ids.Find(literal.text)) rows.Allow(*row);
    return absl::OkStatus();
  }

  absl::Status AddRows(const Expression& expression, const Field& field, const Operator& op,
                       const Literal& literal, RowMask& rows) {
    if (!op.IsFor(field.type)) return RefuseOperator(expression, field, op);
    switch (field.type) {
      case FieldType::kKeyword:
      case FieldType::kKeywords:
        return AddKeyword(field, op, literal, rows);
      case FieldType::kInteger:
      case FieldType::kNumber:
        return AddNumber(field, op.sides, literal, rows);
      case FieldType::kTime:
        return AddTime(field, op.sides, literal, rows);
      case FieldType::kBoolean:
        return AddBoolean(field, literal, rows);
      case FieldType::kOther:
        break;
    }
    return absl::OkStatus();
  }

  // REQUIRES: !op.IsFor(field.type).
  static absl::Status RefuseOperator(const Expression& expression, const Field& field,
                                     const Operator& op) {
    const std::string name = FieldText(field.name);
    if (field.type == FieldType::kOther) {
      return RefuseAt(
          expression.column,
          fmt::format("{0} holds values that cannot be compared; has({0}) can be asked", name));
    }
    if (!op.asks.empty()) {
      return RefuseAt(expression.column, fmt::format("{} is {}; {} asks {}. Write =", name,
                                                     WithArticle(field.type), op.symbol, op.asks));
    }
    if (field.type == FieldType::kBoolean) {
      return RefuseAt(expression.column,
                      fmt::format("{0} is true or false; write {0} = true", name));
    }
    const std::string comparisons =
        ListComparisons("or", [&field](const Operator& each) { return each.IsFor(field.type); });
    return RefuseAt(expression.column,
                    fmt::format("{} is {}, which has no order; {} is for integers, numbers and "
                                "times. Write {}",
                                name, WithArticle(field.type), op.symbol, comparisons));
  }

  absl::Status AddKeyword(const Field& field, const Operator& op, const Literal& literal,
                          RowMask& rows) {
    const KeywordRows add_rows = field.type == FieldType::kKeyword ? op.keyword : op.keywords;
    if (!op.empty_text.empty() && add_rows != &KeywordColumn::AddRowsWith &&
        FoldText(literal.text).empty()) {
      return RefuseAt(literal.column,
                      fmt::format("{} {}; write has({})", base::Quoted(literal.text), op.empty_text,
                                  FieldText(field.name)));
    }
    looks_ += (std::get<KeywordColumn>(field.column).*add_rows)(literal.text, rows);
    return absl::OkStatus();
  }

  absl::Status AddNumber(const Field& field, Sides sides, const Literal& literal, RowMask& rows) {
    const absl::StatusOr<NumberLiteral> number = NumberIn(literal, field.name);
    if (!number.ok()) return number.status();
    if (field.type == FieldType::kNumber) {
      const double value = std::visit([](auto n) { return static_cast<double>(n); }, *number);
      looks_ += std::get<OrderedColumn<double>>(field.column).AddRows(sides, value, rows);
      return absl::OkStatus();
    }
    const auto* const whole = std::get_if<std::int64_t>(&*number);
    const WholeComparison among = whole != nullptr ? WholeComparison{sides, *whole}
                                                   : AmongWhole(sides, std::get<double>(*number));
    looks_ +=
        std::get<OrderedColumn<std::int64_t>>(field.column).AddRows(among.sides, among.value, rows);
    return absl::OkStatus();
  }

  absl::Status AddTime(const Field& field, Sides sides, const Literal& literal, RowMask& rows) {
    const absl::StatusOr<std::int64_t> time = TimeIn(literal, field.name);
    if (!time.ok()) return time.status();
    looks_ += std::get<OrderedColumn<std::int64_t>>(field.column).AddRows(sides, *time, rows);
    return absl::OkStatus();
  }

  absl::Status AddBoolean(const Field& field, const Literal& literal, RowMask& rows) {
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

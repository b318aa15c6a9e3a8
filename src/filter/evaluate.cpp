#include "filter/evaluate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "data/payload/field_type.h"
#include "filter/expression.h"
#include "filter/operators.h"
#include "filter/suggestions.h"
#include "filter/text_index.h"

namespace simile::filter {
namespace {

// A number in a filter: an integer when it is written as an integer and fits.
using NumberLiteral = std::variant<std::int64_t, double>;

std::optional<NumberLiteral> ParseNumber(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && stop == end) {
    return whole;
  }
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (stop != end) return std::nullopt;
  // Too small or too large for a double: strtod returns zero or infinity.
  if (error == std::errc::result_out_of_range)
    number = std::strtod(std::string(text).c_str(), nullptr);
  if (error == std::errc::invalid_argument || !std::isfinite(number)) return std::nullopt;
  return number;
}

// The value of a literal for a field of each type; a time is as data::ParseTime returns it.
// Errors: kInvalidArgument, `column N: ` with what was found and what to write.
absl::StatusOr<NumberLiteral> NumberIn(const Literal& literal, const std::string& field) {
  const std::optional<NumberLiteral> number = ParseNumber(literal.text);
  if (number && !literal.quoted) return *number;
  if (number) {
    return RefuseAt(literal.column,
                    fmt::format("{} holds numbers and {} is text; write {}", FieldText(field),
                                base::Quoted(literal.text), literal.text));
  }
  return RefuseAt(literal.column, fmt::format("{} holds numbers; {} is none", FieldText(field),
                                              base::Quoted(literal.text)));
}

absl::StatusOr<bool> BooleanIn(const Literal& literal, const std::string& field) {
  const std::string folded = FoldText(literal.text);
  if (folded == "true") return true;
  if (folded == "false") return false;
  return RefuseAt(literal.column, fmt::format("{} is true or false; found {}", FieldText(field),
                                              base::Quoted(literal.text)));
}

absl::StatusOr<std::int64_t> TimeIn(const Literal& literal, const std::string& field) {
  const std::optional<std::int64_t> time = data::ParseTime(literal.text);
  if (time) return *time;
  return RefuseAt(literal.column, fmt::format("{} holds times; {} is none. Write \"2024-05-31\" or "
                                              "\"2024-05-31T12:00:00Z\"",
                                              FieldText(field), base::Quoted(literal.text)));
}

constexpr std::string_view kIdField = "id";

// The estimated time of a look at a row, and of a look at a keyword.
constexpr std::uint64_t kRowNs = 2;
constexpr std::uint64_t kKeywordNs = 40;
// Rows that are added to a mask at once.
constexpr std::size_t kRowsOfPiece = 64U << 10;

std::string WithArticle(FieldType type) {
  return fmt::format("{} {}", type == FieldType::kInteger ? "an" : "a", NameOf(type));
}

// A comparison with an integer that passes the same integers as a comparison with `number`.
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

// Evaluates one expression, or estimates the work. An estimate is the same walk on masks without
// rows; in an evaluation every mask covers all rows of the collection.
class Evaluator {
 public:
  //   work  null to estimate
  Evaluator(const FilterTarget& target, base::LongWork* work) : target_(target), work_(work) {}

  std::uint64_t looks() const { return looks_; }

  // The rows that pass. A NOT is carried down to the conditions, because a value that does not fit
  // its field's type passes neither a condition nor the condition's NOT.
  //   negated  the rows that pass NOT of the expression
  absl::StatusOr<RowMask> Rows(const Expression& expression, bool negated = false) {
    switch (expression.kind) {
      case Expression::Kind::kAnd:
      case Expression::Kind::kOr:
        return Combined(expression, negated);
      case Expression::Kind::kNot:
        return Rows(expression.children.front(), !negated);
      case Expression::Kind::kHas:
      case Expression::Kind::kCompare:
      case Expression::Kind::kIn:
        break;
    }
    const absl::StatusOr<const Field*> field = FindField(expression);
    if (!field.ok()) return field.status();
    absl::StatusOr<RowMask> rows = expression.kind == Expression::Kind::kHas
                                       ? RowsThatHave(*field)
                                       : Compared(expression, *field);
    if (!rows.ok() || !negated) return rows;
    rows->Invert();
    if (*field == nullptr || (*field)->unfit.size() == 0) return rows;
    RowMask others = None();
    if (absl::Status status = Add((*field)->unfit, others); !status.ok()) return status;
    others.Invert();
    rows->IntersectWith(others);
    return rows;
  }

 private:
  RowMask None() const { return RowMask(work_ == nullptr ? 0 : target_.ids.size()); }

  absl::Status Look(std::uint64_t looks, std::uint64_t ns_each = kRowNs) {
    looks_ += looks;
    return work_ == nullptr ? absl::OkStatus() : work_->Did(looks * ns_each);
  }

  absl::StatusOr<RowMask> Combined(const Expression& expression, bool negated) {
    const bool all_must_pass = (expression.kind == Expression::Kind::kAnd) != negated;
    absl::StatusOr<RowMask> rows = Rows(expression.children.front(), negated);
    for (std::size_t i = 1; rows.ok() && i < expression.children.size(); ++i) {
      const absl::StatusOr<RowMask> more = Rows(expression.children[i], negated);
      if (!more.ok()) return more.status();
      if (all_must_pass) {
        rows->IntersectWith(*more);
      } else {
        rows->UniteWith(*more);
      }
    }
    return rows;
  }

  // The field of an expression; null for the id.
  absl::StatusOr<const Field*> FindField(const Expression& expression) const {
    if (expression.field == kIdField) return nullptr;
    const Field* const field = target_.payload.Find(expression.field);
    if (field == nullptr)
      return RefuseAt(expression.column,
                      UnknownField(target_.collection, expression.field, target_.payload));
    return field;
  }

  //   field  null for the id, which every row has
  absl::StatusOr<RowMask> RowsThatHave(const Field* field) {
    RowMask rows = None();
    if (field == nullptr) {
      rows.Invert();
      return rows;
    }
    absl::Status status = Add(field->present, rows);
    if (!status.ok()) return status;
    return rows;
  }

  // Replaces the rows by the other rows that have the field.
  absl::Status Negate(const Field* field, RowMask& rows) {
    const absl::StatusOr<RowMask> present = RowsThatHave(field);
    if (!present.ok()) return present.status();
    rows.Invert();
    rows.IntersectWith(*present);
    return absl::OkStatus();
  }

  absl::Status Add(const RowSet& set, RowMask& rows) {
    if (work_ != nullptr) set.AddTo(rows);
    return Look(set.looks());
  }

  //   field  null for the id
  absl::StatusOr<RowMask> Compared(const Expression& expression, const Field* field) {
    const Operator& op =
        expression.kind == Expression::Kind::kIn ? FindOperator("=") : *expression.comparison;
    RowMask rows = None();
    for (const Literal& literal : expression.literals) {
      absl::Status status = field == nullptr ? AddIds(expression, op, literal, rows)
                                             : AddRows(expression, *field, op, literal, rows);
      if (status.ok()) status = Look(target_.ids.size() / 64 + 1);  // for the masks
      if (!status.ok()) return status;
    }
    if (!op.negated) return rows;
    absl::Status status = Negate(field, rows);
    if (!status.ok()) return status;
    return rows;
  }

  absl::Status AddIds(const Expression& expression, const Operator& op, const Literal& literal,
                      RowMask& rows) const {
    if (expression.is_folded) return RefuseFolded(expression, "an id, which compares exactly");
    if (!op.equality()) {
      return RefuseAt(
          expression.column,
          fmt::format("ids compare with {}; {} is not for them",
                      ListComparisons("and", std::mem_fn(&Operator::equality)), op.symbol));
    }
    if (work_ == nullptr) return absl::OkStatus();
    if (const std::optional<Row> row = target_.ids.Find(literal.text)) rows.Allow(*row);
    return absl::OkStatus();
  }

  absl::Status AddRows(const Expression& expression, const Field& field, const Operator& op,
                       const Literal& literal, RowMask& rows) {
    if (!op.IsFor(field.type)) return RefuseOperator(expression, field, op);
    const bool is_text = std::holds_alternative<KeywordColumn>(field.column);
    if (expression.is_folded && !is_text) {
      return RefuseFolded(expression, WithArticle(field.type));
    }
    const Sides sides = IsList(field.type) ? op.element_sides() : op.sides;
    switch (data::TypeOfElements(field.type)) {
      case FieldType::kKeyword:
        return expression.is_folded ? AddFoldedEqual(field, literal, rows)
                                    : AddKeyword(field, op, literal, rows);
      case FieldType::kInteger:
      case FieldType::kNumber:
        return AddNumber(field, sides, literal, rows);
      case FieldType::kTime:
        return AddTime(field, sides, literal, rows);
      case FieldType::kBoolean:
        return AddBoolean(field, literal, rows);
      default:
        return absl::OkStatus();
    }
  }

  static absl::Status RefuseFolded(const Expression& expression, std::string_view what) {
    const std::string name = FieldText(expression.field);
    return RefuseAt(expression.column,
                    fmt::format("folded() is for texts; {} is {}. Write {} =", name, what, name));
  }

  // The first fields inside the objects of a field.
  std::vector<std::string> FieldsInside(const Field& object) const {
    constexpr std::size_t kListedMax = 8;
    std::vector<std::string> names;
    for (const Field& field : target_.payload.fields()) {
      if (!field.is_nested || !field.name.starts_with(object.name + '.')) continue;
      if (names.size() == kListedMax) {
        names.emplace_back("...");
        break;
      }
      names.push_back(FieldText(field.name));
    }
    return names;
  }

  // REQUIRES: !op.IsFor(field.type).
  absl::Status RefuseOperator(const Expression& expression, const Field& field,
                              const Operator& op) const {
    const std::string name = FieldText(field.name);
    if (field.type == FieldType::kOther) {
      const std::vector<std::string> inside = FieldsInside(field);
      if (!inside.empty()) {
        return RefuseAt(expression.column,
                        fmt::format("{} holds objects; compare a field of them: {}", name,
                                    fmt::join(inside, ", ")));
      }
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
    const auto& column = std::get<KeywordColumn>(field.column);
    const KeywordTest test = field.type == FieldType::kKeyword ? op.keyword : op.keywords;
    if (test == KeywordTest::kEqual) {
      const std::optional<std::uint32_t> keyword = column.Find(literal.text);
      return keyword ? AddKeywordRows(column, *keyword, rows) : absl::OkStatus();
    }
    const std::string part = FoldText(literal.text);
    if (test == KeywordTest::kFolded) {
      return AddRange(column, column.FindFolded(part), rows, [](std::size_t) { return true; });
    }
    if (part.empty()) {
      return RefuseAt(literal.column,
                      fmt::format("{} {}; write has({})", base::Quoted(literal.text), op.empty_text,
                                  FieldText(field.name)));
    }
    // The number of keywords that contain the text is not known beforehand, so the estimate takes
    // all rows to pass.
    if (work_ == nullptr) return Look(column.keyword_count() + field.present.size());
    return AddRange(column, {0, column.keyword_count()}, rows,
                    [&](std::size_t keyword) { return column.Contains(keyword, part); });
  }

  absl::Status AddFoldedEqual(const Field& field, const Literal& literal, RowMask& rows) {
    const auto& column = std::get<KeywordColumn>(field.column);
    return AddRange(
        column, column.FindFolded(FoldText(literal.text)), rows,
        [&](std::size_t keyword) { return EqualFolded(column.Text(keyword), literal.text); });
  }

  // Adds the rows of each keyword of the range for which pass(keyword) is true.
  template <class Pass>
  absl::Status AddRange(const KeywordColumn& column, KeywordColumn::Range range, RowMask& rows,
                        Pass pass) {
    for (std::size_t keyword = range.begin; keyword < range.end; ++keyword) {
      absl::Status status = Look(1, kKeywordNs);
      if (status.ok() && pass(keyword)) status = AddKeywordRows(column, keyword, rows);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status AddKeywordRows(const KeywordColumn& column, std::size_t keyword, RowMask& rows) {
    if (work_ != nullptr) column.AddRows(keyword, rows);
    return Look(column.LooksFor(keyword));
  }

  // Adds the rows of a column whose value passes.
  template <class Value>
  absl::Status Add(const OrderedColumn<Value>& column, Sides sides, Value value, RowMask& rows) {
    for (std::span<const Row> passing : column.RowsThatPass(sides, value)) {
      if (work_ == nullptr) {
        looks_ += passing.size();
        continue;
      }
      while (!passing.empty()) {
        const std::size_t count = std::min(passing.size(), kRowsOfPiece);
        for (const Row row : passing.first(count)) rows.Allow(row);
        if (absl::Status status = Look(count); !status.ok()) return status;
        passing = passing.subspan(count);
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddNumber(const Field& field, Sides sides, const Literal& literal, RowMask& rows) {
    const absl::StatusOr<NumberLiteral> number = NumberIn(literal, field.name);
    if (!number.ok()) return number.status();
    if (data::TypeOfElements(field.type) == FieldType::kNumber) {
      const Number value = std::visit([](auto n) { return Number(n); }, *number);
      return Add(std::get<OrderedColumn<Number>>(field.column), sides, value, rows);
    }
    const auto* const whole = std::get_if<std::int64_t>(&*number);
    const WholeComparison among = whole != nullptr ? WholeComparison{sides, *whole}
                                                   : AmongWhole(sides, std::get<double>(*number));
    return Add(std::get<OrderedColumn<std::int64_t>>(field.column), among.sides, among.value, rows);
  }

  absl::Status AddTime(const Field& field, Sides sides, const Literal& literal, RowMask& rows) {
    const absl::StatusOr<std::int64_t> time = TimeIn(literal, field.name);
    if (!time.ok()) return time.status();
    return Add(std::get<OrderedColumn<std::int64_t>>(field.column), sides, *time, rows);
  }

  absl::Status AddBoolean(const Field& field, const Literal& literal, RowMask& rows) {
    const absl::StatusOr<bool> wanted = BooleanIn(literal, field.name);
    if (!wanted.ok()) return wanted.status();
    const auto& column = std::get<BooleanColumn>(field.column);
    return Add(*wanted ? column.with_true : column.with_false, rows);
  }

  const FilterTarget& target_;
  base::LongWork* const work_;
  std::uint64_t looks_ = 0;  // at rows and keywords
};

}  // namespace

absl::StatusOr<std::uint64_t> EstimateLooks(const Expression& expression,
                                            const FilterTarget& target) {
  Evaluator estimator(target, nullptr);
  const absl::StatusOr<RowMask> rows = estimator.Rows(expression);
  if (!rows.ok()) return rows.status();
  return estimator.looks();
}

absl::StatusOr<RowMask> Evaluate(const Expression& expression, const FilterTarget& target,
                                 base::LongWork& work) {
  return Evaluator(target, &work).Rows(expression);
}

}  // namespace simile::filter

#include "filter/literal_value.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/time_value.h"
#include "filter/refusal.h"
#include "filter/text_index.h"

namespace simile::filter {
namespace {

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

}  // namespace

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

}  // namespace simile::filter

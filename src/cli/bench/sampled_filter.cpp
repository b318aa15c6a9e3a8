#include "cli/bench/sampled_filter.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

namespace simile::cli::bench {
namespace {

// Names that filters take without quotes.
bool IsPlainName(const std::string& name) {
  return !name.empty() && (std::isdigit(static_cast<unsigned char>(name[0])) == 0) &&
         std::ranges::all_of(name, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

// Text that filters take in quotes as it is.
bool IsPlainText(const std::string& text) {
  return std::ranges::none_of(text, [](char c) {
    return c == '"' || c == '\\' || std::iscntrl(static_cast<unsigned char>(c)) != 0;
  });
}

// The parts of "A | B" between the bars, without the white space around them.
std::vector<std::string> PartsOf(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, '|');) {
    const std::size_t begin = part.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(" \t") + 1 - begin));
  }
  return parts;
}

}  // namespace

std::vector<SampledFilter> SampleFilters(const v1::FieldDescription& described) {
  std::vector<SampledFilter> filters;
  const v1::PayloadField& field = described.field();
  if (!IsPlainName(field.name())) return filters;
  if (field.type() == v1::FIELD_TYPE_KEYWORD || field.type() == v1::FIELD_TYPE_KEYWORD_LIST) {
    for (const v1::ValueCount& value : described.values()) {
      const std::string& text = value.value().string_value();
      if (value.rows() < 2 || !IsPlainText(text)) continue;
      filters.push_back(
          {fmt::format("{} = \"{}\"", field.name(), text), field.name(), field.type(), text, 0});
    }
  }
  if (field.type() == v1::FIELD_TYPE_INTEGER) {
    const auto least = static_cast<double>(described.least().int_value());
    const auto greatest = static_cast<double>(described.greatest().int_value());
    for (const double share : {0.25, 0.5, 0.75}) {
      const std::int64_t from = std::llround(least + share * (greatest - least));
      filters.push_back(
          {fmt::format("{} >= {}", field.name(), from), field.name(), field.type(), "", from});
    }
  }
  return filters;
}

std::vector<std::string> KeywordsOf(v1::FieldType type, const v1::PayloadValue& value) {
  std::vector<std::string> keywords;
  if (value.has_list_value()) {
    for (const v1::PayloadValue& item : value.list_value().values()) {
      keywords.push_back(item.string_value());
    }
  } else if (value.has_string_value() && type == v1::FIELD_TYPE_KEYWORD_LIST) {
    keywords = PartsOf(value.string_value());
  } else if (value.has_string_value()) {
    keywords.push_back(value.string_value());
  }
  return keywords;
}

bool Passes(const SampledFilter& filter, const PayloadMap& payload) {
  const auto found = payload.find(filter.field);
  if (found == payload.end()) return false;
  if (filter.type != v1::FIELD_TYPE_INTEGER) {
    const v1::PayloadValue& value = found->second;
    if (value.has_string_value() && value.string_value() == filter.keyword) return true;
    const std::vector<std::string> keywords = KeywordsOf(filter.type, value);
    return std::ranges::find(keywords, filter.keyword) != keywords.end();
  }
  const v1::PayloadValue& value = found->second;
  if (value.has_double_value()) {
    const double number = value.double_value();
    return std::floor(number) == number && std::abs(number) < 0x1p63 &&
           static_cast<std::int64_t>(number) >= filter.least;
  }
  return value.has_int_value() && value.int_value() >= filter.least;
}

}  // namespace simile::cli::bench

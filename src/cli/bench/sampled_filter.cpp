#include "cli/bench/sampled_filter.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "filter/separated_keywords.h"
#include "filter/text_index.h"

namespace simile::cli::bench {
namespace {

// Names that filters take without quotes.
bool IsPlainName(const std::string& name) {
  return !name.empty() && (std::isdigit(static_cast<unsigned char>(name[0])) == 0) &&
         std::ranges::all_of(name, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

}  // namespace

std::vector<SampledFilter> SampleFilters(const v1::FieldDescription& described) {
  std::vector<SampledFilter> filters;
  const v1::PayloadField& field = described.field();
  if (!IsPlainName(field.name())) return filters;
  const bool is_list = field.type() == v1::FIELD_TYPE_KEYWORD_LIST;
  if (is_list || field.type() == v1::FIELD_TYPE_KEYWORD) {
    for (const v1::ValueCount& value : described.values()) {
      const std::string& text = value.value().string_value();
      if (value.rows() < 2 || text.find_first_of("\"\\") != std::string::npos) continue;
      filters.push_back({fmt::format("{}{}\"{}\"", field.name(), is_list ? ":" : " = ", text),
                         field.name(), field.type(), filter::FoldText(text), 0});
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
    for (const std::string_view part : filter::SplitKeywords(value.string_value())) {
      keywords.emplace_back(part);
    }
  } else if (value.has_string_value()) {
    keywords.push_back(value.string_value());
  }
  return keywords;
}

bool Passes(const SampledFilter& filter, const PayloadMap& payload) {
  const auto found = payload.find(filter.field);
  if (found == payload.end()) return false;
  if (filter.type != v1::FIELD_TYPE_INTEGER) {
    return std::ranges::any_of(KeywordsOf(filter.type, found->second), [&](const auto& keyword) {
      return filter::FoldText(keyword) == filter.keyword;
    });
  }
  return found->second.kind_case() == v1::PayloadValue::kIntValue &&
         found->second.int_value() >= filter.least;
}

}  // namespace simile::cli::bench

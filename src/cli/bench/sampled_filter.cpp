#include "cli/bench/sampled_filter.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

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

bool HasKeyword(const v1::PayloadValue& value, const std::string& folded) {
  if (value.has_list_value()) {
    return std::ranges::any_of(value.list_value().values(), [&](const v1::PayloadValue& item) {
      return filter::FoldText(item.string_value()) == folded;
    });
  }
  return filter::FoldText(value.string_value()) == folded;
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
                         field.name(), filter::FoldText(text), 0});
    }
  }
  if (field.type() == v1::FIELD_TYPE_INTEGER) {
    const auto least = static_cast<double>(described.least().int_value());
    const auto greatest = static_cast<double>(described.greatest().int_value());
    for (const double share : {0.25, 0.5, 0.75}) {
      const std::int64_t from = std::llround(least + share * (greatest - least));
      filters.push_back({fmt::format("{} >= {}", field.name(), from), field.name(), "", from});
    }
  }
  return filters;
}

bool Passes(const SampledFilter& filter, const PayloadMap& payload) {
  const auto found = payload.find(filter.field);
  if (found == payload.end()) return false;
  if (!filter.keyword.empty()) return HasKeyword(found->second, filter.keyword);
  return found->second.kind_case() == v1::PayloadValue::kIntValue &&
         found->second.int_value() >= filter.least;
}

}  // namespace simile::cli::bench

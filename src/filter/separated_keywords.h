#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/payload_table.h"
#include "simile/payload.h"

namespace simile::filter {

// The parts of "A|B|C" without the white space around them and without empty ones.
// REQUIRES: the separator is not empty.
std::vector<std::string_view> SplitKeywords(std::string_view text, std::string_view separator);

// Calls visit(element) for each element of a list, or visit(value) for any other value.
template <class Visit>
void ForEachElement(const PayloadValue& value, Visit visit) {
  const auto* const list = std::get_if<PayloadList>(&value.value);
  if (list == nullptr) return visit(value);
  for (const PayloadValue& element : *list) visit(element);
}

// Calls visit(keyword) for each keyword of a value: the elements of a list, or a text, which the
// field's separator cuts into several.
// REQUIRES: the value is a text or a list of texts.
template <class Visit>
void ForEachKeyword(const data::FieldInfo& field, const PayloadValue& value, Visit visit) {
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    for (const PayloadValue& element : *list) visit(std::get<std::string>(element.value));
    return;
  }
  const auto& text = std::get<std::string>(value.value);
  if (field.separator.empty()) return visit(std::string_view(text));
  for (const std::string_view part : SplitKeywords(text, field.separator)) visit(part);
}

}  // namespace simile::filter

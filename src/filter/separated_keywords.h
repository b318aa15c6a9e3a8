#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/field_type.h"
#include "simile/payload.h"

namespace simile::filter {

inline constexpr char kKeywordSeparator = '|';

// The parts of "A|B|C" without the white space around them and without empty ones.
std::vector<std::string_view> SplitKeywords(std::string_view text);

// Calls visit(keyword) for each keyword of a value.
// REQUIRES: the type is kKeyword or kKeywords, and the value a text or a list of texts.
template <class Visit>
void ForEachKeyword(data::FieldType type, const PayloadValue& value, Visit visit) {
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    for (const PayloadValue& element : *list) visit(std::get<std::string>(element.value));
    return;
  }
  const auto& text = std::get<std::string>(value.value);
  if (type == data::FieldType::kKeyword) return visit(text);
  for (const std::string_view part : SplitKeywords(text)) visit(part);
}

// Decides whether texts with bars are lists of keywords, as exports to tables write them: in such
// lists most parts occur more than once, in titles with a bar they do not.
class SeparatorEvidence {
 public:
  void Add(std::string_view text);
  bool SeparatesKeywords() const;

 private:
  std::unordered_map<std::string, std::uint32_t> occurrences_;  // of parts
};

}  // namespace simile::filter

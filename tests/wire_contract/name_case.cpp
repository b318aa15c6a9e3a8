#include "wire_contract/name_case.h"

#include <algorithm>
#include <cstddef>

namespace simile::wire_contract {
namespace {

bool IsLower(char letter) { return letter >= 'a' && letter <= 'z'; }
bool IsUpper(char letter) { return letter >= 'A' && letter <= 'Z'; }
bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }

// Words of letters and digits with one '_' between two of them; a letter first.
bool IsSnakeCase(std::string_view name, bool (*is_letter)(char)) {
  if (name.empty() || !is_letter(name.front()) || name.back() == '_') return false;
  if (name.find("__") != std::string_view::npos) return false;
  return std::ranges::all_of(
      name, [&](char letter) { return is_letter(letter) || IsDigit(letter) || letter == '_'; });
}

}  // namespace

bool IsPascalCase(std::string_view name) {
  return !name.empty() && IsUpper(name.front()) && std::ranges::all_of(name, [](char letter) {
    return IsUpper(letter) || IsLower(letter) || IsDigit(letter);
  });
}

bool IsLowerSnakeCase(std::string_view name) { return IsSnakeCase(name, IsLower); }
bool IsUpperSnakeCase(std::string_view name) { return IsSnakeCase(name, IsUpper); }

std::string UpperSnakeCaseOf(std::string_view pascal_case) {
  std::string words;
  for (std::size_t index = 0; index < pascal_case.size(); ++index) {
    const char letter = pascal_case[index];
    const char previous = index > 0 ? pascal_case[index - 1] : '_';
    const bool ends_word = !IsUpper(previous);
    const bool begins_word = index + 1 < pascal_case.size() && IsLower(pascal_case[index + 1]);
    if (previous != '_' && IsUpper(letter) && (ends_word || begins_word)) words += '_';
    words += IsLower(letter) ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return words;
}

}  // namespace simile::wire_contract

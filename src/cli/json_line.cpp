#include "cli/json_line.h"

#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

namespace simile::cli {

std::string JsonLine(const nlohmann::ordered_json& value) {
  constexpr int kNoIndent = -1;
  constexpr bool kEscapeNonAscii = false;
  return value.dump(kNoIndent, ' ', kEscapeNonAscii,
                    nlohmann::ordered_json::error_handler_t::replace) +
         '\n';
}

nlohmann::ordered_json FloatJson(float number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  double shortest = number;
  std::from_chars(digits.data(), end, shortest);
  return shortest;
}

}  // namespace simile::cli

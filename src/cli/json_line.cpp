#include "cli/json_line.h"

#include <nlohmann/json.hpp>

namespace simile::cli {

std::string JsonLine(const nlohmann::ordered_json& value) {
  constexpr int kNoIndent = -1;
  constexpr bool kEscapeNonAscii = false;
  return value.dump(kNoIndent, ' ', kEscapeNonAscii,
                    nlohmann::ordered_json::error_handler_t::replace) +
         '\n';
}

}  // namespace simile::cli

#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace simile::cli {

// The value of an environment variable; nothing if the variable is unset or empty.
inline std::optional<std::string> ReadVariable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace simile::cli

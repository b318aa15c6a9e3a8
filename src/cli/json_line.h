#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace simile::cli {

// The value on one line, ended by '\n'. File names and arguments may be any bytes and JSON may not:
// what is no UTF-8 becomes U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& value);

}  // namespace simile::cli

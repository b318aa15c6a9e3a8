#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace simile::cli {

// The value on one line, ended by '\n'. File names and arguments may be any bytes and JSON may not:
// what is no UTF-8 becomes U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& value);

// A float as a JSON number of the fewest digits. JSON numbers are doubles, and a float needs fewer
// digits than the double it widens to: 0.7029, not 0.7028999924659729. Both read back as the same
// float.
nlohmann::ordered_json FloatJson(float number);

}  // namespace simile::cli

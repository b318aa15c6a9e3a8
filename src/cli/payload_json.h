#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/payload_text.h"

namespace simile::cli {

// A payload value as the JSON it was loaded from; null for one that is not set.
nlohmann::ordered_json PayloadValueJson(const v1::PayloadValue& value);

// A row's payload as an object, its fields sorted by name.
nlohmann::ordered_json PayloadJson(const PayloadMap& payload);

}  // namespace simile::cli

#pragma once

#include <string>

#include <absl/status/status.h>
#include <nlohmann/json.hpp>

namespace simile::bench::gpu {

// Replaces the file in one step, so that a program that is killed leaves what it wrote before. An
// empty path writes nothing. Errors: kUnavailable.
absl::Status WriteJsonFile(const nlohmann::json& json, const std::string& path);

}  // namespace simile::bench::gpu

#include "bench/gpu/json_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace simile::bench::gpu {

absl::Status WriteJsonFile(const nlohmann::json& json, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const std::string unfinished = path + ".part";
  std::ofstream out(unfinished, std::ios::trunc);
  out << json.dump(1) << '\n';
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(unfinished, path, error);
  if (!out || error) return absl::UnavailableError(fmt::format("cannot write {}", path));
  return absl::OkStatus();
}

}  // namespace simile::bench::gpu

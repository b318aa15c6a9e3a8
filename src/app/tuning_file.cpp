#include "app/tuning_file.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/atomic_file.h"

namespace simile::app {
namespace {

using Json = nlohmann::ordered_json;

// The version of the file's format; each entry has the version of what measured it.
constexpr const char* kFormat = "simile_cpu_tuning";
constexpr int kVersion = 1;
constexpr std::size_t kBytesMax = 1U << 20;

Json NewFile() { return {{kFormat, kVersion}, {"machines", Json::array()}}; }

absl::Status NotATuningFile(const std::filesystem::path& file) {
  return absl::InvalidArgumentError(
      fmt::format("{}: not a tuning cache of this release; it is left as it is", file.string()));
}

}  // namespace

absl::StatusOr<Json> ReadTuningFile(const std::filesystem::path& file) {
  const absl::StatusOr<std::string> text = base::ReadWholeFile(file, kBytesMax);
  if (absl::IsInvalidArgument(text.status())) return NotATuningFile(file);
  if (!text.ok()) return text.status();
  if (text->empty()) return NewFile();
  Json content = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const bool is_ours = content.is_object() && content.contains(kFormat) &&
                       content.at(kFormat) == kVersion && content.contains("machines") &&
                       content.at("machines").is_array();
  if (!is_ours) return NotATuningFile(file);
  return content;
}

absl::Status WriteTuningFile(const std::filesystem::path& file, const Json& content) {
  constexpr int kIndent = 1;
  return base::ReplaceFile(file,
                           content.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n",
                           {.create_folders = true, .mode = 0644});
}

bool IsEntryFor(const Json& entry, const Json& key) {
  return std::ranges::all_of(key.items(), [&](const auto& member) {
    return entry.contains(member.key()) && entry.at(member.key()) == member.value();
  });
}

}  // namespace simile::app
